"""The sequencer: the one controller that steps all nodes of a core through the program.

Counters are a cycle ahead of their slot (`Slots`), since they address ROMs whose rows are there in
the slot. From then on a signal is delayed until it has to leave for the nodes, `DISTRIBUTION`
cycles before it counts there.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib.wiring import In, Member, Out

from ...program.timing import DISTRIBUTION
from ..memories import Columns as RomColumns
from ..memories import choose, constant_at
from ..modules import Leaf, delayed, pulsed
from .rows import Delays, Rows, later
from .slots import Chosen, Slots

if TYPE_CHECKING:
    from ...topology import IntArray
    from ..operator_unit import OperatorUnit
    from .places import Columns
    from .run_port import RunPort

__all__ = ["RunControl", "Sequencer", "row_bits", "signal_widths"]


def row_bits(rows: Rows) -> int:
    """Return the bits of the number of a row."""
    return max((rows.count - 1).bit_length(), 1)


def signal_widths(rows: Rows, columns: Columns) -> dict[str, int]:
    """Return the widths of the signals that the sequencer sends to all nodes.

    Word counters lie side by side, each in as many bits as the widest has, and so do rows.
    """
    words = columns.word_bits
    found = {
        columns.address_name([number], number): bits
        for number, bits in enumerate(columns.address_bits)
    }
    found |= {
        "columns": len(columns.bits),
        "counters": len(words) * max(words, default=0),
        "valids": len(columns.valids),
        "rows": len(columns.rows) * row_bits(rows),
    }
    return {name: width for name, width in found.items() if width}


class RunControl(Leaf):
    """Takes starts, and shows the state of runs: what sequencers have in common.

    Parameters
    ----------
    members : dict of str to Member
        Members beside those of the run port.
    shares : bool
        True if nodes have to know when a run uses their memories.
    asked : bool
        True if a shared memory port reads by addresses of the sequencer.
    """

    def __init__(
        self,
        port: RunPort,
        unit: OperatorUnit | None,
        members: dict[str, Member],
        *,
        shares: bool,
        asked: bool = False,
    ) -> None:
        self._port, self._unit = port, unit
        found: dict[str, Member] = {name: In(bits) for name, bits in port.inputs.items()}
        found |= {name: Out(bits) for name, bits in port.outputs.items()}
        found |= {
            "node_busy": Out(int(shares)),
            "operator_code": Out(unit.bits if unit else 0),
            "node_section": Out(port.inputs.get("section", 0)),
        }
        super().__init__(found | members)
        self._node_busy: Signal | None = None
        if shares:
            self._node_busy = self.node_busy
        elif asked:
            self._node_busy = Signal(name="node_busy")
        if port.lead:
            self.idle = Signal(init=1, name="idle")
        self._accepted = Signal(name="accepted")
        self._waits: Value = self._accepted

    @cached_property
    def _m(self) -> Module:
        """The module that is built."""
        return Module()

    def elaborate(self, platform: object) -> Elaboratable:
        """Return the sequencer; it is built once, however often it is asked for."""
        return self._built

    @cached_property
    def _built(self) -> Elaboratable:
        """The sequencer."""
        raise NotImplementedError

    def _ended(self, stages: Value, early: int) -> Value:
        """Return a signal that is high some cycles before the last one of a run."""
        raise NotImplementedError

    # The start

    def _accept(self) -> Value:
        """Hold what a start chooses; return a signal that is high when the run begins."""
        m, names, accepted = self._m, self._port.inputs, self._accepted
        free = self.idle if self._port.lead else ~self.busy
        m.d.comb += accepted.eq(self.value("start") & free)
        with m.If(accepted):
            for name, held in (("entry", "last_entry"), ("root", "last_root"),
                               ("section", "node_section")):  # fmt: skip
                if name in names:
                    m.d.sync += getattr(self, held).eq(self.value(name))
            if self._unit and self._unit.bits:
                codes = [Const(code, self._unit.bits) for code in self._unit.codes]
                m.d.sync += self.operator_code.eq(choose(codes, self.value("operation")))
        if "node_root" in self.signature.members:
            m.d.comb += self.node_root.eq(self.last_root)
        if not self._port.hold:
            return accepted
        held, waits = Signal(name="held"), Signal(name="waits")
        m.d.comb += waits.eq(accepted | held)
        m.d.sync += held.eq(waits & self.value("settling"))
        self._waits = waits
        return waits & ~self.value("settling")

    def _show_state(self, stages: Value, last: Value) -> None:
        """Show whether a run is under way, and its cycles.

        A run that begins in the last cycle of another is shown a cycle later, so that the end of
        that one is seen.
        """
        m, accepted, begun = self._m, self._waits, 0
        if self._port.lead:
            followed = Signal(name="followed")
            m.d.sync += followed.eq(accepted & last)
            accepted, begun = (accepted & ~last) | followed, followed
            m.d.sync += self.ending.eq(self._ended(stages, 2))
            m.d.sync += self.idle.eq((self.idle | self.ending) & ~self._accepted)
            m.d.comb += self.ends.eq(self._ended(stages, self._port.lead))
        # A longer chain of carries than is needed would limit the clock.
        cycles = self.cycles[: self._port.cycles.bit_length()]
        with m.If(accepted):
            m.d.sync += [self.busy.eq(1), self.done.eq(0), cycles.eq(begun)]
        with m.Elif(self.busy):
            m.d.sync += cycles.eq(cycles + 1)
            with m.If(last):
                m.d.sync += [self.busy.eq(0), self.done.eq(1)]
        if self._node_busy is None:
            return
        # As late as may be: words that were written just before are on their way.
        with m.If(self._ended(stages, DISTRIBUTION)):
            m.d.sync += self._node_busy.eq(0)
        with m.Elif(stages[1]):
            m.d.sync += self._node_busy.eq(1)


class Sequencer(RunControl):
    """Steps through the rows and flits of a program, and counts the cycles.

    Members
    -------
    start, entry, last, root, operation, section, settling, reset : In
        See `RunPort`.
    idle_address : In
        The address by which a shared memory port reads.
    idle, ending, ends, busy, done, cycles, round, last_entry, last_root : Out
        See `RunPort`.
    node_busy : Out(1)
        High while memories are given addresses of the run; left out where no node has to know.
    operator_code, node_root, node_section : Out
        The control bits of the operator, the root and the section of a run, if there is a choice.
    address_N, read_N, columns, counters, valids, rows : Out
        See `Columns` of `places`.
    """

    def __init__(
        self,
        rows: Rows,
        port: RunPort,
        columns: Columns,
        unit: OperatorUnit | None,
        *,
        by_root: bool,
        shares: bool,
    ) -> None:
        self._rows, self._columns = rows, columns
        asked = [columns.address_bits[number] for number in columns.asked]
        self._timings = [form.timing for form in rows.program.forms]
        members: dict[str, Member] = {"idle_address": In(max(asked, default=0))}
        members["node_root"] = Out(port.inputs.get("root", 0) * by_root)
        members |= {name: Out(bits) for name, bits in signal_widths(rows, columns).items()}
        super().__init__(port, unit, members, shares=shares, asked=bool(asked))
        self._clears: Value | None = None
        self._lines: dict[tuple[str, Delays], list[Value]] = {}
        self._form: Value = Const(0, 1)

    @cached_property
    def _built(self) -> Elaboratable:
        """The sequencer."""
        m, rows, program = self._m, self._rows, self._rows.program
        if rows.several:
            self._form = self.last_entry
        begins = self._accept()
        (setup,) = {timing.run_setup for timing in self._timings}
        starting = [begins]
        for _ in range(setup):
            starting.append(pulsed(m, starting[-1], 1, name="starting"))
        inputs = self.signature.members
        early = Chosen(
            *(self.value(name) if name in inputs else None for name in ("entry", "last"))
        )
        load = self._accepted if setup < 2 else starting[setup - 1]
        chosen = Chosen(self._form if setup != 1 or early.form is None else early.form, early.last)
        slots = self._slots = Slots(rows, self._form, any_length=program.any_length)
        slots.build(m, starting[setup], load, chosen)
        stages = self._stages(Value.cast(starting[setup] | slots.running))
        last = Signal(name="last_cycle")
        m.d.comb += last.eq(self._ended(stages, 0))
        self._show_state(stages, last)
        self._lines = {("row", ()): [slots.row], ("valid", ()): [stages[0] & ~slots.pausing]}
        # No strobe of a run reaches nodes after its end, where other forms have longer delays.
        self._clears = self._ended(stages, DISTRIBUTION) if rows.several else None
        self.send()
        if "round" in self._port.outputs:
            start = constant_at(rows.starts.tolist(), self._form)
            m.d.sync += self.round.eq(slots.row - delayed(m, start, 1))
        return ResetInserter(self.value("reset"))(m) if self._port.resets else m

    # The state of the run

    def _stages(self, goes_on: Value) -> Value:
        """Return bits that say: a slot follows, is under way, and was 1, 2, .. cycles ago."""
        m = self._m
        most = max(timing.drain for timing in self._timings)
        delays = [max(delays) - DISTRIBUTION for delays in self._columns.valids]
        stages = Signal(max([most + 1, 2, *delays]), name="stages")
        m.d.sync += stages.eq(Cat(goes_on, stages))
        if self._rows.several:
            # Nothing of a run shows in the next, which may be of a form with longer delays.
            with m.If(self._ended(Cat(goes_on, stages), 0)):
                m.d.sync += stages.eq(0)
        return Cat(goes_on, stages)

    def _ended(self, stages: Value, early: int) -> Value:
        """Return a signal that is high some cycles before the last one of a run.

        It is not high before the last slot, of which nobody knows that it is the last.
        """
        ages = [timing.drain - min(early, timing.drain) for timing in self._timings]
        ended = {age: stages[age + 1] & ~stages[age] for age in ages}
        return choose([ended[age] for age in ages], self._form)

    # Signals to the nodes

    def _line(self, name: str, age: int) -> Value:
        """Return a signal of the slot, `age` cycles after the counters show it."""
        line = self._lines[name, ()]
        while len(line) <= age:
            stage = Signal(len(line[-1]), name=f"{name}_d{len(line)}", reset_less=name != "valid")
            self._m.d.sync += stage.eq(line[-1])
            if name == "valid" and self._clears is not None:
                with self._m.If(self._clears):
                    self._m.d.sync += stage.eq(0)
            line.append(stage)
        return line[age]

    def _aged(self, name: str, ages: Delays) -> Value:
        """Return a signal of the slot, by as many cycles later as the form says."""
        if len({*ages}) == 1:
            return self._line(name, ages[0])
        # The choice is made a cycle before: the nodes are far away.
        if min(ages) > 0:
            chosen = choose([self._line(name, age - 1) for age in ages], self._form)
            return delayed(self._m, chosen, 1, name)
        return choose([self._line(name, age) for age in ages], self._form)

    def send(self) -> None:
        """Send everything that nodes are given, `DISTRIBUTION` cycles before it counts."""
        m, columns = self._m, self._columns
        word_stride = max(columns.word_bits, default=0)
        roms: dict[Delays, RomColumns] = {}

        def read(ages: Delays, values: IntArray) -> Value:
            """Return a value that is there a cycle after the row has an age."""
            if ages not in roms:
                roms[ages] = RomColumns(self._aged("row", ages))
            return roms[ages].read(values)

        for number, bit in enumerate(columns.bits):
            ages = later(bit.delays, -DISTRIBUTION)
            m.d.comb += self.columns[number].eq(read(ages, np.maximum(bit.values, 0)))
        for number, (first, delays, pitch, _) in enumerate(columns.addresses):
            ages = later(delays, -DISTRIBUTION - 1)
            address = read(ages, np.maximum(first, 0))
            word = self._word(later(ages, 1), pitch)
            if word is not None:
                address = address + word
            held: Value = Signal(
                columns.address_bits[number], name=f"held_{number}", reset_less=True
            )
            m.d.sync += held.eq(address)
            if number in columns.asked:
                assert self._node_busy is not None
                held = Mux(self._node_busy, held, self.value("idle_address"))
            name = columns.address_name([number], number)
            m.d.comb += getattr(self, name).eq(held)
        for number, (delays, pitch) in enumerate(columns.words):
            found = self._word(later(delays, 1 - DISTRIBUTION), pitch)
            value = Const(0) if found is None else found
            m.d.comb += self.counters.word_select(number, word_stride).eq(value)
        for number, delays in enumerate(columns.valids):
            ages = later(delays, 1 - DISTRIBUTION)
            m.d.comb += self.valids[number].eq(self._aged("valid", ages))
        for number, delays in enumerate(columns.rows):
            ages = later(delays, 1 - DISTRIBUTION)
            m.d.comb += self.rows.word_select(number, row_bits(self._rows)).eq(
                self._aged("row", ages)
            )
        for number, table in enumerate(roms.values()):
            table.build(m, f"table_{number}", alone=self.alone)

    def _word(self, ages: Delays, pitch: Delays) -> Value | None:
        """Return the word counter times the pitch, or None if rows have one word."""
        most = self._rows.most_word(pitch)
        if not most:
            return None
        name = self._counter(pitch)
        return self._aged(name, ages)

    def _counter(self, pitch: Delays) -> str:
        """Return the name of the counter that counts by a pitch."""
        name = "word" if {*pitch} == {1} else "word_by_" + "_".join(map(str, pitch))
        if (name, ()) not in self._lines:
            word = self._slots.word
            if name != "word":
                steps = [word * step for step in pitch]
                word = choose(steps, self._form) if len({*pitch}) > 1 else steps[0]
            self._lines[name, ()] = [word]
        return name
