"""The host: a whole fabric behind one memory-mapped port."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ..program.timing import DISTRIBUTION
from .columns import Columns
from .delays import delayed
from .host_layout import HostLayout
from .locators.base import Locator
from .memories import address_width
from .netlist import Leaf
from .run_length import divided

__all__ = ["RADIX", "Host", "ReadMerge", "merge_levels"]

#: Words that a node of the read tree combines: a 4-input look-up table a bit.
RADIX = 4


def merge_levels(nodes: int) -> list[int]:
    """Numbers of nodes on each level of the tree over the read data of all nodes of a fabric.

    Examples
    --------
    >>> merge_levels(64)
    [16, 4, 1]
    """
    levels = []
    while nodes > 1:
        nodes = -(-nodes // RADIX)
        levels.append(nodes)
    return levels


class ReadMerge(Leaf):
    """Passes on the only one of several words that is not 0, one cycle later.

    Parameters
    ----------
    inputs : int
        At most `RADIX`.
    width : int

    Members
    -------
    data : In(inputs * width)
    word : Out(width)
    """

    def __init__(self, inputs: int, width: int) -> None:
        self._width = width
        super().__init__({"data": In(inputs * width), "word": Out(width)})
        self.word = Signal(width, reset_less=True)

    def elaborate(self, platform: object) -> Module:
        """Build the combination and its register."""
        m = Module()
        m.d.sync += self.word.eq(reduce(or_, self.words("data", self._width)))
        return m


class Host(Leaf):
    """Turns what the host asks into reads and writes of the nodes' memories.

    A write takes `program.timing.WRITE` edges, those of a run that begins with the next edge come
    after it. A read takes `read_latency` edges, and one can be given with every edge while no run
    is under way.

    Parameters
    ----------
    layout : HostLayout
    locator : Locator
    width : int
        Bits of a word.
    address_bits : int
        Of the memories' addresses.
    answer : int
        Cycles from a read at the nodes to its word.
    write_locator : Locator, optional
        Finds what a node sends by its destination, where that is not in the order of the host's
        addresses. Writes take so much longer.

    Members
    -------
    host_we, host_node, host_addr, host_wdata : In
        The host port.
    write_node, write_bank, write_address, write_data, write_enable : Out
        A write into a send memory; the data come a cycle after the others, for nodes to find out
        which memory it is for.
    sampled_root : In
        The root of the last run, where what is read depends on it.
    read_node, read_bank, read_address : Out
        A read.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan(tf.Torus(3, 3), "broadcast")), width=8)
    >>> host = fabric.netlist.modules["host"]()
    >>> host.read_latency == fabric.read_latency, len(host.host_wdata)
    (True, 8)
    """

    def __init__(
        self,
        layout: HostLayout,
        locator: Locator,
        width: int,
        address_bits: int,
        answer: int,
        write_locator: Locator | None = None,
    ) -> None:
        self._layout, self._locator, self._write_locator = layout, locator, write_locator
        nodes = layout.nodes
        self._answer = answer + len(merge_levels(nodes))
        chunks = address_width(layout.part_chunks)
        super().__init__(
            {
                "host_we": In(1),
                "host_node": In(address_width(nodes)),
                "host_addr": In(layout.address_bits),
                "host_wdata": In(width),
                "write_node": Out(address_width(nodes)),
                "write_bank": Out(len(write_locator.bank) if write_locator else chunks),
                "write_address": Out(address_bits),
                "write_data": Out(width),
                "write_enable": Out(1),
                "read_node": Out(address_width(nodes)),
                "read_bank": Out(len(locator.bank)),
                "read_address": Out(address_bits),
            }
            | ({"sampled_root": In(layout.root_bits)} if layout.part_is_root else {})
        )

    @property
    def _read_stages(self) -> int:
        """Cycles to find out the origin of an address that is read."""
        return self._layout.division_stages(self._layout.recv_parts)

    @property
    def read_latency(self) -> int:
        """Edges from an address to its data.

        These are the input register, division, location, the way to the node, the node, and the
        way back.
        """
        on_the_way = DISTRIBUTION - 1  # the register in the node is one of the endpoint
        return 1 + self._read_stages + self._locator.latency + on_the_way + self._answer

    def elaborate(self, platform: object) -> Module:
        """Build the pipelines of reads and writes."""
        m = Module()
        m.submodules.locator = locator = self._locator
        position = self._position(m)
        if self._write_locator is None:
            self._write(m)
        else:
            self._write_located(m, self._write_locator, position)
        later = delayed
        node = later(m, self.value("host_node"), 1 + self._read_stages)
        address = later(m, self.value("host_addr")[: self._layout.address_bits - 1], 1)
        origin, chunk, flit = self._block(m, address, self._layout.recv_parts)
        if self._layout.part_is_root:
            origin = self.value("sampled_root")
        m.d.comb += [
            locator.node.eq(later(m, position, self._read_stages)),
            locator.origin.eq(origin),
            locator.chunk.eq(chunk),
            locator.flit.eq(flit),
            self.read_node.eq(later(m, node, locator.latency)),
            self.read_address.eq(locator.address),
        ]
        m.d.comb += self.read_bank.eq(locator.bank)
        return m

    def _position(self, m: Module) -> Value:
        """The position in its group of the node that the host asks for, one cycle later."""
        node = self.value("host_node")
        if self._layout.positions is None:
            return delayed(m, node, 1)
        table = Columns(node)
        position = table.read(self._layout.positions)
        table.build(m, "positions")
        return position

    def _write(self, m: Module) -> None:
        """Register a write, and find the chunk where each has a memory of its own."""
        address = self.value("host_addr")
        chunk, flit = Const(0), address[:-1]
        if self._layout.memory_by_chunk:
            _, chunk, flit = self._block(m, flit, 1)
        m.d.sync += [
            self.write_enable.eq(self.value("host_we") & ~address[-1]),
            self.write_node.eq(self.value("host_node")),
            self.write_bank.eq(chunk),
            self.write_address.eq(flit),
            self.write_data.eq(delayed(m, self.value("host_wdata"), 1)),
        ]

    def _write_located(self, m: Module, locator: Locator, position: Value) -> None:
        """Find the address of a word, and pass the rest of the write on as late."""
        m.submodules.write_locator = locator
        later, parts = delayed, self._layout.send_parts
        address = self.value("host_addr")
        destination, chunk, flit = self._block(m, later(m, address[:-1], 1), parts)
        wait = 1 + self._layout.division_stages(parts)
        node = later(m, self.value("host_node"), wait)
        m.d.comb += [
            locator.node.eq(later(m, position, wait - 1)),
            locator.origin.eq(destination),
            locator.chunk.eq(chunk),
            locator.flit.eq(flit),
            self.write_node.eq(later(m, node, locator.latency)),
            self.write_bank.eq(locator.bank),
            self.write_address.eq(locator.address),
            self.write_data.eq(later(m, self.value("host_wdata"), wait + locator.latency + 1)),
        ]
        enable = self.value("host_we") & ~address[-1]
        for _ in range(wait + locator.latency):
            enable_later = Signal()
            m.d.sync += enable_later.eq(enable)
            enable = enable_later
        m.d.comb += self.write_enable.eq(enable)

    def _block(self, m: Module, address: Value, parts: int) -> tuple[Value, Value, Value]:
        """Part, chunk and flit within it of an address, after the cycles of a division by parts."""
        layout = self._layout
        if not layout.in_turn:
            part, flit = self._divide(m, address, parts)
            return part, *self._split(flit)
        if layout.part_chunks < layout.chunks:
            chunk, flit = _in_turn(address, layout.chunks)
            part = divided(chunk, layout.part_chunks)
            return part, (chunk - part * layout.part_chunks)[: len(chunk)], flit
        part, flit = self._divide(m, address, parts)
        return part, *_in_turn(flit, layout.chunks)

    def _split(self, flit: Value) -> tuple[Value, Value]:
        """Chunk, and flit within it, of a flit of a message whose chunks follow one another."""
        size, chunks = self._layout.block_flits, self._layout.part_chunks
        if chunks == 1:
            return Const(0), flit
        if not size & (size - 1):
            shift = size.bit_length() - 1
            return flit[shift:], flit[:shift] if shift else Const(0)
        chunk: list[Value] = []
        rest = flit
        for k in reversed(range((chunks - 1).bit_length())):
            fits = rest >= size << k
            chunk.insert(0, fits)
            rest = Mux(fits, rest - (size << k), rest)[: len(flit)]
        return Cat(*chunk), rest[: address_width(size)]

    def _divide(self, m: Module, address: Value, parts: int) -> tuple[Value, Value]:
        """Part, and flit within it, of an address; one cycle for each bit of the part."""
        flits, stages = self._layout.part_flits, self._layout.division_stages(parts)
        if parts == 1:
            return Const(0), address
        if not stages:
            shift = flits.bit_length() - 1
            return address[shift:], address[:shift] if shift else Const(0)
        quotient: list[Value] = []
        rest = address
        for k in reversed(range(stages)):
            fits = rest >= flits << k
            quotient = [delayed(m, bit, 1) for bit in quotient]
            taken, remaining = Signal(reset_less=True), Signal(len(address), reset_less=True)
            m.d.sync += [taken.eq(fits), remaining.eq(Mux(fits, rest - (flits << k), rest))]
            quotient.insert(0, taken)
            rest = remaining
        return Cat(*quotient), rest


def _in_turn(flit: Value, chunks: int) -> tuple[Value, Value]:
    """Chunk, and flit within it, of a flit of a message whose flits go to its chunks in turn."""
    if chunks == 1:
        return Const(0), flit
    within = divided(flit, chunks)
    bits = (chunks - 1).bit_length()
    if chunks == 1 << bits:
        return flit[:bits], within
    return (flit - within * chunks)[:bits], within
