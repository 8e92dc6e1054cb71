"""Registers and windows: carries out one access of the bus after another."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ...contract.registers import BYTES, DATA_BITS, Access, Field, Register, RegisterMap
from ...rtl.memories import choose
from ...rtl.netlist import Leaf
from .ports import access_members, inputs_first

__all__ = ["FlitParts", "Registers", "WindowAddress"]

#: Cycles less one that a write of a word of an image waits, so that the next access meets its work.
SETTLED = 1


class WindowAddress(NamedTuple):
    """An address of a bus word, taken apart: quarter, node, flit and part, from the top.

    Parameters
    ----------
    part : Value
        The number of the bus word within the flit.
    place : Value
        Node and flit.
    """

    register_map: RegisterMap
    quarter: Value
    node: Value
    flit: Value
    part: Value
    place: Value

    @classmethod
    def of(cls, register_map: RegisterMap, address: Value) -> WindowAddress:
        """The parts of an address."""
        part_bits, quarter_bits = register_map.part_bits, register_map.quarter_bits
        place = address[part_bits:quarter_bits]
        flit, node = place[: register_map.flit_bits], place[register_map.flit_bits :]
        part, quarter = address[:part_bits], address[quarter_bits:]
        return cls(register_map, quarter, node, flit, part, place)

    def serves(self, write: Value) -> Value:
        """Whether there is such a word, and it is one to be written or read."""
        send, receive, *_ = self.register_map.windows
        return (
            (self.node < send.nodes)
            & (self.part < self.register_map.parts)
            & (
                (self.quarter == 1) & write & (self.flit < send.flits)
                | (self.quarter == 2) & ~write & (self.flit < receive.flits)
            )
        )


class FlitParts(NamedTuple):
    """The bus words of a flit that is being written; low word first.

    Parameters
    ----------
    at : WindowAddress
        Of the bus word that is written now.
    held : tuple of Signal
        Those that were before it.
    held_place, expected : Signal
        Where they belong, and the number of the next.
    """

    at: WindowAddress
    data: Value
    held: tuple[Signal, ...]
    held_place: Signal
    expected: Signal

    @classmethod
    def of(cls, at: WindowAddress, data: Value) -> FlitParts:
        """Those before a bus word."""
        parts = at.register_map.parts
        held = tuple(Signal(DATA_BITS, name=f"held_{k}") for k in range(parts - 1))
        place = Signal(len(at.place), name="held_place")
        return cls(at, data, held, place, Signal(range(parts), name="next_part"))

    @property
    def fits(self) -> Value:
        """Whether it is the first of a flit, or the next of the flit before."""
        if not self.held:
            return Const(1)
        part = self.at.part
        return (part == 0) | ((part == self.expected) & (self.at.place == self.held_place))

    @property
    def last(self) -> Value:
        """Whether it is the last of a flit."""
        return self.at.part == len(self.held) if self.held else Const(1)

    @property
    def flit(self) -> Value:
        """The whole flit, if it is."""
        return Cat(*self.held, self.data)

    def take(self, m: Module) -> None:
        """Hold the word, and expect the next."""
        if not self.held:
            return
        for k, held in enumerate(self.held):
            with m.If(self.at.part == k):
                m.d.sync += held.eq(self.data)
        m.d.sync += [self.held_place.eq(self.at.place), self.expected.eq(self.at.part + 1)]


class Registers(Leaf):
    """Carries out accesses to registers and to the memories of the nodes, one after another.

    Without inputs of a host port, or of what loads tables, its windows are not there.

    `access` and what belongs to it are held until `access_done`, which is high for one cycle.

    - A read of a window is done when the word is there, a write when it is in memory, so that no
      access overtakes another. While a run is under way both end at once, with an error.
    - A flit of several bus words is written low word first, with no write to another flit between;
      the last one writes it. They are read in any order.
    - Writes are of whole words; one without any strobe does nothing. A start that begins no run,
      and an access that the map does not have, end with an error.

    Parameters
    ----------
    inputs, outputs : mapping of str to int
        The ports of the fabric, and their widths.
    read_latency, write_latency : int
        Edges that a read takes, and a write.

    Members
    -------
    access, access_write, access_address, access_strobes, access_data : In
        The access; an address counts bus words.
    access_done, access_error, access_word : Out
        Its end.
    irq : Out(1)
        The interrupt: high while one is pending that is enabled.
    ..
        The ports of the fabric, the other way round.
    """

    def __init__(
        self,
        register_map: RegisterMap,
        *,
        inputs: Mapping[str, int],
        outputs: Mapping[str, int],
        read_latency: int,
        write_latency: int,
    ) -> None:
        self._map, self._inputs = register_map, inputs
        self._hosts, self._loads = ("host_we" in inputs), ("load_we" in inputs)
        self._read_latency, self._write_latency = read_latency, write_latency
        self._enable, self._pending = Signal(name="enable"), Signal(name="_pending")
        fields = [field for register in register_map.registers for field in register.fields]
        resets = {field.port: field.reset for field in fields if field.port}
        super().__init__(
            inputs_first(
                access_members(register_map.address_bits)
                | {name: In(width) for name, width in outputs.items()}
                | {"irq": Out(1)}
                | {name: Out(width, init=resets.get(name, 0)) for name, width in inputs.items()}
            )
        )

    def elaborate(self, platform: object) -> Module:
        """Build the states of an access: it is taken, checked, carried out, and ends."""
        m = Module()
        idle = Signal(name="idle")
        given = self._given(m, idle)
        write = given["access_write"]
        at = WindowAddress.of(self._map, given["access_address"])
        parts = FlitParts.of(at, given["access_data"])
        left = Signal(range(max(self._read_latency, self._write_latency, 1)), name="left")
        refused = Signal(name="refused")
        checked = self._checked(m, given, at, parts)
        if self._hosts:
            m.d.comb += [
                self.host_node.eq(at.node),
                self.host_addr.eq(Cat(at.flit, at.quarter[1])),
                self.host_wdata.eq(parts.flit),
            ]
        if self._loads:
            first = given["access_address"][: self._map.quarter_bits] == 0
            m.d.comb += [self.load_first.eq(first), self.load_data.eq(given["access_data"])]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += idle.eq(1)
                with m.If(self.value("access")):
                    m.next = "CHECK"
            with m.State("CHECK"):
                m.next = "CARRY OUT"
            with m.State("CARRY OUT"):
                m.next = "DONE"
                self._carry_out(m, given, checked, parts, left)
            if "start" in self._inputs:
                with m.State("START"):
                    m.d.comb += self.start.eq(1)
                    m.d.sync += refused.eq(self.value("busy"))
                    m.next = "STARTED"
                with m.State("STARTED"):
                    m.d.sync += self.access_error.eq(refused | ~self.value("busy"))
                    m.next = "DONE"
            if self._hosts or self._loads:
                with m.State("WAIT"):
                    m.d.sync += left.eq(left - 1)
                    with m.If(~self.value("access")):
                        m.next = "IDLE"
                    with m.Elif(left == 0):
                        if self._hosts:
                            read = self.value("host_rdata")
                            starts = range(0, len(read), DATA_BITS)
                            word = choose([read[k : k + DATA_BITS] for k in starts], at.part)
                            m.d.sync += self.access_word.eq(Mux(write, 0, word))
                        m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += self.access_done.eq(1)
                m.next = "IDLE"
        self._interrupt(m)
        return m

    def _given(self, m: Module, idle: Value) -> dict[str, Signal]:
        """What the access is, from the cycle after it came: paths from the bus end here."""
        given = {}
        for name, member in access_members(self._map.address_bits).items():
            if member.flow is In:
                given[name] = Signal(member.shape, name=f"{name}_given")
                with m.If(idle):
                    m.d.sync += given[name].eq(self.value(name))
        return given

    def _checked(
        self, m: Module, given: Mapping[str, Signal], at: WindowAddress, parts: FlitParts
    ) -> dict[str, Signal]:
        """What an access asks for, yet a cycle later.

        ``partial``: a write of not all bytes; ``hits``: bit k for register k; ``serves``, if there
        is a host port: there is a place in a window, and it may be written or read now; ``loads``,
        if tables are loaded: it is a word of an image.
        """
        write, within = given["access_write"], given["access_address"][: self._map.quarter_bits]
        places = [register.offset // BYTES for register in self._map.registers]
        found = {
            "partial": write & ~given["access_strobes"].all(),
            "hits": Cat((at.quarter == 0) & (within == place) for place in places),
        }
        if self._hosts:
            found["serves"] = at.serves(write) & ~self.value("busy") & (~write | parts.fits)
        if self._loads:
            there = (at.quarter == 3) & (within < self._map.window("load").flits)
            found["loads"] = there & write
        checked = {name: Signal(len(value), name=name) for name, value in found.items()}
        m.d.sync += [checked[name].eq(value) for name, value in found.items()]
        return checked

    def _carry_out(
        self,
        m: Module,
        given: Mapping[str, Signal],
        checked: Mapping[str, Signal],
        parts: FlitParts,
        left: Signal,
    ) -> None:
        """Do what an access asks for, or end it with an error."""
        write, hits = given["access_write"], checked["hits"]
        m.d.sync += [self.access_error.eq(0), self.access_word.eq(0)]
        with m.If(checked["partial"]):
            m.d.sync += self.access_error.eq(given["access_strobes"].any())
        with m.Elif(hits.any()):
            self._access_registers(m, hits, write, given["access_data"])
        if self._loads:
            with m.Elif(checked["loads"]):
                m.d.comb += self.load_we.eq(1)
                m.d.sync += left.eq(SETTLED)
                m.next = "WAIT"
        if not self._hosts:
            with m.Else():
                m.d.sync += self.access_error.eq(1)
            return
        with m.Elif(~checked["serves"]):
            m.d.sync += self.access_error.eq(1)
        with m.Elif(~write):
            # The host port has the address since the cycle before.
            m.d.sync += left.eq(self._read_latency - 2)
            m.next = "WAIT"
        with m.Else():
            parts.take(m)
            with m.If(parts.last):
                m.d.comb += self.host_we.eq(1)
                m.d.sync += left.eq(self._write_latency - 1)
                m.next = "WAIT"

    def _access_registers(self, m: Module, hits: Value, write: Value, data: Value) -> None:
        """Read and write the register that is hit."""
        registers = self._map.registers
        words = [Mux(hits[k], self._read(register), 0) for k, register in enumerate(registers)]
        m.d.sync += self.access_word.eq(reduce(or_, words))
        with m.If(write):
            for k, register in enumerate(registers):
                with m.If(hits[k]):
                    self._write(m, register, data)

    def _read(self, register: Register) -> Value:
        """What a register reads as."""
        if register.access is Access.WRITE:
            return Const(0)
        bits: list[Value] = []
        for field in register.fields:
            bits += [Const(0, field.low - len(Cat(*bits))), self._stored(register, field)]
        return Cat(*bits)

    def _write(self, m: Module, register: Register, data: Value) -> None:
        """Carry out what is written into a register."""
        if register.access is Access.READ:
            m.d.sync += self.access_error.eq(1)
            return
        for field in register.fields:
            value = data[field.low : field.low + field.width]
            if field.port == "start":
                with m.If(value):
                    m.next = "START"
            elif register.access is Access.WRITE:
                m.d.comb += getattr(self, field.port).eq(value)
            elif register.access is Access.CLEAR:
                with m.If(value):
                    m.d.sync += self._stored(register, field).eq(0)
            else:
                m.d.sync += self._stored(register, field).eq(value)

    def _stored(self, register: Register, field: Field) -> Value:
        """Where the bits of a field are."""
        if field.port in self._inputs:
            return getattr(self, field.port)
        if field.port:
            return self.value(field.port)
        own = {"interrupt_enable": self._enable, "interrupt_pending": self._pending}
        return own.get(register.name, Const(field.reset, field.width))

    def _interrupt(self, m: Module) -> None:
        """Note the end of a run; an end counts even while one is being cleared."""
        before = Signal(name="before")
        m.d.sync += before.eq(self.value("done"))
        with m.If(self.value("done") & ~before):
            m.d.sync += self._pending.eq(1)
        m.d.comb += self.irq.eq(self._pending & self._enable)
