"""`StreamControl`: the module that starts a run as soon as every node is ready.

The control stands between the readiness tree and `Commands` on one side, and the run port of the
core on the other. Messages with a fault are *dropped*: the control announces begin and end of an
empty run to the nodes, and does not start the core.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from amaranth.hdl import Const, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib.wiring import In, Member, Out

from ...program import Program
from ...rtl.lengths import last_of_form
from ...rtl.memories import address_width
from ...rtl.modules import Leaf
from ...rtl.run_choices import ERROR_BITS, RunChoices, RunError
from .engine import EngineShape
from .loader import BAD_DESTINATION, BAD_LENGTH

__all__ = ["StreamControl"]


class StreamControl(Leaf):
    """Module that starts runs of the core, and drops messages with a fault.

    Parameters
    ----------
    program : Program
        The program of the core.
    round_trip : int
        Cycles from the start of a run until the readiness of the nodes for the next run arrives.
    shape : EngineShape
        Parameters of the loaders.
    flits : int, optional
        Flits of the longest block that any loadable program may have; by default the longest block
        of `program`.
    others : mapping of str to Member
        Further members, for a subclass.

    Members
    -------
    ready, good, bad, last : In
        From the readiness tree: every node is ready, no message has a fault, the faults, and the
        number of the last flit of a packet.
    busy, idle, ending, ends, last_entry : In
        Outputs of the run port.
    may_begin, wanted, barrier : In
        From `Commands`: a run may begin, the length of the next run in flits (0 for any), and the
        next run is a barrier, which ends as soon as it begins.
    start, section, last_flit : Out
        Inputs of the run port; `last_flit` is the number of the last flit of a block.
    clear : Out(1)
        Reset of the nodes.
    run_begins, run_ends : Out(1)
        High for a cycle when a run begins, and `LEAD` cycles before the last cycle of a run, so
        that the signal is at the nodes in time.
    run_over : Out(1)
        High for a cycle when a run has ended, for `Commands`.
    run_empty, run_last : Out
        One field for the last run in each section: high if the run was dropped, and the number of
        the last flit of its packets.
    error : Out
        A `RunError`: the reason why the last run was dropped, or 0.
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
        self._length_bits = shape.most_flits.bit_length() if last_bits else 0
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
                "wanted": In(self._length_bits if commanded else 0),
                "barrier": In(int(program.barrier)),
                "start": Out(1),
                "section": Out(sections.bits),
                "last_flit": Out(address_width(max(most, 2)) if last_bits else 0),
                "clear": Out(1),
                "run_begins": Out(1),
                "run_ends": Out(1),
                "run_over": Out(int(commanded)),
                "run_empty": Out(sections.count),
                "run_last": Out(sections.count * last_bits),
                "error": Out(ERROR_BITS),
            }
            | dict(others)
        )

    def elaborate(self, platform: object) -> Module:
        """Build the decision, and the signals about runs for the nodes."""
        m, bits = Module(), self._shape.length_bits
        # After a reset, too, the readiness of nodes is valid only after `round_trip` cycles.
        wait = Signal(range(self._round_trip + 1), name="left_to_wait", init=self._round_trip)
        # High if the core accepts a run in this cycle. Computed one cycle early and registered, off
        # the critical path.
        is_open = Signal(name="is_open")
        other = self._other_length()
        barrier = self.value("barrier") if self._program.barrier else Const(0)
        told = self.value("bad")
        lengths, destinations = told[BAD_LENGTH] | other, told[BAD_DESTINATION]
        allowed = self.value("may_begin") if self._shape.facts.commanded else Const(1)
        may, fine, go = Signal(name="may"), Signal(name="fine"), Signal(name="go")
        # Two registers delay the end of a dropped run, so that `run_empty` reaches nodes before.
        drops, over = Signal(name="drops"), Signal(name="over")
        m.d.comb += [
            may.eq(self.value("ready") & is_open & allowed),
            fine.eq(self.value("good") & ~other & ~barrier),
            self.start.eq(may & fine),
            # A dropped run, or a barrier, waits until the run under way has ended.
            go.eq(may & (fine | ~self.value("busy"))),
            self.run_begins.eq(go),
            self.run_ends.eq(self.value("ends") | over),
            self.clear.eq(ResetSignal("sync", allow_reset_less=True)),
        ]
        m.d.sync += [drops.eq(go & ~fine), over.eq(drops)]
        if self._shape.facts.commanded:
            was_busy = Signal(name="was_busy")
            m.d.sync += was_busy.eq(self.value("busy"))
            m.d.comb += self.run_over.eq((was_busy & ~self.value("busy")) | over)
        with m.If(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        idle_next = (self.value("idle") | self.value("ending")) & ~go
        m.d.sync += is_open.eq(idle_next & (wait <= 1))
        with m.If(go):
            wrong = Mux(destinations, RunError.DESTINATION, RunError.PACKETS)
            m.d.sync += [
                wait.eq(self._round_trip),
                self.section.eq(self._sections.following(self.section)),
                self.run_empty.bit_select(self.section, 1).eq(lengths | destinations),
                self.error.eq(Mux(lengths | destinations, wrong, RunError.NONE)),
            ]
            if bits:
                m.d.sync += self.run_last.word_select(self.section, bits).eq(self.value("last"))
        if bits:
            m.d.comb += self.last_flit.eq(self._last_flit(m, go))
        return m

    def _other_length(self) -> Value:
        """Return a signal that is high if the length of messages differs from the command's."""
        if not (self._shape.facts.commanded and self._shape.length_bits):
            return Const(0, 1)
        wanted, length = self.value("wanted"), self.value("last") + Const(1)
        return (wanted != 0) & (wanted != length[: self._length_bits])

    def _last_flit(self, m: Module, go: Value) -> Value:
        """Return the last flit of a block; with several forms valid one cycle after the start."""
        last, form = self.value("last"), Const(0, 1)
        if len(self._program.forms) > 1:
            held = Signal(len(last), name="last_before", reset_less=True)
            with m.If(go):
                m.d.sync += held.eq(last)
            last, form = held, self.value("last_entry")
        lengths, loops = RunChoices.of(self._program).lengths, self._program.forms
        assert lengths is not None
        return last_of_form([form.loop for form in loops], lengths.cuts, last, form)
