"""The processing element of a matrix multiplication: memories, multipliers and streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.memory import Memory, ReadPort
from support.system import Element

__all__ = ["LATENCY", "MultiplierElement", "Sizes"]

#: Bits of an entry of A or B, and of an entry of C.
ENTRY_BITS, SUM_BITS = 16, 40

#: Cycles from the addresses of two entries until their product is in the memory of C: a read, the
#: register before the multiplier, the product, its way beside the register of the old sum, the new
#: sum, and the write. Why registers around the addition: with two memories it would be the critical
#: path.
LATENCY = 6


class Sizes(NamedTuple):
    """The sizes of a multiplication.

    Parameters
    ----------
    side : int
        Elements in a row, and in a column: p.
    block : int
        Rows and columns of the blocks of A, B and C in an element: b, a power of two.
    panel : int
        Columns of A, and rows of B, that an element sends in a round: r, a power of two.
    multipliers : int
        Multipliers of an element, a power of two.
    """

    side: int
    block: int
    panel: int
    multipliers: int

    @property
    def rounds(self) -> int:
        """Rounds of a multiplication; each is an all-gather along rows and one along columns."""
        return self.block // self.panel

    @property
    def packet(self) -> int:
        """Entries of a packet: a panel of A or of B."""
        return self.block * self.panel

    @property
    def round_cycles(self) -> int:
        """Cycles in which all multipliers of an element work on the panels of one round."""
        return self.side * self.packet * self.block // self.multipliers


class MultiplierElement(Element):
    """Processing element with a block of A, of B and of C.

    In each round it sends r columns of its block of A to its row, and r rows of its block of B to
    its column. It receives those of all elements there, its own included, and adds all products of
    the received columns and rows to its block of C. While it computes with the panels of one round,
    it receives those of the next.

    The host writes A by columns to the addresses 0 to b * b - 1, then B by rows. It reads C by
    rows.

    Parameters
    ----------
    sizes : Sizes
        The sizes of the multiplication.
    """

    sizes: Sizes

    def elaborate(self, platform: object) -> Module:
        """Build sender, receiver and multipliers, which work at the same time."""
        m, sizes = Module(), self.sizes
        #: For each of the two buffers, high if it has the panels of a whole round, but for the last
        #: entry, which is written a cycle later, and needed later still.
        full = Signal(2)
        self._send_panels(m)
        columns, rows = self._receive_panels(m, full)
        ends = self._add_products(m, self._begin_products(m, full, columns, rows), columns, rows)
        rounds = Signal(range(sizes.rounds + 1))
        with m.If(self.start):
            m.d.sync += [self.done.eq(0), rounds.eq(sizes.rounds)]
        with m.Elif(ends):
            m.d.sync += rounds.eq(rounds - 1)
            with m.If(rounds == 1):
                m.d.sync += self.done.eq(1)
        return m

    def _send_panels(self, m: Module) -> None:
        """Send a panel of A and a panel of B in each round, an entry in each cycle."""
        sizes, send = self.sizes, self.send
        size = sizes.block**2
        at, in_b = Signal(range(size)), Signal()
        active, there, shown = Signal(), Signal(), Signal(2)
        advance, last = Signal(), Signal()
        entries: list[Value] = []
        for number, name in enumerate("AB"):
            m.submodules[f"block_of_{name.lower()}"] = memory = Memory(
                shape=ENTRY_BITS, depth=size, init=[]
            )
            reads, writes = memory.read_port(), memory.write_port()
            mine = self.address[(size - 1).bit_length()] == number
            m.d.comb += [reads.addr.eq(at), reads.en.eq(advance),
                         writes.addr.eq(self.address), writes.data.eq(self.write_data),
                         writes.en.eq(self.write & mine)]  # fmt: skip
            entries.append(reads.data)
        m.d.comb += [
            advance.eq(~there | send.ready),
            last.eq(at[: (sizes.packet - 1).bit_length()].all()),
            send.valid.eq(there),
            send.payload.data.eq(Mux(shown[0], entries[1], entries[0])),
            send.payload.last.eq(shown[1]),
        ]
        with m.If(self.start):
            m.d.sync += [active.eq(1), at.eq(0), in_b.eq(0)]
        with m.Elif(advance):
            m.d.sync += [there.eq(active), shown.eq(Cat(in_b, last))]
            with m.If(active & ~last):
                m.d.sync += at.eq(at + 1)
            with m.Elif(active):
                # The panel of B has the same addresses as that of A before it.
                m.d.sync += [in_b.eq(~in_b), at.eq(Mux(in_b, at + 1, at - (sizes.packet - 1)))]
                with m.If(in_b & at.all()):
                    m.d.sync += active.eq(0)

    def _receive_panels(self, m: Module, full: Signal) -> tuple[ReadPort, ReadPort]:
        """Store received panels in the free buffer; return the read ports of both memories.

        The memory of columns of A has an entry in each word, that of rows of B as many as there are
        multipliers.
        """
        sizes, receive = self.sizes, self.receive
        count, lanes = sizes.side * sizes.packet, sizes.multipliers
        room = 1 << (count - 1).bit_length()
        at, in_b, buffer = Signal(range(room)), Signal(), Signal()
        m.submodules.columns = columns = Memory(shape=ENTRY_BITS, depth=2 * room, init=[])
        m.submodules.rows = rows = Memory(
            shape=ENTRY_BITS * lanes, depth=2 * room // lanes, init=[]
        )
        into_a, into_b = columns.write_port(), rows.write_port(granularity=ENTRY_BITS)
        lane, word = at[: max((lanes - 1).bit_length(), 1)], at[(lanes - 1).bit_length() :]
        taken = receive.valid & receive.ready
        m.d.comb += receive.ready.eq(~full.bit_select(buffer, 1))
        # Why registers: from a memory of the fabric to one of the element would be a long path.
        m.d.sync += [
            into_a.addr.eq(Cat(at, buffer)),
            into_a.data.eq(receive.payload.data),
            into_a.en.eq(taken & ~in_b),
            into_b.addr.eq(Cat(word, buffer)),
            into_b.data.eq(receive.payload.data.replicate(lanes)),
            into_b.en.eq(Cat(taken & in_b & ((lane == k) | (lanes == 1)) for k in range(lanes))),
        ]
        with m.If(taken):
            m.d.sync += at.eq(at + 1)
            with m.If(at == count - 1):
                m.d.sync += [at.eq(0), in_b.eq(~in_b)]
                with m.If(in_b):
                    m.d.sync += [full.bit_select(buffer, 1).eq(1), buffer.eq(~buffer)]
        return columns.read_port(), rows.read_port()

    def _begin_products(
        self, m: Module, full: Signal, columns: ReadPort, rows: ReadPort
    ) -> list[Value]:
        """Read the entries of a product for each multiplier, in each cycle with a full buffer.

        In a cycle, entry `row` of column `index` of A and word `word` of row `index` of B are read.

        Returns four signals about these products: high if there are any, high if they are the first
        of their sums, high if they are the last of a round, and the word of C that they belong to.
        """
        sizes, lanes = self.sizes, self.sizes.multipliers
        words = sizes.block // lanes
        word, row, index = (
            Signal(range(words)),
            Signal(range(sizes.block)),
            Signal(range(sizes.side * sizes.panel)),
        )
        buffer, fresh, begins = Signal(), Signal(), Signal()
        last = Signal()
        m.d.comb += [
            begins.eq(full.bit_select(buffer, 1)),
            columns.addr.eq(self.panel_address(buffer, index, row, 1)),
            rows.addr.eq(self.panel_address(buffer, index, word, lanes)),
            last.eq((word == words - 1) & (row == sizes.block - 1)
                    & (index == sizes.side * sizes.panel - 1)),
        ]  # fmt: skip
        with m.If(self.start):
            m.d.sync += fresh.eq(1)
        with m.If(begins):
            m.d.sync += word.eq(Mux(word == words - 1, 0, word + 1))
            with m.If(word == words - 1):
                m.d.sync += row.eq(row + 1)
                with m.If(row == sizes.block - 1):
                    m.d.sync += [index.eq(index + 1), fresh.eq(0)]
            with m.If(last):
                m.d.sync += [index.eq(0), full.bit_select(buffer, 1).eq(0), buffer.eq(~buffer)]
        return [begins, fresh, begins & last, Cat(word[: (words - 1).bit_length()], row)]

    def _add_products(
        self, m: Module, about: Sequence[Value], columns: ReadPort, rows: ReadPort
    ) -> Value:
        """Multiply the entries that are read, and add the products to C.

        Parameters
        ----------
        about : sequence of Value
            The signals of `_begin_products`.
        columns, rows : ReadPort
            The ports by which entries of A and B are read.

        Returns a signal that is high for a cycle when the last sum of a round is written.
        """
        sizes, lanes = self.sizes, self.sizes.multipliers
        m.submodules.block_of_c = sums = Memory(
            shape=SUM_BITS * lanes, depth=sizes.block**2 // lanes, init=[]
        )
        read, write = sums.read_port(), sums.write_port()
        # The pipeline: entries are read, registered and multiplied. Meanwhile the old sum is read.
        steps: list[Any] = [Cat(*about)]
        for number in range(LATENCY - 1):
            step = Signal(len(steps[0]), name=f"step_{number + 1}")
            m.d.sync += step.eq(steps[-1])
            steps.append(step)
        place = [step[3:] for step in steps]
        entry = Signal(ENTRY_BITS)
        m.d.sync += entry.eq(columns.data)
        by_host = self.address >> (lanes - 1).bit_length()
        m.d.comb += [read.addr.eq(Mux(self.done, by_host, place[2])),
                     write.addr.eq(place[-1]), write.en.eq(steps[-1][0])]  # fmt: skip
        chosen = Signal(range(lanes))
        m.d.sync += chosen.eq(self.address)
        m.d.comb += self.read_data.eq(
            read.data.word_select(chosen, SUM_BITS) if lanes > 1 else read.data
        )
        for lane in range(lanes):
            other = Signal(ENTRY_BITS, name=f"other_{lane}")
            product = Signal(2 * ENTRY_BITS, name=f"product_{lane}")
            m.d.sync += other.eq(rows.data.word_select(lane, ENTRY_BITS))
            later, total = Signal.like(product), Signal(SUM_BITS, name=f"total_{lane}")
            before = Signal(SUM_BITS, name=f"before_{lane}")
            m.d.sync += [product.eq(entry.as_signed() * other.as_signed()), later.eq(product),
                         before.eq(Mux(steps[3][1], 0, read.data.word_select(lane, SUM_BITS))),
                         total.eq(before + later.as_signed())]  # fmt: skip
            m.d.comb += write.data.word_select(lane, SUM_BITS).eq(total)
        return steps[-1][2]

    def panel_address(self, buffer: Signal, index: Signal, within: Signal, lanes: int) -> Value:
        """Return the address of a word in a memory of panels whose words have `lanes` entries."""
        sizes = self.sizes
        count = sizes.side * sizes.packet
        bits = (count - 1).bit_length() - (lanes - 1).bit_length()
        low = (sizes.block // lanes - 1).bit_length()
        return Cat(within[:low], Cat(index, Const(0, bits))[: bits - low], buffer)
