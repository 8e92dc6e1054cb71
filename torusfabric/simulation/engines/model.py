"""Compiled models: a netlist as vectors, and the library whose loops step them.

The text of a loop depends on a module and on which of its words are alike, not on how many
instances there are or where they lie: those are data, so that another size of a torus finds its
library built.
"""

from functools import partial
from pathlib import Path
from typing import NamedTuple

from ...rtl.netlist import Netlist
from ...toolchain import cxx, processes
from .connections import Connections
from .layout import Layout
from .loops import Loops

__all__ = ["Model", "build_model"]

HERE = Path(__file__).parent

#: Fewer cycles of nodes than these take less time than the compiler would to make them quick, and
#: fewer than those less than it would to make vectors.
FEW_NODE_CYCLES, SOME_NODE_CYCLES = 2e6, 1e7

#: Loops over fewer instances than these are no quicker for being vectors.
FEW_INSTANCES = 16


class Model(NamedTuple):
    """A built model.

    Parameters
    ----------
    library : path
        The shared library that carries out tasks.
    loops : path
        The shared library with the loops of this netlist, or others alike.
    """

    library: Path
    loops: Path
    netlist: Netlist
    connections: Connections
    layout: Layout
    stepped: Loops


def build_model(
    netlist: Netlist, *, word: int, node_cycles: float, source: Path = HERE / "model.cc"
) -> Model:
    """Build the loops of a netlist.

    Parameters
    ----------
    word : int
        Bits of a flit.
    node_cycles : float
        How many cycles of nodes it is to step, about: few are stepped before a compiler that tries
        hard has come to an end.
    source : path
        The C++ file of the library; another one includes ``model.cc`` and has further functions.

    Raises
    ------
    WorkFailed
        If instances read from each other in a circle without a register.
    """
    # The library that carries out tasks is built beside, if it has not been before.
    with processes.beside(partial(_build, "model.so", {source.name: source.read_text()},
                                  ("-O2", "-pthread"))) as library:  # fmt: skip
        connections = Connections(netlist, word)
        layout = Layout(connections)
        stepped = Loops(layout)
        # For this machine, since libraries are built where they run.
        tuned: tuple[str, ...] = ("-O2", "-ftree-vectorize", "-funswitch-loops", "-march=native")
        short = sum(loop.count for loop in stepped.loops) < FEW_INSTANCES * len(stepped.loops)
        if node_cycles < FEW_NODE_CYCLES:
            tuned = ("-O0",)
        elif short or node_cycles < SOME_NODE_CYCLES:
            tuned = ("-O1",)
        text = [f"static int loop_{k}{text}" for k, text in enumerate(stepped.functions)]
        names = ", ".join(f"loop_{k}" for k in range(len(text)))
        table = f"EXPORT const Function loops[] = {{{names}}};\n"
        loops = _build(
            "loops.so", {"loops.cc": "\n".join(['#include "model.h"', *text, table])}, tuned
        )
        return Model(library(), loops, netlist, connections, layout, stepped)


def _build(name: str, sources: dict[str, str], flags: tuple[str, ...]) -> Path:
    """Build a shared library."""
    included = {"model.h", "crew.h", "model.cc"} - sources.keys()
    return cxx.build(
        name,
        sources,
        headers={file: (HERE / file).read_text() for file in sorted(included)},
        flags=("-std=c++14", "-fPIC", "-DNDEBUG", "-fvisibility=hidden", "-w", *flags),
        link=("-shared",),
        what="the simulator",
    )
