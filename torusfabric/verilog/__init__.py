"""Verilog text of a fabric, its manifest, and files for other ecosystems."""

from pathlib import Path

from ..rtl.fabric import Fabric
from ..toolchain.files import writable
from .conversion import ModuleText, module_texts
from .design import TEXT, Design
from .manifest import manifest
from .text import emit

__all__ = ["Design", "ModuleText", "emit", "manifest", "module_texts", "write"]


def write(fabric: Fabric, folder: str | Path, *, command: str) -> Design:
    """Write ``fabric.v`` and ``manifest.json`` into a folder, which is made if need be.

    For a core, ``address_map.json`` says which block arrives, or lies, where.

    Raises
    ------
    InputError
        If the folder cannot be written.
    """
    # Before the work, which may take long.
    writable(Path(folder, TEXT), make=True)
    design = emit(fabric, command=command)
    design.write(folder)
    return design
