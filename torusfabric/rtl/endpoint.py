"""The endpoint: memories, readers and writers of a node.

All are told by the sequencer, or by ROMs that the sequencer steps through, when their cycles have
come, so no flit carries a header or a valid bit.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ..collective import Operator
from ..program.values import MADE, NEUTRAL
from .combiner import operate
from .crossbar import cascade, keeper, select_bits
from .endpoint_plan import Address, EndpointShape, Field, MemoryShape, ReaderShape, code
from .memories import add_memory, address_width, choose
from .netlist import Leaf
from .windows import Windows

__all__ = ["Endpoint", "EndpointSettings"]

#: Never high.
NEVER = Const(0, 1)


@dataclass(frozen=True)
class EndpointSettings:
    """What all endpoints of a fabric have in common.

    Parameters
    ----------
    ports : int
        Ports of a node.
    width : int
        Bits of a flit.
    nodes : int
    address_bits : int
    memories : int
        Memories of the program.
    own : int
        Memories that the host writes.
    windows : Windows
    private : bool
        Whether every node has a read address of its own, instead of one from the host.
    half : int
        With any root: the address of what is received, above what the node would send. Else 0.
    offset_bits : int
        With any root: bits of the offset of a node from it.
    operator : Operator or None
        How the words of the readers of an injection port are combined.
    """

    ports: int
    width: int
    nodes: int
    address_bits: int
    memories: int
    own: int
    windows: Windows
    private: bool = False
    half: int = 0
    offset_bits: int = 0
    operator: Operator | None = None


class Endpoint(Leaf):
    """Holds what a node sends, and what it has received.

    Parameters
    ----------
    shape : EndpointShape
    settings : EndpointSettings

    Members
    -------
    rx : In(ports * width)
        A word from each in-port.
    inject : Out(injections * width)
        A word for each injection port, one cycle after its address.
    busy : In(1)
        Whether a run is under way.
    row : In
        The node's row ROM, when addresses of that row are given; if it has one.
    run_k : In
        The ROM of runs of reader k: select bits of the memory, first address, words left.
    run_address_k : Out
        The run to be given in the next cycle.
    phase : In
        From the sequencer, if any phase is used.
    read_k, write_k, store_k : In
        Addresses of readers, and addresses and enables of memories, as far as they come from the
        sequencer.
    write_node, write_bank, write_address, write_data, write_enable : In
        Writes a word into one of the memories for what the node whose number is `node` sends.
    read_node, read_bank, read_address : In
        Reads a word, two cycles later. `read_bank` chooses the memory: given with the address, or
        one cycle later where private.
    offset : In
        With any root: the offset of the node from it; only the root shows the host what it sends.
    read_data : Out(width)
    node : In
        The number of this node.
    """

    def __init__(self, shape: EndpointShape, settings: EndpointSettings) -> None:
        self._shape, self._settings = shape, settings
        width, bits = settings.width, settings.address_bits
        node_bits = address_width(settings.nodes)
        phased = any(memory.phases for memory in shape.memories) or any(
            reader.windows for reader in shape.readers
        )
        columns = {reader.column for reader in shape.readers if self._counted(reader)}
        stores = {memory.column for memory in shape.memories if memory.column is not None}
        windows = settings.windows
        optional = {
            "inject": Out(len(shape.injections) * width) if shape.injections else None,
            "row": In(shape.row_bits) if shape.row_bits else None,
            "phase": In(windows.count * (windows.reach + 2)) if phased else None,
            "offset": In(settings.offset_bits) if settings.half else None,
        }
        super().__init__(
            {name: flow for name, flow in optional.items() if flow is not None}
            | {f"read_{k}": In(bits) for k in sorted(columns)}
            | {f"write_{k}": In(bits) for k in sorted(stores)}
            | {f"store_{k}": In(1) for k in sorted(stores)}
            | {
                f"run_{place}": In(sum(reader.runs[:3]))
                for place, reader in enumerate(shape.readers)
                if reader.address is Address.RUNS
            }
            | {
                f"run_address_{place}": Out(reader.runs[3])
                for place, reader in enumerate(shape.readers)
                if reader.address is Address.RUNS
            }
            | {
                "rx": In(settings.ports * width),
                "busy": In(1),
                "node": In(node_bits),
                "write_node": In(node_bits),
                "write_bank": In(address_width(settings.own)),
                "write_address": In(bits),
                "write_data": In(width),
                "write_enable": In(1),
                "read_node": In(node_bits),
                "read_bank": In(address_width(settings.memories)),
                "read_address": In(bits),
                "read_data": Out(width),
            }
        )
        self.read_data = Signal(width, reset_less=True)

    @staticmethod
    def _counted(reader: ReaderShape) -> bool:
        """Whether a reader's address is made of a column of the sequencer."""
        return reader.address is not Address.RUNS

    def elaborate(self, platform: object) -> Module:
        return _Builder(self, self._shape, self._settings).build()


