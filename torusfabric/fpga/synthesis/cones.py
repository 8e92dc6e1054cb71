"""Where the tables of a mapped module go, found by following its nets.

What an input port brings is followed through tables and registers: a cell that any of it reaches
handles data, and all others make settings. So the parts are counted on the netlist itself, and add
up to what it has.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from .family import Cost

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
    net = _Net(module)
    bits = [bit for port in outports for bit in module["ports"][port]["bits"]]
    at = net.at(bits)
    if not inports:
        return at | {"parts": {}, "limit": None}
    brought = {bit: part for port, part in inports.items() for bit in module["ports"][port]["bits"]}
    data = net.reached(brought)
    parts: dict[str, int] = defaultdict(int, dict.fromkeys((*inports.values(), "settings"), 0))
    for name, cell in module["cells"].items():
        luts = price(cell["type"]).luts
        if luts:
            parts[net.part(name, brought, data)] += luts
    limit = sum(fewest_tables(len(net.sources(bit, data)), inputs) for bit in bits)
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


class _Net:
    """The cells of a module, by the bits they drive and read."""

    def __init__(self, module: dict[str, Any]) -> None:
        self._cells = module["cells"]
        self._driver: dict[object, str] = {}
        self._readers: dict[object, list[str]] = defaultdict(list)
        for name, cell in self._cells.items():
            for port, direction in cell.get("port_directions", {}).items():
                for bit in cell["connections"][port]:
                    if direction == "output":
                        self._driver[bit] = name
                    elif isinstance(bit, int):  # constants are text
                        self._readers[bit].append(name)

    def _bits(self, name: str, direction: str) -> list[Any]:
        cell = self._cells[name]
        ports = cell.get("port_directions", {})
        return [b for p, d in ports.items() if d == direction for b in cell["connections"][p]]

    def _kind(self, name: str) -> str | None:
        kind = self._cells[name]["type"]
        if _TABLES.fullmatch(kind):
            return "luts"
        return "ffs" if _REGISTERS.match(kind) else None

    def _behind(self, name: str) -> list[Any]:
        """The bits that a register keeps."""
        connections = self._cells[name]["connections"]
        found = (connections[port] for port in _KEPT if connections.get(port))
        return next(found, [])[:1]

    def _joined(self, name: str) -> list[Any]:
        """The bits among which a wide multiplexer chooses."""
        connections = self._cells[name]["connections"]
        ports = _JOINS.get(self._cells[name]["type"], ())
        return [bit for port in ports for bit in connections[port]]

    def at(self, bits: Sequence[Any]) -> dict[str, int]:
        """The flip-flop at each bit, and the table at that, or those that are joined there."""
        found: dict[str, set[str]] = {"luts": set(), "ffs": set()}
        for bit in bits:
            front = [bit]
            name = self._driver.get(bit)
            if name and self._kind(name) == "ffs":
                found["ffs"].add(name)
                front = self._behind(name)
            while front:
                name = self._driver.get(front.pop())
                if name and self._kind(name) == "luts":
                    found["luts"].add(name)
                elif name:
                    front += self._joined(name)
        return {"bits": len(bits), **{kind: len(names) for kind, names in found.items()}}

    def reached(self, bits: Iterable[Any]) -> set[Any]:
        """All bits that depend on some, by way of data inputs of registers too."""
        data, front = set(bits), list(bits)
        while front:
            bit = front.pop()
            for name in self._readers[bit]:
                if self._kind(name) == "ffs" and bit not in self._behind(name):
                    continue  # a clock enable or reset
                for out in self._bits(name, "output"):
                    if out not in data:
                        data.add(out)
                        front.append(out)
        return data

    def part(self, name: str, brought: Mapping[Any, str], data: Collection[Any]) -> str:
        """The part of the report that a cell belongs to."""
        read = [bit for bit in self._bits(name, "input") if bit in data]
        if not read:
            return "settings"
        parts = {brought.get(bit, "crossbar") for bit in read}
        special = parts - {"crossbar"}
        return special.pop() if special else "crossbar"

    def sources(self, bit: Any, data: Collection[Any]) -> set[Any]:
        """The data bits that a bit is chosen from: inputs, or registers before its own."""
        name = self._driver.get(bit)
        front = self._behind(name) if name and self._kind(name) == "ffs" else [bit]
        found, seen = set(), set(front)
        while front:
            bit = front.pop()
            name = self._driver.get(bit)
            if name is None or self._kind(name) == "ffs":
                if bit in data:
                    found.add(bit)
                continue
            for source in self._bits(name, "input"):
                if source not in seen:
                    seen.add(source)
                    front.append(source)
        return found
