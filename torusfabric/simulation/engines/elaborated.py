"""Modules as registers and memories, and the words that follow: what the compiled engine steps.

A module is taken from Amaranth's own elaboration. Its registers are cut into pieces of at most 64
bits, where words meet or bits come from different origins, so that each piece is a native word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from amaranth.hdl import Value
from amaranth.lib import wiring

from ...errors import WorkFailed
from ...rtl.amaranth_private import make_netlist, nir
from ...rtl.core.store import CellBits
from ...rtl.netlist import Leaf
from .expressions import NATIVE

__all__ = [
    "Column",
    "Elaborated",
    "Nets",
    "Piece",
    "Run",
    "Store",
    "cut",
    "runs_of",
]

#: Bits of a value, each of a cell and a bit of its output, as Amaranth numbers them.
Nets = Sequence[int]


class Run(NamedTuple):
    """Adjacent bits of the output of a cell; of a constant cell is None, and `low` its value."""

    cell: int | None
    low: int
    width: int


class Piece(NamedTuple):
    """Bits of a register, or of what a module shows that no register holds.

    Parameters
    ----------
    cell : int
        The cell of the register, or -1.
    init : int
        What it holds at first.
    nets : tuple of int
        What shows, if it is none of a register.
    """

    cell: int
    low: int
    width: int
    init: int
    nets: tuple[int, ...] = ()


class Column(NamedTuple):
    """Bits of all words of a memory."""

    low: int
    width: int


@dataclass
class Store:
    """A memory of a module."""

    cell: int
    name: str
    width: int
    depth: int
    init: tuple[int, ...]
    columns: list[Column] = field(default_factory=list)
    writers: list[int] = field(default_factory=list)


def runs_of(nets: Nets) -> Iterator[Run]:
    """Bits as runs of bits that are adjacent in a cell."""
    at = 0
    while at < len(nets):
        first, end = nets[at], at + 1
        if first < 2:
            value = first
            while end < len(nets) and nets[end] < 2:
                value |= nets[end] << end - at
                end += 1
            yield Run(None, value, end - at)
        else:
            while end < len(nets) and nets[end] == first + end - at:
                end += 1
            yield Run(first >> 16, first & 0xFFFF, end - at)
        at = end


def cut(width: int, cuts: set[int], word: int) -> list[tuple[int, int]]:
    """Return the parts of some bits, cut between words, and so that each is a native word."""
    if word >= 8 and width > word and width % word == 0:
        cuts = cuts | {*range(0, width, word)}
    ends = sorted({at for at in cuts if 0 < at < width} | {width})
    found, low = [], 0
    for end in ends:
        while low < end:
            size = min(end - low, NATIVE)
            found.append((low, size))
            low += size
    return found


class Elaborated:
    """A module of a netlist, elaborated.

    Parameters
    ----------
    word : int
        Bits of a flit.

    Attributes
    ----------
    inputs : dict of str to (int, int)
        The first bit, and the number of bits, of each input among the outputs of cell 0.
    outputs : dict of str to tuple of int
        The bits of each output.
    pieces : list of Piece
        Of registers; later also what shows and is none.
    stores : dict of int to Store
        The memories, by their cells.
    banks : dict of int to (list of CellBits)
        Where an endpoint has the words of each memory.
    signals : dict of str to tuple of int
        The bits of registers that are banks, by their names.
    bank_cells : set of int
        The cells of these registers.
    """

    def __init__(self, name: str, leaf: Leaf, word: int) -> None:
        self.name, self._word = name, word
        inputs: dict[str, Value] = {}
        outputs: dict[str, Value] = {}
        for path, member, value in leaf.signature.flatten(leaf):
            ports = inputs if member.flow is wiring.In else outputs
            ports["__".join(map(str, path))] = value
            # Bound inputs let a module be as it is inside a fabric, without modules for synthesis.
            if ports is inputs and len(path) == 1:
                leaf.bind(str(path[0]), [value])
        netlist = make_netlist(leaf, inputs, outputs)
        self.cells: list[Any] = [None, *netlist.cells[1:]]
        self.inputs = dict(netlist.top.ports_i)
        self.outputs = dict(netlist.top.ports_o)
        self.banks: dict[int, list[CellBits]] = getattr(leaf, "banks", {})
        names = {bank.name for copies in self.banks.values() for bank in copies}
        self.signals = {signal.name: nets for signal, nets in netlist.signals.items()
                        if signal.name in names}  # fmt: skip
        self.bank_cells = {net >> 16 for nets in self.signals.values() for net in nets}
        # A memory has a column for all bits that are written by the same enable.
        stores = {
            number: Store(number, cell.name, cell.width, cell.depth, cell.init)
            for number, cell in enumerate(self.cells)
            if isinstance(cell, nir.Memory)
        }
        for number, cell in enumerate(self.cells):
            if isinstance(cell, nir.SyncWritePort):
                stores[cell.memory].writers.append(number)
        for store in stores.values():
            cuts = {at for k in store.writers for at in _ends(self.cells[k].en)}
            store.columns = [Column(*each) for each in cut(store.width, cuts, self._word)]
        self.stores = stores
        self.pieces: list[Piece] = []
        self.pieces_of: dict[int, list[int]] = {}
        self._shown: dict[str, list[tuple[int | None, int, int]]] = {}
        self._cut_registers()

    def _cut_registers(self) -> None:
        """Cut registers, and what memories show a cycle later, into pieces."""
        for number, cell in enumerate(self.cells):
            if isinstance(cell, nir.FlipFlop):
                found = cut(len(cell.data), self._origins(cell.data), self._word)
                init = cell.init
            elif isinstance(cell, nir.SyncReadPort):
                found, init = list(self.stores[cell.memory].columns), 0
            else:
                continue
            self.pieces_of[number] = []
            for low, width in found:
                self._add(Piece(number, low, width, init >> low & (1 << width) - 1))

    def _add(self, piece: Piece) -> int:
        if piece.cell >= 0:
            self.pieces_of[piece.cell].append(len(self.pieces))
        self.pieces.append(piece)
        return len(self.pieces) - 1

    def _origins(self, nets: Nets) -> set[int]:
        """Return the places at which the origin of bits changes."""
        cuts, at = set(), 0
        for run in runs_of(nets):
            cuts.add(at)
            cell = None if run.cell is None else self.cells[run.cell]
            if isinstance(cell, nir.AssignmentList):
                for each in cell.assignments:
                    inner = {each.start + end for end in _ends(each.value)}
                    cuts |= {at + end - run.low for end in inner | {each.start}}
            elif isinstance(cell, nir.Operator) and cell.operator == "m":
                for value in cell.inputs[1:]:
                    cuts |= {at + end - run.low for end in _ends(value)}
            at += run.width
        return cuts

    def shown(self, port: str) -> list[tuple[int | None, int, int]]:
        """An output as parts, lowest first: a piece or None, its lowest bit or value, and width."""
        if port not in self._shown:
            self._shown[port] = [*self._parts(self.outputs[port])]
        return self._shown[port]

    def _parts(self, nets: Nets) -> Iterator[tuple[int | None, int, int]]:
        """Bits as parts of pieces; what is none of a register becomes a piece."""
        at, nets = 0, self.simple(nets)
        for run in runs_of(nets):
            if run.cell is None:
                yield None, run.low, run.width
            elif run.cell in self.pieces_of:
                for number, low, width in self.split(run):
                    yield number, low, width
            else:
                inner = nets[at : at + run.width]
                for low, size in cut(run.width, set(), self._word):
                    piece = Piece(-1, 0, size, 0, tuple(inner[low : low + size]))
                    yield self._add(piece), 0, size
            at += run.width

    def split(self, run: Run) -> Iterator[tuple[int, int, int]]:
        """A run of bits of a register as pieces, each with its lowest bit and number of bits."""
        assert run.cell is not None
        for number in self.pieces_of[run.cell]:
            piece = self.pieces[number]
            low = max(run.low, piece.low)
            high = min(run.low + run.width, piece.low + piece.width)
            if low < high:
                yield number, low - piece.low, high - low

    def simple(self, nets: Nets) -> tuple[int, ...]:
        """Bits, with assignments that always apply left out."""
        found = []
        for net in nets:
            while net > 1 and isinstance(cell := self.cells[net >> 16], nir.AssignmentList):
                bit = net & 0xFFFF
                covering = [e for e in cell.assignments if 0 <= bit - e.start < len(e.value)]
                if not covering:
                    net = cell.default[bit]
                elif covering[-1].cond == 1:
                    net = covering[-1].value[bit - covering[-1].start]
                else:
                    break
            found.append(net)
        return tuple(found)

    def data(self, piece: Piece) -> Nets:
        """Return the bits that a piece of a register becomes."""
        cell = self.cells[piece.cell]
        if not isinstance(cell, nir.FlipFlop):
            raise WorkFailed(f"Module {self.name} must hold piece {piece} in a register")
        return cell.data[piece.low : piece.low + piece.width]


def _ends(nets: Nets) -> set[int]:
    """Return the places at which runs of bits begin."""
    found, at = set(), 0
    for run in runs_of(nets):
        found.add(at)
        at += run.width
    # Runs of one and the same bit, as of enables, are one.
    return {at for at in found if at == 0 or nets[at] != nets[at - 1]}
