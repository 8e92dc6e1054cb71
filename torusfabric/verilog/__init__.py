"""Verilog text of a fabric, its manifest, and files for other ecosystems."""

from .text import emit, manifest, module_il, module_texts, write

__all__ = ["emit", "manifest", "module_il", "module_texts", "write"]
