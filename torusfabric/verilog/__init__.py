"""Verilog text of a fabric, its manifest, and files for other ecosystems."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..rtl.fabric import Fabric
from ..toolchain.files import writable
from ..toolchain.folders import made_folder
from .design import MANIFEST, TEXT, Design, require_folder
from .diagram import Diagram
from .manifest import manifest
from .module_text import ModuleText, Port, Structure
from .modules import module_texts
from .text import emit

__all__ = ["Design", "Diagram", "ModuleText", "Port", "Structure", "emit", "manifest",
           "module_texts", "write"]  # fmt: skip


def write(
    fabric: Fabric,
    folder: str | Path,
    *,
    command: str,
    draw: Callable[[Fabric], Sequence[Diagram]] | None = None,
    force: bool = False,
    **options: Any,
) -> Design:
    """Write ``fabric.v`` and ``manifest.json`` into a folder, which is made if need be.

    For a core, ``address_map.json`` says which block arrives, or lies, where.

    Parameters
    ----------
    command : str
        The command that makes the files.
    draw : function of (Fabric) -> sequence of Diagram, optional
        Draws timing diagrams, for a page about the ports.
    force : bool
        Whether files of others in the folder are replaced.
    **options
        Of `emit`: ``ram``, ``flow``, ``templates``, ``fold``, ``compact``.

    Raises
    ------
    InputError
        If the folder holds such files, or cannot be written.
    """
    with made_folder(folder):
        writable(Path(folder, TEXT))  # before the work, which may take long
        require_folder(Path(folder), (TEXT, MANIFEST), force=force)
        diagrams = draw(fabric) if draw else None
        design = emit(fabric, command=command, diagrams=diagrams, **options)
        design.write(folder, force=force)
    return design
