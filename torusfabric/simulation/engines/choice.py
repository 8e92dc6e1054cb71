"""Choosing an engine: by what the user says, or by the size of the work."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from ...rtl.fabric import Fabric
from ...toolchain.values import no_such
from .base import SAMPLE, Engine, words_moved
from .waves import check_wave

__all__ = ["ENGINES", "Choice", "choose_engine", "estimate"]


def _make(engine: str, *given: Any, **options: Any) -> Engine:
    """Make an engine of a class of this package, which is imported for it."""
    made: Engine = getattr(import_module(__package__), engine)(*given, **options)
    return made


#: All engines by name.
ENGINES: dict[str, Callable[..., Engine]] = {
    "amaranth": partial(_make, "AmaranthEngine"),
    "compiled": partial(_make, "CompiledEngine"),
}

#: Seconds that Amaranth's simulator takes for a node, for a word through the host port, and for a
#: node in a cycle of a run, of nodes with one input each; they grow with so many powers of the
#: inputs. For a word that does not go through the port, and for a node and a cycle where ports of
#: nodes are driven. And seconds that building takes at first, for each module, and for each node.
PER_NODE, PER_WORD, PER_NODE_CYCLE = (9e-5, 2), (2e-5, 1), (3e-7, 2)
PER_DIRECT_WORD, PER_DRIVEN_CYCLE = 2e-5, 1e-3
BUILD, PER_MODULE, PER_BUILT_NODE = 1.0, 0.03, 3e-4


class Choice(NamedTuple):
    """An engine, and why this one."""

    engine: Engine
    reason: str


def estimate(fabric: Fabric, repeat: int = 1) -> tuple[float, float]:
    """Seconds that Amaranth's simulator, and building the compiled engine, would take.

    They are those of a common machine.

    Parameters
    ----------
    repeat : int
        Number of collectives.
    """
    build = BUILD + len(fabric.netlist.modules) * PER_MODULE + fabric.nodes * PER_BUILT_NODE
    if fabric.interface.kernel:
        passed = max(layout.send_words + layout.recv_words for layout in fabric.layouts)
        cycles = repeat * (fabric.predicted_cycles + passed)
        return cycles * fabric.nodes * PER_DRIVEN_CYCLE, build
    arrays = [array for array in fabric.netlist.arrays if array.nodes is not None]
    pins = sum(len(array) * len(array.inputs) for array in arrays) / fabric.nodes
    node, word, node_cycle = (x * pins**power for x, power in (PER_NODE, PER_WORD, PER_NODE_CYCLE))
    words = words_moved(fabric)
    through_port = min(words, 2 * SAMPLE)
    run = through_port * word + (words - through_port) * PER_DIRECT_WORD
    run += fabric.nodes * fabric.predicted_cycles * node_cycle
    return fabric.nodes * node + repeat * run, build


def _pick(fabric: Fabric, name: str, repeat: int) -> tuple[str, str]:
    """The name of an engine, and why this one."""
    if name != "auto":
        if name not in ENGINES:
            raise no_such("Engine", name, ["auto", *ENGINES])
        return name, "as asked"
    if fabric.own_clocks:
        return "amaranth", "nodes have clocks of their own"
    slow, build = estimate(fabric, repeat)
    if slow <= build:
        return "amaranth", "small enough that nothing need be built"
    from ...toolchain import cxx  # here, since small work needs no compiler

    if not cxx.have_compiler():
        return "amaranth", f"no C++ compiler for the compiled engine: {cxx.INSTALL}"
    return "compiled", f"Amaranth's simulator would take some {slow:.0f} s"


def choose_engine(
    fabric: Fabric,
    name: str = "auto",
    *,
    wave: str | None = None,
    through_port: bool = False,
    repeat: int = 1,
) -> Choice:
    """Make an engine for a fabric.

    Parameters
    ----------
    name : str
        Of an engine, or ``auto``: Amaranth's simulator where that takes less time than building,
        else the compiled engine if there is a C++ compiler. Nodes with clocks of their own need
        Amaranth's simulator.
    through_port : bool
        Whether all words go through the host port.
    repeat : int
        Number of collectives.

    Raises
    ------
    InputError
        If there is no such engine, or it cannot write such a file.
    MissingTool
        If the engine needs a tool that is not installed.
    """
    check_wave(wave)
    picked, reason = _pick(fabric, name, repeat)
    made = ENGINES[picked](fabric, wave=wave, through_port=through_port, repeat=repeat)
    return Choice(made, reason)
