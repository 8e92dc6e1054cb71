"""The sequencer: the controller that steps all nodes of a core through the program.

It consists of the start and the state of runs (`RunControl`), the counters of rows and words
(`SlotCounters`), ROMs of columns and addresses, and delay lines. A *slot* is a cycle in which the
sequencer presents a row and a word. The timing of a signal that acts at the nodes d cycles after
the slot:

========================= ==============================================================
cycle                     event
========================= ==============================================================
slot - 1                  the counters have the row and the word of the slot
slot                      a ROM that the counters address directly shows the row
slot + d - `DISTRIBUTION` the signal leaves the sequencer
slot + d                  the signal acts at the nodes
========================= ==============================================================

A *row signal* is the number of the current row, delayed by some cycles. A *column* is a bit that
the sequencer sends, with a value in each row.

Delay lines lie in front of the ROMs: all columns with equal delays are read from one ROM, which is
addressed by the delayed row counter.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib.wiring import In, Member, Out

from ...program.timing import DISTRIBUTION
from ..memories import RomColumns as RomColumns
from ..memories import choose_value, constant_at
from ..modules import Leaf, delay_pulse, delay_value
from .rows import Delays, Rows, lengthen_delays
from .slots import FormAndLength, SlotCounters

if TYPE_CHECKING:
    from ...topology import IntArray
    from ..operator_unit import OperatorUnit
    from .places import SequencerSignals
    from .run_port import RunPort

__all__ = ["RunControl", "Sequencer", "row_bits", "signal_widths"]


def row_bits(rows: Rows) -> int:
    """Return the number of bits of a row number, with the rows of all forms; at least 1."""
    return max((rows.n_rows - 1).bit_length(), 1)


def signal_widths(rows: Rows, columns: SequencerSignals) -> dict[str, int]:
    """Return the widths, name -> bits, of the signals that the sequencer sends to all nodes.

    All word counters lie side by side in the net ``counters``, each in as many bits as the widest
    counter has. The delayed row numbers, one for each delay, lie side by side in the net ``rows``.

    Parameters
    ----------
    rows : Rows
        The rows of the program, with the value of each selector, address and enable.
    columns : SequencerSignals
        The signals, after `SequencerSignals.fix_widths`.
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
    """The base class of sequencers: accepts starts, and reports the state of runs.

    Parameters
    ----------
    port : RunPort
        The inputs and outputs by which runs are started and observed.
    unit : OperatorUnit or None
        The unit that combines words, if the program has operators.
    members : dict of str to Member
        Further inputs and outputs of the module, such as those for the nodes.
    shares : bool
        True for the output ``node_busy``, by which nodes switch their memories between the run and
        the memory port.
    asked : bool
        True if a shared memory port reads through addresses of the sequencer.
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
            "operator_code": Out(unit.n_control_bits if unit else 0),
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
        """The Amaranth module that the methods of this class fill."""
        return Module()

    def elaborate(self, platform: object) -> Elaboratable:
        """Return the sequencer. The first call builds it."""
        return self._built_module

    @cached_property
    def _built_module(self) -> Elaboratable:
        """The Amaranth module of the sequencer, with all logic, built at the first access."""
        raise NotImplementedError

    def _end_signal(self, stages: Value, early: int) -> Value:
        """Return a signal that is high `early` cycles before the last cycle of a run.

        `stages` is a shift register that shows in which cycles words move: bit 0 for the next
        cycle, bit 1 for this one, and bit k + 1 for k cycles ago.
        """
        raise NotImplementedError

    # The start

    def _accept_start(self) -> Value:
        """Register the choices of a run, and return a signal that is high when the run begins.

        The registers take the inputs (mode, root and others) in the cycle in which a start is
        accepted.
        """
        m, names, accepted = self._m, self._port.inputs, self._accepted
        free = self.idle if self._port.lead else ~self.busy
        m.d.comb += accepted.eq(self.input_value("start") & free)
        with m.If(accepted):
            for name, held in (("entry", "last_entry"), ("root", "last_root"),
                               ("section", "node_section")):  # fmt: skip
                if name in names:
                    m.d.sync += getattr(self, held).eq(self.input_value(name))
            if self._unit and self._unit.n_control_bits:
                codes = [
                    Const(code, self._unit.n_control_bits) for code in self._unit.operator_codes
                ]
                m.d.sync += self.operator_code.eq(
                    choose_value(codes, self.input_value("operation"))
                )
        if "node_root" in self.signature.members:
            m.d.comb += self.node_root.eq(self.last_root)
        if not self._port.hold:
            return accepted
        held, waits = Signal(name="held"), Signal(name="waits")
        m.d.comb += waits.eq(accepted | held)
        m.d.sync += held.eq(waits & self.input_value("settling"))
        self._waits = waits
        return waits & ~self.input_value("settling")

    def _drive_state_outputs(self, stages: Value, last: Value) -> None:
        """Drive the outputs that show the state of runs: busy, done, cycles and others.

        If a run begins in the last cycle of another, its state appears one cycle later. Why: `done`
        and `cycles` of the ended run must be visible for a cycle.

        `last` is high in the last cycle of a run. `stages` is a shift register that shows in which
        cycles words move: bit 0 for the next cycle, bit 1 for this one.
        """
        m, accepted, begun = self._m, self._waits, 0
        if self._port.lead:
            followed = Signal(name="followed")
            m.d.sync += followed.eq(accepted & last)
            accepted, begun = (accepted & ~last) | followed, followed
            m.d.sync += self.ending.eq(self._end_signal(stages, 2))
            m.d.sync += self.idle.eq((self.idle | self.ending) & ~self._accepted)
            m.d.comb += self.ends.eq(self._end_signal(stages, self._port.lead))
        # The counter has only the bits that the longest run needs: a long carry chain would limit
        # the clock.
        cycles = self.cycles[: self._port.cycles.bit_length()]
        with m.If(accepted):
            m.d.sync += [self.busy.eq(1), self.done.eq(0), cycles.eq(begun)]
        with m.Elif(self.busy):
            m.d.sync += cycles.eq(cycles + 1)
            with m.If(last):
                m.d.sync += [self.busy.eq(0), self.done.eq(1)]
        if self._node_busy is None:
            return
        # `node_busy` rises as late as possible, because words that the host wrote just before the
        # start are still on the path to the memories.
        with m.If(self._end_signal(stages, DISTRIBUTION)):
            m.d.sync += self._node_busy.eq(0)
        with m.Elif(stages[1]):
            m.d.sync += self._node_busy.eq(1)


class Sequencer(RunControl):
    """The sequencer of a fixed program.

    Parameters
    ----------
    rows : Rows
        The rows of the program, with the value of each selector, address and enable.
    port : RunPort
        The inputs and outputs by which runs are started and observed.
    columns : SequencerSignals
        The signals to send to the nodes.
    unit : OperatorUnit or None
        The unit that combines words, if the program has operators.
    by_root : bool
        True if the nodes need the root of the run, because their actions depend on it.
    shares : bool
        True if the sequencer must signal to the nodes when a run uses their memories.

    Members
    -------
    start, entry, last, root, operation, section, settling, reset : In
        See `RunPort`.
    idle_address : In
        The address by which a shared memory port reads.
    idle, ending, ends, busy, done, cycles, round, last_entry, last_root : Out
        See `RunPort`.
    node_busy : Out(1)
        High while memories use the addresses of the run. Absent if no node needs the signal.
    operator_code, node_root, node_section : Out
        The control bits of the operator, the root, and the section of a run, if runs choose these.
    address_N, read_N, columns, counters, valids, rows : Out
        See `SequencerSignals`.
    """

    def __init__(
        self,
        rows: Rows,
        port: RunPort,
        columns: SequencerSignals,
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
    def _built_module(self) -> Elaboratable:
        """The Amaranth module with the logic of the sequencer, built at the first access."""
        m, rows, program = self._m, self._rows, self._rows.program
        if rows.has_several_forms:
            self._form = self.last_entry
        begins = self._accept_start()
        (setup,) = {timing.run_setup for timing in self._timings}
        starting = [begins]
        for _ in range(setup):
            starting.append(delay_pulse(m, starting[-1], 1, name="starting"))
        inputs = self.signature.members
        early = FormAndLength(
            *(self.input_value(name) if name in inputs else None for name in ("entry", "last"))
        )
        load = self._accepted if setup < 2 else starting[setup - 1]
        chosen = FormAndLength(
            self._form if setup != 1 or early.form is None else early.form, early.last
        )
        slots = self._slots = SlotCounters(rows, self._form, any_length=program.any_length)
        slots.add_counters(m, starting[setup], load, chosen)
        stages = self._slot_valid_pipeline(Value.cast(starting[setup] | slots.running))
        last = Signal(name="last_cycle")
        m.d.comb += last.eq(self._end_signal(stages, 0))
        self._drive_state_outputs(stages, last)
        self._lines = {("row", ()): [slots.row], ("valid", ()): [stages[0] & ~slots.pausing]}
        # The end of a run clears its strobes, if one could arrive after it. Why: the enables of
        # stores keep such a strobe from doing harm, but the proof knows enables of rows at rest
        # only in part. With several forms, the delay lines are as long as the longest delay of any
        # form. With one form, a strobe of long paths also follows the words of the last row.
        (first, *_), valids = self._timings, self._columns.valids
        late = rows.has_several_forms or any(first.outlasts(max(delays)) for delays in valids)
        self._clears = self._end_signal(stages, DISTRIBUTION) if late else None
        self.drive_node_signals()
        if "round" in self._port.outputs:
            start = constant_at(rows.starts.tolist(), self._form)
            m.d.sync += self.round.eq(slots.row - delay_value(m, start, 1))
        return ResetInserter(self.input_value("reset"))(m) if self._port.resets else m

    # The state of the run

    def _slot_valid_pipeline(self, goes_on: Value) -> Value:
        """Return a shift register that shows which cycles are slots of a run.

        A slot is a cycle in which the sequencer presents a row and a word. Bit 0 is high if the
        next cycle is a slot, bit 1 if this cycle is one, and bit k + 1 if the cycle k cycles ago
        was one. `goes_on` is bit 0.
        """
        m = self._m
        most = max(timing.drain_cycles for timing in self._timings)
        delays = [max(delays) - DISTRIBUTION for delays in self._columns.valids]
        stages = Signal(max([most + 1, 2, *delays]), name="stages")
        m.d.sync += stages.eq(Cat(goes_on, stages))
        if self._rows.has_several_forms:
            # The end of a run clears the shift register, so that no slot is left over for the next
            # run, which may have longer delays.
            with m.If(self._end_signal(Cat(goes_on, stages), 0)):
                m.d.sync += stages.eq(0)
        return Cat(goes_on, stages)

    def _end_signal(self, stages: Value, early: int) -> Value:
        """Return a signal that is high `early` cycles before the last cycle of a run.

        The signal is never high before the last slot (the last cycle with a row and a word),
        because the sequencer learns only there that no slot follows. If the run ends less than
        `early` cycles after its last slot, the signal is high in the last slot. `stages` is the
        shift register that shows which cycles are slots, from `_slot_valid_pipeline`.
        """
        ages = [timing.drain_cycles - min(early, timing.drain_cycles) for timing in self._timings]
        ended = {age: stages[age + 1] & ~stages[age] for age in ages}
        return choose_value([ended[age] for age in ages], self._form)

    # Signals to the nodes

    def _delay_by_age(self, name: str, age: int) -> Value:
        """Return the counter `name`, such as ``"row"`` or ``"word"``, delayed by `age` cycles.

        Delays of one counter share a chain of registers.
        """
        line = self._lines[name, ()]
        while len(line) <= age:
            stage = Signal(len(line[-1]), name=f"{name}_d{len(line)}", reset_less=name != "valid")
            self._m.d.sync += stage.eq(line[-1])
            if name == "valid" and self._clears is not None:
                with self._m.If(self._clears):
                    self._m.d.sync += stage.eq(0)
            line.append(stage)
        return line[age]

    def _delay_for_form(self, name: str, ages: Delays) -> Value:
        """Return the counter `name`, delayed by ``ages[k]`` cycles in a run of form k."""
        if len({*ages}) == 1:
            return self._delay_by_age(name, ages[0])
        # The multiplexer of ages lies in front of a register, because the path to the nodes is
        # long.
        if min(ages) > 0:
            chosen = choose_value([self._delay_by_age(name, age - 1) for age in ages], self._form)
            return delay_value(self._m, chosen, 1, name)
        return choose_value([self._delay_by_age(name, age) for age in ages], self._form)

    def drive_node_signals(self) -> None:
        """Drive all signals to the nodes, each `DISTRIBUTION` cycles before a node acts on it."""
        m, columns = self._m, self._columns
        word_stride = max(columns.word_bits, default=0)
        roms: dict[Delays, RomColumns] = {}

        def read_column(ages: Delays, values: IntArray) -> Value:
            """Return ``values[row]``, one cycle after the delayed number of the row.

            ``ages[k]`` is the delay of this number for form k.
            """
            if ages not in roms:
                roms[ages] = RomColumns(self._delay_for_form("row", ages))
            return roms[ages].read_column(values)

        for number, bit in enumerate(columns.bits):
            ages = lengthen_delays(bit.delays, -DISTRIBUTION)
            m.d.comb += self.columns[number].eq(read_column(ages, np.maximum(bit.values, 0)))
        for number, (first, delays, pitch, _) in enumerate(columns.addresses):
            ages = lengthen_delays(delays, -DISTRIBUTION - 1)
            address = read_column(ages, np.maximum(first, 0))
            word = self._scaled_word_count(lengthen_delays(ages, 1), pitch)
            if word is not None:
                address = address + word
            held: Value = Signal(
                columns.address_bits[number], name=f"held_{number}", reset_less=True
            )
            m.d.sync += held.eq(address)
            if number in columns.asked:
                assert self._node_busy is not None
                held = Mux(self._node_busy, held, self.input_value("idle_address"))
            name = columns.address_name([number], number)
            m.d.comb += getattr(self, name).eq(held)
        for number, (delays, pitch) in enumerate(columns.words):
            found = self._scaled_word_count(lengthen_delays(delays, 1 - DISTRIBUTION), pitch)
            value = Const(0) if found is None else found
            m.d.comb += self.counters.word_select(number, word_stride).eq(value)
        for number, delays in enumerate(columns.valids):
            ages = lengthen_delays(delays, 1 - DISTRIBUTION)
            m.d.comb += self.valids[number].eq(self._delay_for_form("valid", ages))
        for number, delays in enumerate(columns.rows):
            ages = lengthen_delays(delays, 1 - DISTRIBUTION)
            m.d.comb += self.rows.word_select(number, row_bits(self._rows)).eq(
                self._delay_for_form("row", ages)
            )
        for number, table in enumerate(roms.values()):
            table.build_rom(m, f"table_{number}", alone=self.is_unbound)

    def _scaled_word_count(self, ages: Delays, pitch: Delays) -> Value | None:
        """Return the delayed number of the word times the pitch; None if rows have one word.

        The pitch is the distance between the addresses of successive flits. A run of form k has the
        pitch ``pitch[k]`` and the delay ``ages[k]``.
        """
        most = self._rows.max_word_offset(pitch)
        if not most:
            return None
        name = self._word_counter_name(pitch)
        return self._delay_for_form(name, ages)

    def _word_counter_name(self, pitch: Delays) -> str:
        """Return the name of the counter of words times a pitch, such as ``"word_by_4"``.

        ``pitch[k]`` is the pitch for form k. The counter is added if there is none yet.
        """
        name = "word" if {*pitch} == {1} else "word_by_" + "_".join(map(str, pitch))
        if (name, ()) not in self._lines:
            word = self._slots.word
            if name != "word":
                steps = [word * step for step in pitch]
                word = choose_value(steps, self._form) if len({*pitch}) > 1 else steps[0]
            self._lines[name, ()] = [word]
        return name
