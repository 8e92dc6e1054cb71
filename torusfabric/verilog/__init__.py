"""Emitted Verilog: the Verilog of a fabric, its manifest, and project files for other tools.

Users are the commands ``verilog``, ``synth`` and ``build``, the prover, and `torusfabric.emit`.

Modules in the order in which a reader needs them:

================= ===================================================================
module            content
================= ===================================================================
``text``          `emit`: from a `Fabric` to a `Design`
``design``        `Design`: all modules as text, and facts about them
``module_text``   `ModuleText`: one module; RAM styles of memories
``writer``        from one Amaranth component to one module
``names``         names of signals in a module
``statements``    ``always`` blocks and assignments
``expressions``   Amaranth values as Verilog expressions
``syntax``        constants, ranges, concatenations, layout of lines
``top``           the top module, which connects all instances
``loops``         generate loops of the top over nodes
``rotated_roms``  compression of ROM contents that repeat around a torus
``lut6``          bodies of multiplexers for 6-input LUTs
``ecp5``          bodies of multiplexers and sums made of ECP5 cells
``manifest``      ``manifest.json``, and all files beside the Verilog
``templates``     an instance to copy, and assertions to bind
``flows``         projects for Vivado, Quartus, LibreLane and Tiny Tapeout
``litex``         import into a LiteX SoC
================= ===================================================================

A *companion file* is a file that belongs to an export besides the Verilog. A *leaf module* is a
module that the top has instances of.
"""

from pathlib import Path
from typing import Any

from ..rtl.fabric import Fabric
from .design import Design, make_and_write
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
    """Write ``fabric.v``, ``manifest.json`` and all further files of a fabric into a folder.

    The folder is made if it does not exist. Further files are the cocotb bench, the files of the
    adapter, and the files of `flow` and `templates`. A fabric with the top ``core`` has
    ``address_map.json``, which lists the address or the cycle of each block.

    Parameters
    ----------
    command : str
        Command line that repeats the export, for the header of the Verilog and for the manifest.
    force : bool
        True to replace files in the folder that no earlier export wrote; otherwise they are an
        error.
    **options
        Options ``ram``, ``flow`` and ``templates`` of `emit`.

    Raises
    ------
    InputError
        If the folder holds files of another origin and `force` is false, or cannot be written.
    """
    return make_and_write(lambda: emit(fabric, command=command, **options), folder, force=force)
