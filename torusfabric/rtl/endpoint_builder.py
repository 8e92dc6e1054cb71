"""What an endpoint is made of: memories with their ports, injected words, and the host's word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from ..program.values import MADE, NEUTRAL
from .combiner import operate
from .crossbar import cascade, keeper, select_bits, select_code
from .endpoint_shape import Address, EndpointMemory, EndpointShape
from .memories import ReadPort, WritePort, add_memory, choose
from .reader import NEVER, Inputs, Reader, add_reader

if TYPE_CHECKING:
    from .endpoint import Endpoint

__all__ = ["EndpointBuilder"]


class _Copy(NamedTuple):
    """A copy of a memory, the readers that it serves, and the word read from it."""

    memory: EndpointMemory
    readers: tuple[int, ...]
    word: Value


class EndpointBuilder:
    """Builds one endpoint.

    Parameters
    ----------
    endpoint : Endpoint
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._m, self._endpoint, self._inputs = Module(), endpoint, Inputs(endpoint)
        self._shape, self._settings = endpoint.shape, endpoint.settings
        self._width = endpoint.settings.width

    def _value(self, name: str) -> Value:
        """What drives an input."""
        return self._endpoint.value(name)

    def build(self) -> Module:
        """The module."""
        m, shape = self._m, self._shape
        readers = [
            add_reader(m, self._endpoint, index, reader)
            for index, reader in enumerate(shape.readers)
        ]
        # What each reader finds in each memory, and what the host does.
        words: dict[tuple[int, int], Value] = {}
        for_host: dict[int, Value] = {}
        for group in _wide_memories(shape, private=self._settings.private):
            for memory, reading, word in self._memories(group, readers):
                words |= {(memory.number, index): word for index in reading}
                if memory.host_reads:
                    for_host.setdefault(memory.number, word)
        if self._settings.operator:
            neutral = Const(self._settings.operator.identity(self._width), self._width)
            words |= {(NEUTRAL, index): neutral for index in range(len(readers))}
        host = _reader_for_host(readers, for_host)
        read = [
            self._word_read(index, reader, words, for_host=index == host)
            for index, reader in enumerate(readers)
        ]
        for number, members in enumerate(shape.injections):
            word = self._combined([read[index] for index in members])
            m.d.comb += self._endpoint.inject.word_select(number, self._width).eq(word)
        if host is not None:
            m.d.sync += self._endpoint.read_data.eq(read[host])
        elif for_host:
            m.d.sync += self._endpoint.read_data.eq(self._host_word(for_host))
        return m

    # Memories

    def _memories(
        self, group: Sequence[EndpointMemory], readers: Sequence[Reader]
    ) -> Iterator[_Copy]:
        """Memories that are written and read as one wide memory, with copies for readers."""
        first = group[0]
        granularity = self._width if len(group) > 1 and first.own is not None else None
        write = self._wide_write([self._write(memory) for memory in group], first)
        for number, reading in enumerate(first.groups or [()] * first.host_reads):
            served = [reading]
            if len(group) > 1:
                served = [memory.groups[0] if memory.groups else () for memory in group]
            word = add_memory(
                self._m,
                f"bank_{first.number}" + (f"_copy_{number}" if number else ""),
                width=self._width * len(group),
                depth=first.depth,
                write=write,
                read=self._read(first, [readers[index] for index in reading], first=not number),
                granularity=granularity,
            )
            for k, (memory, indices) in enumerate(zip(group, served, strict=True)):
                yield _Copy(memory, indices, word[k * self._width : (k + 1) * self._width])

    def _wide_write(self, writes: list[WritePort], first: EndpointMemory) -> WritePort:
        """The write port of a wide memory."""
        if len(writes) == 1:
            return writes[0]
        addresses, data, enables = zip(*writes, strict=True)
        # The host writes one of the memories, the fabric all of them.
        enable = Cat(*enables) if first.own is not None else enables[0]
        return WritePort(addresses[0], Cat(*data), enable)

    def _write(self, memory: EndpointMemory) -> WritePort:
        """The write port of a memory: what arrives comes before what the host writes."""
        stored = self._stored(memory) if memory.ports or memory.phases else None
        if memory.own is None:
            return stored or WritePort(Const(0, 1), Const(0, self._width), NEVER)
        chosen = self._value("write_enable") & (self._value("write_node") == self._value("node"))
        if self._settings.own > 1:
            chosen = chosen & (self._value("write_bank") == memory.own)
        address, data = self._value("write_address"), self._value("write_data")
        if stored is None:
            return WritePort(address, data, chosen)
        attributes = {"keep": 1} if self._endpoint.alone else {}
        storing = Signal(name=f"taken_{memory.number}", attrs=attributes)
        self._m.d.comb += storing.eq(stored.enable)
        return WritePort(
            Mux(storing, stored.address, address),
            Mux(storing, stored.data, data),
            storing | chosen,
        )

    def _stored(self, memory: EndpointMemory) -> WritePort:
        """What a memory stores of what arrives."""
        word, column = self._arriving(memory), memory.column
        if column is not None:
            return WritePort(self._value(f"write_{column}"), word, self._value(f"store_{column}"))
        m = self._m
        assert memory.enable is not None
        phases = [self._inputs.phase(window, hops + 1) for window, hops in memory.phases]
        enable = choose([NEVER, *phases], self._inputs.field(memory.enable))
        pointer = Signal(
            range(max(memory.depth, 2)), init=memory.start, name=f"pointer_{memory.number}"
        )
        if memory.depth > 1:
            with m.If(~self._value("busy")):
                m.d.sync += pointer.eq(memory.start)
            with m.Elif(enable):
                m.d.sync += pointer.eq(pointer + 1)
        return WritePort(pointer, word, enable)

    def _arriving(self, memory: EndpointMemory) -> Value:
        """The word that a memory stores."""
        rx = self._endpoint.words("rx", self._width)
        made = self._endpoint.inject[: self._width] if MADE in memory.ports else None
        words = [made if port == MADE else rx[port] for port in memory.ports]
        if len(words) == 1:
            return words[0]
        assert memory.port is not None
        chosen = self._inputs.field(memory.port)
        # From a register: else synthesis would work out for every bit what to select.
        held = Signal(len(chosen), name=f"port_{memory.number}", reset_less=True)
        self._m.d.sync += held.eq(chosen)
        return self._cascade(words, held)

    def _read(self, memory: EndpointMemory, readers: list[Reader], *, first: bool) -> ReadPort:
        """The read port of a copy of a memory; the host reads the first copy."""
        chosen = self._value("read_node") == self._value("node")
        busy, host_reads = self._value("busy"), memory.host_reads and first
        host = self._value("read_address")
        if self._settings.half:
            # Only the root, at offset 0, shows what it sends rather than what it has received.
            bits = (self._settings.half - 1).bit_length()
            host = Cat(host[:bits], self._value("offset").any())
        if not readers:
            return ReadPort(host, chosen)
        address = readers[-1].address
        for reader in readers[:-1]:
            if reader.address is not address:
                address = Mux(reader.reads(memory.number), reader.address, address)
        if host_reads and not self._passes_host(readers):
            address = Mux(busy, address, host)
        return ReadPort(address, busy | chosen if host_reads else busy)

    def _passes_host(self, readers: list[Reader]) -> bool:
        """Whether the address of the host comes by way of the sequencer's column."""
        central = all(reader.shape.address is Address.CENTRAL for reader in readers)
        one = len({reader.shape.column for reader in readers}) == 1
        return central and one and not self._settings.private and not self._settings.half

    # Words read

    def _word_read(
        self, index: int, reader: Reader, words: dict[tuple[int, int], Value], *, for_host: bool
    ) -> Value:
        """The word of a reader; if for the host, of the memory that it asks for while at rest."""
        memories = reader.shape.memories
        inputs = [words[memory, index] for memory in memories]
        if len(inputs) == 1:
            return inputs[0]
        m, busy = self._m, self._value("busy")
        assert reader.code is not None
        select = Signal(len(reader.code), name=f"select_{index}", reset_less=True)
        if for_host:
            host = self._host_code(memories)
            if self._settings.private:
                m.d.sync += select.eq(reader.code)
                return self._cascade(inputs, Mux(busy, select, host))
            m.d.sync += select.eq(Mux(busy, reader.code, host))
        else:
            m.d.sync += select.eq(reader.code)
        return self._cascade(inputs, select)

    def _host_code(self, memories: Sequence[int]) -> Value:
        """The select bits with which a cascade passes on the memory that the host reads."""
        known = [number for number in memories if number != NEUTRAL]
        codes = [
            select_code(len(memories), memories.index(number if number in known else known[-1]))
            for number in range(max(known) + 1)
        ]
        width = max(len(select_bits(len(memories), 0)), 1)
        return choose([Const(value, width) for value in codes], self._value("read_bank"))

    def _host_word(self, words: dict[int, Value]) -> Value:
        """The word of the memory that the host reads."""
        memories = sorted(words)
        if len(memories) == 1:
            return words[memories[0]]
        select = self._host_code(memories)
        if not self._settings.private:
            # From a register: else synthesis would work out for every bit what to select.
            early, select = select, Signal(len(select), name="select_host", reset_less=True)
            self._m.d.sync += select.eq(early)
        return self._cascade([words[number] for number in memories], select)

    def _cascade(self, words: Sequence[Value], select: Value) -> Value:
        """One of several words."""
        # Kept stages would only be more signals for a simulator.
        keep = [keeper(self._m, self._width)] if self._endpoint.alone else []
        return cascade(words, list(select), self._width, *keep)

    def _combined(self, words: list[Value]) -> Value:
        """What the readers of an injection port read, combined in a tree."""
        if not words:
            return Const(0, self._width)
        level, operator = words, self._settings.operator
        while len(level) > 1:
            assert operator is not None
            pairs = zip(level[::2], level[1::2], strict=False)
            rest = level[-1:] if len(level) % 2 else []
            level = [operate(operator, a, b, self._width) for a, b in pairs] + rest
        return level[0]


def _reader_for_host(readers: list[Reader], for_host: dict[int, Value]) -> int | None:
    """A reader that can pass on every memory the host reads, or None."""
    if len(for_host) < 2:
        return None
    for index, reader in enumerate(readers):
        if {*for_host} <= {*reader.shape.memories}:
            return index
    return None


def _wide_memories(shape: EndpointShape, *, private: bool) -> list[list[EndpointMemory]]:
    """Memories in groups that are always written, and read, at the same address.

    One wide memory takes less block RAM than several narrow ones.
    """
    groups: dict[object, list[EndpointMemory]] = {}
    for memory in shape.memories:
        if not memory.depth:
            continue
        readers = [shape.readers[index] for group in memory.groups for index in group]
        alone = (
            private
            or len(readers) > 1
            or any(reader.address is not Address.CENTRAL for reader in readers)
            or any(reader.code is not None for reader in readers)
            or (memory.own is None and memory.column is None)
            or (memory.own is not None and bool(memory.phases))
        )
        columns = tuple({reader.column for reader in readers})
        key = (memory.own is None, memory.column, columns, memory.depth, memory.host_reads)
        groups.setdefault(memory.number if alone else key, []).append(memory)
    return list(groups.values())
