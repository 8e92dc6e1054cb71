"""Modules as the compiled engine steps them: registers cut into pieces, memories cut into columns.

Amaranth elaborates each module into *cells*: registers, memories, operators and so on. Cells are
numbered; cell 0 stands for the ports of the module. A register is cut into *pieces* of at most 64
bits, at flit boundaries and at bits whose values come from different origins. Each piece is one
native word of the C++ model. A memory is cut into *columns*, one for each write enable. An output
whose value comes from logic becomes a piece as well, a *combinational* piece.

::

    register  |  bits 0..31  | bits 32..63  | bits 64..67 |
    pieces    |   piece 0    |   piece 1    |   piece 2   |    (flits of 32 bits)

The *origin* of a bit is here the cell that drives it, with the branch of a multiplexer or
assignment from which it comes. `Nets` are the bits of a value, the lowest first, each as a number:
0 and 1 for constants, otherwise a cell and one of its output bits.
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
from .expressions import NATIVE_BITS

__all__ = ["MemoryColumn", "ElaboratedModule", "Nets", "Piece", "BitRun", "ModuleMemory",
           "cut_range", "adjacent_runs"]  # fmt: skip

#: Bits of a value by Amaranth's numbers: 0 and 1 are constants, others are cell << 16 | output bit.
Nets = Sequence[int]


class BitRun(NamedTuple):
    """Adjacent output bits of one cell, or adjacent constant bits.

    Parameters
    ----------
    cell : int or None
        Number of the cell in the module; None for constant bits.
    low : int
        The lowest of these bits in the output of the cell; for constant bits, their value.
    width : int
        Number of bits.
    """

    cell: int | None
    low: int
    width: int


class Piece(NamedTuple):
    """A part of a register, or of an output of combinational logic, with at most 64 bits.

    Parameters
    ----------
    cell : int
        Cell of the register; -1 for a part of an output of combinational logic. For the pieces of
        an `ExternalModule` see there.
    low, width : int
        The lowest bit within the register (0 for combinational logic), and the number of bits.
    init : int
        Value after reset.
    nets : tuple of int
        For combinational logic, the bits of the piece, each as a number that names its driver (see
        `Nets`); empty for registers.
    """

    cell: int
    low: int
    width: int
    init: int
    nets: tuple[int, ...] = ()


class MemoryColumn(NamedTuple):
    """A bit range that all words of a memory have in common, written by one write enable."""

    low: int
    width: int


@dataclass
class ModuleMemory:
    """A memory of a module, cut into columns: bit ranges of its words with one write enable each.

    Parameters
    ----------
    cell : int
        Cell of the memory.
    width, depth : int
        Bits of a word, and number of words.
    init : tuple of int
        Initial words.
    columns : list of MemoryColumn
        The bit ranges, the lowest first.
    writers : list of int
        Cells of the write ports.
    """

    cell: int
    name: str
    width: int
    depth: int
    init: tuple[int, ...]
    columns: list[MemoryColumn] = field(default_factory=list)
    writers: list[int] = field(default_factory=list)


def adjacent_runs(nets: Nets) -> Iterator[BitRun]:
    """Yield the bits `nets` as runs, each as long as possible, of adjacent output bits of one cell.

    A cell is a register, a memory, an operator or a multiplexer. `nets` has a number for each bit,
    which names its driver. Neighbouring constant bits form one run.
    """
    at = 0
    while at < len(nets):
        first, end = nets[at], at + 1
        if first < 2:
            value = first
            while end < len(nets) and nets[end] < 2:
                value |= nets[end] << end - at
                end += 1
            yield BitRun(None, value, end - at)
        else:
            while end < len(nets) and nets[end] == first + end - at:
                end += 1
            yield BitRun(first >> 16, first & 0xFFFF, end - at)
        at = end


def cut_range(width: int, cuts: set[int], word: int) -> list[tuple[int, int]]:
    """Cut a range of bits into parts of at most 64 bits, at given positions and between flits.

    Parameters
    ----------
    width : int
        Number of bits of the range.
    cuts : set of int
        Positions at which a part must begin.
    word : int
        Bits of a flit. A range of several whole flits is also cut at each flit; 0 for no such cuts.

    Returns
    -------
    list of (int, int)
        The lowest bit and the width of each part.

    Examples
    --------
    >>> cut_range(80, {8}, 0)
    [(0, 8), (8, 64), (72, 8)]
    """
    if word >= 8 and width > word and width % word == 0:
        cuts = cuts | {*range(0, width, word)}
    ends = sorted({at for at in cuts if 0 < at < width} | {width})
    found, low = [], 0
    for end in ends:
        while low < end:
            size = min(end - low, NATIVE_BITS)
            found.append((low, size))
            low += size
    return found


class ElaboratedModule:
    """A module of a netlist after elaboration by Amaranth, with its registers cut into pieces.

    A *cell* is a register, a memory, an operator or a multiplexer; cell 0 stands for the ports. A
    *piece* is a part of a register or an output with at most 64 bits.

    Parameters
    ----------
    leaf : Leaf
        The module in the netlist.
    word : int
        Bits of a flit.

    Attributes
    ----------
    inputs : dict of str to (int, int)
        Input -> its first bit among the outputs of cell 0, and its number of bits.
    outputs : dict of str to tuple of int
        Output -> its bits, as `Nets`.
    pieces : list of Piece
        Pieces of registers, followed by those of combinational outputs, which `output_parts` adds.
    pieces_of : dict of int to (list of int)
        Cell of a register -> indices of its pieces in `pieces`.
    stores : dict of int to ModuleMemory
        Cell of a memory -> the memory.
    banks : dict of int to (list of CellBits)
        For an endpoint, number of a memory of the node -> the cells that hold its words, one entry
        for each copy of the memory; see `torusfabric.rtl.core.store.StoreModule`. Empty for other
        modules.
    signals : dict of str to tuple of int
        Registers that hold words of `banks`, because a memory of one word is a register: name ->
        its bits, as `Nets`.
    bank_cells : set of int
        Cells of the registers in `signals`.
    """

    def __init__(self, name: str, leaf: Leaf, word: int) -> None:
        self.name, self._word = name, word
        inputs: dict[str, Value] = {}
        outputs: dict[str, Value] = {}
        for path, member, value in leaf.signature.flatten(leaf):
            ports = inputs if member.flow is wiring.In else outputs
            ports["__".join(map(str, path))] = value
            # With bound inputs a module elaborates as inside a fabric, without synthesis wrappers.
            if ports is inputs and len(path) == 1:
                leaf.bind_input(str(path[0]), [value])
        netlist = make_netlist(leaf, inputs, outputs)
        self.cells: list[Any] = [None, *netlist.cells[1:]]
        self.inputs = dict(netlist.top.ports_i)
        self.outputs = dict(netlist.top.ports_o)
        self.banks: dict[int, list[CellBits]] = getattr(leaf, "banks", {})
        names = {bank.name for copies in self.banks.values() for bank in copies}
        self.signals = {signal.name: nets for signal, nets in netlist.signals.items()
                        if signal.name in names}  # fmt: skip
        self.bank_cells = {net >> 16 for nets in self.signals.values() for net in nets}
        # Cut each memory where the write enable changes.
        stores = {
            number: ModuleMemory(number, cell.name, cell.width, cell.depth, cell.init)
            for number, cell in enumerate(self.cells)
            if isinstance(cell, nir.Memory)
        }
        for number, cell in enumerate(self.cells):
            if isinstance(cell, nir.SyncWritePort):
                stores[cell.memory].writers.append(number)
        for store in stores.values():
            enables = [self.cells[k].en for k in store.writers]
            cuts = {at for en in enables for at in range(1, len(en)) if en[at] != en[at - 1]}
            store.columns = [
                MemoryColumn(*each) for each in cut_range(store.width, cuts, self._word)
            ]
        self.stores = stores
        self.pieces: list[Piece] = []
        self.pieces_of: dict[int, list[int]] = {}
        self._shown: dict[str, list[tuple[int | None, int, int]]] = {}
        self._cut_registers()

    def _cut_registers(self) -> None:
        """Cut the registers of the module, and the output registers of memories, into pieces.

        A piece is a part with at most 64 bits: one native word of the C++ model.
        """
        for number, cell in enumerate(self.cells):
            if isinstance(cell, nir.FlipFlop):
                found = cut_range(len(cell.data), self._origin_changes(cell.data), self._word)
                init = cell.init
            elif isinstance(cell, nir.SyncReadPort):
                found, init = list(self.stores[cell.memory].columns), 0
            else:
                continue
            self.pieces_of[number] = []
            for low, width in found:
                self._add_piece(Piece(number, low, width, init >> low & (1 << width) - 1))

    def _add_piece(self, piece: Piece) -> int:
        if piece.cell >= 0:
            self.pieces_of[piece.cell].append(len(self.pieces))
        self.pieces.append(piece)
        return len(self.pieces) - 1

    def _origin_changes(self, nets: Nets) -> set[int]:
        """Return the positions in a value at which the origin of the bits changes.

        `nets` are the bits of the value. Position k is in the result if bit k comes from another
        cell than bit k - 1, or from another branch of a multiplexer or assignment.
        """
        cuts, at = set(), 0
        for run in adjacent_runs(nets):
            cuts.add(at)
            cell = None if run.cell is None else self.cells[run.cell]
            if isinstance(cell, nir.AssignmentList):
                for each in cell.assignments:
                    inner = {each.start + end for end in _run_starts(each.value)}
                    cuts |= {at + end - run.low for end in inner | {each.start}}
            elif isinstance(cell, nir.Operator) and cell.operator == "m":
                for value in cell.inputs[1:]:
                    cuts |= {at + end - run.low for end in _run_starts(value)}
            at += run.width
        return cuts

    def output_parts(self, port: str) -> list[tuple[int | None, int, int]]:
        """Return the pieces that form an output, the lowest first.

        A piece is a part of a register or an output with at most 64 bits. For bits that no register
        drives, the first call adds combinational pieces to `pieces`.

        Parameters
        ----------
        port : str
            Name of the output.

        Returns
        -------
        list of (int or None, int, int)
            Index of the piece, lowest bit within the piece, and number of bits; for constant bits
            None, their value, and their number.
        """
        if port not in self._shown:
            self._shown[port] = [*self._piece_parts(self.outputs[port])]
        return self._shown[port]

    def _piece_parts(self, nets: Nets) -> Iterator[tuple[int | None, int, int]]:
        """Yield the pieces that form a value, as the tuples that `output_parts` returns.

        `nets` are the bits of the value. Bits that no register drives become new combinational
        pieces.
        """
        at, nets = 0, self.resolve_assignments(nets)
        for run in adjacent_runs(nets):
            if run.cell is None:
                yield None, run.low, run.width
            elif run.cell in self.pieces_of:
                for number, low, width in self.split_run(run):
                    yield number, low, width
            else:
                inner = nets[at : at + run.width]
                for low, size in cut_range(run.width, set(), self._word):
                    piece = Piece(-1, 0, size, 0, tuple(inner[low : low + size]))
                    yield self._add_piece(piece), 0, size
            at += run.width

    def split_run(self, run: BitRun) -> Iterator[tuple[int, int, int]]:
        """Yield the pieces that hold `run`, adjacent bits of a register.

        Each is a tuple: index of the piece, lowest bit within the piece, and number of bits.
        """
        assert run.cell is not None
        for number in self.pieces_of[run.cell]:
            piece = self.pieces[number]
            low = max(run.low, piece.low)
            high = min(run.low + run.width, piece.low + piece.width)
            if low < high:
                yield number, low - piece.low, high - low

    def resolve_assignments(self, nets: Nets) -> tuple[int, ...]:
        """Return the bits `nets`, with each bit that copies another one replaced by the original.

        A bit is a copy if an assignment without a condition sets it. Why: an output that copies a
        register then needs no piece of its own.
        """
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

    def next_bits(self, piece: Piece) -> Nets:
        """Return the bits that a part of a register takes over at the next clock edge.

        `piece` is this part. The bits are those of the data input of the register, each as a number
        that names its driver (see `Nets`).
        """
        cell = self.cells[piece.cell]
        if not isinstance(cell, nir.FlipFlop):
            raise WorkFailed(f"Module {self.name} must hold piece {piece} in a register")
        return cell.data[piece.low : piece.low + piece.width]


def _run_starts(nets: Nets) -> set[int]:
    """Return the positions in a value at which a new run of adjacent bits of one cell begins.

    `nets` are the bits of the value; a cell is, for example, a register or an operator. A bit that
    is repeated counts as one run.
    """
    found, at = set(), 0
    for run in adjacent_runs(nets):
        found.add(at)
        at += run.width
    return {at for at in found if at == 0 or nets[at] != nets[at - 1]}
