"""Requests: selection of the entry for the start of a run in a loaded fabric.

A start gives a mode, a length and, if roots are chosen, a root. It is compared with the rows of all
entries in parallel, so the selection takes no cycle.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from ...program.timing import MODE_SETUP, RUN_SETUP
from ...rtl.lengths import Lengths
from ...rtl.memories import address_width
from ...rtl.modules import Leaf, delayed, pulsed
from ...rtl.operator_unit import OperatorUnit
from ...rtl.run_choices import ERROR_BITS, RunChoices, RunError, entry_members, found_entry
from .layout import TableLayout
from .room import Room

__all__ = ["FOR_HOST", "Requests", "choices_by_command", "choices_of", "last_flit"]

#: Fields of `TableLayout.mode` for the host port, of the entry of the last run.
FOR_HOST = ("chunks", "reciprocal", "first_block", "one_node")


def choices_of(room: Room) -> RunChoices:
    """Return the inputs that a start may have; the loaded entries decide which values are valid."""
    operators, entries = room.parsed_operators(), room.sizes.entries
    unit = OperatorUnit(operators) if operators else None
    # With streams the command unit, rather than the core, selects the entry of a root.
    chosen = room.roots and not room.streams
    root = 1 << address_width(room.nodes) if chosen else None
    lengths = Lengths(room.flits, (1,) * entries)
    several = unit if unit and unit.bits else None
    return RunChoices((root,) * entries, (True,) * entries, lengths, several)


def choices_by_command(room: Room) -> dict[str, int]:
    """Return the inputs that the commands of a fabric with streams have, with their bits."""
    root = {"root": address_width(room.nodes)} if room.roots else {}
    return choices_of(room).inputs | root


class Requests(Leaf):
    """Hardware that checks the starts of runs, selects an entry, and starts the core.

    Parameters
    ----------
    layout : TableLayout
        Fields of the tables.

    Members
    -------
    start, mode, length, root, operation : In
        Request for a run, and its choices: see `torusfabric.adapters.host.requests.Requests`, also
        for `busy`, `accepted`, `last` and `error`.
    entry : Out
        Number of the selected entry.
    loaded, entries, starts : In
        Loaded state, and all rows of the table of starts: see `entry_members`.
    modes : Out
        Mask of the modes that may run.
    form_word : In
        Row of the table `modes` for the entry of the run, valid from the cycle after its start.
    chunks, reciprocal, first_block, one_node : Out
        Fields of that row for the host port, one cycle later.
    """

    def __init__(self, layout: TableLayout) -> None:
        self._layout, self._choices = layout, choices_of(layout.room)
        members = {"start": In(1), "busy": In(1), "form_word": In(layout.mode.size)}
        members |= {name: In(bits) for name, bits in self._choices.inputs.items()}
        members |= entry_members(layout.start, layout.room.sizes.entries)
        members |= {
            "accepted": Out(1),
            "entry": Out(layout.entry_bits),
            "last": Out(address_width(layout.room.flits)),
            "error": Out(ERROR_BITS),
        }
        super().__init__(members | {name: Out(layout.mode[name].width) for name in FOR_HOST})

    def elaborate(self, platform: object) -> Module:
        """Build the comparison with all entries, the refusals, and the outputs to the core."""
        m, inputs = Module(), self._choices.inputs
        choices = "mode", "length", "root"
        chosen: dict[str, Value] = {name: self.value(name) for name in choices if name in inputs}
        entry, no_root, missing = found_entry(m, self, self._layout.start, chosen)
        refusals = [
            (RunError.ROOT, no_root),
            (RunError.MODE, missing),
            (RunError.IMAGE, missing & ~self.value("loaded")),
            (RunError.BUSY, self.value("busy")),
        ]
        accepted = self._choices.accepted(m, self, refusals)
        m.d.comb += [self.accepted.eq(accepted), self.entry.eq(entry)]
        form = View(self._layout.mode, self.value("form_word"))
        m.d.sync += [getattr(self, name).eq(form[name]) for name in FOR_HOST]
        last = last_flit(m, self._layout, form, self.value("length") - 1, accepted)
        m.d.comb += self.last.eq(last)
        return m


def last_flit(
    m: Module, layout: TableLayout, form: View, last_of_message: Value, accepted: Value
) -> Value:
    """Return the number of the last flit of a block, from that of a message.

    With C chunks and beat 1 it is floor(last_of_message / C), computed with the reciprocal of C.
    The quotient is valid from the first slot of the run on. In the cycle before, the value is only
    1 (the quotient is above 0) or 0, because the product is not ready.

    Parameters
    ----------
    m : Module
        Module to which the logic is added.
    layout : TableLayout
        Fields of the tables.
    form : View
        Row of the table `modes` for the entry, valid from the cycle after the start.
    last_of_message : Value
        Number of the last flit of the message, from 0, valid with `accepted`.
    accepted : Value
        High in the cycle of the start.
    """
    bits = layout.room.beat.bit_length() - 1
    before = Signal(address_width(layout.room.flits), name="flits_before", reset_less=True)
    with m.If(accepted):
        m.d.sync += before.eq(last_of_message)
    reciprocal = delayed(m, form["reciprocal"], 1, "reciprocal_here")
    product, several = (before[bits:] * reciprocal)[layout.reciprocal_shift :], Const(0, 1)
    more = before >= form["chunks"]
    if bits:
        # With several chunks, all blocks consist of whole beats.
        several = form["chunks"] > 1
        more = before.any() | several
    last = Cat(before[:bits] | several.replicate(bits), product)
    last = delayed(m, last[: len(before)], 1, "last_of_block")
    more = delayed(m, more, 1, "more_flits")
    go = pulsed(m, accepted, RUN_SETUP + MODE_SETUP, name="goes")
    return Mux(go, more, last)
