"""The processing element of conjugate gradients: a block of the grid, and a pipeline of arithmetic.

The grid is divided into blocks, one for each element. An element has its points of four grids: the
solution x, the residual r, the direction p, and q = A p. In a *pass*, a point enters the pipeline
in every cycle. An iteration has three passes::

    update     r := r - alpha q         and the sum of r r   -> all-reduce: rho
    direction  x := x + alpha p,  p := r + beta p            -> exchange of the sides of p
    stencil    q := 4 p - ((north + south) + (west + east))
                                        and the sum of p q   -> all-reduce: sigma

With rho and sigma, alpha = rho / sigma and beta = rho / (rho of the iteration before). The first
iteration begins with alpha = beta = 0. After the last one, a pass `direction` completes x.

A point enters the pipeline at cycle 0, when its address is presented. These are the later cycles:

    cycle  update              direction                 stencil
    3      alpha q begins      alpha p and beta p begin  north + south and west + east begin
    8      r - alpha q begins  both sums begin
    9                                                    their sum begins
    14     r is written,       x and p are written
           r r begins
    15                                                   4 p minus the sum begins
    19     r r is added up
    21                                                   q is written, p q begins
    26                                                   p q is added up
"""

from __future__ import annotations

from typing import NamedTuple

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib.memory import Memory, ReadPort, WritePort
from support.system import Element

from .arithmetic import (
    ADD_CYCLES,
    MULTIPLY_CYCLES,
    WORD_BITS,
    Adder,
    DelayLine,
    Divider,
    Multiplier,
    ProductSum,
    delay,
    quadruple,
)

__all__ = ["EXCHANGE", "GradientElement", "REDUCE", "STENCIL_CYCLES", "Sizes", "UPDATE_CYCLES"]

#: The modes of the fabric.
REDUCE, EXCHANGE = 0, 1

#: Cycles from an address to the word at the arithmetic: the register of the address, which waits
#: for the neighbour on the right, the memory, and a register behind it.
READ_CYCLES = 3

#: Cycles from an address to a product with alpha or beta, and to the results of passes.
SCALE_CYCLES = READ_CYCLES + MULTIPLY_CYCLES
UPDATE_CYCLES, STENCIL_CYCLES = SCALE_CYCLES + ADD_CYCLES, READ_CYCLES + 3 * ADD_CYCLES


class Sizes(NamedTuple):
    """The sizes of a problem.

    Parameters
    ----------
    sides : (int, int)
        The sides of the torus.
    rows, columns : int
        The points of an element along each axis.
    iterations : int
        The iterations of a job.
    """

    sides: tuple[int, int]
    rows: int
    columns: int
    iterations: int

    @property
    def points(self) -> int:
        """The points of an element."""
        return self.rows * self.columns

    @property
    def packet(self) -> int:
        """The words of a packet of an exchange: the longer side of a block."""
        return max(self.rows, self.columns)

    @property
    def side_addresses(self) -> list[range]:
        """The addresses of the words of the sides for the neighbours at +0, -0, +1 and -1."""
        columns, points = self.columns, self.points
        return [range(points - columns, points), range(columns),
                range(columns - 1, points, columns), range(0, points, columns)]  # fmt: skip

    @property
    def borders(self) -> list[int]:
        """For each node a bit for each of its neighbours at -0, +0, -1, +1 that is not in the grid.

        The links of a torus that wrap around lead to such neighbours. Points there are 0.
        """
        rows, columns = self.sides
        return [(i == 0) | (i == rows - 1) << 1 | (j == 0) << 2 | (j == columns - 1) << 3
                for i in range(rows) for j in range(columns)]  # fmt: skip


