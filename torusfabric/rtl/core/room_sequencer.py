"""The sequencer of a core with writable tables: rows and forms are read from tables.

A *setting* is an entry of a table at the nodes. A row of the sequencer has the number of a setting
for each of these tables. A *slot* is a cycle of a run, in which the sequencer presents one row and
flit.

As in `sequencer`, the counters are one cycle ahead of their slot. An *age* is a number of cycles
after the cycle in which the counters have a row.

A form *streams* (field ``streams``) if words of a row arrive while later rows pass. The sequencer
then sends the store settings of a row later, by the latency of a link minus 1. In a form that reads
late (field ``late``) it also sends the read settings later, by the latency of a link. The sequencer
thus decides these delays for all nodes.
"""

from __future__ import annotations

from functools import cached_property

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib.data import StructLayout, View
from amaranth.lib.wiring import In, Member, Out

from ...program.timing import ADDRESS, DISTRIBUTION, MODE_SETUP, RUN_SETUP, SETTING
from ..modules import delay_pulse, delay_value
from ..operator_unit import OperatorUnit
from .places import SequencerSignals
from .room import RoomRows, SettingTable, duration_fields, entry_layout, row_layout
from .run_port import RunPort
from .sequencer import RunControl, signal_widths

__all__ = ["RoomSequencer"]


