"""`Requests`: the check of the start of a run in a loaded fabric, and the selection of its entry.

An *entry* is one form of a mode, for one root if runs choose the root. The loaded table `starts`
has a row for each entry, with the starts that the entry serves; the table `modes` has the constants
of each entry, such as its number C of chunks. A start has a mode, a length and, if runs choose the
root, a root. The module compares them with all rows of the table `starts` in parallel, so the
selection takes no cycle.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from ...program.timing import MODE_SETUP, RUN_SETUP
from ...rtl.lengths import Lengths
from ...rtl.memories import address_width
from ...rtl.modules import Leaf, delay_pulse, delay_value
from ...rtl.operator_unit import OperatorUnit
from ...rtl.run_choices import ERROR_BITS, RunChoices, RunError, entry_members, find_entry
from .layout import TableLayout
from .room import Room

__all__ = ["HOST_FIELDS", "Requests", "command_choices", "start_choices", "last_flit_of_block"]

#: Fields of `TableLayout.mode_fields` that the host port needs for the entry of the last run.
HOST_FIELDS = ("chunks", "reciprocal", "first_block", "one_node")


def start_choices(room: Room) -> RunChoices:
    """Return the choices of the start of a run: modes, roots, lengths and operators.

    A loaded fabric accepts as many mode numbers as its tables have space for forms. Later the
    loaded image decides which values of mode, length and root are valid.
    """
    operators, entries = room.parsed_operators(), room.sizes.entries
    unit = OperatorUnit(operators) if operators else None
    # With streams the command unit, rather than the core, selects the entry of a root.
    chosen = room.roots and not room.streams
    root = 1 << address_width(room.nodes) if chosen else None
    lengths = Lengths(room.flits, (1,) * entries)
    several = unit if unit and unit.n_control_bits else None
    return RunChoices((root,) * entries, (True,) * entries, lengths, several)


def command_choices(room: Room) -> dict[str, int]:
    """Return the bits of each field of a command of a fabric with streams, by name.

    They are the inputs of a start, such as ``mode``, and the root. The module `Commands` selects
    the form by them.

    Parameters
    ----------
    room : Room
        Capacity of the fabric. Its nodes decide the bits of the root; without a choice of roots
        there is no such field.
    """
    root = {"root": address_width(room.nodes)} if room.roots else {}
    return start_choices(room).sampled_inputs | root


class Requests(Leaf):
    """Hardware that checks the starts of runs, selects an entry, and starts the core.

    An entry is one form of a mode, for one root if runs choose the root.

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
        High if an image is loaded; a bit for each entry that may run; all rows of the table
        `starts`: see `torusfabric.rtl.run_choices.entry_members`.
    modes : Out
        Mask of the modes that may run.
    form_word : In
        Row of the table `modes` for the entry of the run, valid from the cycle after its start.
    chunks, reciprocal, first_block, one_node : Out
        Fields of `form_word` for the host port, one cycle later.
    """

    def __init__(self, layout: TableLayout) -> None:
        self._layout, self._choices = layout, start_choices(layout.room)
        members = {"start": In(1), "busy": In(1), "form_word": In(layout.mode_fields.size)}
        members |= {name: In(bits) for name, bits in self._choices.sampled_inputs.items()}
        members |= entry_members(layout.start_fields, layout.room.sizes.entries)
        members |= {
            "accepted": Out(1),
            "entry": Out(layout.entry_bits),
            "last": Out(address_width(layout.room.flits)),
            "error": Out(ERROR_BITS),
        }
        super().__init__(
            members | {name: Out(layout.mode_fields[name].width) for name in HOST_FIELDS}
        )

    def elaborate(self, platform: object) -> Module:
        """Build the comparison of a start with all entries, the errors, and the outputs."""
        m, inputs = Module(), self._choices.sampled_inputs
        choices = "mode", "length", "root"
        chosen: dict[str, Value] = {
            name: self.input_value(name) for name in choices if name in inputs
        }
        entry, no_root, missing = find_entry(m, self, self._layout.start_fields, chosen)
        refusals = [
            (RunError.ROOT, no_root),
            (RunError.MODE, missing),
            (RunError.IMAGE, missing & ~self.input_value("loaded")),
            (RunError.BUSY, self.input_value("busy")),
        ]
        accepted = self._choices.check_start(m, self, refusals)
        m.d.comb += [self.accepted.eq(accepted), self.entry.eq(entry)]
        form = View(self._layout.mode_fields, self.input_value("form_word"))
        m.d.sync += [getattr(self, name).eq(form[name]) for name in HOST_FIELDS]
        last = last_flit_of_block(m, self._layout, form, self.input_value("length") - 1, accepted)
        m.d.comb += self.last.eq(last)
        return m


def last_flit_of_block(
    m: Module, layout: TableLayout, form: View, last_of_message: Value, accepted: Value
) -> Value:
    """Return the number of the last flit of a block, given the last flit of the message.

    With C chunks and beat 1 the result is floor(last_of_message / C), a product with the reciprocal
    of C. It is valid from the first *slot* of the run on, the first cycle in which the sequencer
    presents a row and a flit. One cycle earlier the product is not ready yet; the value is then 1
    if the result will be above 0, else 0.

    Parameters
    ----------
    m : Module
        Module to which the logic is added.
    layout : TableLayout
        Fields of the tables.
    form : View
        Row of the table `modes` with the constants of the form, valid from the cycle after the
        start.
    last_of_message : Value
        Number of the last flit of the message, from 0, valid with `accepted`.
    accepted : Value
        High in the cycle of the start.
    """
    bits = layout.room.beat.bit_length() - 1
    before = Signal(address_width(layout.room.flits), name="flits_before", reset_less=True)
    with m.If(accepted):
        m.d.sync += before.eq(last_of_message)
    reciprocal = delay_value(m, form["reciprocal"], 1, "reciprocal_here")
    product, several = (before[bits:] * reciprocal)[layout.reciprocal_shift :], Const(0, 1)
    more = before >= form["chunks"]
    if bits:
        # With several chunks, all blocks consist of whole beats.
        several = form["chunks"] > 1
        more = before.any() | several
    last = Cat(before[:bits] | several.replicate(bits), product)
    last = delay_value(m, last[: len(before)], 1, "last_of_block")
    more = delay_value(m, more, 1, "more_flits")
    go = delay_pulse(m, accepted, RUN_SETUP + MODE_SETUP, name="goes")
    return Mux(go, more, last)
