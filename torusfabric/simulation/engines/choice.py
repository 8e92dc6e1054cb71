"""Choosing an engine: by what the user says, or by the size of the work."""

from collections.abc import Callable
from typing import NamedTuple

from ...rtl.fabric import Fabric
from ...toolchain import cxx
from ...toolchain.hints import no_such
from .amaranth_engine import AmaranthEngine
from .base import Engine, words_moved
from .compiled import CompiledEngine
from .verilator import VerilatorEngine
from .waves import check_wave

__all__ = ["ENGINES", "Choice", "choose_engine", "estimate"]

#: All engines by name.
ENGINES: dict[str, Callable[..., Engine]] = {
    engine.name: engine for engine in (AmaranthEngine, CompiledEngine, VerilatorEngine)
}

#: Seconds that Amaranth's simulator takes for a node, for a word through the host port, and for a
#: node in a cycle of a run, of nodes with one input each; they grow with so many powers of the
#: inputs. And seconds that building takes at first, and for each module.
PER_NODE, PER_WORD, PER_NODE_CYCLE = (3e-5, 2), (7e-6, 1), (1e-7, 2)
BUILD, PER_MODULE = 3.0, 0.3


class Choice(NamedTuple):
    """An engine, and why this one."""

    engine: Engine
    reason: str


def estimate(fabric: Fabric, repeat: int = 1) -> tuple[float, float]:
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
    instances = [instance for instance in fabric.netlist.instances if instance.node is not None]
    pins = sum(len(instance.inputs) for instance in instances) / fabric.nodes
    node, word, node_cycle = (x * pins**power for x, power in (PER_NODE, PER_WORD, PER_NODE_CYCLE))
    run = words_moved(fabric) * word + fabric.nodes * fabric.predicted_cycles * node_cycle
    return fabric.nodes * node + repeat * run, BUILD + len(fabric.netlist.modules) * PER_MODULE


def choose_engine(
    fabric: Fabric, name: str = "auto", *, wave: str | None = None, repeat: int = 1
) -> Choice:
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
            raise no_such("Engine", name, ["auto", *ENGINES])
        return Choice(ENGINES[name](fabric, wave=wave), "as asked")
    slow, build = estimate(fabric, repeat)
    if slow <= build:
        return Choice(AmaranthEngine(fabric, wave=wave), "small enough that nothing need be built")
    if not cxx.have_compiler():
        reason = f"no C++ compiler for the compiled engine: {cxx.INSTALL}"
        return Choice(AmaranthEngine(fabric, wave=wave), reason)
    reason = f"Amaranth's simulator would take some {slow:.0f} s"
    return Choice(CompiledEngine(fabric, wave=wave), reason)
