"""`LoadedTable`: the memories of loaded tables, which the loader writes over a bus.

A module has all tables of one *owner*: those of a node, or one of the tables that exist once in a
fabric (see `torusfabric.adapters.loading.layout`). A table is a memory that is cut by columns into
*pieces* of at most 32 bits. The *loader* is the module that takes the words of images; a write on
the bus has an owner number, a piece, a row and a word. Cycles of a write::

    cycle 0   the loader drives the bus; the table compares the owner number
    cycle 1   write enable, row, piece and word come from registers
    cycle 2   from this cycle on a read address finds the new row
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import memory
from amaranth.lib.wiring import In, Out

from ...rtl.memories import ReadPort, WritePort, add_memory, add_rom, address_width
from ...rtl.modules import delay_value
from ...rtl.netlist import Leaf
from .layout import TableSize, split_into_pieces

__all__ = ["LoadedTable", "part_bits"]

#: Most rows of a table that synthesis may build from LUTs; larger tables ask for a block RAM.
MOST_LUT_ROWS = 16


class LoadedTable(Leaf):
    """Hardware of the loaded tables of one owner: of a node, or one table that exists once.

    The loader of images writes one row of one *piece* at a time; a piece is a range of at most 32
    columns of a table.

    Parameters
    ----------
    tables : sequence of (int, int)
        Rows and bits of each table.
    bus : dict of str to int
        Names and bits of the signals from the loader: `TableLayout.bus_signals`.
    contents : sequence of (sequence of int)
        Initial rows of each table; all rows of a table without initial rows are 0.
    parts : dict of str to ((sequence of (int, int)), int)
        For each output, by name, its ranges of bits and its delay. The rows that are read from all
        tables are concatenated, table 0 in the lowest bits. A range (first bit, number of bits) is
        a part of the concatenation. The delay is the number of further registers before the output.
        For example ``{"select_row": (((0, 20),), 0)}``: the lowest 20 bits, without a delay.
    whole : bool
        True if the owner has one table, made of registers. Then all of its rows are concatenated,
        row 0 lowest, and are read in every cycle.
    written : bool
        False for proofs, in which the tables are constant.

    Members
    -------
    number : In
        Owner number, with which `load_table` is compared.
    address_0, address_1, .. : In
        Row to read from each table; absent with `whole`.
    load_valid, load_every, load_table, load_row, load_piece, load_word : In
        The bus from the loader: see `TableLayout.bus_signals`.
    NAME : Out
        The outputs have the names in `parts`. Their bits are valid one cycle after the addresses,
        plus the delay.
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
        """Build a memory for each piece (at most 32 columns) of each table, and the outputs."""
        m = Module()
        mine = self.input_value("load_table") == self.input_value("number")
        enable = Signal(name="written")
        m.d.sync += enable.eq(
            self.input_value("load_valid") & (mine | self.input_value("load_every"))
        )
        row, number, word = (delay_value(m, self.input_value(f"load_{name}"), 1)
                             for name in ("row", "piece", "word"))  # fmt: skip
        found = []
        for k, (of, rows, low, bits) in enumerate(split_into_pieces(self.tables)):
            init = [value >> low & (1 << bits) - 1 for value in self._contents[of] or [0] * rows]
            write = WritePort(row, word[:bits], enable & (number == k))
            if self.whole:
                found.append(self._make_registers(m, init, bits, write))
                continue
            depth, name, read = max(rows, 2), f"piece_{k}", self.input_value(f"address_{of}")
            if self._written:
                cells = memory.MemoryData(shape=bits, depth=depth, init=init)
                write = write._replace(address=row[: address_width(depth)])
                asked = ReadPort(read, Const(1))
                shown = add_memory(
                    m, name, cells, write=write, read=asked, block=rows > MOST_LUT_ROWS
                )
            else:
                init += [0] * (depth - rows)
                shown = add_rom(m, name, rows=init, width=bits, address=read)
            found.append([shown])
        # With `whole` each piece has all its rows. They are interleaved, so that the pieces of one
        # row lie side by side.
        whole = Cat(*(part for parts in zip(*found, strict=True) for part in parts))
        for name, (runs, late) in self.parts.items():
            part = Cat(whole[start : start + bits] for start, bits in runs)
            m.d.comb += getattr(self, name).eq(delay_value(m, part, late, name))
        return m

    def _make_registers(
        self, m: Module, init: list[int], bits: int, write: WritePort
    ) -> list[Value]:
        """Return a register for each row of a piece, or a constant if tables cannot be written.

        A piece is a range of columns of a table. `init` has the initial rows, of `bits` bits each,
        and `write` the signals of a write.
        """
        if not self._written:
            return [Const(value, bits) for value in init]
        rows = [Signal(bits, init=value, reset_less=True, name=f"row_{k}")
                for k, value in enumerate(init)]  # fmt: skip
        for k, register in enumerate(rows):
            with m.If(write.enable & (write.address == k)):
                m.d.sync += register.eq(write.data)
        return [*rows]


def part_bits(runs: Sequence[TableSize]) -> int:
    """Return the total number of bits in some ranges.

    Parameters
    ----------
    runs : sequence of (int, int)
        Each range: its first bit, and its number of bits. For example, (0, 20) and (32, 4) together
        have 24 bits.
    """
    return sum(bits for _, bits in runs)
