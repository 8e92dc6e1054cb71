"""The endpoint of loaded tables, as the host writes and reads it.

The words of a node's memories are chosen from in stages of at most two look-up tables with a
register behind each. A node that is not asked shows 0, so that a tree that only combines brings the
word of the one that is to the host port.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from .arrays import NodeGroups
from .endpoint import EndpointPorts, EndpointSettings, Reader
from .endpoint_builder import Copy, EndpointBuilder, asked
from .endpoint_shape import STAGE_INPUTS, EndpointMemory, EndpointShape
from .flit_rows import FlitRows
from .memories import ReadPort, WritePort, address_width, choose
from .modules import apart, delayed
from .multiplexer import SLICE, bit_count, cascade, extended_cascade, keeper, select_code

__all__ = ["Endpoint"]


class Endpoint(EndpointPorts):
    """Holds what a node sends, and what it has received.

    Parameters
    ----------
    nodes : int
        Nodes of the fabric.

    Members
    -------
    node : In
        The number of this node.
    write_enable, write_node, write_address, write_data : In
        Writes a word into the memory for what the node sends, if `write_node` is the low bits of
        `node`. `write_data` is given a cycle later than the others.
    read_node, read_bank, read_address : In
        Reads a word; `read_bank` chooses the memory. It is there after as many cycles as
        `EndpointPlan.answer` says.
    read_data : Out
        The word.
    """

    def __init__(self, shape: EndpointShape, settings: EndpointSettings, nodes: int) -> None:
        node_bits, address_bits = address_width(nodes), settings.address_bits
        members = {
            "busy": In(1),
            "node": In(node_bits),
            "write_node": In(NodeGroups(nodes).place_bits),
            "write_data": In(settings.width),
            "read_node": In(node_bits),
            "read_bank": In(address_width(len(shape.memories))),
            "read_address": In(address_bits),
            "read_data": Out(settings.width),
            "write_enable": In(1),
            "write_bank": In(1),
            "write_address": In(address_bits),
        }
        super().__init__(shape, settings, members)

    def elaborate(self, platform: object) -> Module:
        """Build memories, readers and what selects between them."""
        return EndpointBuilder(self, _HostSide).build()


class _HostSide:
    """How the host writes and reads an endpoint."""

    def __init__(self, build: EndpointBuilder) -> None:
        self._build, self._m, self._endpoint = build, build.m, build.endpoint
        self._shape, self._width = build.endpoint.shape, build.endpoint.settings.width

    @cached_property
    def _is_asked(self) -> Value:
        """True if the host asks this node."""
        return self._build.value("read_node") == self._build.value("node")

    def depth(self, rows: int) -> int:
        """Rows of a memory as it is built."""
        return rows

    def copies(self, group: Sequence[EndpointMemory], readers: Sequence[Reader]) -> Iterator[Copy]:
        """Memories with copies for readers."""
        return self._build.copies(group, readers)

    def write(self, memory: EndpointMemory, rows: FlitRows) -> WritePort:
        """The write port of a memory: for what arrives, or for the host."""
        del rows
        build, value = self._build, self._build.value
        if memory.own is None:
            return build.stored(memory)
        place = value("write_node")
        chosen = value("write_enable") & (place == value("node")[: len(place)])
        chosen = delayed(self._m, chosen, 1, f"write_{memory.number}")
        return WritePort(build.address("write_address", memory.depth), value("write_data"), chosen)

    def read(
        self, memory: EndpointMemory, readers: list[Reader], *, copy: int, early: bool
    ) -> ReadPort:
        """The read port of a copy of a memory; the host reads the first copy."""
        busy, host = self._build.value("busy"), self._build.value("read_address")
        enable = busy if copy else busy | self._is_asked
        if not readers:
            address, enable = host, self._is_asked
        else:
            address = asked(memory, readers)
            if not copy:
                address = Mux(busy, address, host)
        address = address[: address_width(memory.depth)]
        return self._build.port(address, enable, memory, copy=copy, early=early)

    def code(self, index: int, reader: Reader) -> Value | None:
        """Select bits of the memory that a reader reads; while at rest, maybe that asked for."""
        if reader.code is None or index != self._shape.host_reader:
            return reader.code
        asked_for = self._code(reader.shape.memories)
        return Mux(self._build.value("busy"), reader.code, asked_for)

    def _code(self, memories: Sequence[int]) -> Value:
        """The select bits with which a cascade passes on the memory that is asked for."""
        count, last = len(memories), memories[-1]
        codes = [
            select_code(count, memories.index(number if number in memories else last))
            for number in range(max(memories) + 1)
        ]
        width = max(bit_count(count), 1)
        return choose([Const(value, width) for value in codes], self._build.value("read_bank"))

    def show(self, read: list[Value], words: dict[int, Value]) -> None:
        """Show the word that is asked for, a cycle after its memory was given the address."""
        reader = self._shape.host_reader
        word = self._of_memories(words) if reader is None else read[reader]
        # A register holds what resets the word, with nothing in between.
        silent = delayed(self._m, ~self._is_asked, 1 + self._shape.read_stages, "silent")
        self._m.d.sync += self._endpoint.read_data.eq(Mux(silent, 0, word))

    def _of_memories(self, words: dict[int, Value]) -> Value:
        """The word of the memory that is asked for, given those of some by their numbers."""
        numbers, width = sorted(words), self._width
        code = delayed(self._m, self._code(numbers), 1, "code")
        size = SLICE if self._endpoint.alone else width
        slices = []
        for low in range(0, width, size):
            high = min(low + size, width)
            inputs = [words[number][low:high] for number in numbers]
            slices.append(self._choice(inputs, code, high - low, f"host_select_{low // size}"))
        return Cat(*slices)

    def _choice(self, inputs: list[Value], code: Value, width: int, name: str) -> Value:
        """One of several words, chosen in stages, without the register behind the last one."""
        m, keep = self._m, keeper(self._m, width)
        first, later = inputs[:STAGE_INPUTS], inputs[STAGE_INPUTS:]
        used = bit_count(len(inputs)) - -(-len(later) // 2)
        bits, code = apart(m, code[:used], name=name), code[used:]
        chosen = cascade(first, [*bits], width, keep)
        for stage in range(1, self._shape.read_stages):
            held = Signal(width, name=f"{name}_word_{stage}", reset_less=True)
            m.d.sync += held.eq(chosen[:width])
            words = later[(stage - 1) * STAGE_INPUTS :][:STAGE_INPUTS]
            used = -(-len(words) // 2)
            early = delayed(m, code[:used], stage)
            bits = apart(m, early, name=f"{name}_{stage}")
            late = [delayed(m, word, stage) for word in words]
            chosen, code = extended_cascade(held, late, [*bits], keep), code[used:]
        return chosen[:width]
