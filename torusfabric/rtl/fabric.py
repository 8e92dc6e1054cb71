"""Fabrics: which hardware carries out which kind of program."""

from ..errors import InputError
from ..program import ReductionProgram, RootedProgram, TableProgram, WaveProgram
from .base_fabric import Fabric
from .reduction_fabric import ReductionFabric
from .rooted_fabric import RootedFabric
from .round_fabric import RoundFabric
from .table_fabric import TableFabric
from .wave_fabric import WaveFabric

__all__ = ["Fabric", "build_fabric"]

#: The widest flit.
MAX_WIDTH = 1024


def build_fabric(program, *, width=32, flits=None, top="host"):
    """The hardware of a switch program.

    Parameters
    ----------
    program : SwitchProgram
    width : int
        Bits of a flit, 1 to 1024.
    flits : int, optional
        Flits of a message; by default one for each chunk.
    top : str
        ``host`` or ``core``.

    Returns
    -------
    Fabric

    Raises
    ------
    InputError
        If the width is out of range, or a message cannot be cut into equal chunks.
    """
    if not 1 <= width <= MAX_WIDTH:
        raise InputError(f"Width must be from 1 to {MAX_WIDTH} bits, not {width}")
    flits = program.schedule.chunks if flits is None else flits
    program.block_flits(flits)
    kinds: dict[type, type[Fabric]] = {
        ReductionProgram: ReductionFabric,
        RootedProgram: RootedFabric,
        TableProgram: TableFabric,
        WaveProgram: WaveFabric,
    }
    kind = kinds.get(type(program), RoundFabric)
    return kind(program, width=width, flits=flits, top=top)