class RoomSequencer(RunControl):
    """The sequencer of a core with writable tables.

    Members
    -------
    start, entry, last, operation, section, settling, reset : In
        See `RunPort`. `last` must have its value from the first slot to the end of the run. In the
        cycle before the first slot, another value is allowed if it is 0 exactly when this value is.
    row_address, form_address : Out
        The addresses of the row table and of the form table.
    row_word, form_word : In
        The entries of these tables, see `row_layout` and `entry_layout`.
    setting_select, setting_operand, setting_read, setting_address, setting_store : Out
        The numbers of the settings of the row, which address the tables of nodes.
    address_0 : Out
        The address at which arriving words are stored.
    counters : Out
        Two word counters. The first counts the cycles of a row, or in a form by flit the flits. The
        second is the distance of the present word from the first word of its chunk in the memory of
        sent words, where the chunks of a message are interleaved.
    valids : Out
        Strobes: strobe k is high in a cycle in which words arrive after k + 1 cycles on their path.
    """

    def __init__(
        self,
        rows: RoomRows,
        port: RunPort,
        columns: SequencerSignals,
        unit: OperatorUnit | None,
        *,
        shares: bool,
    ) -> None:
        self._room, self._columns = rows.room, columns
        self._links = rows.room.topology.longest_link
        self._operand_links = rows.links
        self._rows, self._forms = row_layout(rows.room), StructLayout(entry_layout(rows.room))
        members: dict[str, Member] = {
            "row_address": Out(self._forms["first"].width),
            "form_address": Out(port.inputs["entry"]),
            "row_word": In(self._rows.size),
            "form_word": In(self._forms.size),
        }
        members |= {
            name: Out(each.width) for name, each in self._rows if name in self._setting_tables
        }
        members |= {name: Out(bits) for name, bits in signal_widths(rows, columns).items()}
        super().__init__(port, unit, members, shares=shares)

    @property
    def _setting_tables(self) -> dict[str, SettingTable]:
        """The writable tables of the nodes, as a dict: field of the row table -> table.

        The field, for example ``setting_read``, has the number of a row of the table.
        """
        return {f"setting_{table.name.lower()}": table for table in SettingTable}

    @cached_property
    def _built_module(self) -> Elaboratable:
        """The Amaranth module of the sequencer, with all logic, built at the first access."""
        m, begins = self._m, self._accept_start()
        m.d.comb += self.form_address.eq(Mux(begins, self.input_value("entry"), self.last_entry))
        form = View(self._forms, self.input_value("form_word"))
        go = delay_pulse(m, begins, RUN_SETUP + MODE_SETUP, name="goes")
        moves, running = Signal(name="moves"), Signal(name="running")
        m.d.comb += moves.eq(go | running)
        self._form, self._moves = form, moves
        self._valid, self._left = Signal(name="slot"), Signal(len(form["drain"]), name="drains")
        m.d.sync += self._valid.eq(moves)
        with m.If(self._valid):
            m.d.sync += self._left.eq(form["drain"])
        with m.Elif(self._left > 0):
            m.d.sync += self._left.eq(self._left - 1)
        last = Signal(name="last_cycle")
        m.d.comb += last.eq(self._end_signal(Const(0), 0))
        stages = Signal(2, name="stages")
        m.d.comb += [stages[0].eq(moves), stages[1].eq(self._valid)]
        self._drive_state_outputs(stages, last)
        row = self._add_counters(m, running)
        m.d.sync += self.round.eq(row - form["first"])
        return ResetInserter(self.input_value("reset"))(m) if self._port.resets else m

    def _end_signal(self, stages: Value, early: int) -> Value:
        """Return a signal that is high `early` cycles before the last cycle of a run.

        `stages` is not used: it is a shift register that only another class, `Sequencer`, has.
        """
        at_once: Value = Const(0, 1)
        if early:
            at_once = self._valid & ~self._moves & (self._form["drain"] <= early)
        return at_once | (~self._valid & (self._left == 1 + early))

    def _add_counters(self, m: Module, running: Signal) -> Value:
        """Add the counters of rows and of cycles within a row, and return the number of the row.

        A slot is a cycle in which the row counter has the number of a row, and the cycle counter
        the number of a flit. The logic drives `running`, which keeps the counters going: it is high
        from the second slot of a run to the last. In the first slot it is still low, because the
        delayed start pulse keeps them going there.
        """
        form, flits, moves = self._form, self.input_value("last"), self._moves
        said = View(self._rows, self.input_value("row_word"))
        # The output of a table comes late in a cycle. The fields that decide the next row are
        # therefore read with the row before, and kept in registers.
        kept = {
            name: Signal(bits, name=f"its_{name}")
            for name, bits in duration_fields(self._room).items()
        }
        pause, empty, ends = kept.values()
        first, by_flit, least, chunks = (
            delay_value(m, form[name], 1, f"form_{name}")
            for name in ("first", "by_flit", "least", "chunks")
        )
        row = Signal(len(form["first"]), name="row")
        count = Signal(max(len(pause), len(flits), len(least)) + 1, name="count")
        # The chunks of a message are interleaved by beats.
        beat = self._room.beat.bit_length() - 1
        turns = Signal(len(said["at"]) - beat, name="scaled")
        scaled, step = Cat(count[:beat], turns), chunks
        if beat:
            step = Mux(count[:beat].all(), chunks, 0)
        # A row lasts at least `least` cycles, a constant of its form.
        passed, moved = Signal(name="words_passed"), Signal(name="words_pass")
        sent = Mux(empty, count + 1, count - flits)[: len(count)]
        m.d.comb += moved.eq(passed | (sent == pause))
        end_of_row = by_flit | (moved & (count + 1 >= least))
        m.d.sync += passed.eq(moved & moves & ~end_of_row)
        over = ends & end_of_row & (~by_flit | (count == flits))
        after = Signal(len(row), name="row_after")
        m.d.comb += after.eq(row)
        with m.If(~moves):
            m.d.sync += [its.eq(form[name]) for name, its in kept.items()]
            m.d.comb += after.eq(form["first"])
            m.d.sync += [count.eq(0), turns.eq(0), running.eq(0)]
        with m.Else():
            m.d.sync += running.eq(~over)
            with m.If(end_of_row):
                m.d.sync += [its.eq(said[name]) for name, its in kept.items()]
                m.d.comb += after.eq(Mux(ends, first, row + 1))
            with m.If(Mux(by_flit, ends, 1)):
                m.d.sync += [count.eq(count + 1), turns.eq(turns + step)]
            with m.If(end_of_row & ~by_flit):
                m.d.sync += [count.eq(0), turns.eq(0)]
        m.d.sync += row.eq(after)
        m.d.comb += self.row_address.eq(after)
        has_flit = by_flit | (~empty & (count <= flits))
        self._drive_node_signals(m, said, (count, scaled), moves & has_flit)
        return row

    def _drive_node_signals(
        self, m: Module, said: View, words: tuple[Value, Value], flit: Value
    ) -> None:
        """Drive the signals to the nodes, each delayed to the cycle in which the nodes need it.

        `said` is the current entry of the row table. `words` has two numbers for the output
        ``counters``. The first is the number of the present word in its row, or of the flit in a
        form by flit. The second is the distance of the word from the first word of its chunk, in a
        memory in which the chunks of a message are interleaved. `flit` is high in a cycle in which
        the row moves a flit.
        """
        links, form = self._links, self._form
        late = form["late"] if self._room.may_read_late else Const(0, 1)
        streams, (count, scaled) = form["streams"], words

        def delay_by_age(
            value: Value, age: int, name: str, more: Value | None = None, by: int = 0
        ) -> Value:
            """Return `value` delayed by `age` cycles, and `by` cycles more while `more` is high.

            `name` begins the names of the registers.
            """
            if more is None or not by:
                return delay_value(m, value, age, name)
            line = delay_value(m, value, age - 1, name)
            return delay_value(
                m, Mux(more, delay_value(m, line, by, f"{name}_late"), line), 1, f"{name}_at"
            )

        # A table shows a setting one cycle after the node has its number. Behind the tables of
        # addresses there is one more register.
        for name, table in self._setting_tables.items():
            older: tuple[Value | None, int] = (None, 0)
            age = ADDRESS + 1 - DISTRIBUTION
            if table in (SettingTable.READ, SettingTable.ADDRESS):
                age, older = age - 1, (late, links * self._room.may_read_late)
            elif table is SettingTable.OPERAND:
                age += self._operand_links
            elif table is SettingTable.STORE:
                age, older = age + 1, (streams, links - 1)
            m.d.comb += getattr(self, name).eq(delay_by_age(said[name], age, name, *older))
        stride = max(self._columns.word_bits)
        for number, (_, pitch) in enumerate(self._columns.words):
            word = count if pitch[0] else scaled
            shown = delay_by_age(word, ADDRESS + 1 - DISTRIBUTION, f"word_{number}", late,
                         links * self._room.may_read_late)  # fmt: skip
            m.d.comb += self.counters.word_select(number, stride).eq(shown)
        at = delay_by_age(said["at"] + count, SETTING, "stores_at", streams, links - 1)
        m.d.comb += self.address_0.eq(at)
        begins = Signal(name="row_begins")
        opens = delay_value(m, flit, 1, "streaming")
        # The first slot of a row clears the strobes of the row before, unless the form streams.
        m.d.sync += begins.eq(~streams & (count == 0))
        line = [opens]
        while len(line) < SETTING + self._room.sizes.depth:
            later = Signal(name=f"strobe_d{len(line)}")
            m.d.sync += later.eq(Mux(begins, 0, line[-1]) if len(line) > 1 else line[-1])
            line.append(later)
        for number, delays in enumerate(self._columns.valids):
            # The strobe leaves early by `DISTRIBUTION` cycles: it passes two registers.
            m.d.comb += self.valids[number].eq(line[delays[0] - DISTRIBUTION])
