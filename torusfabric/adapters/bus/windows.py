"""`Windows`: the module that executes AXI4 bursts on the windows, one beat in each cycle.

A fabric behind AXI4 has this module beside `Registers`, which are reached by AXI4-Lite. A *beat* is
here one transfer of a burst. It moves at most one flit, that is, one word of the host port. Writes
and reads share the host port, which has only one address::

    AW, W -> beats -> collect bytes -> host port -> queue of answers -> B
    AR ----> beats ------------------> host port -> queue of words ---> R

AW, W, B, AR and R are the channels of AXI4: addresses, words and answers of writes, addresses and
words of reads. A write channel has *byte strobes*, a bit for each byte that is to be written. The
queues hold results until the master accepts them. A burst of writes begins only if the queue has
room for its answer, and a beat of a read is executed only if the queue has room for its word.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ...contract.registers import BYTES
from ...rtl.memories import ReadPort, WritePort, add_memory, address_width, memory_cell, resize
from ...rtl.modules import delay_pulse, delay_value
from ...rtl.netlist import Leaf
from .ports import ID_BITS, SLAVE_ERROR, burst_ports, members_of_ports, sort_inputs_first
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
WRITE_ANSWERS = 16

#: Cycles from the arrival of a read word in its queue until its room is free again, if the master
#: accepts the word at once.
TURNAROUND = 4


class BurstState(NamedTuple):
    """The signals of the burst that is executed, and of its current beat.

    An AXI4 burst moves several beats at consecutive addresses; a *beat* is one transfer of it.
    There is one such state for writes, and one for reads.

    Parameters
    ----------
    active : Signal
        High while a beat is to be executed.
    address : Signal
        Byte address of the beat.
    master : Signal
        Transaction ID of the burst, by which the master recognises the answer.
    last : Value
        High for the last beat of the burst.
    begins : Value
        High in the cycle before the first beat of a burst.
    step : Signal
        High in the cycle in which the beat is executed. `Windows.elaborate` drives it.
    """

    active: Signal
    address: Signal
    master: Signal
    last: Value
    begins: Value
    step: Signal


def add_burst_counter(m: Module, ports: Leaf, channel: str, *, room: Value) -> BurstState:
    """Add the counter that splits each AXI4 burst into beats, one in a cycle; return its signals.

    While one burst is executed, the next one is already accepted and waits in registers. So no
    cycle is lost between bursts, except after a burst of a single beat.

    Parameters
    ----------
    m : Module
        The module of the windows.
    ports : Leaf
        The module itself, for its AXI4 ports.
    channel : {"aw", "ar"}
        The AXI4 address channel: ``aw`` for writes, ``ar`` for reads.
    room : Value
        High if a burst may begin, because there is room for its answer.
    """
    port = lambda name: ports.input_value(f"s_axi_{channel}{name}")
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
    beats = BurstState(active, address, master, last, begins, step)
    _count_addresses(m, channel, beats, asked)
    with m.If(begins):
        m.d.sync += [waits.eq(0), active.eq(1), left.eq(asked["len"])]
        m.d.sync += [master.eq(asked["id"]), address.eq(asked["addr"])]
    return beats


def _count_addresses(
    m: Module, channel: str, beats: BurstState, asked: Mapping[str, Signal]
) -> None:
    """Add the counter `beats.address`, which gives the address of each beat of an AXI4 burst.

    From beat to beat, address bits in the mask `changes` count up and the others stay. The mask is
    0 for a constant address (FIXED), the bytes of the burst less 1 for an address that wraps
    (WRAP), and all ones for an incrementing address. `asked` has the request of the next burst: its
    address, identifier, length, size of a beat, and kind. `channel`, "aw" or "ar", is a prefix for
    the names of signals.
    """
    bits = min(len(beats.address), PAGE_BITS)
    size = Signal(bits, name=f"{channel}_size", reset_less=True)
    changes = Signal(bits, name=f"{channel}_changes", reset_less=True)
    first, kind = (Const(1, 1) << asked["size"])[:bits], asked["burst"]
    all_bytes = resize(asked["len"] << asked["size"], bits)
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


class QueueOutput(NamedTuple):
    """Output of a queue of words that wait until the master of the bus accepts them.

    Parameters
    ----------
    valid : Signal
        High if the queue has a word.
    word : Value
        The first word.
    room : Value
        High if the queue can reserve room for one more word, so that an access may begin.
    """

    valid: Signal
    word: Value
    room: Value


def add_queue(
    m: Module, name: str, *, depth: int, announced: Value, comes: Value, word: Value, ready: Value
) -> QueueOutput:
    """Add a queue of words in a memory, and return its output.

    A word is the result of an access, such as a read. The word is announced when the access begins;
    the queue then reserves room for it. When the access ends, the word comes. So the pipeline of
    the access never has to stop.

    Parameters
    ----------
    m : Module
        The module of the windows.
    name : str
        Prefix of the names of signals and memory.
    depth : int
        Words of the queue.
    announced : Value
        High to reserve room for a word that will come; allowed only while `QueueOutput.room` is
        high.
    comes : Value
        High in the cycle in which an announced word comes.
    word : Value
        The word that comes.
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
    return QueueOutput(valid, shown, expected != depth)


