"""Where the tables of a mapped module go, found by following its nets.

What an input port brings is followed through tables and registers: a cell that any of it reaches
handles data, and all others make settings. So the parts are counted on the netlist itself, and add
up to what it has.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .family import Cost

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["analyse", "fewest_tables"]

#: Patterns of the kinds of cells that matter here.
_TABLES = re.compile(
    r"SB_LUT4|LUT[1-6]|INV|MISTRAL_ALUT[2-6]|MISTRAL_NOT|WIDEFN9|CC_LUT[1-4]|CC_MX[248]|EFX_LUT4"
)
_JOINS = {
    "PFUMX": ("BLUT", "ALUT"),
    "L6MUX21": ("D0", "D1"),
    "MUXF7": ("I0", "I1"),
    "MUXF8": ("I0", "I1"),
    "MUXF9": ("I0", "I1"),
}
_REGISTERS = re.compile(r"SB_DFF|TRELLIS_FF|DFF|FD[RSCP]E|FD1P3|MISTRAL_FF|CC_DFF|EFX_FF")

#: What registers call what they keep.
_KEPT = ("D", "DI", "DATAIN")


def analyse(
    module: dict[str, Any],
    price: Callable[[str], Cost],
    inputs: int = 4,
    *,
    outports: Sequence[str],
    inports: Mapping[str, str],
) -> dict[str, Any]:
    """Where the tables, of some inputs, of a router go, by a netlist that yosys wrote as JSON.

    Parameters
    ----------
    price : function of str -> Cost
        What a cell of a type costs.
    outports : sequence of str
        The ports that drive links.
    inports : dict of str to str
        Input port that brings data -> part of the report for the tables that read it first; the
        tables behind those, and all that merge data, are the crossbar.

    Returns
    -------
    dict
        ``bits`` of the out-ports; the ``luts`` and ``ffs`` right at them; ``parts``, the tables of
        each part; ``limit``, the fewest tables that what reaches each bit could do with.
    """
    graph = _graph(module)
    bits = [bit for port in outports for bit in module["ports"][port]["bits"]]
    at, front = _cells_at(graph, bits)
    if not inports:
        return at | {"parts": {}, "limit": None}
    brought = {bit: part for port, part in inports.items() for bit in module["ports"][port]["bits"]}
    data = _reached(graph, brought)
    parts: dict[str, int] = defaultdict(int, dict.fromkeys((*inports.values(), "settings"), 0))
    for name, cell in module["cells"].items():
        luts = price(cell["type"]).luts
        if luts:
            read = data.intersection(graph.predecessors(name))
            special = {brought[bit] for bit in read & brought.keys()} - {"crossbar"}
            parts[special.pop() if special else "crossbar" if read else "settings"] += luts
    # Cut at registers, so that sources are the inputs and the outputs of registers.
    graph.remove_nodes_from([name for name in module["cells"] if _is_register(graph, name)])
    limit = sum(fewest_tables(len(_sources(graph, bit) & data), inputs) for bit in front)
    return at | {"parts": dict(parts), "limit": limit}


def fewest_tables(sources: int, inputs: int = 4) -> int:
    """The fewest tables of some inputs that can choose any one of so many sources.

    A tree of n tables of k inputs has at most (k - 1) n + 1 inputs, and distinguishing m sources
    takes log2 m more.

    Examples
    --------
    A multiplexer of four is a table of six inputs.

    >>> fewest_tables(4), fewest_tables(4, 6)
    (2, 1)
    """
    if sources < 2:
        return 0
    return -(-(sources + (sources - 1).bit_length() - 1) // (inputs - 1))


def _graph(module: dict[str, Any]) -> "nx.DiGraph[Any]":
    """The cells and bits of a module, with an edge from each to what it drives or is read by.

    Cells are names, with their types and the bits among which a wide multiplexer chooses; bits are
    numbers. Of a register only the bit that it keeps is read: clock enables and resets are no data.
    """
    import networkx as nx  # here, since results are kept and its import takes long

    graph = nx.DiGraph()
    for port in module["ports"].values():
        graph.add_nodes_from(port["bits"])
    for name, cell in module["cells"].items():
        kind, connections = cell["type"], cell["connections"]
        joined = [bit for port in _JOINS.get(kind, ()) for bit in connections[port]]
        graph.add_node(name, kind=kind, joined=joined)
        kept: list[Any] = next((connections[port] for port in _KEPT if connections.get(port)), [])[
            :1
        ]
        for port, direction in cell.get("port_directions", {}).items():
            numbers = [bit for bit in connections[port] if isinstance(bit, int)]  # no constants
            if direction == "output":
                graph.add_edges_from((name, bit) for bit in numbers)
            else:
                read = [bit for bit in numbers if bit in kept or not _is_register(graph, name)]
                graph.add_edges_from((bit, name) for bit in read)
    return graph


def _is_register(graph: "nx.DiGraph[Any]", name: Any) -> bool:
    kind = graph.nodes[name].get("kind", "")
    return bool(_REGISTERS.match(kind)) and not _TABLES.fullmatch(kind)


def _cells_at(graph: "nx.DiGraph[Any]", bits: Sequence[Any]) -> tuple[dict[str, int], list[Any]]:
    """Count the registers at some bits, and the tables at those or joined there.

    Returns the counts, and the bits before the registers.
    """
    found: dict[str, set[str]] = {"luts": set(), "ffs": set()}
    fronts = []
    for bit in bits:
        front = [bit]
        name = next(graph.predecessors(bit), None)
        if name and _is_register(graph, name):
            found["ffs"].add(name)
            front = list(graph.predecessors(name))
        fronts += front
        while front:
            for name in graph.predecessors(front.pop()):
                if _TABLES.fullmatch(graph.nodes[name]["kind"]):
                    found["luts"].add(name)
                else:
                    front += [bit for bit in graph.nodes[name]["joined"] if bit in graph]
    return {"bits": len(bits), **{kind: len(names) for kind, names in found.items()}}, fronts


def _reached(graph: "nx.DiGraph[Any]", bits: Iterable[Any]) -> set[Any]:
    """All bits that depend on some, by way of data inputs of registers too."""
    data, front = set(bits), list(bits)
    while front:
        for name in graph.successors(front.pop()):
            new = set(graph.successors(name)) - data
            data |= new
            front += new
    return data


def _sources(graph: "nx.DiGraph[Any]", bit: Any) -> set[Any]:
    """The bits without a driver that a bit depends on."""
    found, front = {bit}, [bit]
    while front:
        new = set(graph.predecessors(front.pop())) - found
        found |= new
        front += new
    return {node for node in found if not graph.in_degree(node)}