class GradientElement(Element):
    """Element that solves a Poisson problem together with the others.

    The host writes the right-hand side to the addresses 0, 1, .. by rows, and reads x there.

    Parameters
    ----------
    sizes : Sizes
        The sizes of the problem.
    """

    sizes: Sizes

    def elaborate(self, platform: object) -> Module:
        """Build memories, arithmetic and control."""
        m = Module()
        self._alpha, self._beta = Signal(WORD_BITS), Signal(WORD_BITS)
        # High in the first iteration, and from the last alpha on.
        self._is_first, self._is_final = Signal(), Signal()
        # High in a pass.
        self._update, self._direction, self._stencil = Signal(), Signal(), Signal()
        self._add_walk(m)
        self._add_memories(m)
        self._add_arithmetic(m)
        self._add_control(m)
        return m

    def _add_walk(self, m: Module) -> None:
        """Count the points of a pass, row by row.

        Bit k of `valid` is high if a point entered the pipeline k cycles ago, bit k of `last` if it
        was the last.
        """
        sizes, cycles = self.sizes, STENCIL_CYCLES + MULTIPLY_CYCLES
        self._begin, active, ends = Signal(), Signal(), Signal()
        self._at, self._column, self._row = (
            Signal(range(size)) for size in (sizes.points, sizes.columns, sizes.rows)
        )
        valid, last, row_ends = Signal(cycles), Signal(cycles), Signal()
        self._valid, self._last = Cat(active, valid), Cat(active & ends, last)
        m.d.comb += [ends.eq(self._at == sizes.points - 1),
                     row_ends.eq(self._column == sizes.columns - 1)]  # fmt: skip
        m.d.sync += [valid.eq(self._valid), last.eq(self._last)]
        with m.If(self._begin):
            m.d.sync += [active.eq(1), self._at.eq(0), self._column.eq(0), self._row.eq(0)]
        with m.Elif(active):
            m.d.sync += [self._at.eq(self._at + 1), active.eq(~ends),
                         self._column.eq(Mux(row_ends, 0, self._column + 1)),
                         self._row.eq(self._row + row_ends)]  # fmt: skip

    def _add_memories(self, m: Module) -> None:
        """Add the memories of x, r, p and q, and that of points of the neighbours left and right.

        The memory of p has one more row above and one below, for points of the neighbours there. It
        is read at three places at once, so it consists of three block RAMs.
        """
        sizes = self.sizes

        def add_memory(name: str, depth: int, reads: int) -> tuple[list[ReadPort], WritePort]:
            m.submodules[name] = memory = Memory(shape=WORD_BITS, depth=depth, init=[])
            return [memory.read_port() for _ in range(reads)], memory.write_port()

        points, rows, columns = sizes.points, sizes.rows, sizes.columns
        (north, self._p_read, south), self._p_write = add_memory("p", points + 2 * columns, 3)
        (west, east), self._side_write = add_memory("neighbours", 2 * rows, 2)
        ((x_read,), self._x_write), ((r_read,), self._r_write), ((q_read,), self._q_write) = (
            add_memory(name, points, 1) for name in "xrq"
        )
        # The points of x and r are read when the products with alpha and beta are about to leave.
        later, at, row = Signal(range(points)), delay(m, self._at), delay(m, self._row)
        m.d.sync += later.eq(Mux(self._begin, 0, later + self._valid[SCALE_CYCLES - 2]))
        m.d.comb += [
            north.addr.eq(at), south.addr.eq(at + 2 * columns), q_read.addr.eq(at),
            west.addr.eq(row), east.addr.eq(row + rows),
            x_read.addr.eq(Mux(self.done, self.address, later)), r_read.addr.eq(later),
            self.read_data.eq(x_read.data),
        ]  # fmt: skip
        following = delay(m, self._p_read.data)
        self._p = delay(m, following)
        ends = (self._column == column for column in (0, columns - 1))
        at_left, at_right = (delay(m, end, READ_CYCLES) for end in ends)
        self._north, self._south, self._q, self._x, self._r = (
            delay(m, port.data) for port in (north, south, q_read, x_read, r_read))  # fmt: skip
        self._west = Mux(at_left, delay(m, west.data), delay(m, self._p))
        self._east = Mux(at_right, delay(m, east.data), following)

    def _add_arithmetic(self, m: Module) -> None:
        """Add two multipliers, four adders and the unit for sums, which all passes share."""
        m.submodules.by_alpha, m.submodules.other = by_alpha, other = Multiplier(), Multiplier()
        adders = [Adder() for _ in range(4)]
        for name, adder in zip(("first", "second", "around", "outcome"), adders, strict=True):
            m.submodules[name] = adder
        m.submodules.until_sum, m.submodules.until_product = until_sum, until_product = (
            DelayLine(2 * ADD_CYCLES), DelayLine(ADD_CYCLES))  # fmt: skip
        m.submodules.sum = self._sum = ProductSum()
        first, second, around, outcome = adders

        def choose(update: Value, direction: Value, stencil: Value) -> Value:
            return Mux(self._update, update, Mux(self._direction, direction, stencil))

        def negate(word: Value) -> Value:
            return Cat(word[:-1], ~word[-1])

        # All numbers but the residual are zero at first; the memories still have others.
        p, q, x = (Mux(self._is_first, 0, word) for word in (self._p, self._q, self._x))
        scaled = by_alpha.product
        m.d.comb += [
            by_alpha.a.eq(self._alpha),
            by_alpha.b.eq(Mux(self._update, q, p)),
            until_sum.word.eq(self._p),
            until_product.word.eq(until_sum.later),
            other.a.eq(choose(first.sum, self._beta, until_product.later)),
            other.b.eq(choose(first.sum, p, outcome.sum)),
            first.a.eq(choose(self._r, x, self._north)),
            first.b.eq(choose(negate(scaled), scaled, self._south)),
            second.a.eq(Mux(self._direction, self._r, self._west)),
            second.b.eq(Mux(self._direction, other.product, self._east)),
            around.a.eq(first.sum), around.b.eq(second.sum),
            outcome.a.eq(quadruple(until_sum.later)), outcome.b.eq(negate(around.sum)),
            self._sum.product.eq(other.product),
        ]  # fmt: skip
        valid, last = self._valid, self._last
        for signal, bits in ((self._sum.valid, valid), (self._sum.last, last)):
            updated, applied = (bits[cycles + MULTIPLY_CYCLES]
                                for cycles in (UPDATE_CYCLES, STENCIL_CYCLES))  # fmt: skip
            m.d.comb += signal.eq((self._update & updated) | (self._stencil & applied))
        place, writes = Signal(range(self.sizes.points)), Signal()
        m.d.comb += writes.eq(Mux(self._stencil, valid[STENCIL_CYCLES], valid[UPDATE_CYCLES]))
        m.d.sync += place.eq(Mux(self._begin, 0, place + writes))
        m.d.comb += [
            self._x_write.addr.eq(place), self._x_write.data.eq(first.sum),
            self._x_write.en.eq(self._direction & writes),
            self._r_write.addr.eq(Mux(self.done, self.address, place)),
            self._r_write.data.eq(Mux(self.done, self.write_data, first.sum)),
            self._r_write.en.eq(Mux(self.done, self.write, self._update & writes)),
            self._q_write.addr.eq(place), self._q_write.data.eq(outcome.sum),
            self._q_write.en.eq(self._stencil & writes),
        ]  # fmt: skip
        with m.If(self._direction):
            m.d.comb += self._p_write.addr.eq(place + self.sizes.columns)
            m.d.comb += [self._p_write.data.eq(second.sum), self._p_write.en.eq(writes)]

    def _add_control(self, m: Module) -> None:
        """Add the states of an iteration."""
        sizes, send, receive = self.sizes, self.send, self.receive
        m.submodules.divider = divider = Divider()
        rho, left = Signal(WORD_BITS), Signal(range(sizes.iterations + 1))
        is_rho = Signal()
        word = receive.payload.data
        m.d.comb += [self._p_read.addr.eq(self._at + sizes.columns),
                     divider.a.eq(Mux(is_rho, word, rho)),
                     divider.b.eq(Mux(is_rho, rho, word))]  # fmt: skip
        with m.FSM():
            with m.State("REST"), m.If(self.start):
                m.d.comb += self._begin.eq(1)
                m.d.sync += [self.done.eq(0), self._is_first.eq(1), self._is_final.eq(0),
                             rho.eq(0), self._alpha.eq(0), left.eq(sizes.iterations)]  # fmt: skip
                m.next = "UPDATE"
            with m.State("UPDATE"):
                m.d.comb += self._update.eq(1)
                m.d.sync += is_rho.eq(1)
                with m.If(self._sum.done):
                    m.next = "SEND_SUM"
            with m.State("SEND_SUM"):
                m.d.comb += [send.valid.eq(1), send.payload.last.eq(1),
                             send.payload.data.eq(self._sum.total)]  # fmt: skip
                with m.If(send.ready):
                    m.next = "RECEIVE_SUM"
            with m.State("RECEIVE_SUM"):
                m.d.comb += [receive.ready.eq(1), divider.start.eq(receive.valid)]
                with m.If(receive.valid):
                    m.d.sync += rho.eq(Mux(is_rho, word, rho))
                    m.next = "DIVIDE"
            with m.State("DIVIDE"), m.If(divider.done):
                m.d.comb += self._begin.eq(1)
                m.next = "DIRECTION"
                with m.If(is_rho):
                    m.d.sync += self._beta.eq(divider.quotient)
                with m.Else():
                    m.d.sync += [self._alpha.eq(divider.quotient), self._is_first.eq(0),
                                 self._is_final.eq(left == 1), left.eq(left - 1)]  # fmt: skip
                    with m.If(left != 1):
                        m.next = "UPDATE"
            with m.State("DIRECTION"):
                m.d.comb += self._direction.eq(1)
                with m.If(self._last[UPDATE_CYCLES]):
                    m.d.sync += self.done.eq(self._is_final)
                    m.next = "SEND_SIDES"
                    with m.If(self._is_final):
                        m.next = "REST"
            self._add_exchange(m)
            with m.State("STENCIL"):
                m.d.comb += self._stencil.eq(1)
                m.d.sync += is_rho.eq(0)
                with m.If(self._sum.done):
                    m.next = "SEND_SUM"

    def _add_exchange(self, m: Module) -> None:
        """Add the states that send the sides of the block, and receive those of its neighbours."""
        sizes, send, receive, columns = self.sizes, self.send, self.receive, self.sizes.columns
        sides, origin = sizes.side_addresses, self.receive.payload.origin
        firsts, steps = Array(side[0] for side in sides), Array(side.step for side in sides)
        # The word that is read or received, its side and its address; and the offered word.
        word, side, source = (Signal(range(sizes.packet)), Signal(3),
                              Signal.like(self._p_read.addr, init=sides[0][0]))  # fmt: skip
        there, offered_side, offered_last = Signal(), Signal(2), Signal()
        advance, moves, ends = Signal(), Signal(), Signal()
        m.d.comb += [advance.eq(~there | send.ready), ends.eq(word == sizes.packet - 1)]
        m.d.sync += word.eq(Mux(moves, Mux(ends, 0, word + 1), word))
        with m.State("SEND_SIDES"):
            m.d.comb += [self._p_read.addr.eq(source + columns), self._p_read.en.eq(advance),
                         send.valid.eq(there), send.payload.data.eq(self._p_read.data),
                         send.payload.last.eq(offered_last), moves.eq(advance & ~side[2]),
                         send.payload.destination.eq(offered_side)]  # fmt: skip
            with m.If(moves):
                m.d.sync += [there.eq(1), offered_side.eq(side), offered_last.eq(ends),
                             side.eq(side + ends),
                             source.eq(Mux(ends, firsts[(side + 1)[:2]],
                                           source + steps[side[:2]]))]  # fmt: skip
            with m.Elif(advance):
                m.d.sync += [there.eq(0), side.eq(0)]
                m.next = "RECEIVE_SIDES"
        data = Mux(Array(sizes.borders)[self.node].bit_select(origin[:2], 1), 0,
                   receive.payload.data)  # fmt: skip
        with m.State("RECEIVE_SIDES"):
            m.d.comb += [
                receive.ready.eq(1), moves.eq(receive.valid),
                self._p_write.en.eq(receive.valid & ~origin[1] & (word < columns)),
                self._p_write.addr.eq(word + Mux(origin[0], sizes.points + columns, 0)),
                self._p_write.data.eq(data),
                self._side_write.en.eq(receive.valid & origin[1] & (word < sizes.rows)),
                self._side_write.addr.eq(word + Mux(origin[0], sizes.rows, 0)),
                self._side_write.data.eq(data),
            ]  # fmt: skip
            with m.If(receive.valid & ends & origin[:2].all()):
                m.d.comb += self._begin.eq(1)
                m.next = "STENCIL"