class CollectedFlit(NamedTuple):
    """A flit that is collected from one beat of an AXI4 write, or from several narrow beats.

    Parameters
    ----------
    flit : Signal
        The bytes so far, one cycle after the beat.
    whole : Value
        High if this beat completes the flit.
    lost : Value
        High if this beat belongs to another flit, and an earlier beat of the same burst left an
        incomplete flit, whose bytes are lost.
    """

    flit: Signal
    whole: Value
    lost: Value


def collect_flit(
    m: Module, width: int, *, take: Value, ends: Value, place: Value, data: Value, strobes: Value
) -> CollectedFlit:
    """Add registers that collect the bytes of a flit from beats of AXI4 writes; return the flit.

    Bytes of a beat above the width of a flit are padding, and need not be written.

    Parameters
    ----------
    m : Module
        The module of the windows.
    width : int
        Bits of a flit.
    take : Value
        High for a beat whose bytes are collected.
    ends : Value
        High for the last beat of a burst.
    place : Value
        The flit to which the beat belongs: its byte address, without the bits within a flit.
    data, strobes : Value
        Data of the beat, and a bit for each byte that is to be written.
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
    return CollectedFlit(flit, brings & now.all(), lost)


class Windows(Leaf):
    """Module that executes AXI4 bursts: writes to the send window, reads of the receive window.

    A window is a range of bus addresses for the memories of the nodes. A *beat* is here one
    transfer of a burst, and a *flit* one word of the host port.

    - A cycle executes one beat.
    - Beats of writes and reads take turns if both wait, because the host port has one address.
    - Answers have the order of bursts. The answer to a write comes when its words are in memory.
    - A beat at an unmapped address, or during a run, is answered with an error (SLVERR).
    - A flit is written when all its bytes have arrived, in one beat or in several. The bytes of an
      incomplete flit are lost when a beat of another flit arrives. If this beat belongs to the same
      burst, the burst is answered with an error; the answer to any other burst is not affected.

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
            sort_inputs_first(
                members_of_ports(burst_ports(register_map.address_bits, register_map.flit_bytes))
                | {"start": In(1), "busy": In(1), "host_rdata": In(width)}
                | {f"host_{name}": Out(bits) for name, bits in host.items()}
            )
        )

    def elaborate(self, platform: object) -> Module:
        """Build the hardware of write bursts and of read bursts, and the arbiter between both."""
        m = Module()
        take, turn, asked = Signal(name="take"), Signal(name="turn"), Signal(name="asked")
        write = self._add_writes(m, take)
        read, room = self._add_reads(m, asked)
        wanted = read.active & room
        m.d.comb += [
            self.s_axi_wready.eq(write.active & (~wanted | turn)),
            take.eq(self.s_axi_wready & self.input_value("s_axi_wvalid")),
            asked.eq(wanted & ~take),
            write.step.eq(take),
            read.step.eq(asked),
        ]
        m.d.sync += turn.eq(~take)
        at = self._window_address(Mux(take, write.address, read.address))
        m.d.sync += [
            self.host_node.eq(at.node),
            self.host_addr.eq(Cat(at.flit, at.quarter[1])),
        ]
        return m

    def _window_address(self, address: Value) -> WindowAddress:
        """Split a byte address into its fields, such as node and flit.

        The field `part`, the number of a bus word in its flit, is 0, because a beat moves a whole
        flit.
        """
        byte_bits = (BYTES - 1).bit_length() + self._map.word_select_bits
        words = Cat(Const(0, self._map.word_select_bits), address[byte_bits:])
        return WindowAddress.from_bus_address(self._map, words)

    def _add_writes(self, m: Module, take: Value) -> BurstState:
        """Add the hardware that executes write bursts; return the state of the current burst.

        It collects flits, writes them by the host port, and answers each burst when its flits are
        in memory. `take` is high in a cycle that executes a beat of a write.
        """
        room, strobes = Signal(name="room_for_writes"), self.input_value("s_axi_wstrb")
        beats = add_burst_counter(m, self, "aw", room=room)
        at = self._window_address(beats.address)
        place = beats.address[(self._map.flit_bytes - 1).bit_length() :]
        open_now = ~self.input_value("start") & ~self.input_value("busy")
        served = at.is_accessible(Const(1, 1)) & open_now
        held = collect_flit(m, self._width, take=take & served, ends=take & beats.last, place=place,
                        data=self.input_value("s_axi_wdata"), strobes=strobes)  # fmt: skip
        m.d.sync += self.host_we.eq(take & held.whole & served)
        # The write reaches the host port one cycle after the beat, and a start in that later cycle
        # still closes the port. So the error, too, is decided in that later cycle.
        takes, last = (
            delay_pulse(m, take, 1, name="took"),
            delay_value(m, beats.last, 1, "took_last"),
        )
        wrong = delay_value(m, strobes.any() & (~served | held.lost), 1, "took_wrong")
        failed, failing = Signal(name="failed"), Signal(name="failing")
        m.d.comb += failing.eq(failed | wrong | (self.host_we & ~open_now))
        with m.If(takes):
            m.d.sync += failed.eq(failing & ~last)
        m.d.comb += self.host_wdata.eq(held.flit[: self._width])
        latency, master = self._write_latency, delay_value(m, beats.master, 1, "took_of")
        queue = add_queue(
            m, "answers", depth=WRITE_ANSWERS, announced=beats.begins,
            comes=delay_pulse(m, takes & last, latency - 1, name="answered"),
            word=delay_value(m, Cat(failing, master), latency - 1, "answer_to"),
            ready=self.input_value("s_axi_bready"),
        )  # fmt: skip
        m.d.comb += [
            room.eq(queue.room),
            self.s_axi_bvalid.eq(queue.valid),
            self.s_axi_bresp.eq(Mux(queue.word[0], SLAVE_ERROR, 0)),
            self.s_axi_bid.eq(queue.word[1:]),
        ]
        return beats

    def _add_reads(self, m: Module, asked: Value) -> tuple[BurstState, Value]:
        """Add the hardware that executes read bursts; return the current burst, and a bit.

        Flits are read through the host port, and wait in a queue until the master accepts them. The
        returned bit is 1 if the queue has room for another flit. `asked` is high in a cycle that
        executes a beat of a read.
        """
        beats = add_burst_counter(m, self, "ar", room=Const(1, 1))
        refused = ~self._window_address(beats.address).is_accessible(
            Const(0, 1)
        ) | self.input_value("busy")
        latency = 1 + self._read_latency
        of = delay_value(m, Cat(refused, beats.last, beats.master), latency, "read_of")
        word = Cat(of[0] | self.input_value("busy"), of[1:], self.input_value("host_rdata"))
        queue = add_queue(
            m, "words", depth=1 << (latency + TURNAROUND - 1).bit_length(), announced=asked,
            comes=delay_pulse(m, asked, latency, name="read"), word=word,
            ready=self.input_value("s_axi_rready"),
        )  # fmt: skip
        m.d.comb += [
            self.s_axi_rvalid.eq(queue.valid),
            self.s_axi_rresp.eq(Mux(queue.word[0], SLAVE_ERROR, 0)),
            self.s_axi_rlast.eq(queue.word[1]),
            self.s_axi_rid.eq(queue.word[2 : 2 + ID_BITS]),
            self.s_axi_rdata.eq(queue.word[2 + ID_BITS :]),
        ]
        return beats, queue.room
