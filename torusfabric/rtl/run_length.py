"""The length of a run: what the sequencer keeps of it.

A message of L flits in C chunks makes blocks of n = ceil(L / C) flits, or of n = R * ceil(L / RC)
where they go to several chunks by beats of R, a power of two. Addresses leave room for N
flits a block, so that from the last flit of a block to the first of the next the address grows by
N - (n - 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Const, Module, Mux, Signal, Value

from ..program.timing import MODE_SETUP, RUN_SETUP
from .lengths import Lengths, last_of_block
from .memories import address_width, choose, constant_at
from .place import Loops

__all__ = ["RunLength", "hold_length"]

assert (RUN_SETUP, MODE_SETUP) == (1, 1), "a register holds what a run follows, another the form"


@dataclass(frozen=True, eq=False)
class RunLength:
    """What follows from the length, and the form, of the run under way.

    Parameters
    ----------
    form : Value
        The form of the run, a cycle after it is accepted.
    last : Signal
        The number of the last flit of a block.
    single : Signal
        Whether blocks have but one.
    next_single : Value
        The same, as soon as it is found out: what that register holds after the cycle.
    skip : Signal
        From the address of the last flit of a block to that of the first of the next.
    idle : Signal
        Cycles of a row besides those of its blocks, where rows have a least duration.
    never_idle : Signal
        Whether there are none.
    """

    form: Value
    last: Signal
    single: Signal
    next_single: Value
    skip: Signal
    idle: Signal
    never_idle: Signal

    def constant(self, values: Sequence[int]) -> Value:
        """The constant that belongs to the form."""
        return constant_at(values, self.form)


def hold_length(
    m: Module, lengths: Lengths, loops: Loops, length: Value, form: Value | None, begin: Value
) -> RunLength:
    """Add registers of what follows from the length, and the form, of a run.

    They are there a cycle after the run is accepted, and one more if there are several forms.

    Parameters
    ----------
    form : Value or None
        Of several.
    begin : Value
        High in the cycle in which a run is accepted.
    """
    before, settled, held_form = (length - 1)[: lengths.bits], begin, Const(0, 1)
    if form is not None:
        # Some form is known before the first run, too, for simulators with four states.
        held_form = Signal(len(form), name="run_form")
        held = Signal(len(before), name="flits_before", reset_less=True)
        with m.If(begin):
            m.d.sync += [held_form.eq(form), held.eq(before)]
        before, settled = held, Const(1)
    quotients = {cut: last_of_block(before, *cut) for cut in dict.fromkeys(lengths.cuts)}
    last = choose(
        [
            Const(loop.flits - 1) if loop.padded else quotients[cut]
            for loop, cut in zip(loops.loops, lengths.cuts, strict=True)
        ],
        held_form,
    )
    leasts, most = [loop.least for loop in loops.loops], max(lengths.blocks)
    single = Signal(name="single_flit", reset_less=True)
    run = RunLength(
        form=held_form,
        last=Signal(address_width(most), reset_less=True, name="last"),
        single=single,
        next_single=Mux(settled, last == 0, single),
        skip=Signal(range(most + 1), reset_less=True, name="skip"),
        idle=Signal(range(max(*leasts, 2)), reset_less=True, name="idle"),
        never_idle=Signal(name="never_idle", reset_less=True),
    )
    with m.If(settled):
        m.d.sync += [run.last.eq(last), single.eq(run.next_single)]
        m.d.sync += run.skip.eq(run.constant(lengths.blocks) - last)
        if max(leasts) > 1:
            rests = [
                Mux(last < least - 1, least - 1 - last, 0) if least > 1 else Const(0)
                for least in leasts
            ]
            idle = choose(rests, held_form)
            m.d.sync += [run.idle.eq(idle), run.never_idle.eq(idle == 0)]
    return run
