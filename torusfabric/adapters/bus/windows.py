"""`Windows`: the module that executes AXI4 bursts on the windows, one word of the host port a beat.

The front of a fabric behind AXI4 adds it beside `Registers`, which have an AXI4-Lite port. A write
and a read share the host port, which has one address:

    AW -> beats -> collect bytes -> host port -> answers (queue) -> B
    AR -> beats ------------------> host port -> words (queue) ---> R

*Beats* are the addresses of the transfers of a burst. The queues hold results until the master
accepts them; a beat is executed only if its result has room there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ...contract.registers import BYTES
from ...rtl.memories import ReadPort, WritePort, add_memory, address_width, fitting, memory_cell
from ...rtl.modules import delayed, pulsed
from ...rtl.netlist import Leaf
from .ports import ID_BITS, SLAVE_ERROR, burst_ports, inputs_first, members
from .registers import WindowAddress

if TYPE_CHECKING:
    from ...contract.registers import RegisterMap

__all__ = ["Windows"]

#: Address bits that a burst may change: AXI4 bursts do not cross a 4 KB boundary.
PAGE_BITS = 12

#: Values of AxBURST for a constant address, and for an address that wraps; 1 is an incrementing
#: address.
FIXED, WRAP = 0, 2

#: Answers to write bursts that the queue can hold.
WRITES = 16

#: Cycles from a word in its queue until its room is free again, if the master accepts it at once.
TURNAROUND = 4


class Beats(NamedTuple):
    """The current beat of a burst of one address channel.

    Parameters
    ----------
    active : Signal
        High while there is a beat.
    address, master : Signal
        Byte address of the beat, and transaction ID of the burst.
    last : Value
        High for the last beat of the burst.
    begins : Value
        High in the cycle before the first beat of a burst.
    step : Signal
        Driven by the user: high when the beat is done.
    """

    active: Signal
    address: Signal
    master: Signal
    last: Value
    begins: Value
    step: Signal


def add_beats(m: Module, ports: Leaf, channel: str, *, room: Value) -> Beats:
    """Add the generator of beats from the bursts of an address channel.

    One further burst is accepted in advance, so that no cycle is lost between bursts, except after
    a burst of a single beat.

    Parameters
    ----------
    m : Module
        The module of the windows.
    ports : Leaf
        The windows, with the AXI4 ports.
    channel : {"aw", "ar"}
        The address channel.
    room : Value
        High if a burst may begin.
    """
    port = lambda name: ports.value(f"s_axi_{channel}{name}")
    active, step = Signal(name=f"{channel}_active"), Signal(name=f"{channel}_step")
    address = Signal(len(port("addr")), name=f"{channel}_beat")
    master = Signal(ID_BITS, name=f"{channel}_of", reset_less=True)
    left, waits = Signal(8, name=f"{channel}_left"), Signal(name=f"{channel}_waits")
    last = left == 0
    asked = {
        name: Signal(len(port(name)), name=f"{channel}_{name}_asked", reset_less=True)
        for name in ("addr", "id", "len", "size", "burst")
    }
    m.d.comb += getattr(ports, f"s_axi_{channel}ready").eq(~waits)
    with m.If(~waits):
        m.d.sync += waits.eq(port("valid"))
        m.d.sync += [held.eq(port(name)) for name, held in asked.items()]
    begins = waits & room & (~active | (step & last))
    with m.If(step):
        m.d.sync += [left.eq(left - 1), active.eq(~last)]
    beats = Beats(active, address, master, last, begins, step)
    _count(m, channel, beats, asked)
    with m.If(begins):
        m.d.sync += [waits.eq(0), active.eq(1), left.eq(asked["len"])]
        m.d.sync += [master.eq(asked["id"]), address.eq(asked["addr"])]
    return beats


def _count(m: Module, channel: str, beats: Beats, asked: Mapping[str, Signal]) -> None:
    """Add the address counter: bits in the mask `changes` count, the others stay.

    The mask is 0 for a constant address, the size of the burst for one that wraps, else all ones.
    """
    bits = min(len(beats.address), PAGE_BITS)
    size = Signal(bits, name=f"{channel}_size", reset_less=True)
    changes = Signal(bits, name=f"{channel}_changes", reset_less=True)
    first, kind = (Const(1, 1) << asked["size"])[:bits], asked["burst"]
    all_bytes = fitting(asked["len"] << asked["size"], bits)
    around = all_bytes | (first - 1)[:bits]
    with m.If(beats.begins):
        m.d.sync += size.eq(first)
        m.d.sync += changes.eq(Mux(kind == FIXED, 0, Mux(kind == WRAP, around, ~Const(0, bits))))
    # An unaligned burst keeps its offset in every beat, which does no harm: the offset is below the
    # flit address.
    low = beats.address[:bits]
    following = (low + size)[:bits]
    with m.If(beats.step):
        m.d.sync += low.eq((low & ~changes) | (following & changes))


class Queue(NamedTuple):
    """Output of a queue of words that wait for the master.

    Parameters
    ----------
    valid, word : Value
        The first word, and high if there is one.
    room : Value
        High if another word may be announced.
    """

    valid: Signal
    word: Value
    room: Value


def add_queue(
    m: Module, name: str, *, depth: int, announced: Value, comes: Value, word: Value, ready: Value
) -> Queue:
    """Add a queue in memory, with room reserved for announced words.

    Parameters
    ----------
    m : Module
        The module of the windows.
    name : str
        Prefix of the names of signals and memory.
    depth : int
        Words of the queue.
    announced : Value
        High to reserve room for a word that will come; allowed only while `Queue.room` is high.
    comes, word : Value
        An announced word, and high in the cycle in which it comes.
    ready : Value
        High if the master accepts the first word.
    """
    bits = (depth - 1).bit_length()
    into, out = Signal(bits, name=f"{name}_into"), Signal(bits, name=f"{name}_out")
    stored = Signal(range(depth + 1), name=f"{name}_stored")
    expected = Signal(range(depth + 1), name=f"{name}_owed")
    valid, fetch = Signal(name=f"{name}_valid"), Signal(name=f"{name}_fetch")
    m.d.comb += fetch.eq((stored != 0) & (~valid | ready))
    cell = memory_cell(f"{name}_words", width=len(word), depth=depth)
    shown = add_memory(m, name, cell, write=WritePort(into, word, comes), read=ReadPort(out, fetch))
    m.d.sync += [
        into.eq(into + comes),
        out.eq(out + fetch),
        stored.eq(stored + comes - fetch),
        expected.eq(expected + announced - (valid & ready)),
        valid.eq(fetch | (valid & ~ready)),
    ]
    return Queue(valid, shown, expected != depth)


class FlitBytes(NamedTuple):
    """A flit that is collected from one beat, or from several narrow beats.

    Parameters
    ----------
    flit : Signal
        The bytes so far, one cycle after the beat.
    whole : Value
        High if the flit is complete with this beat.
    lost : Value
        High if this beat belongs to another flit, and an earlier beat of the same burst left an
        incomplete flit, whose bytes are lost.
    """

    flit: Signal
    whole: Value
    lost: Value


def gathered(
    m: Module, width: int, *, take: Value, ends: Value, place: Value, data: Value, strobes: Value
) -> FlitBytes:
    """Add registers that collect the bytes of a flit of `width` bits from beats.

    Bytes above the width of a flit are padding, and need not be written.

    Parameters
    ----------
    m : Module
        The module of the windows.
    width : int
        Bits of a flit.
    take : Value
        High for a beat whose bytes are collected.
    ends : Value
        High in the cycle in which a burst ends.
    place : Value
        Address of the flit of the beat.
    data, strobes : Value
        Data and byte strobes of the beat.
    """
    count = -(-width // 8)
    at, there = Signal(len(place), name="held_place"), Signal(count, name="held_bytes")
    flit = Signal(8 * count, name="held", reset_less=True)
    # An incomplete flit may be from another burst. Only the burst that left it fails.
    own = Signal(name="held_of_burst")
    brings = strobes[:count].any()
    now = Mux(at == place, there, 0) | strobes[:count]
    with m.If(take & brings):
        m.d.sync += [at.eq(place), there.eq(Mux(now.all(), 0, now)), own.eq(1)]
    with m.If(ends):
        m.d.sync += own.eq(0)
    for k in range(count):
        with m.If(take & strobes[k]):
            m.d.sync += flit.word_select(k, 8).eq(data.word_select(k, 8))
    lost = brings & (at != place) & there.any() & own
    return FlitBytes(flit, brings & now.all(), lost)


class Windows(Leaf):
    """Module that executes AXI4 bursts, one beat a cycle: writes to send, reads of receive windows.

    - Beats of writes and reads take turns if both wait, because the host port has one address.
    - Answers have the order of bursts. The answer to a write comes when its words are in memory.
    - A beat at an unmapped address, or during a run, is answered with an error (SLVERR).
    - A flit is written when all its bytes have arrived, in one beat or in several. The bytes of an
      incomplete flit are lost when a beat of another flit arrives. If this beat belongs to the same
      burst, the burst is answered with an error. The answer to a burst depends on no other burst.

    Parameters
    ----------
    register_map : RegisterMap
        The addresses of the windows.
    width : int
        Bits of a word of the host port.
    read_latency, write_latency : int
        Clock edges of a read, and of a write, at the host port.

    Members
    -------
    s_axi_.. : In, Out
        The AXI4 ports.
    host_we, host_node, host_addr, host_wdata, host_rdata : Out, In
        The host port of the fabric.
    start, busy : In(1)
        The start of a run, and high while one is under way: the host port then ignores writes.
    """

    def __init__(
        self,
        register_map: RegisterMap,
        *,
        width: int,
        read_latency: int,
        write_latency: int,
    ) -> None:
        self._map, self._width = register_map, width
        self._read_latency, self._write_latency = read_latency, write_latency
        places = address_width(register_map.window("send").nodes), register_map.flit_bits + 1
        host = dict(zip(("we", "node", "addr", "wdata"), (1, *places, width), strict=True))
        super().__init__(
            inputs_first(
                members(burst_ports(register_map.address_bits, register_map.flit_bytes))
                | {"start": In(1), "busy": In(1), "host_rdata": In(width)}
                | {f"host_{name}": Out(bits) for name, bits in host.items()}
            )
        )

    def elaborate(self, platform: object) -> Module:
        """Build writes, reads, and the arbiter between them."""
        m = Module()
        take, turn, asked = Signal(name="take"), Signal(name="turn"), Signal(name="asked")
        write = self._write(m, take)
        read, room = self._read(m, asked)
        wanted = read.active & room
        m.d.comb += [
            self.s_axi_wready.eq(write.active & (~wanted | turn)),
            take.eq(self.s_axi_wready & self.value("s_axi_wvalid")),
            asked.eq(wanted & ~take),
            write.step.eq(take),
            read.step.eq(asked),
        ]
        m.d.sync += turn.eq(~take)
        at = self._at(Mux(take, write.address, read.address))
        m.d.sync += [
            self.host_node.eq(at.node),
            self.host_addr.eq(Cat(at.flit, at.quarter[1])),
        ]
        return m

    def _at(self, address: Value) -> WindowAddress:
        """Return the window address of the flit at a byte address."""
        byte_bits = (BYTES - 1).bit_length() + self._map.part_bits
        words = Cat(Const(0, self._map.part_bits), address[byte_bits:])
        return WindowAddress.of(self._map, words)

    def _write(self, m: Module, take: Value) -> Beats:
        """Collect flits, write them, and answer each burst when its flits are in memory."""
        room, strobes = Signal(name="room_for_writes"), self.value("s_axi_wstrb")
        beats = add_beats(m, self, "aw", room=room)
        at = self._at(beats.address)
        place = beats.address[(self._map.flit_bytes - 1).bit_length() :]
        open_now = ~self.value("start") & ~self.value("busy")
        served = at.serves(Const(1, 1)) & open_now
        held = gathered(m, self._width, take=take & served, ends=take & beats.last, place=place,
                        data=self.value("s_axi_wdata"), strobes=strobes)  # fmt: skip
        m.d.sync += self.host_we.eq(take & held.whole & served)
        # The write reaches the host port one cycle after the beat. A start in that cycle closes the
        # port, so the error is decided in that cycle.
        takes, last = pulsed(m, take, 1, name="took"), delayed(m, beats.last, 1, "took_last")
        wrong = delayed(m, strobes.any() & (~served | held.lost), 1, "took_wrong")
        failed, failing = Signal(name="failed"), Signal(name="failing")
        m.d.comb += failing.eq(failed | wrong | (self.host_we & ~open_now))
        with m.If(takes):
            m.d.sync += failed.eq(failing & ~last)
        m.d.comb += self.host_wdata.eq(held.flit[: self._width])
        latency, master = self._write_latency, delayed(m, beats.master, 1, "took_of")
        queue = add_queue(
            m, "answers", depth=WRITES, announced=beats.begins,
            comes=pulsed(m, takes & last, latency - 1, name="answered"),
            word=delayed(m, Cat(failing, master), latency - 1, "answer_to"),
            ready=self.value("s_axi_bready"),
        )  # fmt: skip
        m.d.comb += [
            room.eq(queue.room),
            self.s_axi_bvalid.eq(queue.valid),
            self.s_axi_bresp.eq(Mux(queue.word[0], SLAVE_ERROR, 0)),
            self.s_axi_bid.eq(queue.word[1:]),
        ]
        return beats

    def _read(self, m: Module, asked: Value) -> tuple[Beats, Value]:
        """Read flits; return the beats, and a signal that is high if another word has room."""
        beats = add_beats(m, self, "ar", room=Const(1, 1))
        refused = ~self._at(beats.address).serves(Const(0, 1)) | self.value("busy")
        latency = 1 + self._read_latency
        of = delayed(m, Cat(refused, beats.last, beats.master), latency, "read_of")
        word = Cat(of[0] | self.value("busy"), of[1:], self.value("host_rdata"))
        queue = add_queue(
            m, "words", depth=1 << (latency + TURNAROUND - 1).bit_length(), announced=asked,
            comes=pulsed(m, asked, latency, name="read"), word=word,
            ready=self.value("s_axi_rready"),
        )  # fmt: skip
        m.d.comb += [
            self.s_axi_rvalid.eq(queue.valid),
            self.s_axi_rresp.eq(Mux(queue.word[0], SLAVE_ERROR, 0)),
            self.s_axi_rlast.eq(queue.word[1]),
            self.s_axi_rid.eq(queue.word[2 : 2 + ID_BITS]),
            self.s_axi_rdata.eq(queue.word[2 + ID_BITS :]),
        ]
        return beats, queue.room
