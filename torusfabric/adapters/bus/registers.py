"""`Registers`: the module that executes bus accesses, one at a time.

An *access* is a read or a write of one *bus word* of 32 bits. A *flit* is here one word of the host
port; if it is wider, it consists of several bus words. A bridge presents an access to a register,
to a window, or to the *load port*, the port by which loaded tables are written.
`Registers` executes the access in these states. An access to a register takes the states IDLE,
CHECK, CARRY OUT and DONE:

=========  =====================================================================================
state      cycle
=========  =====================================================================================
IDLE       waits for `access`, and samples it
CHECK      decodes the address into registered flags, so that decoding is no critical path
CARRY OUT  reads or writes a register, starts an access of the host port, or sets the error
START      pulses `start`; only for a write of 1 to the register `start`
STARTED    sets the error unless `busy` was low in START and is high now: only then a run began
WAIT       waits until a word is read or in memory; returns to IDLE if the bridge gives up
DONE       asserts `access_done`
=========  =====================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ...contract.registers import BYTES, DATA_BITS, Access, Field, Register, RegisterMap
from ...rtl.memories import choose_value
from ...rtl.netlist import Leaf
from .ports import access_members, sort_inputs_first

__all__ = ["PartialFlit", "Registers", "WindowAddress"]

#: First value of the counter of WAIT after a write to the load port. The access then waits one more
#: cycle than this, so that the tables have the word before the next access.
LOAD_WAIT_CYCLES = 1


class WindowAddress(NamedTuple):
    """The fields of an address that counts bus words of 32 bits, as a window uses them.

    A window is a range of addresses through which the bus reaches the words of all nodes. A *flit*
    is here one word of the host port.

    A flit that is wider than 32 bits has several bus words, here called its *parts*. Addresses are
    reserved for a number of parts that is a power of two::

        | quarter | node | flit | part |
                  |<-- place -->|

    Parameters
    ----------
    register_map : RegisterMap
        The addresses of registers and windows.
    quarter : Value
        Number of the quarter of the address space: 0 registers, 1 send window, 2 receive window,
        3 load port of the tables.
    node, flit : Value
        Number of the node, and of the flit among the flits that the window has for this node.
    part : Value
        Number of the bus word in its flit.
    place : Value
        Node and flit together: the address of a flit without the part.
    """

    register_map: RegisterMap
    quarter: Value
    node: Value
    flit: Value
    part: Value
    place: Value

    @classmethod
    def from_bus_address(cls, register_map: RegisterMap, address: Value) -> WindowAddress:
        """Split an address into quarter, node, flit and part.

        `address` counts bus words of 32 bits from the first register. `register_map` gives the bits
        of each field.
        """
        part_bits, quarter_bits = register_map.word_select_bits, register_map.quarter_bits
        place = address[part_bits:quarter_bits]
        flit, node = place[: register_map.flit_bits], place[register_map.flit_bits :]
        part, quarter = address[:part_bits], address[quarter_bits:]
        return cls(register_map, quarter, node, flit, part, place)

    def is_accessible(self, write: Value) -> Value:
        """Return a bit that is 1 if the bus may access the addressed word in this direction.

        `write` is 1 for a write: the word must be in the send window. It is 0 for a read: the word
        must be in the receive window.
        """
        send, receive, *_ = self.register_map.windows
        return (
            (self.node < send.nodes)
            & (self.part < self.register_map.parts)
            & (
                (self.quarter == 1) & write & (self.flit < send.flits)
                | (self.quarter == 2) & ~write & (self.flit < receive.flits)
            )
        )


class PartialFlit(NamedTuple):
    """Registers that collect a flit which is written as several bus words, lowest word first.

    A *flit* is here one word of the host port, a bus word has 32 bits.

    Parameters
    ----------
    at : WindowAddress
        Address of the current bus word.
    data : Value
        The current bus word.
    held : tuple of Signal
        Registers for all bus words of a flit but the last.
    held_place : Signal
        Address of the flit whose words are in `held`: numbers of its node and of the flit.
    expected : Signal
        Number, within the flit, of the bus word that has to be written next.
    """

    at: WindowAddress
    data: Value
    held: tuple[Signal, ...]
    held_place: Signal
    expected: Signal

    @classmethod
    def from_bus_word(cls, at: WindowAddress, data: Value) -> PartialFlit:
        """Make registers that collect a flit from bus words.

        `data` is the current bus word, and `at` its address.
        """
        parts = at.register_map.parts
        held = tuple(Signal(DATA_BITS, name=f"held_{k}") for k in range(parts - 1))
        place = Signal(len(at.place), name="held_place")
        return cls(at, data, held, place, Signal(range(parts), name="next_part"))

    @property
    def is_expected(self) -> Value:
        """A bit: 1 if the current bus word begins a flit, or continues the one collected."""
        if not self.held:
            return Const(1)
        part = self.at.part
        return (part == 0) | ((part == self.expected) & (self.at.place == self.held_place))

    @property
    def is_last(self) -> Value:
        """A bit: 1 if the current bus word is the last of its flit."""
        return self.at.part == len(self.held) if self.held else Const(1)

    @property
    def whole_flit(self) -> Value:
        """The collected bus words, then the current one: the whole flit if `is_last` is 1."""
        return Cat(*self.held, self.data)

    def store_word(self, m: Module) -> None:
        """Store the current bus word, and expect the next one of its flit."""
        if not self.held:
            return
        for k, held in enumerate(self.held):
            with m.If(self.at.part == k):
                m.d.sync += held.eq(self.data)
        m.d.sync += [self.held_place.eq(self.at.place), self.expected.eq(self.at.part + 1)]


class Registers(Leaf):
    """Module that executes accesses to registers, windows and the load port, one after another.

    An access is a read or a write of one bus word of 32 bits, which a bridge presents. A window is
    a range of addresses for the memories of the nodes. A *flit* is here one word of the host port.

    The bridge holds `access` and the other inputs of an access until `access_done`, which is high
    for one cycle. There are windows only if `inputs` has the host port (`host_we`). There is a load
    port, by which loaded tables are written, only if `inputs` has `load_we`.

    - A read of a window is done when the word is valid, a write when the word is in memory, so that
      no access overtakes another. While a run is under way both end immediately, with an error.
    - A flit of several bus words is written lowest word first, with no write to another flit in
      between. The write of its last word writes the flit. Words of a flit can be read in any order.
    - A *strobe* is a bit of a write for each byte of the word: 1 if the byte is to be written. A
      write with all strobes at 1 writes the word. With all at 0 it does nothing; any other write is
      an error.
    - A start that begins no run, and an access to an unmapped address, are errors.

    Parameters
    ----------
    register_map : RegisterMap
        The addresses of registers and windows.
    inputs, outputs : mapping of str to int
        Widths in bits of the ports of the front behind the bus (a host port or streams), by name.
        Directions are those of the front: this module drives the `inputs`.
    read_latency, write_latency : int
        Clock edges of a read, and of a write, at the host port.

    Members
    -------
    access, access_write, access_address, access_strobes, access_data : In
        The access, held by the bridge; an address counts bus words.
    access_done, access_error, access_word : Out
        End of the access, its error flag, and the word read.
    irq : Out(1)
        The interrupt: high while an enabled interrupt is pending.
    ..
        One member for each entry of `inputs` and `outputs`, in the opposite direction.
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
            sort_inputs_first(
                access_members(register_map.address_bits)
                | {name: In(width) for name, width in outputs.items()}
                | {"irq": Out(1)}
                | {name: Out(width, init=resets.get(name, 0)) for name, width in inputs.items()}
            )
        )

    def elaborate(self, platform: object) -> Module:
        """Build the state machine that executes accesses, and the interrupt."""
        m = Module()
        idle = Signal(name="idle")
        given = self._sample_access(m, idle)
        write = given["access_write"]
        at = WindowAddress.from_bus_address(self._map, given["access_address"])
        parts = PartialFlit.from_bus_word(at, given["access_data"])
        left = Signal(range(max(self._read_latency, self._write_latency, 1)), name="left")
        refused = Signal(name="refused")
        checked = self._decode_access(m, given, at, parts)
        if self._hosts:
            m.d.comb += [
                self.host_node.eq(at.node),
                self.host_addr.eq(Cat(at.flit, at.quarter[1])),
                self.host_wdata.eq(parts.whole_flit),
            ]
        if self._loads:
            first = given["access_address"][: self._map.quarter_bits] == 0
            m.d.comb += [self.load_first.eq(first), self.load_data.eq(given["access_data"])]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += idle.eq(1)
                with m.If(self.input_value("access")):
                    m.next = "CHECK"
            with m.State("CHECK"):
                m.next = "CARRY OUT"
            with m.State("CARRY OUT"):
                m.next = "DONE"
                self._execute(m, given, checked, parts, left)
            if "start" in self._inputs:
                with m.State("START"):
                    m.d.comb += self.start.eq(1)
                    m.d.sync += refused.eq(self.input_value("busy"))
                    m.next = "STARTED"
                with m.State("STARTED"):
                    m.d.sync += self.access_error.eq(refused | ~self.input_value("busy"))
                    m.next = "DONE"
            if self._hosts or self._loads:
                with m.State("WAIT"):
                    m.d.sync += left.eq(left - 1)
                    with m.If(~self.input_value("access")):
                        m.next = "IDLE"
                    with m.Elif(left == 0):
                        if self._hosts:
                            read = self.input_value("host_rdata")
                            starts = range(0, len(read), DATA_BITS)
                            word = choose_value([read[k : k + DATA_BITS] for k in starts], at.part)
                            m.d.sync += self.access_word.eq(Mux(write, 0, word))
                        m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += self.access_done.eq(1)
                m.next = "IDLE"
        self._add_interrupt(m)
        return m

    def _sample_access(self, m: Module, idle: Value) -> dict[str, Signal]:
        """Add registers that sample the inputs of an access while `idle` is 1; return them by name.

        The key is the name of the input, such as ``access_write``. Why registers: a path from a pin
        of the bus then ends in a register, with no decoder before it.
        """
        given = {}
        for name, member in access_members(self._map.address_bits).items():
            if member.flow is In:
                given[name] = Signal(member.shape, name=f"{name}_given")
                with m.If(idle):
                    m.d.sync += given[name].eq(self.input_value(name))
        return given

    def _decode_access(
        self, m: Module, given: Mapping[str, Signal], at: WindowAddress, parts: PartialFlit
    ) -> dict[str, Signal]:
        """Decode the sampled access `given`; return registers with flags, by name.

        - ``whole``, ``torn``: 1 for a write in which all strobes are 1, or some but not all.
        - ``hits``: bit k is 1 if the access has the address of register k.
        - ``hit``: 1 if the access has the address of a register.
        - ``fixed``: 1 if this register can only be read.
        - ``reads``, ``writes``: 1 for a read or write of a word of a window that is allowed now: no
          run is under way, and a write is to the expected part of a flit. Only with a host port.
        - ``loads``: 1 for a write to a word of the load window, by which loaded tables are filled.
          Only if the fabric has such tables.

        Why so many flags: a flag is a function of few bits, and the next state one of few flags.

        A strobe is a bit of a write for each byte. `at` has the fields of the address, `parts` the
        flit that is collected from several bus words.
        """
        write, within = given["access_write"], given["access_address"][: self._map.quarter_bits]
        places = [register.offset // BYTES for register in self._map.registers]
        strobes, registers = given["access_strobes"], at.quarter == 0
        hits = [registers & (within == place) for place in places]
        found = {
            "whole": write & strobes.all(),
            "torn": write & strobes.any() & ~strobes.all(),
            "hits": Cat(*hits),
            "hit": registers & reduce(or_, (within == place for place in places)),
            "fixed": registers & reduce(or_, (
                within == place
                for place, register in zip(places, self._map.registers, strict=True)
                if register.access is Access.READ
            )),
        }  # fmt: skip
        if self._hosts:
            serves = at.is_accessible(write) & ~self.input_value("busy")
            found["reads"] = serves & ~write
            found["writes"] = serves & write & parts.is_expected
        if self._loads:
            there = (at.quarter == 3) & (within < self._map.window("load").flits)
            found["loads"] = there & write
        checked = {name: Signal(len(value), name=name) for name, value in found.items()}
        m.d.sync += [checked[name].eq(value) for name, value in found.items()]
        return checked

    def _execute(
        self,
        m: Module,
        given: Mapping[str, Signal],
        checked: Mapping[str, Signal],
        parts: PartialFlit,
        left: Signal,
    ) -> None:
        """Add the state of the machine in which the sampled access begins, or ends in an error.

        `given` has the sampled inputs of the access, and `checked` the flags of `_decode_access`.
        `parts` is the flit that is collected from several bus words. An access to a window takes
        several cycles: their number is written to the counter `left`.
        """
        write, whole = given["access_write"], checked["whole"]
        served = reduce(or_, (checked[name] for name in ("hit", "reads", "writes", "loads")
                              if name in checked))  # fmt: skip
        refused = (~write & ~served) | (whole & (~served | checked["fixed"]))
        m.d.sync += self.access_error.eq(checked["torn"] | refused)
        self._access_registers(m, checked["hits"], whole, given["access_data"])
        if self._loads:
            with m.If(checked["loads"] & whole):
                m.d.comb += self.load_we.eq(1)
                m.d.sync += left.eq(LOAD_WAIT_CYCLES)
                m.next = "WAIT"
        if not self._hosts:
            return
        with m.If(checked["reads"]):
            # `host_addr` has been valid since CHECK, one cycle before this one.
            m.d.sync += left.eq(self._read_latency - 2)
            m.next = "WAIT"
        with m.If(checked["writes"] & whole):
            parts.store_word(m)
            with m.If(parts.is_last):
                m.d.comb += self.host_we.eq(1)
                m.d.sync += left.eq(self._write_latency - 1)
                m.next = "WAIT"

    def _access_registers(self, m: Module, hits: Value, write: Value, data: Value) -> None:
        """Execute an access to a register: output its value, and for a write change it.

        `hits` has one bit for each register; that of the addressed register is 1. `write` is 1 for
        a write of `data` with all strobes.
        """
        registers = self._map.registers
        words = [
            Mux(hits[k], self._register_value(register), 0) for k, register in enumerate(registers)
        ]
        m.d.sync += self.access_word.eq(reduce(or_, words))
        with m.If(write):
            for k, register in enumerate(registers):
                with m.If(hits[k]):
                    self._write_register(m, register, data)

    def _register_value(self, register: Register) -> Value:
        """Return the word that the bus reads from a register; 0 if it can only be written."""
        if register.access is Access.WRITE:
            return Const(0)
        bits: list[Value] = []
        for field in register.fields:
            bits += [Const(0, field.low - len(Cat(*bits))), self._field_value(register, field)]
        return Cat(*bits)

    def _write_register(self, m: Module, register: Register, data: Value) -> None:
        """Execute a write of `data` to a register, depending on the `Access` that it allows.

        - `READ`: nothing. The access ends in an error.
        - `WRITE`: each field drives its port for one cycle; but a 1 in the field that drives the
          port `start` leads to the state START.
        - `CLEAR`: a 1 clears the field.
        - `READ_WRITE`: each field takes its value.
        """
        for field in register.fields if register.access is not Access.READ else ():
            value = data[field.low : field.low + field.width]
            if field.port == "start":
                with m.If(value):
                    m.next = "START"
            elif register.access is Access.WRITE:
                m.d.comb += getattr(self, field.port).eq(value)
            elif register.access is Access.CLEAR:
                with m.If(value):
                    m.d.sync += self._field_value(register, field).eq(0)
            else:
                m.d.sync += self._field_value(register, field).eq(value)

    def _field_value(self, register: Register, field: Field) -> Value:
        """Return the signal, or the constant, whose value a field of `register` has.

        It is a port of the host port or stream hardware behind the bus, a register of this module,
        or a constant.
        """
        if field.port in self._inputs:
            return getattr(self, field.port)
        if field.port:
            return self.input_value(field.port)
        own = {"interrupt_enable": self._enable, "interrupt_pending": self._pending}
        return own.get(register.name, Const(field.reset, field.width))

    def _add_interrupt(self, m: Module) -> None:
        """Add the interrupt: at the end of a run (rising edge of `done`) it becomes pending.

        The output `irq` is high while the interrupt is pending and enabled. If a run ends in the
        cycle in which software clears the pending bit, the bit stays set, so that software misses
        no end of a run.
        """
        before = Signal(name="before")
        m.d.sync += before.eq(self.input_value("done"))
        with m.If(self.input_value("done") & ~before):
            m.d.sync += self._pending.eq(1)
        m.d.comb += self.irq.eq(self._pending & self._enable)
