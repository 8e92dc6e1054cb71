"""Build of a compiled model: from a netlist to a layout, loops, and two shared libraries.

One library executes *tasks*, which are requests to simulate clock edges; it is the same for all
models. The other holds the loop functions of the netlist. Their text does not depend on the number
of instances or on addresses, which are passed as data. A torus of another size with equal modules
therefore reuses the library of an earlier build.
"""

from functools import partial
from pathlib import Path
from typing import NamedTuple

from ...rtl.netlist import Netlist
from ...toolchain import cxx, processes
from .connections import Connections
from .layout import ArenaLayout
from .loops import Loops

__all__ = ["Model", "build_model"]

SOURCE_FOLDER = Path(__file__).parent

#: Node cycles below which compiler optimization costs more time than it saves, and node cycles
#: below which vectorization does.
FEW_NODE_CYCLES, SOME_NODE_CYCLES = 2e6, 1e7

#: Mean instances per loop below which vectorization gains nothing.
FEW_INSTANCES = 16


class Model(NamedTuple):
    """A built model of a netlist, ready for a `Session`.

    Parameters
    ----------
    library : path
        Shared library that executes tasks, which are requests to simulate clock edges.
    loops : path
        Shared library with the loop functions of the netlist.
    connections : Connections
        The instances, and the origin of each of their input bits.
    layout : ArenaLayout
        Addresses of all registers and outputs in the arena, the byte array of all simulated values.
    stepped : Loops
        The loops that compute the values.
    """

    library: Path
    loops: Path
    netlist: Netlist
    connections: Connections
    layout: ArenaLayout
    stepped: Loops


def build_model(
    netlist: Netlist, *, word: int, node_cycles: float, source: Path = SOURCE_FOLDER / "model.cc"
) -> Model:
    """Build the compiled model of a netlist: two shared libraries, and tables for them.

    Parameters
    ----------
    word : int
        Bits of a flit.
    node_cycles : float
        Approximate number of nodes times number of cycles to simulate. A small number selects a
        lower optimization level of the C++ compiler.
    source : path
        C++ file of the library that executes requests to simulate clock edges. A replacement
        includes ``model.cc`` and adds functions.

    Raises
    ------
    WorkFailed
        If instances form a combinational loop.
    """
    # The task library is compiled in parallel with the work below, unless it is in the cache.
    with processes.run_in_background(
        partial(
            _compile_library, "model.so", {source.name: source.read_text()}, ("-O2", "-pthread")
        )
    ) as library:
        connections = Connections(netlist, word)
        layout = ArenaLayout(connections)
        stepped = Loops(layout)
        # -march=native is safe, because a library runs on the machine that builds it.
        tuned: tuple[str, ...] = ("-O2", "-ftree-vectorize", "-funswitch-loops", "-march=native")
        short = sum(loop.count for loop in stepped.loops) < FEW_INSTANCES * len(stepped.loops)
        if node_cycles < FEW_NODE_CYCLES:
            tuned = ("-O0",)
        elif short or node_cycles < SOME_NODE_CYCLES:
            tuned = ("-O1",)
        text = [f"static int loop_{k}{text}" for k, text in enumerate(stepped.functions)]
        names = ", ".join(f"loop_{k}" for k in range(len(text)))
        table = f"EXPORT const Function loops[] = {{{names}}};\n"
        loops = _compile_library(
            "loops.so", {"loops.cc": "\n".join(['#include "model.h"', *text, table])}, tuned
        )
        return Model(library(), loops, netlist, connections, layout, stepped)


def _compile_library(name: str, sources: dict[str, str], flags: tuple[str, ...]) -> Path:
    """Compile the shared library `name`, or take it from the cache.

    Parameters
    ----------
    sources : dict of str to str
        File name -> text of the file.
    flags : tuple of str
        Options of the compiler.
    """
    included = {"model.h", "crew.h", "model.cc"} - sources.keys()
    return cxx.compile_and_link(
        name,
        sources,
        headers={file: (SOURCE_FOLDER / file).read_text() for file in sorted(included)},
        flags=("-std=c++14", "-fPIC", "-DNDEBUG", "-fvisibility=hidden", "-w", *flags),
        link=("-shared",),
        what="the simulator",
    )
