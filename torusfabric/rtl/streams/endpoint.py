"""The endpoint of a node with streams: the run under way uses one section of each memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Member, Out

from ..endpoint import EndpointPorts, EndpointSettings, Reader
from ..endpoint_builder import Copy, EndpointBuilder, asked
from ..endpoint_shape import EndpointMemory, EndpointShape
from ..flit_rows import FlitRows
from ..memories import ReadPort, WritePort, add_memory, memory_cell
from ..multiplexer import bit_count, cascade, extended_cascade, keeper
from .packets import KEPT
from .sections import Sections, in_section, section_bits
from .shapes import LoaderShape, UnloaderShape
from .words import cleared, state

__all__ = ["AT_ONCE", "StreamEndpoint", "StreamEnds", "sectioned", "unloaded"]

#: Memories among which one is chosen in a cycle; the choice among more takes another.
AT_ONCE = 4


@dataclass(frozen=True)
class StreamEnds:
    """What endpoints with streams are written and read by.

    Parameters
    ----------
    own : tuple of int
        The numbers of the memories of what is sent.
    """

    loader: LoaderShape
    unloader: UnloaderShape
    own: tuple[int, ...]

    @property
    def sections(self) -> Sections:
        """Of each memory."""
        return self.loader.facts.sections


def sectioned(shape: EndpointShape) -> EndpointShape:
    """An endpoint with two or more sections of each memory.

    What is unloaded has a copy for that alone, for it is read while a run is under way. What a node
    sends is not read there: what it gets from itself is kept apart.
    """
    memories = []
    for memory in shape.memories:
        if memory.own is not None and not memory.sources:
            memory = replace(memory, host_reads=False)
        elif memory.host_reads and memory.groups:
            memory = replace(memory, groups=((), *memory.groups))
        memories.append(memory)
    return replace(shape, memories=tuple(memories), sectioned=True)


class StreamEndpoint(EndpointPorts):
    """Holds what a node sends, and what it has received, two or three messages of each.

    Parameters
    ----------
    kept : bool
        Whether any node gets anything from itself.

    Members
    -------
    clear : In(1)
        The reset of the node.
    run_begins : In(1)
        High for a cycle when a run begins.
    write_enable, write_kept, write_bank, write_address, write_index, write_data, write_section : In
        What the loader writes.
    read_advance, read_code, read_address, read_section : In
        What the unloader reads.
    read_full : In
        Which flits of a beat but the first are part of the packet.
    read_data : Out
        The word read: a register, as late as the unloader's `tvalid`. Other flits are 0.
    """

    def __init__(
        self,
        shape: EndpointShape,
        settings: EndpointSettings,
        streams: StreamEnds,
        *,
        kept: bool,
    ) -> None:
        self.ends, self.kept = streams, kept
        several = len(unloaded(shape, kept=kept)) > 1
        super().__init__(shape, settings, _members(streams, kept=kept, several=several))

    @property
    def unloaded(self) -> tuple[int, ...]:
        """The numbers of the memories that are unloaded, in the order of select bits."""
        return unloaded(self.shape, kept=self.kept)

    def elaborate(self, platform: object) -> Module:
        """Build memories, readers and what selects between them."""
        sections = self.ends.sections
        # Of the run under way, before its first address; the first one begins by turning it to 0.
        section = state(sections.bits, name="section", init=sections.count - 1)
        build = EndpointBuilder(self, lambda build: _StreamSide(build, self, section))
        build.m.d.sync += section.eq(sections.following(section, self.value("run_begins")))
        cleared(build.m, self.value("clear"), section)
        return build.build()


def _members(ends: StreamEnds, *, kept: bool, several: bool) -> dict[str, Member]:
    """What nodes are given, and by what they are written and read."""
    loader, number_bits = ends.loader, ends.sections.number_bits
    return {
        "busy": In(1),
        "clear": In(1),
        "run_begins": In(1),
        "write_enable": In(1),
        "write_address": In(loader.address_bits),
        "write_data": In(loader.width),
        "write_section": In(number_bits),
        "read_advance": In(1),
        "read_address": In(loader.address_bits),
        "read_section": In(number_bits),
        "read_full": In((ends.unloader.beat - 1) * (ends.unloader.flit_bits > 0)),
        "read_data": Out(loader.data_bits),
        "write_kept": In(int(kept)),
        "write_index": In(loader.words.index_bits * kept),
        "write_bank": In(loader.memory_bits),
        "read_code": In(ends.unloader.memory_bits * several),
    }


def unloaded(shape: EndpointShape, *, kept: bool) -> tuple[int, ...]:
    """The numbers of the memories that are unloaded, in the order of select bits."""
    return (*sorted(shape.host_memories), *([KEPT] if kept else []))


class _StreamSide:
    """How streams write and read an endpoint: its loader, and its unloader."""

    def __init__(self, build: EndpointBuilder, endpoint: StreamEndpoint, section: Signal) -> None:
        self._build, self._m, self._value = build, build.m, build.value
        self._endpoint, self._ends, self._section = endpoint, endpoint.ends, section
        self._sections = endpoint.ends.sections

    def depth(self, rows: int) -> int:
        """Rows of a memory as it is built; each section begins at a power of two."""
        return rows + ((self._sections.count - 1) << section_bits(rows))

    def copies(self, group: Sequence[EndpointMemory], readers: Sequence[Reader]) -> Iterator[Copy]:
        """Memories with copies for readers; of any root, what is sent lies apart from the rest.

        The loader writes the one while the other stores what arrives.
        """
        memory = group[0]
        if memory.own is None or not memory.sources:
            yield from self._build.copies(group, readers)
            return
        received = FlitRows(self._endpoint.shape.beat, self._endpoint.settings.pitch)
        bits, arriving = section_bits(memory.depth) - 1, self._build.stored(memory)
        for number, reading in enumerate(memory.groups):
            of_copy = [readers[index] for index in reading]
            here = self.read(memory, of_copy, copy=number, early=False)
            write = arriving if reading else received.write_flit(arriving)
            stored = self._part(memory, f"copy_{number}", here, write, self._section)
            if not reading:
                yield Copy(memory, reading, stored)
                continue
            rows = self._build.rows(memory, number)
            row, flit = self._build.row_read(memory, here, rows, copy=number)
            section = self._of_number("write_section")
            sent = self._part(memory, f"sent_{number}", row, self._loaded(memory), section)
            chosen = Signal(name=f"received_{memory.number}_{number}", reset_less=True)
            with self._m.If(here.enable):
                self._m.d.sync += chosen.eq(here.address[bits])
            word = Mux(chosen, stored, self._build.flit(sent, flit))
            yield Copy(memory, reading, word)

    def _part(
        self, memory: EndpointMemory, name: str, read: ReadPort, write: WritePort, section: Value
    ) -> Value:
        """What is read of what is sent, or of what is received, of a memory that has both."""
        # What is received begins at the power of two below the depth.
        width = len(write.data)
        bits = section_bits(memory.depth) - section_bits(width // self._build.width) - 1
        words, of_run = 1 << bits, read.address[-self._sections.bits :]
        bank = f"bank_{memory.number}_{name}"
        depth = self._sections.count * words
        return add_memory(
            self._m,
            bank,
            memory_cell(bank, width=width, depth=depth, parts=len(write.enable)),
            write=write._replace(address=in_section(write.address, words, section)),
            read=read._replace(address=Cat(read.address[:bits], of_run)),
        )

    def write(self, memory: EndpointMemory, rows: FlitRows) -> WritePort:
        """The write port: what arrives goes to the section of the run, what is loaded to others."""
        if memory.own is not None:
            port, section = self._loaded(memory), self._of_number("write_section")
        elif memory.sources:
            port, section = rows.write_flit(self._build.stored(memory)), self._section
        else:
            return self._build.stored(memory)
        depth = rows.depth(memory.depth)
        return port._replace(address=in_section(port.address, depth, section))

    def _of_number(self, name: str) -> Value:
        """The section of the message or run whose number is given."""
        return self._sections.of(self._value(name))

    def _loaded(self, memory: EndpointMemory) -> WritePort:
        """What the loader writes into a memory."""
        enable = self._value("write_enable")
        if self._ends.loader.memory_bits:
            bank = self._ends.own.index(memory.number)
            enable = enable & (self._value("write_bank") == bank)
        return WritePort(self._value("write_address"), self._value("write_data"), enable)

    def read(
        self, memory: EndpointMemory, readers: list[Reader], *, copy: int, early: bool
    ) -> ReadPort:
        """The read port of a copy: of the readers, or of the unloader."""
        if not readers:
            section = self._of_number("read_section")
            depth = self._build.rows(memory, copy).depth(memory.depth)
            address = in_section(self._value("read_address"), depth, section)
            return ReadPort(address, self._value("read_advance"))
        address = in_section(asked(memory, readers), memory.depth, self._section)
        return self._build.port(address, self._value("busy"), memory, copy=copy, early=early)

    def code(self, index: int, reader: Reader) -> Value | None:
        """Select bits of the memory that a reader reads."""
        return reader.code

    def show(self, read: list[Value], words: dict[int, Value]) -> None:
        """Show the word that is unloaded."""
        m, advance = self._m, self._value("read_advance")
        inputs = [
            self._kept() if number == KEPT else words[number] for number in self._endpoint.unloaded
        ]
        if not inputs:
            return
        code = Signal(bit_count(len(inputs)), name="unloaded", reset_less=True)
        with m.If(advance):
            if len(code):
                m.d.sync += code.eq(self._value("read_code"))
        width = self._ends.loader.width
        keep = keeper(m, width)
        first, rest = inputs[:AT_ONCE], inputs[AT_ONCE:]
        bits = bit_count(len(first))
        chosen = cascade(first, [*code[:bits]], width, keep)
        if self._ends.unloader.late:
            now = [chosen, code[bits:], *rest]
            chosen, code, *rest = later = [
                Signal(len(value), name=f"later_{k}", reset_less=True)
                for k, value in enumerate(now)
            ]
            with m.If(advance):
                m.d.sync += [Cat(*later).eq(Cat(*now))]
            chosen = extended_cascade(chosen, rest, [*code], keep)
        with m.If(advance):
            m.d.sync += self._endpoint.read_data.eq(chosen)
        if self._ends.unloader.flit_bits:
            self._clear_free(advance)

    def _clear_free(self, advance: Value) -> None:
        """Show 0 in flits behind the end of a packet: by the reset of a register, without LUTs."""
        word, full = self._endpoint.read_data, self._value("read_full")
        for k, is_full in enumerate(full, 1):
            with self._m.If(advance & ~is_full):
                self._m.d.sync += word.word_select(k, self._build.width).eq(0)

    def _kept(self) -> Value:
        """What a node gets from itself: of all messages from that which is loaded to that which is
        unloaded, which are more than those on one side."""
        most, value = self._ends.loader.words.most, self._value
        write = in_section(value("write_index"), most, value("write_section"))
        read = in_section(value("read_address"), most, value("read_section"))
        words = most + ((2 * self._sections.count - 1) << section_bits(most))
        return add_memory(
            self._m,
            "kept",
            memory_cell("kept", width=self._ends.loader.width, depth=words),
            write=WritePort(write, value("write_data"), value("write_kept")),
            read=ReadPort(read, value("read_advance")),
        )
