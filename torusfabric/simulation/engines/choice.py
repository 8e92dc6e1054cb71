"""Choice of an engine: by name, or by the estimated time.

Constants measured on a common machine estimate the time of Amaranth's simulator and the time to
build the compiled engine. ``auto`` takes the compiled engine if its build is the shorter of the
two.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from ...rtl.fabric import Fabric
from ...toolchain.values import unknown_name_error
from .base import PORT_SAMPLE_WORDS, Engine, n_words_moved
from .waves import check_wave_file

__all__ = ["ENGINES", "EngineChoice", "choose_engine", "estimate_seconds"]


def _make_engine(engine: str, *given: Any, **options: Any) -> Engine:
    """Import the class named `engine` from this package and make an instance of it.

    All other arguments are passed to the class.
    """
    made: Engine = getattr(import_module(__package__), engine)(*given, **options)
    return made


#: All engines by name.
ENGINES: dict[str, Callable[..., Engine]] = {
    "amaranth": partial(_make_engine, "AmaranthEngine"),
    "compiled": partial(_make_engine, "CompiledEngine"),
}

#: Seconds of Amaranth's simulator per node, per word through the host port, and per node and cycle.
#: They grow with the inputs of a node's modules: (s, e) stands for s times the number of inputs to
#: the power e.
PER_NODE, PER_WORD, PER_NODE_CYCLE = (9e-5, 2), (2e-5, 1), (3e-7, 2)

#: Seconds of Amaranth's simulator per directly copied word, and per node and cycle if node ports
#: are driven.
PER_DIRECT_WORD, PER_DRIVEN_CYCLE = 2e-5, 1e-3

#: Seconds to build the compiled engine: a constant, a term per module, and a term per node.
BUILD, PER_MODULE, PER_BUILT_NODE = 1.0, 0.03, 3e-4


class EngineChoice(NamedTuple):
    """The chosen engine and the reason for the choice."""

    engine: Engine
    reason: str


def estimate_seconds(fabric: Fabric, repeat: int = 1) -> tuple[float, float]:
    """Estimate the seconds of Amaranth's simulator, and the seconds to build the compiled engine.

    Parameters
    ----------
    repeat : int
        Number of runs to simulate.

    Returns
    -------
    tuple of (float, float)
        Simulation time and build time, on a common machine.
    """
    build = BUILD + len(fabric.netlist.modules) * PER_MODULE + fabric.nodes * PER_BUILT_NODE
    if fabric.interface.kernel:
        passed = max(layout.send_words + layout.recv_words for layout in fabric.layouts)
        cycles = repeat * (fabric.predicted_cycles + passed)
        return cycles * fabric.nodes * PER_DRIVEN_CYCLE, build
    arrays = [array for array in fabric.netlist.arrays if array.nodes is not None]
    pins = sum(len(array) * len(array.inputs) for array in arrays) / fabric.nodes
    node, word, node_cycle = (x * pins**power for x, power in (PER_NODE, PER_WORD, PER_NODE_CYCLE))
    words = n_words_moved(fabric)
    through_port = min(words, 2 * PORT_SAMPLE_WORDS)
    run = through_port * word + (words - through_port) * PER_DIRECT_WORD
    run += fabric.nodes * fabric.predicted_cycles * node_cycle
    return fabric.nodes * node + repeat * run, build


def _pick_engine(fabric: Fabric, name: str, repeat: int) -> tuple[str, str]:
    """Return the name of the chosen engine and the reason for the choice.

    `name` is the name that the user gave, or ``auto``, and `repeat` the number of runs.
    """
    if name != "auto":
        if name not in ENGINES:
            raise unknown_name_error("Engine", name, ["auto", *ENGINES])
        return name, "as asked"
    if fabric.own_clocks:
        return "amaranth", "nodes have clocks of their own"
    slow, build = estimate_seconds(fabric, repeat)
    if slow <= build:
        return "amaranth", "small enough that nothing need be built"
    from ...toolchain import cxx  # here, since small work needs no compiler

    if not cxx.has_compiler():
        return "amaranth", f"no C++ compiler for the compiled engine: {cxx.INSTALL_HINT}"
    return "compiled", f"Amaranth's simulator would take some {slow:.0f} s"


def choose_engine(
    fabric: Fabric,
    name: str = "auto",
    *,
    wave: str | None = None,
    through_port: bool = False,
    repeat: int = 1,
) -> EngineChoice:
    """Choose and make an engine for a fabric.

    Parameters
    ----------
    name : str
        Name of an engine, or ``auto``: Amaranth's simulator if it would take less time than the
        build of the compiled engine, otherwise the compiled engine if there is a C++ compiler.
        Nodes with clocks of their own need Amaranth's simulator.
    wave : str, optional
        File for the waveforms.
    through_port : bool
        True to move all words through the host port, False to copy most of them directly into and
        out of the memories.
    repeat : int
        Number of runs to simulate.

    Raises
    ------
    InputError
        If the name of the engine or the ending of the waveform file is unknown.
    MissingTool
        If the engine needs a tool that is not installed.
    """
    check_wave_file(wave)
    picked, reason = _pick_engine(fabric, name, repeat)
    made = ENGINES[picked](fabric, wave=wave, through_port=through_port, repeat=repeat)
    return EngineChoice(made, reason)
