"""Tables that are loaded: memories with a port that reads them and a bus that writes them."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import memory
from amaranth.lib.wiring import In, Out

from ..memories import address_width, fitting
from ..netlist import Leaf
from ..registers import delayed
from .layout import PIECE

__all__ = ["BUS", "LoadedTable"]

#: What the loader gives to all tables, and the bits of each.
BUS = {"load_valid": 1, "load_table": 16, "load_row": 16, "load_piece": 4, "load_word": PIECE}


class LoadedTable(Leaf):
    """A table that is written piece by piece.

    Parameters
    ----------
    rows, width : int
    contents : sequence of int
        The first rows; all others are 0.
    parts : dict of str to (int, int, int)
        Bits that are given away, by name: the first, how many, and cycles by which they are later.
        All of a row if there are none, as ``row``.
    written : bool
        Whether it can be written; else it stays as it is, for proofs.

    Members
    -------
    number : In(16)
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
        contents: Sequence[int] = (),
        parts: dict[str, tuple[int, int, int]] | None = None,
        *,
        written: bool = True,
    ) -> None:
        self._written = written
        self._rows, self._width, self._contents = rows, width, tuple(contents)
        self._parts = parts or {"row": (0, width, 0)}
        super().__init__(
            {"number": In(16), "address": In(address_width(rows))}
            | {name: In(bits) for name, bits in BUS.items()}
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
            cells = memory.MemoryData(shape=bits, depth=max(self._rows, 2), init=init)
            m.submodules[f"piece_{number}"] = ram = memory.Memory(cells)
            ram.data.name = "ram"
            out = ram.read_port()
            m.d.comb += out.addr.eq(fitting(self.value("address"), len(out.addr)))
            found.append(out.data)
            if self._written:
                into = ram.write_port()
                m.d.comb += [
                    into.addr.eq(fitting(row, len(into.addr))),
                    into.data.eq(word[:bits]),
                    into.en.eq(enable & (piece == number)),
                ]
        whole = Cat(*found)
        for name, (start, bits, late) in self._parts.items():
            m.d.comb += getattr(self, name).eq(delayed(m, whole[start : start + bits], late, name))
        return m
