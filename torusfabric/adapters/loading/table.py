"""Tables that are loaded: memories with a port that reads them and a bus that writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import memory
from amaranth.lib.wiring import In, Out

from ...rtl.memories import ReadPort, WritePort, add_memory, add_rom, address_width
from ...rtl.modules import delayed
from ...rtl.netlist import Leaf
from .layout import TableSize, pieces

__all__ = ["LoadedTable", "part_bits"]

#: Rows of a table up to which it may be made of look-up tables; beyond, these take too many.
SMALL = 16


class LoadedTable(Leaf):
    """Tables of one owner, which are written piece by piece.

    Parameters
    ----------
    tables : sequence of (int, int)
        Rows and bits of each.
    bus : dict of str to int
        As `TableLayout.bus`.
    contents : sequence of (sequence of int)
        The first rows of each; all others are 0.
    parts : dict of str to ((sequence of (int, int)), int)
        What is given away, by name: runs of bits of all tables, one behind the other, and cycles by
        which they are later.
    whole : bool
        Whether all rows are given away at all times, side by side; of one table.
    written : bool
        Whether they can be written; else they stay as they are, for proofs.

    Members
    -------
    number : In
        Its own, by which it is written.
    address_0, address_1, .. : In
        Of each table.
    load_valid, load_every, load_table, load_row, load_piece, load_word : In
        A piece of a row, of the tables of one number or of all nodes, that is written an edge
        later.
    NAME : Out
        A part of the rows that were asked for in the cycle before.
    """

    def __init__(
        self,
        tables: Sequence[TableSize],
        bus: Mapping[str, int],
        contents: Sequence[Sequence[int]],
        parts: Mapping[str, tuple[Sequence[TableSize], int]],
        *,
        whole: bool = False,
        written: bool = True,
    ) -> None:
        self._written, self.whole, self.parts = written, whole, parts
        self.tables, self._contents = tuple(tables), [*contents, *[()] * len(tables)]
        read = {f"address_{k}": In(address_width(rows) * (bits > 0))
                for k, (rows, bits) in enumerate(tables)}  # fmt: skip
        super().__init__(
            {"number": In(bus["load_table"])}
            | ({} if whole else read)
            | {name: In(bits) for name, bits in bus.items()}
            | {name: Out(part_bits(runs)) for name, (runs, _) in parts.items()}
        )

    def elaborate(self, platform: object) -> Module:
        """Build a memory for each piece."""
        m = Module()
        mine = self.value("load_table") == self.value("number")
        enable = Signal(name="written")
        m.d.sync += enable.eq(self.value("load_valid") & (mine | self.value("load_every")))
        row, number, word = (delayed(m, self.value(f"load_{name}"), 1)
                             for name in ("row", "piece", "word"))  # fmt: skip
        found = []
        for k, (of, rows, low, bits) in enumerate(pieces(self.tables)):
            init = [value >> low & (1 << bits) - 1 for value in self._contents[of] or [0] * rows]
            write = WritePort(row, word[:bits], enable & (number == k))
            if self.whole:
                found.append(self._registers(m, init, bits, write))
                continue
            depth, name, read = max(rows, 2), f"piece_{k}", self.value(f"address_{of}")
            if self._written:
                cells = memory.MemoryData(shape=bits, depth=depth, init=init)
                write = write._replace(address=row[: address_width(depth)])
                asked = ReadPort(read, Const(1))
                shown = add_memory(m, name, cells, write=write, read=asked, block=rows > SMALL)
            else:
                init += [0] * (depth - rows)
                shown = add_rom(m, name, rows=init, width=bits, address=read)
            found.append([shown])
        # Where all rows are shown, row by row.
        whole = Cat(*(part for parts in zip(*found, strict=True) for part in parts))
        for name, (runs, late) in self.parts.items():
            part = Cat(whole[start : start + bits] for start, bits in runs)
            m.d.comb += getattr(self, name).eq(delayed(m, part, late, name))
        return m

    def _registers(self, m: Module, init: list[int], bits: int, write: WritePort) -> list[Value]:
        """A piece of rows that are given away at all times."""
        if not self._written:
            return [Const(value, bits) for value in init]
        rows = [Signal(bits, init=value, reset_less=True, name=f"row_{k}")
                for k, value in enumerate(init)]  # fmt: skip
        for k, register in enumerate(rows):
            with m.If(write.enable & (write.address == k)):
                m.d.sync += register.eq(write.data)
        return [*rows]


def part_bits(runs: Sequence[TableSize]) -> int:
    """Bits of runs together."""
    return sum(bits for _, bits in runs)
