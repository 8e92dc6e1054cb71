"""The cocotb bench beside an export: plain files, which read the manifest when they run."""
