"""Choosing an engine: by what the user says, or by the size of the work."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

from ...rtl.fabric import Fabric
from ...toolchain.hints import no_such
from .base import SAMPLE, Engine, words_moved
from .waves import check_wave

__all__ = ["ENGINES", "Choice", "build_time", "choose_engine", "estimate", "pick"]

#: What an engine is to those who choose one.
AnyEngine = TypeVar("AnyEngine")


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
#: inputs. For a word that does not go through the port. And seconds that building takes at first,
#: for each module, and for each node.
PER_NODE, PER_WORD, PER_NODE_CYCLE = (9e-5, 2), (2e-5, 1), (3e-7, 2)
PER_DIRECT_WORD = 2e-5
BUILD, PER_MODULE, PER_BUILT_NODE = 1.0, 0.03, 3e-4


class Choice(NamedTuple):
    """An engine, and why this one."""

    engine: Engine
    reason: str


def estimate(fabric: Fabric, repeat: int = 1) -> tuple[float, float]:
    """Seconds that Amaranth's simulator and a compiled engine would take on a common machine.

    Parameters
    ----------
    repeat : int
        Number of collectives.
    """
    arrays = [array for array in fabric.netlist.arrays if array.nodes is not None]
    pins = sum(len(array) * len(array.inputs) for array in arrays) / fabric.nodes
    node, word, node_cycle = (x * pins**power for x, power in (PER_NODE, PER_WORD, PER_NODE_CYCLE))
    words = words_moved(fabric)
    through_port = min(words, 2 * SAMPLE)
    run = through_port * word + (words - through_port) * PER_DIRECT_WORD
    run += fabric.nodes * fabric.predicted_cycles * node_cycle
    return fabric.nodes * node + repeat * run, build_time(fabric)


def build_time(fabric: Fabric) -> float:
    """Seconds that it takes to build a compiled engine on a common machine."""
    return BUILD + len(fabric.netlist.modules) * PER_MODULE + fabric.nodes * PER_BUILT_NODE


def pick(
    engines: Mapping[str, Callable[..., AnyEngine]],
    name: str,
    times: Callable[[], tuple[float, float]],
    *,
    what: str = "Engine",
) -> tuple[Callable[..., AnyEngine], str]:
    """Pick an engine by its name, or the one that takes least time.

    Parameters
    ----------
    engines : dict of str to class
        Those there are, ``amaranth`` and ``compiled`` among them.
    name : str
        Of one of them, or ``auto``.
    times : function of () -> (float, float)
        Seconds that Amaranth's simulator takes, and that building the compiled engine does.
    what : str
        What a message calls them.

    Returns
    -------
    class
    str
        Why this one.
    """
    if name != "auto":
        if name not in engines:
            raise no_such(what, name, ["auto", *engines])
        return engines[name], "as asked"
    slow, build = times()
    if slow <= build:
        return engines["amaranth"], "small enough that nothing need be built"
    from ...toolchain import cxx  # here, since small work needs no compiler

    if not cxx.have_compiler():
        return engines["amaranth"], f"no C++ compiler for the compiled engine: {cxx.INSTALL}"
    return engines["compiled"], f"Amaranth's simulator would take some {slow:.0f} s"


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
        else the compiled engine if there is a C++ compiler.
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
    engine, reason = pick(ENGINES, name, lambda: estimate(fabric, repeat))
    made = engine(fabric, wave=wave, through_port=through_port, repeat=repeat)
    return Choice(made, reason)
