"""Processing element of a three-dimensional FFT: a memory, and a pipeline of radix-2 stages.

An element holds N x m x q points of a cube of N^3. It transforms them along x, along y and along z.
All three *passes* use the same pipeline, and each pass has K *pieces*. A piece is a group of C
pencils (rows of N points) that pass the pipeline interleaved: point 0 of all pencils, point 1 of
all pencils, and so on. A word of memory, stream and pipeline has R points, of R pencils. Each of
the R points has a *lane* of its own, with its own memory and its own multipliers::

    memory --> stage 0 --> stage 1 --> .. --> stage n - 1 --+--> send     (passes x and y)
      ^ ^                                                   |
      | +---------------------------------------------------+             (pass z, in place)
      +--------------------------------------------------------- receive  (results of both runs)

The output of a piece is in bit-reversed order, in which the points for each node of the next
all-to-all are consecutive. A piece therefore leaves as packets without being stored. The points
that arrive are stored in the order of their arrival. `Layout` has the address of each point.

The pipeline is a single-path delay feedback: stage s has a delay line of N / 2^(s + 1) points of
each pencil. All stages halve their results, so that nothing overflows.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from amaranth.hdl import Array, Cat, EnableInserter, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.memory import Memory, ReadPort, WritePort
from amaranth.lib.wiring import In, Out

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.system import Element

from fft3d.layout import Layout, X, Y, Z
from fft3d.model import BITS, FRACTION, twiddles

__all__ = ["Stage", "Transformer"]


class Stage(wiring.Component):
    """A stage of the pipeline: it adds and subtracts points at a distance, and multiplies.

    Parameters
    ----------
    points : int
        Points of the transform of which this is the first stage.
    channels : int
        Interleaved pencils of a lane.
    lanes : int
        Lanes of a word.

    Members
    -------
    valid, data : In
        A word, if valid. Its points have a real part in the lower half.
    out_valid, out_data : Out
        A word of results.
    """

    def __init__(self, points: int, *, channels: int, lanes: int) -> None:
        self._points, self._channels, self._lanes = points, channels, lanes
        width = 2 * BITS * lanes
        super().__init__({"valid": In(1), "data": In(width),
                          "out_valid": Out(1), "out_data": Out(width)})  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """Build the delay line with its control, the butterflies and the multipliers.

        The words of a block of 2 D words are counted. Words 0 .. D - 1 are stored. Words D ..
        2 D - 1 arrive as the sums leave, and the differences replace the stored words. The
        differences leave in the next D cycles, and need no further input.
        """
        m, delay = Module(), self._points // 2 * self._channels
        width = len(self.data)
        address, old, stored = Signal(range(delay)), Signal(width), Signal(width)
        count, leaving = Signal(range(2 * delay)), Signal(range(max(delay, 2)))
        drains = Signal()
        second, place = count[-1], count[: (delay - 1).bit_length()]
        is_sum = self.valid & second
        following = Signal.like(count)
        m.d.comb += following.eq(count + self.valid)
        m.d.sync += count.eq(following)
        with m.If(is_sum & (place == delay - 1)):
            m.d.sync += [drains.eq(1), leaving.eq(0)]
            m.d.comb += address.eq(0)
        with m.Elif(drains & (leaving != delay - 1)):
            m.d.sync += leaving.eq(leaving + 1)
            m.d.comb += address.eq(leaving + 1)
        with m.Else():
            m.d.sync += drains.eq(0)
            m.d.comb += address.eq(following[: len(place)])
        sums, differences = self._add(self.data, old)
        m.d.comb += stored.eq(Mux(second, differences, self.data))
        if delay == 1:
            with m.If(self.valid):
                m.d.sync += old.eq(stored)
        else:
            m.submodules.delay = line = Memory(shape=width, depth=delay, init=[])
            write = line.write_port()
            read = line.read_port()
            m.d.comb += [write.addr.eq(place), write.en.eq(self.valid), write.data.eq(stored),
                         read.addr.eq(address), old.eq(read.data)]  # fmt: skip
        valid, result = Signal(), Signal(width)
        m.d.sync += [valid.eq(is_sum | drains), result.eq(Mux(drains, old, sums))]
        shift = (self._channels - 1).bit_length()
        if self._points > 4:
            self._multiply(m, valid, result, drains, leaving[shift:])
            return m
        if self._points == 4:
            # The only factors are 1 and -i.
            with m.If(drains & leaving[shift]):
                m.d.sync += result.eq(_join([(i, -r) for r, i in _split(old)]))
        m.d.comb += [self.out_valid.eq(valid), self.out_data.eq(result)]
        return m

    @staticmethod
    def latency(points: int) -> int:
        """Return the registers between a word and its result, without the delay line."""
        return 3 if points > 4 else 1

    def _add(self, new: Value, old: Value) -> tuple[Value, Value]:
        """Return half the sum and half the difference of two words, rounded upwards."""
        pairs = list(zip(_split(old), _split(new), strict=True))
        sums = [tuple((a + b + 1) >> 1 for a, b in zip(*pair, strict=True)) for pair in pairs]
        less = [tuple((a - b + 1) >> 1 for a, b in zip(*pair, strict=True)) for pair in pairs]
        return _join(sums), _join(less)

    def _multiply(
        self, m: Module, valid: Signal, result: Signal, drains: Signal, index: Value
    ) -> None:
        """Multiply a word by its factor; sums have the factor 1."""
        real, imaginary = twiddles(self._points)
        bits, mask = FRACTION + 2, (1 << FRACTION + 2) - 1
        words = [int(r) & mask | (int(i) & mask) << bits
                 for r, i in zip(real, imaginary, strict=True)]  # fmt: skip
        m.submodules.factors = factors = Memory(shape=2 * bits, depth=len(words), init=words)
        port, is_difference = factors.read_port(), Signal()
        m.d.comb += port.addr.eq(index)
        m.d.sync += is_difference.eq(drains)
        w_r, w_i = Signal(signed(bits)), Signal(signed(bits))
        m.d.comb += [w_r.eq(Mux(is_difference, port.data[:bits], 1 << FRACTION)),
                     w_i.eq(Mux(is_difference, port.data[bits:], 0))]  # fmt: skip
        results = []
        for lane, (r, i) in enumerate(_split(result)):
            products = [Signal(signed(BITS + bits), name=f"product_{lane}_{k}") for k in range(4)]
            operands = ((r, w_r), (i, w_i), (r, w_i), (i, w_r))
            m.d.sync += [product.eq(a * b)
                         for product, (a, b) in zip(products, operands, strict=True)]  # fmt: skip
            half = 1 << FRACTION - 1
            results.append(((products[0] - products[1] + half) >> FRACTION,
                            (products[2] + products[3] + half) >> FRACTION))  # fmt: skip
        multiplied = Signal()
        m.d.sync += [multiplied.eq(valid), self.out_valid.eq(multiplied),
                     self.out_data.eq(_join(results))]  # fmt: skip


def _split(word: Value) -> list[tuple[Value, Value]]:
    """Return real and imaginary part of each point of a word, as signed values."""
    parts = [word.word_select(k, BITS).as_signed() for k in range(len(word) // BITS)]
    return list(zip(parts[::2], parts[1::2], strict=True))


def _join(points: list[Any]) -> Value:
    """Return the word of some points, each cut to its bits."""
    return Cat(part[:BITS] for point in points for part in point)


class Transformer(Element):
    """Processing element that transforms its points along all axes.

    The host reads and writes one point at each address: its word, and its bank in the lowest bits.

    Parameters
    ----------
    sizes : Layout
        The order of the points.
    """

    sizes: Layout

    def elaborate(self, platform: Any) -> Module:
        """Connect memory, pipeline and streams."""
        m, layout = Module(), self.sizes
        # High if the pipeline moves, and while the source has words to read.
        self._advance, self._active = Signal(), Signal()
        # Words that have arrived, in both exchanges.
        self._arrived = Signal(range(2 * layout.words + 1))
        banks = [Memory(shape=2 * BITS, depth=layout.words, init=[]) for _ in range(layout.lanes)]
        for number, bank in enumerate(banks):
            m.submodules[f"bank_{number}"] = bank
        writes = [bank.write_port() for bank in banks]
        reads = [bank.read_port() for bank in banks]
        valid, word, source_pass, fires = self._read(m, reads)
        for number in range((layout.points - 1).bit_length()):
            stage = Stage(layout.points >> number, channels=layout.channels, lanes=layout.lanes)
            m.submodules[f"stage_{number}"] = EnableInserter(self._advance)(stage)
            m.d.comb += [stage.valid.eq(valid), stage.data.eq(word)]
            valid, word = stage.out_valid, stage.out_data
        sink_pass, stores, places, turn = self._send(m, valid, word)
        results = _turn(m, "results", _lanes(word, layout.lanes), turn)
        self._store(m, writes, stores, places, results)

        # During a job, the host reads the activity of the element.
        lane, receive = Signal((layout.lanes - 1).bit_length()), self.receive
        m.d.sync += lane.eq(self.address)
        activity = Cat(fires & self._advance, source_pass, valid & self._advance, sink_pass,
                       receive.valid & receive.ready)  # fmt: skip
        stored = Array(read.data for read in reads)[lane]
        m.d.comb += self.read_data.eq(Mux(self.done, stored, activity))
        with m.If(self.start):
            m.d.sync += [self._active.eq(1), self.done.eq(0), self._arrived.eq(0),
                         source_pass.eq(X), sink_pass.eq(X)]  # fmt: skip
        return m

    def _read(self, m: Module, reads: list[ReadPort]) -> tuple[Value, Value, Signal, Signal]:
        """Read the words of all passes in order, each as soon as it has arrived.

        Returns the signals of a word (valid, and its points), the pass, and a signal that is high
        when a word is read.
        """
        layout, advance, active, arrived = self.sizes, self._advance, self._active, self._arrived
        words, lane_bits = layout.words, (layout.lanes - 1).bit_length()
        source, source_pass, fires = Signal(range(words)), Signal(2), Signal()
        address, turn = self._places(m, "source", source, source_pass)
        latest = address[0] | sum(1 << bit for bit in layout.low_bits(Z, of_address=True))
        ready = Array([1, address[0] < arrived, latest + words < arrived])
        m.d.comb += fires.eq(active & ready[source_pass])
        for bank, read in enumerate(reads):
            m.d.comb += [read.addr.eq(Mux(active, address[bank], self.address[lane_bits:])),
                         read.en.eq(advance | ~active)]  # fmt: skip
        read_valid, read_turn = Signal(), Signal(lane_bits)
        valid, word = Signal(), Signal(2 * BITS * layout.lanes)
        turned = _turn(m, "read", [read.data for read in reads], read_turn)
        with m.If(advance):
            # Why a register: a block RAM and the first butterfly would be the critical path.
            m.d.sync += [read_valid.eq(fires), read_turn.eq(turn),
                         valid.eq(read_valid), word.eq(turned)]  # fmt: skip
            with m.If(fires):
                m.d.sync += source.eq(source + 1)
                with m.If(source == words - 1):
                    m.d.sync += [source_pass.eq(source_pass + 1), active.eq(source_pass != Z)]
        return valid, word, source_pass, fires

    def _send(
        self, m: Module, valid: Value, word: Value
    ) -> tuple[Signal, Signal, list[Signal], Signal]:
        """Send the results of two passes. The pipeline moves unless its output waits.

        Returns the pass of a result, a signal that is high if the result is stored, the address of
        its word in each bank, and the number that exchanges its lanes.
        """
        layout, send = self.sizes, self.send
        words, is_last = layout.words, Signal()
        sink, sink_pass, stores = Signal(range(words)), Signal(2), Signal()
        places, turn = self._places(m, "sink", sink, sink_pass)
        m.d.comb += [is_last.eq(sink_pass == Z), stores.eq(valid & is_last),
                     self._advance.eq(~valid | is_last | send.ready),
                     send.valid.eq(valid & ~is_last), send.payload.data.eq(word),
                     send.payload.keep.eq(-1)]  # fmt: skip
        for transform, size in enumerate(layout.packet_words):
            bits = (size - 1).bit_length()
            with m.If(sink_pass == transform):
                packets = layout.piece_words // size
                target = (sink >> bits) & (packets - 1)
                m.d.comb += [send.payload.last.eq(sink[:bits] == size - 1),
                             send.payload.destination.eq(target)]  # fmt: skip
        with m.If(valid & self._advance):
            m.d.sync += sink.eq(sink + 1)
            with m.If(sink == words - 1):
                m.d.sync += [sink_pass.eq(sink_pass + 1), self.done.eq(is_last)]
        return sink_pass, stores, places, turn

    def _store(
        self, m: Module, writes: list[WritePort], stores: Signal, places: list[Signal],
        results: Value,
    ) -> None:  # fmt: skip
        """Write results of the last pass, points that arrive, and words of the host.

        Points arrive at ascending addresses. Those of the second exchange change banks.
        """
        layout, receive, arrived = self.sizes, self.receive, self._arrived
        lane_bits = (layout.lanes - 1).bit_length()
        second = (arrived >= layout.words).replicate(lane_bits)
        slot = Cat(arrived[bit] for bit in layout.low_bits(Z, of_address=True))
        received = _turn(m, "received", _lanes(receive.payload.data, layout.lanes), slot & second)
        m.d.comb += receive.ready.eq(~stores)
        m.d.sync += arrived.eq(arrived + (receive.valid & receive.ready))
        for bank, write in enumerate(writes):
            with m.If(stores):
                m.d.comb += [write.en.eq(1), write.addr.eq(places[bank]),
                             write.data.eq(results.word_select(bank, 2 * BITS))]  # fmt: skip
            with m.Elif(receive.valid):
                m.d.comb += [write.en.eq(1), write.addr.eq(arrived),
                             write.data.eq(received.word_select(bank, 2 * BITS))]  # fmt: skip
            with m.Else():
                m.d.comb += [write.en.eq(self.write & (self.address[:lane_bits] == bank)),
                             write.addr.eq(self.address[lane_bits:]),
                             write.data.eq(self.write_data)]  # fmt: skip

    def _places(
        self, m: Module, name: str, count: Signal, transform: Signal
    ) -> tuple[list[Signal], Signal]:
        """Return the address of a word in each bank, and the number that exchanges its lanes."""
        layout = self.sizes
        lanes, slot = layout.lanes, layout.low_bits(Z, of_address=True)
        address = [Signal(len(count), name=f"{name}_{bank}") for bank in range(lanes)]
        turn = Signal((lanes - 1).bit_length(), name=f"{name}_turn")
        with m.Switch(transform):
            for number in (X, Y, Z):
                with m.Case(number):
                    bits = Cat(count[bit] for bit in layout.address_bits(number))
                    m.d.comb += [each.eq(bits) for each in address]
        with m.If(transform == Z):
            m.d.comb += turn.eq(Cat(count[bit] for bit in layout.low_bits(Z)))
            for bank, each in enumerate(address):
                m.d.comb += [each[bit].eq(turn[k] ^ (bank >> k & 1)) for k, bit in enumerate(slot)]
        return address, turn


def _lanes(word: Value, lanes: int) -> list[Value]:
    """Return the points of a word."""
    return [word.word_select(lane, 2 * BITS) for lane in range(lanes)]


def _turn(m: Module, name: str, points: list[Any], turn: Value) -> Value:
    """Return the word with point l ^ turn in each lane l."""
    turned = Signal(2 * BITS * len(points), name=f"{name}_turned")
    with m.Switch(turn):
        for number in range(len(points)):
            with m.Case(number):
                m.d.comb += turned.eq(Cat(points[lane ^ number] for lane in range(len(points))))
    return turned
