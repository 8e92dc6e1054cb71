"""The control: it starts a run as soon as every node is ready, and drops messages that are no good.

The control stands between nodes and commands on one side, and the run port on the other.
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
    """Starts runs of the core, and drops messages that are no good.

    Parameters
    ----------
    round_trip : int
        Cycles from the start of a run until the readiness of nodes for the next run arrives.
    shape : EngineShape
        The shape of the loaders.
    flits : int, optional
        Flits of the longest block, if the program may be another one.

    Members
    -------
    ready, good, bad, last : In
        High if every node is ready; high if no message has a fault; the faults of messages; and
        the number of the last flit of their packets.
    busy, idle, ending, ends, last_entry : In
        Outputs of the run port.
    may_begin, wanted, barrier : In
        From commands: high if a run may begin; the length of the next run, 0 for any; and high if
        the next run is a barrier, which ends as soon as it begins.
    start, section, last_flit : Out
        Inputs of the run port; `last_flit` is the last flit of a block.
    clear : Out(1)
        The reset, for nodes.
    run_begins, run_ends, run_over : Out(1)
        High for a cycle when a run begins; when one ends, early enough for nodes; and, with
        commands, when one has ended.
    run_empty, run_last : Out
        For the last run in each section: high if it brings nothing, and the number of the last
        flit of its packets.
    error : Out
        Why the last run was not carried out, a `RunError`.
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
        """Build the decision, and the signals that tell nodes of runs."""
        m, bits = Module(), self._shape.length_bits
        # Nodes are reset a cycle later. Their readiness arrives as late as after a run.
        wait = Signal(range(self._round_trip + 1), name="left_to_wait", init=self._round_trip)
        # High if the core accepts a run in this cycle. Registered, so that it is known early.
        is_open = Signal(name="is_open")
        other = self._other_length()
        barrier = self.value("barrier") if self._program.barrier else Const(0)
        told = self.value("bad")
        lengths, destinations = told[BAD_LENGTH] | other, told[BAD_DESTINATION]
        allowed = self.value("may_begin") if self._shape.facts.commanded else Const(1)
        may, fine, go = Signal(name="may"), Signal(name="fine"), Signal(name="go")
        # Why two registers: nodes have to know that a run is empty before they know its end.
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
        """Return a signal that is high if the length differs from that of the command."""
        if not (self._shape.facts.commanded and self._shape.length_bits):
            return Const(0, 1)
        wanted, length = self.value("wanted"), self.value("last") + Const(1)
        return (wanted != 0) & (wanted != length[: self._length_bits])

    def _last_flit(self, m: Module, go: Value) -> Value:
        """Return the number of the last flit of a block."""
        last, form = self.value("last"), Const(0, 1)
        if len(self._program.forms) > 1:
            held = Signal(len(last), name="last_before", reset_less=True)
            with m.If(go):
                m.d.sync += held.eq(last)
            last, form = held, self.value("last_entry")
        lengths, loops = RunChoices.of(self._program).lengths, self._program.forms
        assert lengths is not None
        return last_of_form([form.loop for form in loops], lengths.cuts, last, form)
