"""Tables that are loaded: memories with a port that reads them and a bus that writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import memory
from amaranth.lib.wiring import In, Out

from ..memories import ReadPort, WritePort, add_memory, add_rom, address_width
from ..netlist import Leaf
from ..registers import delayed
from .layout import PIECE

__all__ = ["LoadedTable"]


class LoadedTable(Leaf):
    """A table that is written piece by piece.

    Parameters
    ----------
    rows, width : int
    bus : dict of str to int
        As `TableLayout.bus`.
    contents : sequence of int
        The first rows; all others are 0.
    parts : dict of str to (int, int, int)
        Bits that are given away, by name: the first, how many, and cycles by which they are later.
        All of a row if there are none, as ``row``.
    written : bool
        Whether it can be written; else it stays as it is, for proofs.

    Members
    -------
    number : In
        Its own, by which it is written.
    address : In
    load_valid, load_table, load_row, load_piece, load_word : In
        A piece of a row of a table, that is written an edge later.
    NAME : Out
        A part of the row that was asked for in the cycle before.
    """

    def __init__(
        self,
        rows: int,
        width: int,
        bus: Mapping[str, int],
        contents: Sequence[int] = (),
        parts: dict[str, tuple[int, int, int]] | None = None,
        *,
        written: bool = True,
    ) -> None:
        self._written = written
        self._rows, self._width, self._contents = rows, width, tuple(contents)
        self._parts = parts or {"row": (0, width, 0)}
        super().__init__(
            {"number": In(bus["load_table"]), "address": In(address_width(rows))}
            | {name: In(bits) for name, bits in bus.items()}
            | {name: Out(bits) for name, (_, bits, _) in self._parts.items()}
        )

    def elaborate(self, platform: object) -> Module:
        """Build a memory for each piece."""
        m = Module()
        names = ("load_row", "load_piece", "load_word")
        mine = self.value("load_valid") & (self.value("load_table") == self.value("number"))
        enable = Signal(name="written")
        m.d.sync += enable.eq(mine)
        row, piece, word = (delayed(m, self.value(name), 1) for name in names)
        found: list[Value] = []
        for number, low in enumerate(range(0, self._width, PIECE)):
            bits = min(PIECE, self._width - low)
            init = [value >> low & (1 << bits) - 1 for value in self._contents]
            depth, name, read = max(self._rows, 2), f"piece_{number}", self.value("address")
            if self._written:
                cells = memory.MemoryData(shape=bits, depth=depth, init=init)
                write = WritePort(row, word[:bits], enable & (piece == number))
                found.append(add_memory(m, name, cells, write=write, read=ReadPort(read, Const(1))))
            else:
                whole_rows = [*init, *[0] * (depth - len(init))]
                found.append(add_rom(m, name, rows=whole_rows, width=bits, address=read))
        whole = Cat(*found)
        for name, (start, bits, late) in self._parts.items():
            m.d.comb += getattr(self, name).eq(delayed(m, whole[start : start + bits], late, name))
        return m
