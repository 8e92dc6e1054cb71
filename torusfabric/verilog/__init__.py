"""Verilog text of a fabric, its manifest, and files for other ecosystems."""

from pathlib import Path
from typing import Any

from ..rtl.fabric import Fabric
from .design import Design, write_made
from .manifest import manifest
from .module_text import ModuleText, Port, Structure
from .text import emit, module_texts

__all__ = ["Design", "ModuleText", "Port", "Structure", "emit", "manifest",
           "module_texts", "write"]  # fmt: skip


def write(
    fabric: Fabric,
    folder: str | Path,
    *,
    command: str,
    force: bool = False,
    **options: Any,
) -> Design:
    """Write ``fabric.v`` and ``manifest.json`` into a folder, which is made if need be.

    For a core, ``address_map.json`` says which block arrives, or lies, where.

    Parameters
    ----------
    command : str
        The command that makes the files.
    force : bool
        Whether files of others in the folder are replaced.
    **options
        Of `emit`: ``ram``, ``flow``, ``templates``.

    Raises
    ------
    InputError
        If the folder holds such files, or cannot be written.
    """
    return write_made(lambda: emit(fabric, command=command, **options), folder, force=force)
