"""The cocotb bench of an export: plain Python files that read the manifest when they run."""
