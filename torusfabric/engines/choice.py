"""Choosing an engine: by what the user says, or by the size of the work."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ..errors import InputError
from . import cxx
from .amaranth_engine import AmaranthEngine
from .base import Engine
from .bulk import words_moved
from .compiled import CompiledEngine
from .verilator import VerilatorEngine

__all__ = ["ENGINES", "Choice", "check_wave", "choose_engine", "estimate"]

#: All engines by name.
ENGINES: dict[str, Callable[..., Engine]] = {
    engine.name: engine for engine in (AmaranthEngine, CompiledEngine, VerilatorEngine)
}

#: Seconds that Amaranth's simulator takes for a node, for a word through the host port, and for a
#: node in a cycle of a run; and that building takes at first, and for each module.
PER_NODE, PER_WORD, PER_NODE_CYCLE = 5e-3, 1.5e-4, 1e-5
BUILD, PER_MODULE = 3.0, 0.3


class Choice(NamedTuple):
    """An engine, and why this one."""

    engine: Engine
    reason: str


def estimate(fabric, repeat=1):
    """Seconds that Amaranth's simulator and a compiled engine would take on a common machine.

    Parameters
    ----------
    fabric : Fabric
    repeat : int
        Number of collectives.

    Returns
    -------
    (float, float)
    """
    moved = words_moved(fabric) * PER_WORD + fabric.nodes * fabric.cycles * PER_NODE_CYCLE
    return fabric.nodes * PER_NODE + repeat * moved, BUILD + len(
        fabric.netlist.modules
    ) * PER_MODULE


def check_wave(wave):
    """See that engines can write waves to a file of this name, if there is one.

    Raises
    ------
    InputError
        If they cannot.
    """
    if wave is not None and Path(wave).suffix != ".vcd":
        raise InputError(f"File of waves must end in .vcd, not {Path(wave).name}")


def choose_engine(fabric, name="auto", *, wave=None, repeat=1):
    """Make an engine for a fabric.

    Parameters
    ----------
    fabric : Fabric
    name : str
        Of an engine, or ``auto``: Amaranth's simulator where that takes less time than building,
        else the compiled engine if there is a C++ compiler.
    wave : str, optional
        File for the waves.
    repeat : int
        Number of collectives.

    Returns
    -------
    Choice

    Raises
    ------
    InputError
        If there is no such engine, or it cannot write such a file.
    MissingTool
        If the engine needs a tool that is not installed.
    """
    check_wave(wave)
    if name != "auto":
        if name not in ENGINES:
            known = ", ".join(["auto", *ENGINES])
            raise InputError(f"Engine must be one of {known}, not {name!r}")
        return Choice(ENGINES[name](fabric, vcd=wave), "as asked")
    slow, build = estimate(fabric, repeat)
    if slow <= build:
        return Choice(AmaranthEngine(fabric, vcd=wave), "small enough that nothing need be built")
    if not cxx.have_compiler():
        reason = f"no C++ compiler for the compiled engine: {cxx.INSTALL}"
        return Choice(AmaranthEngine(fabric, vcd=wave), reason)
    reason = f"Amaranth's simulator would take some {slow:.0f} s"
    return Choice(CompiledEngine(fabric, vcd=wave), reason)
