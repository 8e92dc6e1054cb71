"""Logic of a router by purpose, in its netlist after synthesis: data paths or control.

Logic is LUTs, or gates of silicon, in gate equivalents.

The user is `Flow.map_modules`. `count_luts_by_purpose` follows data from the input ports through
the netlist, through LUTs and registers. Cells that data reach belong to data paths, all others to
*settings*, the control of select bits. The numbers are counted on the netlist, so that they add up
to its logic.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .family import Cost

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["count_luts_by_purpose", "fewest_luts"]

#: Cell types of LUTs.
_LUT_CELLS = re.compile(
    r"SB_LUT4|LUT[1-6]|INV|MISTRAL_ALUT[2-6]|MISTRAL_NOT|WIDEFN9|CC_LUT[1-4]|CC_MX[248]|EFX_LUT4"
)

#: Type of a wide multiplexer -> names of its data inputs.
_LUT_JOINS = {
    "PFUMX": ("BLUT", "ALUT"),
    "L6MUX21": ("D0", "D1"),
    "MUXF7": ("I0", "I1"),
    "MUXF8": ("I0", "I1"),
    "MUXF9": ("I0", "I1"),
}

#: Names of the data input of registers.
_DATA_INPUTS = ("D", "DI", "DATAIN")


def count_luts_by_purpose(
    module: dict[str, Any],
    price: Callable[[str], Cost],
    inputs: int = 4,
    *,
    outports: Sequence[str],
    inports: Mapping[str, str],
) -> dict[str, Any]:
    """Return the LUTs of a router by purpose, such as ``crossbar`` and ``settings``.

    Purposes of data paths are the crossbar and those in `inports`. All LUTs that no data reach are
    ``settings``: the control of the select bits.

    Parameters
    ----------
    module : dict
        Entry of ``modules`` in a netlist that yosys wrote as JSON.
    price : function of str -> Cost
        Cost of a cell type.
    inputs : int
        Inputs of a LUT; 0 for silicon.
    outports : sequence of str
        Output ports that drive links.
    inports : dict of str to str
        Data input -> purpose, in the report, of the LUTs that read the input directly. All other
        LUTs that read data are the crossbar. LUTs that read no data are settings.

    Returns
    -------
    dict
        ``bits``: number of bits of the out-ports. ``luts`` and ``ffs``: number of cells that drive
        these bits directly. ``parts``: purpose -> number of LUTs, or gate equivalents of silicon,
        with a part ``registers``. ``limit``: the fewest LUTs that can select from the data sources
        of each out-port bit, summed over the bits; None without `inports`, and on silicon.
    """
    graph = _netlist_graph(module, price)
    bits = [bit for port in outports for bit in module["ports"][port]["bits"]]
    at, front = _count_driving_cells(graph, bits)
    if not inports:
        return at | {"parts": {}, "limit": None}
    brought = {bit: part for port, part in inports.items() for bit in module["ports"][port]["bits"]}
    data = _dependent_bits(graph, brought)
    parts: dict[str, float] = defaultdict(int, dict.fromkeys((*inports.values(), "settings"), 0))
    for name, cell in module["cells"].items():
        logic = price(cell["type"]).logic_size
        if logic and graph.nodes[name]["register"]:
            parts["registers"] += logic
        elif logic:
            read = data.intersection(graph.predecessors(name))
            special = {brought[bit] for bit in read & brought.keys()} - {"crossbar"}
            parts[special.pop() if special else "crossbar" if read else "settings"] += logic
    # Cut at registers, so that sources are the inputs and the outputs of registers.
    graph.remove_nodes_from([name for name in module["cells"] if graph.nodes[name]["register"]])
    if not inputs:
        return at | {"parts": {part: round(size, 2) for part, size in parts.items()}, "limit": None}
    limit = sum(fewest_luts(len(_source_bits(graph, bit) & data), inputs) for bit in front)
    return at | {"parts": dict(parts), "limit": limit}


def fewest_luts(sources: int, inputs: int = 4) -> int:
    """Return the fewest LUTs with `inputs` inputs that can select any one of `sources` signals.

    A tree of n LUTs with k inputs has at most (k - 1) n + 1 inputs. Selecting one of m sources
    takes m inputs and at least log2 m select bits.

    Examples
    --------
    A selector of four signals takes two LUTs of four inputs, or one of six.

    >>> fewest_luts(4), fewest_luts(4, 6)
    (2, 1)
    """
    if sources < 2:
        return 0
    return -(-(sources + (sources - 1).bit_length() - 1) // (inputs - 1))


def _netlist_graph(module: dict[str, Any], price: Callable[[str], Cost]) -> "nx.DiGraph[Any]":
    """Return the netlist of a module as a graph, in which data flow along the edges.

    The vertices are cells, by name, and bits (nets), by number. Edges lead from the input bits of a
    cell to the cell, and from the cell to its output bits. A cell has the attributes ``kind``, its
    type, ``register``, True for a flip-flop, and ``joined``, the bits at the data inputs if it is a
    wide multiplexer. Registers have an edge from their data input only, because clock enables and
    resets carry no data. `price` gives the cost of a cell type.
    """
    import networkx as nx  # here: its import takes long, and cached results need no graph

    graph = nx.DiGraph()
    for port in module["ports"].values():
        graph.add_nodes_from(port["bits"])
    for name, cell in module["cells"].items():
        kind, connections = cell["type"], cell["connections"]
        joined = [bit for port in _LUT_JOINS.get(kind, ()) for bit in connections[port]]
        register = price(kind).ffs > 0
        graph.add_node(name, kind=kind, joined=joined, register=register)
        kept: list[Any] = next(
            (connections[port] for port in _DATA_INPUTS if connections.get(port)), []
        )[:1]
        for port, direction in cell.get("port_directions", {}).items():
            numbers = [bit for bit in connections[port] if isinstance(bit, int)]  # no constants
            if direction == "output":
                graph.add_edges_from((name, bit) for bit in numbers)
            else:
                read = [bit for bit in numbers if bit in kept or not register]
                graph.add_edges_from((bit, name) for bit in read)
    return graph


def _count_driving_cells(
    graph: "nx.DiGraph[Any]", bits: Sequence[Any]
) -> tuple[dict[str, int], list[Any]]:
    """Count the registers that drive the out-port bits in `bits`, and the LUTs in front of them.

    A LUT counts if it drives one of these registers, or one of the bits directly. If a wide
    multiplexer drives a register or bit, the LUTs at the data inputs of the multiplexer count.
    `graph` is the result of `_netlist_graph`.

    Returns
    -------
    counts : dict of str to int
        ``bits``, ``luts`` and ``ffs``.
    fronts : list
        For each bit, the bit at the data input of its register, or the bit itself without one.
    """
    found: dict[str, set[str]] = {"luts": set(), "ffs": set()}
    fronts = []
    for bit in bits:
        front = [bit]
        name = next(graph.predecessors(bit), None)
        if name and graph.nodes[name]["register"]:
            found["ffs"].add(name)
            front = list(graph.predecessors(name))
        fronts += front
        while front:
            for name in graph.predecessors(front.pop()):
                if _LUT_CELLS.fullmatch(graph.nodes[name]["kind"]):
                    found["luts"].add(name)
                else:
                    front += [bit for bit in graph.nodes[name]["joined"] if bit in graph]
    return {"bits": len(bits), **{kind: len(names) for kind, names in found.items()}}, fronts


def _dependent_bits(graph: "nx.DiGraph[Any]", bits: Iterable[Any]) -> set[Any]:
    """Return all bits of a netlist that depend on one of `bits`, through any number of cells.

    Registers pass on only their data input. `graph` is the result of `_netlist_graph`.
    """
    data, front = set(bits), list(bits)
    while front:
        for name in graph.successors(front.pop()):
            new = set(graph.successors(name)) - data
            data |= new
            front += new
    return data


def _source_bits(graph: "nx.DiGraph[Any]", bit: Any) -> set[Any]:
    """Return the bits on which `bit` depends and which no cell in the graph drives.

    They are, for example, inputs of the module. `graph` is the result of `_netlist_graph`, or a
    part of it.
    """
    found, front = {bit}, [bit]
    while front:
        new = set(graph.predecessors(front.pop())) - found
        found |= new
        front += new
    return {node for node in found if not graph.in_degree(node)}
