"""The endpoint, as the host writes and reads it.

The words of a node's memories are chosen from in stages of at most two look-up tables with a
register behind each. All endpoints of a fabric take as long: one with fewer stages asks its
memories later. A node that is not asked shows 0, so that a tree that only combines brings the word
of the one that is to the host port.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Member, Out

from ..program.fields import NEUTRAL
from .endpoint import EndpointPorts, EndpointSettings, Reader
from .endpoint_builder import Copy, EndpointBuilder, asked
from .endpoint_shape import STAGE_INPUTS, EndpointMemory, EndpointShape
from .flit_rows import FlitRows
from .host import suffix
from .memories import ReadPort, WritePort, address_width, choose
from .modules import apart, delayed
from .multiplexer import SLICE, bit_count, cascade, extended_cascade, keeper, select_code

__all__ = ["Endpoint"]


class Endpoint(EndpointPorts):
    """Holds what a node sends, and what it has received."""

    def __init__(self, shape: EndpointShape, settings: EndpointSettings) -> None:
        super().__init__(shape, settings, _members(shape.beat * settings.width, settings))

    def elaborate(self, platform: object) -> Module:
        """Build memories, readers and what selects between them."""
        return EndpointBuilder(self, _HostSide).build()


def _members(word: int, settings: EndpointSettings) -> dict[str, Member]:
    """What nodes are given, and by what they are written and read, a word of so many bits."""
    node_bits = address_width(settings.nodes)
    return (
        {
            "busy": In(1),
            "node": In(node_bits),
            "write_node": In(settings.write_bits),
            "write_data": In(word),
            "read_node": In(node_bits),
            "read_bank": In(address_width(settings.memories)),
            "read_address": In(settings.address_bits),
            "read_data": Out(word),
        }
        | {f"write_enable{suffix(number)}": In(1) for number in {*settings.enables}}
        | {
            name: In(width)
            for layout, count in enumerate(settings.own)
            for name, width in (
                (f"write_bank{suffix(layout)}", address_width(count)),
                (f"write_address{suffix(layout)}", settings.address_bits),
            )
        }
    )


class _Question(NamedTuple):
    """What the host asks, a cycle before memories are given it.

    Parameters
    ----------
    chosen : Value
        Whether it asks this node.
    """

    chosen: Value
    bank: Value
    address: Value


class _HostSide:
    """How the host writes and reads an endpoint."""

    def __init__(self, build: EndpointBuilder) -> None:
        self._build, self._m, self._endpoint = build, build.m, build.endpoint
        self._shape, self._settings = build.endpoint.shape, build.endpoint.settings
        # What comes from the host port has passed a register that `busy` has passed as well.
        self._pause = self._settings.host_stages - self._shape.read_stages + self._settings.private

    @cached_property
    def _question(self) -> _Question:
        """What the host asks: later than it comes where all nodes are to answer at once."""
        m, value, pause = self._m, self._build.value, self._pause
        chosen = delayed(m, value("read_node") == value("node"), pause, "asked")
        bank = delayed(m, value("read_bank"), pause)
        address = delayed(m, value("read_address"), pause)
        halves = self._settings.halves
        if any(halves):
            # Only the root, at offset 0, shows what it sends rather than what it has received.
            received = value("offset").any()
            cut = {half: address[: (half - 1).bit_length()] for half in halves if half}
            addresses = [Cat(cut[half], received) if half else address for half in halves]
            several = len({*halves}) > 1
            address = choose(addresses, value("form")) if several else addresses[0]
        return _Question(chosen, bank, address)

    def depth(self, rows: int) -> int:
        """Rows of a memory as it is built."""
        return rows

    def copies(self, group: Sequence[EndpointMemory], readers: Sequence[Reader]) -> Iterator[Copy]:
        """Memories with copies for readers."""
        return self._build.copies(group, readers)

    def write(self, memory: EndpointMemory, rows: FlitRows) -> WritePort:
        """The write port of a memory: what arrives comes before what the host writes."""
        build, value = self._build, self._build.value
        port = rows.write_flit(build.stored(memory))
        if memory.own is None:
            return port
        place, way = value("write_node"), suffix(memory.layout)
        enable = f"write_enable{suffix(self._settings.enables[memory.layout])}"
        chosen = value(enable) & (place == value("node")[: len(place)])
        if self._settings.own[memory.layout] > 1:
            chosen = chosen & (value(f"write_bank{way}") == memory.own)
        chosen = delayed(self._m, chosen, 1, f"write_{memory.number}")
        data = delayed(self._m, value("write_data"), int(self._settings.private))
        host, _ = rows.split_signal(build.address(f"write_address{way}", memory.depth))
        if not memory.sources:
            return WritePort(host, data, chosen)
        stored = build.stored(memory).enable
        return WritePort(
            Mux(stored, port.address, host),
            Mux(stored, port.data, data),
            port.enable | (chosen.replicate(rows.beat) if rows.beat > 1 else chosen),
        )

    def read(
        self, memory: EndpointMemory, readers: list[Reader], *, copy: int, early: bool
    ) -> ReadPort:
        """The read port of a copy of a memory; the host reads the first copy."""
        busy, host = self._build.value("busy"), self._question
        host_reads = memory.host_reads and not copy
        enable = busy | host.chosen if host_reads else busy
        if not readers:
            address, enable = host.address, host.chosen
        else:
            address = asked(memory, readers)
            if host_reads and not self._passes_host(readers):
                address = Mux(busy, address, host.address)
        if memory.depth == 1:
            return ReadPort(Const(0, 1), Const(0, 1))
        address = address[: address_width(memory.depth)]
        return self._build.port(address, enable, memory, copy=copy, early=early)

    def _passes_host(self, readers: list[Reader]) -> bool:
        """Whether the address of the host comes by way of the sequencer's column."""
        central = not any(reader.shape.address.at_node for reader in readers)
        one = len({reader.shape.column for reader in readers}) == 1
        direct = not (self._settings.private or any(self._settings.halves) or self._pause > 0)
        return central and one and direct

    def code(self, index: int, reader: Reader) -> Value | None:
        """Select bits of the memory that a reader reads; while at rest, maybe that asked for."""
        if reader.code is None or index != self._shape.host_reader:
            return reader.code
        asked_for = self._code(reader.shape.memories)
        return Mux(self._build.value("busy"), reader.code, asked_for)

    def _code(self, memories: Sequence[int]) -> Value:
        """The select bits with which a cascade passes on the memory that is asked for."""
        known = [number for number in memories if number != NEUTRAL]
        codes = [
            select_code(len(memories), memories.index(number if number in known else known[-1]))
            for number in range(max(known) + 1)
        ]
        width = max(bit_count(len(memories)), 1)
        return choose([Const(value, width) for value in codes], self._question.bank)

    def show(self, read: list[Value], words: dict[int, Value]) -> None:
        """Show the word that is asked for, a cycle after its memory was given the address."""
        reader = self._shape.host_reader
        if reader is None and not words:
            return
        word = self._of_memories(words) if reader is None else read[reader]
        if self._settings.gathered:
            # A register holds what resets the word, with nothing in between.
            late = 1 + self._shape.read_stages
            word = Mux(delayed(self._m, ~self._question.chosen, late, "silent"), 0, word)
        self._m.d.sync += self._endpoint.read_data.eq(word)

    def _of_memories(self, words: dict[int, Value]) -> Value:
        """The word of the memory that is asked for, given those of some by their numbers."""
        numbers, width = sorted(words), self._shape.beat * self._settings.width
        if len(numbers) == 1:
            return words[numbers[0]]
        # Those that show the same word all the time need not wait.
        constant = {
            memory.number
            for memory in self._shape.memories
            if memory.depth and self._build.rows(memory, 0).depth(memory.depth) == 1
        }
        code = delayed(self._m, self._code(numbers), 1, "code")
        size = SLICE if self._endpoint.alone else width
        slices = []
        for low in range(0, width, size):
            high = min(low + size, width)
            inputs = [(words[number][low:high], number in constant) for number in numbers]
            slices.append(self._choice(inputs, code, high - low, f"host_select_{low // size}"))
        return Cat(*slices)

    def _choice(
        self, inputs: list[tuple[Value, bool]], code: Value, width: int, name: str
    ) -> Value:
        """One of several words, chosen in stages, without the register behind the last one."""
        m, keep = self._m, keeper(self._m, width)
        first, later = inputs[:STAGE_INPUTS], inputs[STAGE_INPUTS:]
        used = bit_count(len(inputs)) - -(-len(later) // 2)
        bits, code = apart(m, code[:used], name=name), code[used:]
        chosen = cascade([word for word, _ in first], [*bits], width, keep)
        for stage in range(1, self._shape.read_stages):
            held = Signal(width, name=f"{name}_word_{stage}", reset_less=True)
            m.d.sync += held.eq(chosen[:width])
            pairs = later[(stage - 1) * STAGE_INPUTS :][:STAGE_INPUTS]
            used = -(-len(pairs) // 2)
            early = delayed(m, code[:used], stage)
            bits = apart(m, early, name=f"{name}_{stage}")
            late = [word if same else delayed(m, word, stage) for word, same in pairs]
            chosen, code = extended_cascade(held, late, [*bits], keep), code[used:]
        return chosen[:width]
