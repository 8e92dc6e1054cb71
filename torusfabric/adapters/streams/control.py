"""`StreamControl`: the module that starts a run as soon as every node is ready.

Its inputs come from the readiness tree, which combines the states of all nodes, and from
`Commands`, which takes a command for each run. It drives the run port of the core (the signals that
start a run and report its state), and tells the loaders and unloaders of all nodes when a run
begins and ends. Loaders write the messages of nodes into memories; unloaders send received words to
the user. Run k uses *section* ``k mod S``, one of S equal parts of each memory.

If the message of any node has a fault, such as a wrong length, the messages of all nodes for this
run are *dropped*: the control reports begin and end of an empty run, and does not start the core.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from amaranth.hdl import Const, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib.wiring import In, Member, Out

from ...program import Program
from ...rtl.lengths import last_flit_of_form
from ...rtl.memories import address_width
from ...rtl.modules import Leaf
from ...rtl.run_choices import ERROR_BITS, RunChoices, RunError
from .engine import EngineShape
from .loader import BAD_DESTINATION, BAD_LENGTH

__all__ = ["StreamControl"]


class StreamControl(Leaf):
    """Module that starts a run of the core as soon as every node is ready.

    If the message of any node has a fault, such as a wrong length, it drops the messages of all
    nodes for this run: it reports begin and end of a run without starting the core.

    Parameters
    ----------
    program : Program
        The program of the core.
    round_trip : int
        Cycles from the begin of a run until the inputs `ready`, `bad` and so on show the states
        that the nodes have after this begin. The readiness tree, which combines the states of all
        nodes, takes these cycles.
    shape : EngineShape
        Parameters of the loaders.
    flits : int, optional
        Flits of the longest block of any program that can be loaded. By default, flits of the
        longest block of `program`.
    others : mapping of str to Member
        Signals that a subclass has in addition to those below.

    Members
    -------
    ready, good : In(1)
        From the readiness tree: `ready` is high if every node is ready, and `good` is high if no
        waiting message has a fault.
    bad, last : In
        From the readiness tree: the two faults (`BAD_LENGTH`, `BAD_DESTINATION`) of any waiting
        message, and the number of the last flit of their packets.
    busy, idle, ending, ends, last_entry : In
        Outputs of the run port; see `torusfabric.rtl.core.run_port`.
    may_begin, wanted, barrier : In
        From `Commands`: a run may begin, the length that the next run must have, if any, and the
        next run is a barrier, which ends as soon as it begins.
    start, section, last_flit : Out
        Inputs of the run port; `last_flit` is the number of the last flit of a block.
    clear : Out(1)
        Reset of the loaders and unloaders of all nodes.
    run_begins : Out(1)
        High for a cycle when a run begins.
    run_ends : Out(1)
        High for a cycle, `LEAD_CYCLES` before the last cycle of a run, so that the nodes have the
        signal in time.
    run_over : Out(1)
        High for a cycle when a run has ended, for `Commands`.
    run_empty, run_last : Out
        Each has a field for each section (one of some equal parts of each memory, which runs use in
        turn), which describes the last run in the section. `run_empty` is high if the run was
        dropped; `run_last` is the number of the last flit of its packets.
    error : Out
        A `RunError`: the reason for which the last run was dropped, or 0.
    """

    def __init__(
        self,
        program: Program,
        round_trip: int,
        shape: EngineShape,
        *,
        flits: int | None = None,
        others: Mapping[str, Member] = MappingProxyType({}),
    ) -> None:
        self._program, self._round_trip, self._shape = program, round_trip, shape
        self._sections = sections = shape.facts.sections
        commanded, last_bits = shape.facts.commanded, shape.length_bits
        most = flits or max(form.loop.flits for form in program.forms)
        wanted_bits = address_width(shape.most_flits) + 1
        forms = 0 if flits else address_width(len(program.forms)) * (len(program.forms) > 1)
        super().__init__(
            {
                "ready": In(1),
                "bad": In(2),
                "good": In(1),
                "last": In(last_bits),
                "busy": In(1),
                "idle": In(1),
                "ending": In(1),
                "ends": In(1),
                "last_entry": In(forms if last_bits else 0),
                "may_begin": In(int(commanded)),
                "wanted": In(wanted_bits if commanded and last_bits else 0),
                "barrier": In(int(program.barrier)),
                "start": Out(1),
                "section": Out(sections.section_number_bits),
                "last_flit": Out(address_width(max(most, 2)) if last_bits else 0),
                "clear": Out(1),
                "run_begins": Out(1),
                "run_ends": Out(1),
                "run_over": Out(int(commanded)),
                "run_empty": Out(sections.n_sections),
                "run_last": Out(sections.n_sections * last_bits),
                "error": Out(ERROR_BITS),
            }
            | dict(others)
        )

    def elaborate(self, platform: object) -> Module:
        """Build the decision to begin or drop a run, and the signals that report it."""
        m, bits = Module(), self._shape.length_bits
        # After a reset, too, the readiness of nodes is valid only after `round_trip` cycles.
        wait = Signal(range(self._round_trip + 1), name="left_to_wait", init=self._round_trip)
        # High if the core accepts a run in this cycle. Computed one cycle early and registered, off
        # the critical path.
        is_open = Signal(name="is_open")
        other = self._has_other_length()
        barrier = self.input_value("barrier") if self._program.barrier else Const(0)
        told = self.input_value("bad")
        lengths, destinations = told[BAD_LENGTH] | other, told[BAD_DESTINATION]
        allowed = self.input_value("may_begin") if self._shape.facts.commanded else Const(1)
        may, fine, go = Signal(name="may"), Signal(name="fine"), Signal(name="go")
        # Two registers delay the end of a dropped run, so that `run_empty` reaches nodes before.
        drops, over = Signal(name="drops"), Signal(name="over")
        m.d.comb += [
            may.eq(self.input_value("ready") & is_open & allowed),
            fine.eq(self.input_value("good") & ~other & ~barrier),
            self.start.eq(may & fine),
            # A dropped run, or a barrier, waits until the run under way has ended.
            go.eq(may & (fine | ~self.input_value("busy"))),
            self.run_begins.eq(go),
            self.run_ends.eq(self.input_value("ends") | over),
            self.clear.eq(ResetSignal("sync", allow_reset_less=True)),
        ]
        m.d.sync += [drops.eq(go & ~fine), over.eq(drops)]
        if self._shape.facts.commanded:
            was_busy = Signal(name="was_busy")
            m.d.sync += was_busy.eq(self.input_value("busy"))
            m.d.comb += self.run_over.eq((was_busy & ~self.input_value("busy")) | over)
        with m.If(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        idle_next = (self.input_value("idle") | self.input_value("ending")) & ~go
        m.d.sync += is_open.eq(idle_next & (wait <= 1))
        with m.If(go):
            wrong = Mux(destinations, RunError.DESTINATION, RunError.PACKETS)
            m.d.sync += [
                wait.eq(self._round_trip),
                self.section.eq(self._sections.next_section(self.section)),
                self.run_empty.bit_select(self.section, 1).eq(lengths | destinations),
                self.error.eq(Mux(lengths | destinations, wrong, RunError.NONE)),
            ]
            if bits:
                m.d.sync += self.run_last.word_select(self.section, bits).eq(
                    self.input_value("last")
                )
        if bits:
            m.d.comb += self.last_flit.eq(self._last_flit(m, go))
        return m

    def _has_other_length(self) -> Value:
        """Return a signal: high if messages lack the length that their command demands."""
        if not (self._shape.facts.commanded and self._shape.length_bits):
            return Const(0, 1)
        wanted = self.input_value("wanted")
        return wanted[-1] & (wanted[:-1] != self.input_value("last"))

    def _last_flit(self, m: Module, go: Value) -> Value:
        """Return a signal with the number, from 0, of the last flit of a block of the next run.

        The number follows from the length of the waiting messages. `go` is high in the cycle in
        which the run begins. With several forms the signal is valid one cycle later, because it
        depends on the form.
        """
        last, form = self.input_value("last"), Const(0, 1)
        if len(self._program.forms) > 1:
            held = Signal(len(last), name="last_before", reset_less=True)
            with m.If(go):
                m.d.sync += held.eq(last)
            last, form = held, self.input_value("last_entry")
        lengths, loops = RunChoices.from_program(self._program).lengths, self._program.forms
        assert lengths is not None
        return last_flit_of_form(
            [form.loop for form in loops], lengths.beats_and_chunks, last, form
        )
