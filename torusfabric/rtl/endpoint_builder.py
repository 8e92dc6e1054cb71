"""What is in an endpoint: memories with their ports, and injected words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import NamedTuple, Protocol

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from ..collective import combine_in_tree, tree_levels
from ..program.fields import NEUTRAL
from ..program.timing import ADDRESS, SETTING, STORE
from .endpoint import EndpointPorts, Inputs, Reader
from .endpoint_shape import EndpointMemory, bank_name, wide_memories
from .flit_rows import FlitRows
from .memories import (
    Cell,
    ReadPort,
    WritePort,
    add_memory,
    address_width,
    choose,
    memory_cell,
)
from .modules import apart, delayed
from .multiplexer import multiplexed
from .operator_unit import add_pair
from .place import Location

__all__ = ["Copy", "EndpointBuilder", "Outside", "asked"]


#: Never high.
NEVER = Const(0, 1)

#: Cycles from the address of a memory to its word.
READ = 1

assert ADDRESS + READ == SETTING, "words that are read, and settings, are there at once"
assert STORE == 1, "a word may be read in the cycle after that in which it is stored"

#: Bits from which a memory is taken for a block RAM.
BLOCK_RAM = 2048


class Copy(NamedTuple):
    """A copy of a memory, the readers that it serves, and the word read from it."""

    memory: EndpointMemory
    readers: tuple[int, ...]
    word: Value


class Outside(Protocol):
    """By what the memories of an endpoint are written and read, beside the fabric."""

    def depth(self, rows: int) -> int:
        """Rows of a memory as it is built, of which a run uses so many."""

    def copies(self, group: Sequence[EndpointMemory], readers: Sequence[Reader]) -> Iterator[Copy]:
        """Memories that are written and read as one, with copies for readers."""

    def write(self, memory: EndpointMemory, rows: FlitRows) -> WritePort:
        """The write port of a memory."""

    def read(
        self, memory: EndpointMemory, readers: list[Reader], *, copy: int, early: bool
    ) -> ReadPort:
        """The read port of a copy of a memory; without readers it is for outside alone."""

    def code(self, index: int, reader: Reader) -> Value | None:
        """Select bits of the memory that a reader reads."""

    def show(self, read: list[Value], words: dict[int, Value]) -> None:
        """Show the word that is asked for: of a reader, or of memories by their numbers."""


class EndpointBuilder:
    """Builds one endpoint.

    Parameters
    ----------
    outside : function of (EndpointBuilder) -> Outside
        By what it is written and read.

    Attributes
    ----------
    m : Module
        What is built.
    width : int
        Bits of a flit.
    """

    def __init__(
        self, endpoint: EndpointPorts, outside: Callable[[EndpointBuilder], Outside]
    ) -> None:
        self.m, self.endpoint = Module(), endpoint
        self._inputs = Inputs(self.m, endpoint)
        self._shape, self._settings = endpoint.shape, endpoint.settings
        self.width = endpoint.settings.width
        self._registers: dict[str, Value] = {}
        self._stored: dict[int, WritePort] = {}
        self._outside = outside(self)

    def value(self, name: str) -> Value:
        """What drives an input."""
        return self.endpoint.value(name)

    def build(self) -> Module:
        """The module."""
        m, shape = self.m, self._shape
        readers = list(map(self._inputs.reader, shape.readers))
        # What each reader finds in each memory, and what the host does.
        words: dict[tuple[int, int], Value] = {}
        for_host: dict[int, Value] = {}
        for group in wide_memories(shape):
            for memory, reading, word in self._outside.copies(group, readers):
                words |= {(memory.number, index): word for index in reading}
                if memory.host_reads:
                    for_host.setdefault(memory.number, word)
        waiting = [k for k, reader in enumerate(shape.readers) if NEUTRAL in reader.memories]
        if waiting:
            words |= dict.fromkeys(((NEUTRAL, index) for index in waiting), self._neutral())
        read = [self._word_read(index, reader, words) for index, reader in enumerate(readers)]
        for number, members in enumerate(shape.injections):
            word = self.combined([read[index] for index in members], number)
            m.d.comb += self.endpoint.inject.word_select(number, self.width).eq(word)
        self._outside.show(read, for_host)
        return m

    def held(self, value: Value, name: str) -> Value:
        """A value a cycle later, in registers of this node alone; there is one of a name."""
        if name not in self._registers:
            self._registers[name] = apart(self.m, value, name=name)
        return self._registers[name]

    # Memories

    def copies(self, group: Sequence[EndpointMemory], readers: Sequence[Reader]) -> Iterator[Copy]:
        """Memories that are written and read as one wide memory, with copies for readers."""
        first = group[0]
        writes: dict[FlitRows, WritePort] = {}
        for number, reading in enumerate(first.groups or [()] * first.host_reads):
            rows = self.rows(first, number)
            if rows not in writes:
                each = [self._outside.write(memory, rows) for memory in group]
                writes[rows] = self._wide_write(each, first)
            write = writes[rows]
            served = [reading]
            if len(group) > 1:
                served = [memory.groups[0] if memory.groups else () for memory in group]
            name = bank_name(first.number, number)
            early = self.early(group, reading)
            of_copy = [readers[index] for index in reading]
            read = self._outside.read(first, of_copy, copy=number, early=early)
            read, flit = self.row_read(first, read, rows, copy=number)
            word = add_memory(
                self.m,
                name,
                self._cell(name, group, len(write.enable), rows),
                write=write,
                read=read,
                many=self._settings.forms > 1,
            )
            if len(flit):
                word = self.flit(word, flit)
                yield Copy(first, reading, delayed(self.m, word, int(early), f"{name}_flit"))
                continue
            word = delayed(self.m, word, int(early))
            size = rows.beat * self.width
            for k, (memory, indices) in enumerate(zip(group, served, strict=True)):
                yield Copy(memory, indices, word[k * size : (k + 1) * size])

    def rows(self, memory: EndpointMemory, copy: int) -> FlitRows:
        """How flits lie in a copy of a memory: by beats if it is written or read from outside."""
        if not memory.in_rows(copy):
            return FlitRows()
        return memory.rows(self._shape.beat, self._settings.pitch)

    def row_read(
        self, memory: EndpointMemory, read: ReadPort, rows: FlitRows, *, copy: int
    ) -> tuple[ReadPort, Value]:
        """The row that is read, and which of its flits, as late as the row is there.

        An unloader counts rows.
        """
        if rows.beat == 1 or memory.own is None:
            return read, Const(0, 0)
        row, number = rows.split_signal(read.address)
        flit = Signal(rows.bits, name=f"flit_{memory.number}_{copy}", reset_less=True)
        with self.m.If(read.enable):
            self.m.d.sync += flit.eq(number)
        return read._replace(address=row), flit

    def flit(self, row: Value, number: Value) -> Value:
        """A flit of a row."""
        return row.word_select(number, self.width) if len(number) else row

    def _cell(self, name: str, group: Sequence[EndpointMemory], parts: int, rows: FlitRows) -> Cell:
        """What holds the words of a copy of memories that are one wide memory."""
        if name in self.endpoint.cells:
            return self.endpoint.cells[name]
        width = rows.beat * self.width * len(group)
        depth = self._outside.depth(rows.depth(group[0].depth))
        return memory_cell(name, width=width, depth=depth, parts=parts)

    def early(self, group: Sequence[EndpointMemory], reading: tuple[int, ...]) -> bool:
        """Whether memories are read a cycle early, and a register takes the word.

        A block RAM is slow to show a word, and has its own register for addresses. So the register
        in front of it goes behind it. What is stored could then not be read as soon, so that this
        is for memories that a run only writes, and for those that it only reads: what was written
        last is there in time. An unloader has a register behind its choice.
        """
        words = self._outside.depth(group[0].depth)
        large = words > 1 and self.width * len(group) * words >= BLOCK_RAM
        if not reading:
            return large and not self._shape.sectioned
        return large and not any(memory.sources for memory in group)

    def _wide_write(self, writes: list[WritePort], first: EndpointMemory) -> WritePort:
        """The write port of a wide memory."""
        if len(writes) == 1:
            return writes[0]
        addresses, data, enables = zip(*writes, strict=True)
        # The host writes one of the memories, the fabric all of them.
        enable = Cat(*enables) if first.own is not None else enables[0]
        return WritePort(addresses[0], Cat(*data), enable)

    def address(self, name: str, depth: int) -> Value:
        """An address that is given to all nodes, as memories of a depth are given it."""
        if depth == 1:
            return Const(0, 1)
        bits = address_width(depth)
        return self.held(self.value(name)[:bits], f"{name}_of_{bits}")

    def stored(self, memory: EndpointMemory) -> WritePort:
        """What a memory stores of what arrives; all copies of it store the same."""
        if memory.number not in self._stored:
            self._stored[memory.number] = self._stores(memory)
        return self._stored[memory.number]

    def _stores(self, memory: EndpointMemory) -> WritePort:
        """What a memory stores, at addresses of the sequencer or its own."""
        if not memory.sources:
            return WritePort(Const(0, 1), Const(0, self.width), NEVER)
        word, central = self.arriving(memory), None
        if memory.chooses:
            return self._chosen(memory, word)
        if memory.columns is not None:
            write, store = memory.columns
            enable = self.held(self.value(f"store_{store}"), f"store_{store}_here")
            central = WritePort(self.address(f"write_{write}", memory.depth), word, enable)
            if not memory.strobes:
                return central
        own = self._appended(memory, word)
        if central is None:
            return own
        address = Mux(own.enable, own.address, central.address)
        return WritePort(address, word, own.enable | central.enable)

    def _chosen(self, memory: EndpointMemory, word: Value) -> WritePort:
        """What a memory stores when the node says, at addresses of the sequencer."""
        m, links, passing = self.m, self._settings.links, NEVER
        assert memory.enable is not None
        code, streams = self._inputs.at(memory.enable), self.value("streams")
        strobes = [self.value(f"strobe_{k}") for k in memory.strobes]
        if links <= len(strobes):
            # Where rows stream, a word has come by one link, or is not stored; of it counts what
            # the table said as many cycles before.
            said = delayed(m, code[: links.bit_length()], 1 + links)
            passing = streams & (said == links) & strobes[links - 1]
        resting = ~streams & choose([NEVER, *strobes], code)
        enable = delayed(m, passing | resting, 1, f"store_{memory.number}")
        address = self.value("write_0")[: address_width(memory.depth)]
        return WritePort(self.held(address, "stores_at"), word, enable)

    def _appended(self, memory: EndpointMemory, word: Value) -> WritePort:
        """What a node stores on its own, one word after the other."""
        m = self.m
        assert memory.enable is not None
        strobes = [self.value(f"strobe_{number}") for number in memory.strobes]
        which, step = self._of_row(memory, memory.enable), Value.cast(1)
        enable = delayed(m, choose([NEVER, *strobes], which), 1, f"store_{memory.number}")
        if memory.skips:
            ends = [self.value(f"strobe_ends_{number}") for number in memory.strobes]
            ends_block = delayed(m, choose([NEVER, *ends], which), 1, f"ends_block_{memory.number}")
            step = Mux(ends_block, self.value("skip"), 1)
        pointer = Signal(
            range(max(memory.depth, 2)),
            init=memory.start.constants[0],
            name=f"pointer_{memory.number}",
            reset_less=True,
        )
        if memory.depth > 1:
            with m.If(~self.held(self.value("busy"), "busy_here")):
                m.d.sync += pointer.eq(self._inputs.of_form(memory.start.constants))
            with m.Elif(enable):
                m.d.sync += pointer.eq(pointer + step)
        return WritePort(pointer, word, enable)

    def arriving(self, memory: EndpointMemory) -> Value:
        """The word that a memory stores."""
        words = [self._source(source) for source in memory.sources]
        if len(words) == 1:
            return words[0]
        assert memory.source is not None
        select = self._select(self._of_row(memory, memory.source), f"source_{memory.number}")
        name = f"to_memory_{memory.number}" if self.endpoint.alone else None
        return multiplexed(self.m, words, select, self.width, name=name)

    def _of_row(self, memory: EndpointMemory, where: Location) -> Value:
        """What is said of a row of what a memory stores, as late as its words arrive."""
        value, late = self._inputs.at(where), memory.late
        stages = [delayed(self.m, value, cycles) for cycles in late]
        if len({*late}) == 1:
            return stages[0]
        return choose(stages, self.value("form"))

    def _source(self, source: int) -> Value:
        """The word of a source that a memory may store."""
        outside = self._shape.words
        if source >= outside:
            made = self.endpoint.inject.word_select(source - outside, self.width)
            return made[: self.width]
        return self.endpoint.words("rx", self.width)[source]

    def port(
        self, address: Value, enable: Value, memory: EndpointMemory, *, copy: int, early: bool
    ) -> ReadPort:
        """The read port of a copy that is given an address: in this cycle if early, or the next."""
        if early:
            return ReadPort(address, enable)
        name = f"read_{memory.number}" + (f"_copy_{copy}" if copy else "")
        held = self.held(Cat(address, enable), f"{name}_here")
        return ReadPort(held[:-1], held[-1])

    # Words read

    def _word_read(self, index: int, reader: Reader, words: dict[tuple[int, int], Value]) -> Value:
        """The word of a reader."""
        inputs = [words[memory, index] for memory in reader.shape.memories]
        code = self._outside.code(index, reader)
        if code is None:
            return inputs[0]
        select = self._select(delayed(self.m, code, 1, f"code_{index}"), f"select_{index}")
        name = f"of_reader_{index}" if self.endpoint.alone else None
        return multiplexed(self.m, inputs, select, self.width, name=name)

    def _select(self, early: Value, name: str) -> Value:
        """Select bits for a multiplexer, which in the text holds them for a cycle."""
        return early if self.endpoint.alone else self.held(early, name)

    def combined(self, words: list[Value], injection: int) -> Value:
        """What the readers of an injection port read, combined in a tree; all as late."""
        if not words:
            return Const(0, self.width)
        m, unit, late = self.m, self._settings.unit, self._settings.injection_delay
        if len(words) == 1:
            return delayed(m, words[0], late)
        assert unit is not None
        number = count()

        def combine(*pair: Value) -> Value:
            name = f"{injection}_{next(number)}" if self.endpoint.alone else None
            return add_pair(m, unit, pair, self._code(), name=name)

        word = combine_in_tree(words, combine, lambda word: delayed(m, word, unit.latency))
        return delayed(m, word, late - unit.latency * tree_levels(len(words)))

    def _neutral(self) -> Value:
        """The word that changes nothing."""
        unit = self._settings.unit
        assert unit is not None
        return unit.identity(self._code(), self.width)

    def _code(self) -> Value:
        """The control bits of the operator."""
        several = self._settings.unit and self._settings.unit.bits
        return self.held(self.value("operator_code"), "operator_here") if several else Const(0, 0)


def asked(memory: EndpointMemory, readers: Sequence[Reader]) -> Value:
    """The address that one of some readers gives a memory."""
    address = readers[-1].address
    for reader in readers[:-1]:
        if reader.address is not address:
            address = Mux(reader.reads(memory.number), reader.address, address)
    return address
