"""Processing elements that sort together: each holds some keys, and in the end its share of them.

An element has a memory of keys, a memory of samples, and a `Sorter`, through which words pass on
their way into these memories. A job consists of the following phases:

1. The element sorts its keys.
2. It sends samples of its keys, at equal distances, by an all-gather along an axis, and sorts the
   samples that it receives. Then it sends samples of these samples along the next axis. After the
   last axis, samples at equal distances are the *splitters*: splitter d is the last key of the
   share of node d.
3. It divides its keys by the splitters into a part for each node. An all-reduce finds the keys of
   the largest part of all elements.
4. It sends the parts by all-to-alls, and sorts the received keys as they arrive.

A word is a key with a *tag* in the bits below. The tag of a sample is the node that the sample
comes from, so equal keys of different nodes have an order. In the all-to-alls, the lowest bit of
the tag tells a key from the filling of a packet. A key in a memory has the tag 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib.data import StructLayout, View
from amaranth.lib.memory import Memory
from support.system import Element

from .sorter import Sorter

__all__ = ["KEY_BITS", "Sizes", "SortElement", "log2"]

#: Bits of a key.
KEY_BITS = 32

#: A phase: its first state, and the values that registers have when it begins.
Phase = tuple[str, list[tuple[Signal, int]]]


def log2(number: int) -> int:
    """Return the logarithm of a power of two."""
    return number.bit_length() - 1


class Sizes(NamedTuple):
    """The sizes of a sort, which are powers of two.

    Parameters
    ----------
    sides : sequence of int
        The sides of the torus.
    keys : int
        The keys of an element at the beginning.
    samples : int
        The samples that an element sends along an axis.
    packet : int
        The keys of the longest packet of an all-to-all.
    deal : bool
        True if an all-to-all first deals the unsorted keys evenly to all nodes.
    """

    sides: Sequence[int]
    keys: int
    samples: int
    packet: int
    deal: bool = False

    @property
    def nodes(self) -> int:
        """The number of elements."""
        return prod(self.sides)

    @property
    def axes(self) -> list[int]:
        """The axes in the order of their all-gathers."""
        return [*reversed(range(len(self.sides)))]

    @property
    def tag_bits(self) -> int:
        """The bits of a tag, which are those of the number of a node."""
        return log2(self.nodes)

    @property
    def word_bits(self) -> int:
        """The bits of a word of a memory, and of a flit."""
        return KEY_BITS + self.tag_bits

    @property
    def rounds(self) -> int:
        """The all-to-alls that are enough if an element sends all its keys to one node."""
        return self.keys // self.packet

    @property
    def capacity(self) -> int:
        """The keys for which an element has room, more than it can receive.

        Each axis adds fewer than `keys` x nodes / `samples` keys to a share of `keys`, because
        only the samples are compared. Equal keys of one node add at most `keys`, because they are
        not divided. The sorter has room for the samples of a group, too.
        """
        most = self.keys * (2 + -(-len(self.sides) * self.nodes // self.samples))
        return 1 << (max(most, max(self.sides) * self.samples) - 1).bit_length()


class SortElement(Element):
    """Element that sorts, samples, partitions and exchanges keys.

    The host writes the keys at the addresses 0, 1, .. After the job it reads the sorted share of
    the element there, at `capacity` the number of its keys, and at `capacity` + 1 the keys of the
    largest part.

    Parameters
    ----------
    sizes : Sizes
        The sizes of the sort.
    """

    sizes: Sizes

    def elaborate(self, platform: object) -> Module:
        """Build the memories, the sorter and the states."""
        m, sizes = Module(), self.sizes
        bits = log2(sizes.capacity) + 1
        # Addresses of keys and of samples, the distance of samples, words to send, the next word
        # that leaves the sorter and the words that leave it, and the keys of the largest part.
        self._a, self._b, self._step, self._left, self._place, self._total, self._longest = (
            Signal(bits, name=name)
            for name in ("a", "b", "step", "left", "place", "total", "longest"))  # fmt: skip
        self._samples, self._exchanging, self._sent = Signal(), Signal(), Signal()
        # All-to-alls to send, and packets to receive, without the last.
        self._rounds, self._arrivals = (
            Signal(range(sizes.rounds + 1)), Signal(range(sizes.rounds * sizes.nodes)))  # fmt: skip
        m.submodules.sorter = self._sorter = Sorter(sizes.word_bits, log2(sizes.capacity))
        self._passes = Signal.like(self._sorter.passes)
        m.d.comb += [self._sorter.passes.eq(self._passes),
                     self._sorter.enable.eq(~self._exchanging | self._sent)]  # fmt: skip
        self._add_memories(m)
        phases, status = self.phases(), Signal(2)
        phase = Signal(range(len(phases) + 1))
        m.d.sync += status.eq(Cat(self.address[0], self.address[-1]))
        found = Mux(status[0], self._longest, self._total)
        m.d.comb += self.read_data.eq(Mux(status[1], found, self._key))
        with m.FSM():
            with m.State("REST"):
                m.d.comb += self._next_a.eq(self.address)
                with m.If(self.write):
                    m.d.comb += [self._key_write.en.eq(1), self._key_write.addr.eq(self.address),
                                 self._key_write.data.eq(self.write_data)]  # fmt: skip
                with m.If(self.start):
                    m.d.sync += [self.done.eq(0), phase.eq(0)]
                    m.next = "PHASE"
            with m.State("PHASE"):
                m.d.comb += self._sorter.clear.eq(1)
                m.d.sync += [phase.eq(phase + 1), self._place.eq(0), self._a.eq(0)]
                with m.Switch(phase):
                    for number, (state, settings) in enumerate(phases):
                        with m.Case(number):
                            m.d.sync += [register.eq(value) for register, value in settings]
                            m.next = state
                    with m.Default():
                        m.d.sync += self.done.eq(1)
                        m.next = "REST"
            self._add_sort(m)
            self._add_samples(m)
            self._add_partition(m)
            self._add_receiver(m)
        self._add_sender(m)
        return m

    def phases(self) -> list[Phase]:
        """Return the phases of a job."""
        sizes = self.sizes
        keys, nodes, samples, words = sizes.keys, sizes.nodes, sizes.samples, 0

        def sort(words: int, run: int) -> list[tuple[Signal, int]]:
            """Return the settings for sorting runs of the same length."""
            merges = (words - 1) & ~(run - 1)
            return [(self._passes, ~merges & (sizes.capacity - 1)), (self._total, words)]

        def exchange(state: str, rounds: int) -> Phase:
            return state, [(self._rounds, rounds), (self._arrivals, rounds * nodes - 1),
                           (self._passes, 0), (self._total, 0)]  # fmt: skip

        found: list[Phase] = [("SORT", sort(keys, 1))]
        if sizes.deal:
            found = [exchange("DEAL", 1)]
        step = keys // samples
        for level, axis in enumerate(sizes.axes):
            words = sizes.sides[axis] * samples
            found.append(("SEND", [*sort(words, samples), (self._samples, int(level > 0)),
                                   (self._a, step // 2), (self._b, step // 2), (self._step, step),
                                   (self._left, samples)]))  # fmt: skip
            step = sizes.sides[axis]
        step = words // nodes
        found.append(("PARTITION", [(self._b, step - 1), (self._step, step), (self._left, 0),
                                    (self._longest, 0)]))  # fmt: skip
        found.append(exchange("EXCHANGE", sizes.rounds))
        return found

    def _add_memories(self, m: Module) -> None:
        """Add the memories, each with a read port and a write port.

        The read ports output in the next cycle what is at `next_a` and `next_b`. Words that leave
        the sorter are written one after another, as keys or as samples.
        """
        sizes, sorter = self.sizes, self._sorter
        m.submodules.keys = keys = Memory(shape=KEY_BITS, depth=sizes.capacity, init=[])
        most = max(sizes.sides) * sizes.samples
        m.submodules.samples = samples = Memory(shape=sizes.word_bits, depth=most, init=[])
        read, sample = keys.read_port(), samples.read_port()
        self._key_write, sample_write = keys.write_port(), samples.write_port()
        self._next_a, self._next_b = Signal.like(read.addr), Signal.like(sample.addr)
        self._key, self._sample, self._collects = read.data, sample.data, Signal()
        self._own = Cat(self.node, self._key)
        m.d.comb += [
            read.addr.eq(self._next_a), sample.addr.eq(self._next_b),
            self._key_write.addr.eq(self._place), sample_write.addr.eq(self._place),
            self._key_write.data.eq(sorter.out_word[sizes.tag_bits :]),
            sample_write.data.eq(sorter.out_word),
            self._key_write.en.eq(sorter.out_valid & ~self._collects),
            sample_write.en.eq(sorter.out_valid & self._collects),
        ]  # fmt: skip
        m.d.sync += self._place.eq(self._place + sorter.out_valid)
        layout = StructLayout({"first": log2(sizes.keys) + 1, "end": log2(sizes.keys) + 1})
        m.submodules.parts = parts = Memory(shape=layout.size, depth=sizes.nodes, init=[])
        part, self._part_write = parts.read_port(), parts.write_port()
        self._part_at, self._part, self._new_part = (
            part.addr, View(layout, part.data), View(layout, self._part_write.data))  # fmt: skip

    def _add_sort(self, m: Module) -> None:
        """Add the states in which keys enter the sorter from the memory, and leave it."""
        a, more, valid = self._a, Signal(), Signal()
        m.d.comb += more.eq(a != self.sizes.keys)
        with m.State("SORT"):
            word = Cat(C(0, self.sizes.tag_bits), self._key)
            m.d.comb += [self._next_a.eq(a), self._sorter.in_valid.eq(valid),
                         self._sorter.in_word.eq(word)]  # fmt: skip
            m.d.sync += [valid.eq(more), a.eq(a + more)]
            with m.If(~more & ~valid):
                m.next = "DRAIN"
        with m.State("DRAIN"):
            m.d.comb += self._sorter.ended.eq(1)
            with m.If(self._place == self._total):
                m.next = "PHASE"

    def _add_samples(self, m: Module) -> None:
        """Add the states that send samples, at equal distances, and sort those of the group."""
        a, b, ready = self._a, self._b, Signal()
        payload, receive = self.send.payload, self.receive
        with m.State("SEND"):
            sent = self.send.valid & self.send.ready
            m.d.comb += [self.send.valid.eq(ready), payload.last.eq(self._left == 1),
                         payload.data.eq(Mux(self._samples, self._sample, self._own)),
                         self._next_a.eq(Mux(sent, a + self._step, a)),
                         self._next_b.eq(Mux(sent, b + self._step, b))]  # fmt: skip
            m.d.sync += ready.eq(1)
            with m.If(sent):
                m.d.sync += [a.eq(a + self._step), b.eq(b + self._step),
                             self._left.eq(self._left - 1)]  # fmt: skip
                with m.If(payload.last):
                    m.d.sync += ready.eq(0)
                    m.next = "COLLECT"
        with m.State("COLLECT"):
            m.d.comb += [receive.ready.eq(1), self._collects.eq(1),
                         self._sorter.in_valid.eq(receive.valid),
                         self._sorter.in_word.eq(receive.payload.data)]  # fmt: skip
            with m.If(self._place == self._total):
                m.next = "PHASE"

    def _add_partition(self, m: Module) -> None:
        """Add the states that divide the keys, and find the keys of the largest part."""
        a, b, first, node = self._a, self._b, self._left, Signal(range(self.sizes.nodes))
        sizes, write = self.sizes, self._part_write
        size, fetched, last, below = Signal.like(a), Signal(), Signal(), Signal()
        m.d.comb += [write.addr.eq(node), last.eq(node == sizes.nodes - 1), size.eq(a - first)]
        with m.State("PARTITION"):
            m.d.comb += [self._new_part.first.eq(first), self._new_part.end.eq(a),
                         write.en.eq(fetched & ~below),
                         below.eq((a != sizes.keys) & (last | (self._own <= self._sample))),
                         self._next_a.eq(a + (fetched & below)),
                         self._next_b.eq(Mux(write.en, b + self._step, b))]  # fmt: skip
            m.d.sync += fetched.eq(1)
            with m.If(fetched & below):
                m.d.sync += a.eq(a + 1)
            with m.If(write.en):
                m.d.sync += [b.eq(b + self._step), first.eq(a), node.eq(node + 1)]
                with m.If(size > self._longest):
                    m.d.sync += self._longest.eq(size)
                with m.If(last):
                    m.d.sync += fetched.eq(0)
                    m.next = "OFFER"
        with m.State("OFFER"):
            m.d.comb += [self.send.valid.eq(1), self.send.payload.last.eq(1),
                         self.send.payload.data.eq(self._longest)]  # fmt: skip
            with m.If(self.send.ready):
                m.next = "LEARN"
        with m.State("LEARN"):
            m.d.comb += self.receive.ready.eq(1)
            with m.If(self.receive.valid):
                m.d.sync += self._longest.eq(self.receive.payload.data)
                m.next = "PHASE"
        if sizes.deal:
            with m.State("DEAL"):
                share = sizes.keys // sizes.nodes
                m.d.comb += [write.en.eq(1), self._new_part.first.eq(a),
                             self._new_part.end.eq(a + share)]  # fmt: skip
                m.d.sync += [a.eq(a + share), node.eq(node + 1), self._longest.eq(share)]
                with m.If(last):
                    m.next = "EXCHANGE"

    def _add_sender(self, m: Module) -> None:
        """Add the states that send the parts: in each round a packet to each node, in order.

        The memory of parts outputs the part of the next node, so packets follow without a pause.
        """
        sizes, payload, part = self.sizes, self.send.payload, self._part
        bits, nodes = log2(sizes.capacity), sizes.nodes
        # Keys of the rounds before, and of the largest part from this round on.
        offset, rest, left = Signal(bits), Signal.like(self._longest), Signal.like(self._longest)
        at, end, node = Signal(bits), Signal(bits), Signal(range(nodes))
        rounds, next_at = Signal.like(self._rounds), Signal(bits)

        def packet_length(rest: Value) -> Value:
            return Mux(rest >= sizes.packet, sizes.packet, Mux(rest == 0, 1, rest))

        with m.FSM(name="sender"):
            with m.State("REST"):
                m.d.comb += self._part_at.eq(0)
                m.d.sync += [offset.eq(0), rest.eq(self._longest), rounds.eq(self._rounds)]
                m.d.sync += left.eq(packet_length(self._longest))
                with m.If(self._exchanging & ~self._sent):
                    m.next = "FIRST"
            with m.State("FIRST"):
                m.d.comb += [self._part_at.eq(1), self._next_a.eq(part.first)]
                m.d.sync += [at.eq(part.first), end.eq(part.end), node.eq(0)]
                m.next = "SEND"
            with m.State("SEND"):
                is_last, next_offset, next_rest = Signal(), Signal(bits), Signal.like(rest)
                m.d.comb += [self.send.valid.eq(1), payload.last.eq(left == 1), next_at.eq(at + 1),
                             payload.destination.eq(node), is_last.eq(node == nodes - 1),
                             payload.data.eq(Cat(C(0, sizes.tag_bits), self._key) | (at < end)),
                             next_offset.eq(offset), next_rest.eq(rest), self._part_at.eq(node + 1),
                             self._next_a.eq(Mux(self.send.ready, next_at, at))]  # fmt: skip
                with m.If(payload.last):
                    m.d.comb += next_at.eq(part.first + next_offset)
                    with m.If(is_last):
                        m.d.comb += next_offset.eq(offset + sizes.packet)
                        m.d.comb += next_rest.eq(Mux(rest > sizes.packet, rest - sizes.packet, 0))
                with m.If(self.send.ready):
                    m.d.sync += [at.eq(next_at), left.eq(left - 1)]
                    with m.If(payload.last):
                        m.d.comb += self._part_at.eq(node + 2)
                        m.d.sync += [offset.eq(next_offset), rest.eq(next_rest), node.eq(node + 1),
                                     end.eq(part.end),
                                     left.eq(packet_length(next_rest))]  # fmt: skip
                        with m.If(is_last):
                            m.d.sync += rounds.eq(rounds - 1)
                            with m.If(rounds == 1):
                                m.d.sync += self._sent.eq(1)
                                m.next = "REST"
        # An element has sent all parts before the last of them arrives.
        with m.If(~self._exchanging):
            m.d.sync += self._sent.eq(0)

    def _add_receiver(self, m: Module) -> None:
        """Add the states in which received keys enter the sorter.

        When all have arrived, the stages whose runs are as long as the share let words pass.
        """
        receive, total, sizes = self.receive, self._total, self.sizes
        word, left = receive.payload.data, self._arrivals
        with m.State("EXCHANGE"):
            enters = receive.valid & word[0]
            m.d.comb += [self._exchanging.eq(1), receive.ready.eq(1),
                         self._sorter.in_valid.eq(enters),
                         self._sorter.in_word.eq(word & -(1 << sizes.tag_bits))]  # fmt: skip
            m.d.sync += total.eq(total + enters)
            with m.If(receive.valid & receive.payload.last):
                m.d.sync += left.eq(left - 1)
                with m.If(left == 0):
                    m.next = "COUNT"
        with m.State("COUNT"):
            passes = (total <= 1 << stage for stage in range(len(self._passes)))
            m.d.sync += self._passes.eq(Cat(passes))
            m.next = "DRAIN"