class _Reader:
    """What drives the reads of a reader.

    Attributes
    ----------
    address : Value
    code : Value or None
        Select bits of the memory, with the address.
    sending : Value
        Whether it reads anything in this row.
    """

    def __init__(self, shape: ReaderShape, address: Value, code: Value | None, sending: Value):
        self.shape, self.address, self.code, self.sending = shape, address, code, sending

    def reads(self, memory: int) -> Value:
        """Whether the address is for a memory."""
        memories = self.shape.memories
        if self.code is None:
            return self.sending
        return self.sending & (self.code == code(len(memories), memories.index(memory)))


class _Builder:
    """Builds one endpoint."""

    def __init__(self, leaf: Endpoint, shape: EndpointShape, settings: EndpointSettings) -> None:
        self.m, self.leaf, self.shape, self.settings = Module(), leaf, shape, settings
        self.width = settings.width

    def value(self, name: str) -> Value:
        """What drives an input."""
        return self.leaf.value(name)

    def field(self, which: Field) -> Value:
        """A value of the row ROM, or a constant."""
        if which.constant is not None:
            return Const(which.constant, which.width)
        return self.value("row")[which.start : which.start + which.width]

    def build(self) -> Module:
        """The module."""
        m, shape = self.m, self.shape
        readers = [self._reader(place, reader) for place, reader in enumerate(shape.readers)]
        words: dict[tuple[int, int], Value] = {}
        viewed: dict[int, Value] = {}
        for together in _together(shape, self.settings):
            for memory, reading, word in self._memories(together, readers):
                words |= {(memory.number, place): word for place in reading}
                if memory.viewed and memory.number not in viewed:
                    viewed[memory.number] = word
        if self.settings.operator:
            neutral = Const(self.settings.operator.identity(self.width), self.width)
            words |= {(NEUTRAL, place): neutral for place in range(len(readers))}
        host = self._host_reader(readers, viewed)
        taken = [
            self._taken(place, reader, words, for_host=place == host)
            for place, reader in enumerate(readers)
        ]
        for number, group in enumerate(shape.injections):
            word = self._combined([taken[place] for place in group])
            m.d.comb += self.leaf.inject.word_select(number, self.width).eq(word)
        if host is not None:
            m.d.sync += self.leaf.read_data.eq(taken[host])
        elif viewed:
            m.d.sync += self.leaf.read_data.eq(self._viewed_word(viewed))
        return m

    def _reader(self, place: int, reader: ReaderShape) -> _Reader:
        """The addresses of a reader."""
        sending = Const(1) if reader.sending is None else self.field(reader.sending)
        if reader.address is Address.RUNS:
            code, address = self._generator(place, reader)
            code = code if len(reader.memories) > 1 else None
            return _Reader(reader, address, code, sending)
        address = self.value(f"read_{reader.column}")
        if reader.base is not None:
            base, shift = self.field(reader.base), reader.base_shift
            address = base + address if shift is None else Cat(address[:shift], base)
            address = address[: self.settings.address_bits]
        chosen = None if reader.code is None else self.field(reader.code)
        return _Reader(reader, address, chosen, sending)

    def _generator(self, place: int, reader: ReaderShape) -> tuple[Value, Value]:
        """Steps through runs: the run that comes next waits at the ROM's output."""
        m = self.m
        code_bits, address_bits, left_bits, number_bits = reader.runs
        given, busy = self.value(f"run_{place}"), self.value("busy")
        code = Signal(code_bits, name=f"bank_{place}")
        address = Signal(address_bits, name=f"address_{place}")
        left = Signal(left_bits, name=f"left_{place}")
        number = Signal(number_bits, init=1, name=f"run_number_{place}")
        begun = Signal(name=f"begun_{place}")
        windows = [self._phase(window, 0) for window in reader.windows]
        assert reader.active is not None
        active = choose([NEVER, *windows], self.field(reader.active))
        ends = active & (left == 0)
        m.d.sync += begun.eq(busy)
        m.d.comb += getattr(self.leaf, f"run_address_{place}").eq(
            Mux(busy, Mux(ends, number + 1, number), 0)
        )
        with m.If(~busy):
            m.d.sync += number.eq(1)
        with m.Elif(ends):
            m.d.sync += number.eq(number + 1)
        # The first run is taken in the cycle after the last in which the node was at rest.
        with m.If(~begun | ends):
            m.d.sync += Cat(code, address, left).eq(given)
        with m.Elif(active):
            m.d.sync += [address.eq(address + 1), left.eq(left - 1)]
        return code, address

    def _phase(self, window: int, ago: int) -> Value:
        """Whether a flit within a window was read some cycles ago."""
        return self.value("phase")[window * (self.settings.windows.reach + 2) + ago]

    def _memories(self, group: list[MemoryShape], readers: list[_Reader]):
        """Memories that are written and read together, and copies for readers.

        Yields
        ------
        memory : MemoryShape
        reading : tuple of int
            The readers of this copy.
        word : Value
            What is read.
        """
        first = group[0]
        granularity = self.width if len(group) > 1 and first.own is not None else None
        write = self._together([self._write(memory) for memory in group], first)
        for number, reading in enumerate(first.groups or [()] * first.viewed):
            copies = [reading]
            if len(group) > 1:
                copies = [memory.groups[0] if memory.groups else () for memory in group]
            name = f"bank_{first.number}" + (f"_copy_{number}" if number else "")
            word = add_memory(
                self.m,
                name,
                width=self.width * len(group),
                depth=first.depth,
                write=write,
                read=self._read(first, [readers[place] for place in reading], first=not number),
                granularity=granularity,
            )
            for k, (memory, copy) in enumerate(zip(group, copies, strict=True)):
                yield memory, copy, word[k * self.width : (k + 1) * self.width]

    def _together(self, writes: list, first: MemoryShape):
        """The write ports of memories that are one."""
        if len(writes) == 1:
            return writes[0]
        addresses, data, enables = zip(*writes, strict=True)
        return addresses[0], Cat(*data), Cat(*enables) if first.own is not None else enables[0]

    def _write(self, memory: MemoryShape):
        """The write port of a memory: address, word, enable."""
        stored = self._stored(memory) if memory.ports or memory.phases else None
        if memory.own is None:
            return stored or (Const(0, 1), Const(0, self.width), NEVER)
        chosen = self.value("write_enable") & (self.value("write_node") == self.value("node"))
        if self.settings.own > 1:
            chosen = chosen & (self.value("write_bank") == memory.own)
        from_host = self.value("write_address"), self.value("write_data"), chosen
        if stored is None:
            return from_host
        taken = Signal(name=f"taken_{memory.number}", attrs={"keep": 1} if self.leaf.alone else {})
        self.m.d.comb += taken.eq(stored[2])
        both = zip(stored[:2], from_host[:2], strict=True)
        return *(Mux(taken, a, b) for a, b in both), taken | chosen

    def _stored(self, memory: MemoryShape):
        """What a memory stores of what arrives: address, word, enable."""
        word = self._arriving(memory)
        if memory.column is not None:
            return self.value(f"write_{memory.column}"), word, self.value(f"store_{memory.column}")
        m = self.m
        assert memory.enable is not None
        phases = [self._phase(window, hops + 1) for window, hops in memory.phases]
        enable = choose([NEVER, *phases], self.field(memory.enable))
        pointer = Signal(
            range(max(memory.depth, 2)), init=memory.start, name=f"pointer_{memory.number}"
        )
        if memory.depth > 1:
            with m.If(~self.value("busy")):
                m.d.sync += pointer.eq(memory.start)
            with m.Elif(enable):
                m.d.sync += pointer.eq(pointer + 1)
        return pointer, word, enable

    def _arriving(self, memory: MemoryShape) -> Value:
        """The word that a memory stores."""
        rx = self.leaf.words("rx", self.width)
        words = [self.leaf.inject[: self.width] if p == MADE else rx[p] for p in memory.ports]
        if len(words) == 1:
            return words[0]
        assert memory.port is not None
        chosen = self.field(memory.port)
        # From a register: else synthesis would work out for every bit what to select.
        held = Signal(len(chosen), name=f"port_{memory.number}", reset_less=True)
        self.m.d.sync += held.eq(chosen)
        return self._cascade(words, held)

    def _read(self, memory: MemoryShape, readers: list[_Reader], *, first: bool):
        """The read port of a memory: address and enable."""
        chosen = self.value("read_node") == self.value("node")
        busy, viewed = self.value("busy"), memory.viewed and first
        host = self.value("read_address")
        if self.settings.half:
            host = Cat(host[: (self.settings.half - 1).bit_length()], self.value("offset").any())
        if not readers:
            return host, chosen
        address = readers[-1].address
        for reader in readers[:-1]:
            if reader.address is not address:
                address = Mux(reader.reads(memory.number), reader.address, address)
        if viewed and not self._passes_host(readers):
            address = Mux(busy, address, host)
        return address, busy | chosen if viewed else busy

    def _passes_host(self, readers: list[_Reader]) -> bool:
        """Whether the address of the host comes by way of the sequencer's column."""
        central = all(reader.shape.address is Address.CENTRAL for reader in readers)
        one = len({reader.shape.column for reader in readers}) == 1
        return central and one and not self.settings.private and not self.settings.half

    def _taken(self, place: int, reader: _Reader, words: dict, *, for_host: bool) -> Value:
        """The word of a reader."""
        memories = reader.shape.memories
        inputs = [words[memory, place] for memory in memories]
        if len(inputs) == 1:
            return inputs[0]
        m, busy = self.m, self.value("busy")
        assert reader.code is not None
        select = Signal(len(reader.code), name=f"select_{place}", reset_less=True)
        if for_host:
            host = self._host_code(list(memories))
            if self.settings.private:
                m.d.sync += select.eq(reader.code)
                return self._cascade(inputs, Mux(busy, select, host))
            m.d.sync += select.eq(Mux(busy, reader.code, host))
        else:
            m.d.sync += select.eq(reader.code)
        return self._cascade(inputs, select)

    def _host_reader(self, readers: list[_Reader], viewed: dict[int, Value]) -> int | None:
        """A reader that can pass on every memory the host reads, or None."""
        if len(viewed) < 2:
            return None
        for place, reader in enumerate(readers):
            if {*viewed} <= {*reader.shape.memories}:
                return place
        return None

    def _host_code(self, memories: list[int]) -> Value:
        """The select bits with which a cascade passes on the memory that the host reads."""
        known = [number for number in memories if number != NEUTRAL]
        codes = [
            code(len(memories), memories.index(number if number in known else known[-1]))
            for number in range(max(known) + 1)
        ]
        width = max(len(select_bits(len(memories), 0)), 1)
        return choose([Const(value, width) for value in codes], self.value("read_bank"))

    def _viewed_word(self, viewed: dict[int, Value]) -> Value:
        """The word of the memory that the host reads."""
        memories = sorted(viewed)
        if len(memories) == 1:
            return viewed[memories[0]]
        select = self._host_code(memories)
        if not self.settings.private:
            # From a register: else synthesis would work out for every bit what to select.
            early, select = select, Signal(len(select), name="select_host", reset_less=True)
            self.m.d.sync += select.eq(early)
        return self._cascade([viewed[number] for number in memories], select)

    def _cascade(self, words: list[Value], select: Value) -> Value:
        """One of several words."""
        # Kept stages would only be more signals for a simulator.
        keep = [keeper(self.m, self.width)] if self.leaf.alone else []
        return cascade(words, list(select), self.width, *keep)

    def _combined(self, words: list[Value]) -> Value:
        """What the readers of an injection port read, combined in a tree."""
        if not words:
            return Const(0, self.width)
        row = list(words)
        while len(row) > 1:
            pairs = zip(row[::2], row[1::2], strict=False)
            row = [operate(self.settings.operator, a, b, self.width) for a, b in pairs] + (
                row[-1:] if len(row) % 2 else []
            )
        return row[0]


def _together(shape: EndpointShape, settings: EndpointSettings) -> list[list[MemoryShape]]:
    """Memories in groups that are always written, and read, at the same address.

    One wide memory takes less block RAM than several narrow ones.
    """
    groups: dict[object, list[MemoryShape]] = {}
    for memory in shape.memories:
        if not memory.depth:
            continue
        readers = [shape.readers[place] for group in memory.groups for place in group]
        columns = {reader.column for reader in readers}
        central = all(reader.address is Address.CENTRAL for reader in readers)
        alone = (
            not central
            or any(reader.code is not None for reader in readers)
            or len(readers) > 1
            or (memory.own is None and memory.column is None)
            or (memory.own is not None and bool(memory.phases))
            or settings.private
        )
        key: object = (
            memory.own is None,
            memory.column,
            tuple(columns),
            memory.depth,
            memory.viewed,
        )
        groups.setdefault(memory.number if alone else key, []).append(memory)
    return list(groups.values())
