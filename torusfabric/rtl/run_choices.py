"""The choices of a run (mode, length, root, operator), and the check of each start.

A start samples the inputs `RunChoices.sampled_inputs`. A choice that cannot be executed is refused
with an error number (`RunError`). `find_form` finds the form of the chosen mode that serves the
chosen length.

*Sampled* inputs are read in the cycle of the start, and may change afterwards. The *driver* of an
input is the signal that it is connected to.

A fabric with writable tables has no fixed set of modes. There `find_entry` searches the loaded
*entries*: each entry says for which mode, length and root it serves.
"""

from __future__ import annotations

import enum
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Member, Out

from ..program import Program
from ..program.mode import Range
from .memories import address_width, choose_value, look_up
from .modules import Leaf

if TYPE_CHECKING:
    from .lengths import Lengths
    from .operator_unit import OperatorUnit

__all__ = ["ERROR_BITS", "RunChoices", "RunError", "entry_members", "find_entry", "find_form"]

#: Bits of `error`.
ERROR_BITS = 4


class RunError(enum.IntEnum):
    """The reason why a start was refused."""

    NONE = 0
    MODE = 1
    ROOT = 2
    LENGTH = 3
    OPERATION = 4
    BUSY = 5
    #: Packets of unequal length, or too long.
    PACKETS = 6
    #: A destination that does not exist, or that has had its packet.
    DESTINATION = 7
    #: The blocks of a network, each in a fabric of its own, were given different choices.
    UNEQUAL_CHOICES = 8
    #: A link between blocks lost something, or is silent.
    LINK = 9
    #: The loaded image is for another fabric, or incomplete.
    IMAGE = 10
    #: Other blocks were not started in time, or the start of one was withdrawn or lost in a reset.
    TIMEOUT = 11
    #: A command packet has fewer or more words than a command.
    COMMAND = 12


@dataclass(frozen=True)
class RunChoices:
    """The choices that the user of a fabric makes for each run, with the allowed values.

    Parameters
    ----------
    roots : tuple of (int or None)
        For each mode, the number of nodes that can be the root; None if the root is fixed.
    combining : tuple of bool
        For each mode, True if the mode combines words.
    lengths : Lengths or None
        The lengths of messages that runs choose from; None if the length is fixed.
    operators : OperatorUnit or None
        The operators that runs choose from; None if there is no choice.
    served : tuple of (tuple of Range)
        For each mode, its forms and the lengths that each serves: ``(Range(1, 0), Range(5, 1))``
        for form 0 from length 1 on, and form 1 from length 5 on.

    Examples
    --------
    Runs choose a length up to 8, and one of 9 roots; both inputs have 4 bits.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "broadcast"), max_flits=8, root="any")
    >>> RunChoices.from_program(program).sampled_inputs
    {'length': 4, 'root': 4}
    """

    roots: tuple[int | None, ...]
    combining: tuple[bool, ...]
    lengths: Lengths | None = None
    operators: OperatorUnit | None = None
    served: tuple[tuple[Range, ...], ...] = ()

    @classmethod
    def from_program(cls, program: Program) -> RunChoices:
        """Return the choices that each run of a program has."""
        modes = program.modes
        unit = lengths = None
        if program.operators:
            from .operator_unit import OperatorUnit

            unit = OperatorUnit(program.operators)
        if program.any_length:
            from .lengths import Lengths

            lengths = Lengths(
                program.flits,
                tuple(form.schedule.chunks for form in program.forms),
                tuple(form.beat for form in program.forms),
            )
        return cls(
            tuple(mode.groups.group_size if mode.any_root else None for mode in modes),
            tuple(bool(mode.operators) for mode in modes),
            lengths,
            unit if unit and unit.n_control_bits else None,
            tuple(mode.numbered_ranges for mode in program.modes),
        )

    @property
    def n_modes(self) -> int:
        """Number of modes."""
        return len(self.roots)

    @property
    def n_roots(self) -> int | None:
        """Number of nodes that can be the root; None if the root is fixed in all modes."""
        return next((count for count in self.roots if count), None)

    @property
    def sampled_inputs(self) -> dict[str, int]:
        """The inputs that are read in the cycle of the start, with the width of each in bits."""
        bits = {
            "mode": address_width(self.n_modes) if self.n_modes > 1 else 0,
            "length": self.lengths.length_bits if self.lengths else 0,
            "root": address_width(self.n_roots) if self.n_roots else 0,
            "operation": self.operators.choice_bits if self.operators else 0,
        }
        return {name: width for name, width in bits.items() if width}

    def form_number(self, value: Callable[[str], Value]) -> Value:
        """Return the number of the form that a run executes, as a signal.

        `value` is a function from the name of an input, ``"mode"`` or ``"length"``, to its signal.
        """
        mode = value("mode") if self.n_modes > 1 else None
        return find_form(self.served, mode, value("length"))

    def refusals(self, value: Callable[[str], Value]) -> list[tuple[RunError, Value]]:
        """Return each reason to refuse a run, with a signal that is high if the reason applies.

        If several reasons apply, the last one is reported. The root and the operator are checked
        only in modes that have a choice of them.

        Parameters
        ----------
        value : function of str -> Value
            Returns the signal of an input, such as ``"mode"``, given its name.
        """
        found: list[tuple[RunError, Value]] = []
        if self.operators and _has_gaps(len(self.operators.operators)):
            unknown = value("operation") >= len(self.operators.operators)
            found.append(
                (RunError.OPERATION, unknown & self._is_mode_marked(value, self.combining))
            )
        if self.lengths:
            wrong = value("length") == 0
            if _has_gaps(self.lengths.most + 1):
                wrong |= value("length") > self.lengths.most
            found.append((RunError.LENGTH, wrong))
        if self.n_roots and _has_gaps(self.n_roots):
            chosen = [count is not None for count in self.roots]
            unknown = value("root") >= self.n_roots
            found.append((RunError.ROOT, unknown & self._is_mode_marked(value, chosen)))
        if _has_gaps(self.n_modes):
            found.append((RunError.MODE, value("mode") >= self.n_modes))
        return found

    def check_start(
        self, m: Module, leaf: Leaf, others: Sequence[tuple[RunError, Value]]
    ) -> Signal:
        """Return a signal that is high in the cycle in which a start is accepted.

        A start is refused if a choice of the run cannot be executed.

        If the module has an output `error`, it shows the reason of a refusal from the next clock
        edge on.

        Parameters
        ----------
        m : Module
            The module that takes the logic.
        leaf : Leaf
            The module that has the inputs of the start.
        others : sequence of (RunError, Value)
            Further reasons to refuse a run, each with a signal that is high if it applies.
        """
        start, refusals = leaf.input_value("start"), [*self.refusals(leaf.input_value), *others]
        wrong, begin = Signal(len(refusals), name="wrong"), Signal(name="begins")
        m.d.comb += wrong.eq(Cat(condition for _, condition in refusals))
        m.d.comb += begin.eq(start & ~wrong.any())
        if "error" in leaf.signature.members:
            # The error is encoded behind the registers. Encoded in front of them, it would share
            # LUTs with the start, and delay the start.
            refused = Signal(len(wrong), name="refused")
            with m.If(start):
                m.d.sync += refused.eq(wrong)
            code: Value = Const(RunError.NONE, ERROR_BITS)
            for (why, _), condition in zip(refusals, refused, strict=True):
                code = Mux(condition, why, code)
            m.d.comb += leaf.error.eq(code)
        return begin

    def _is_mode_marked(self, value: Callable[[str], Value], by_mode: Sequence[bool]) -> Value:
        """Return a signal that is high if the run chooses a mode m with ``by_mode[m]``.

        `value` is a function from the name of an input to its signal.
        """
        if all(by_mode):
            return Const(1)
        return choose_value([Const(int(used), 1) for used in by_mode], value("mode"))


def _has_gaps(count: int) -> bool:
    """Return True if `count` is no power of two: an input can then have an invalid value.

    The input has as many bits as the numbers 0 to `count` - 1 need.
    """
    return bool(count & (count - 1))


#: Up to this number of ranges, the length is compared with each. With more, a table is smaller.
FEW_RANGES = 4


def find_form(served: Sequence[Sequence[Range]], mode: Value | None, length: Value) -> Value:
    """Return the number of the form that a mode uses for a length, as a signal.

    Parameters
    ----------
    served : sequence of (sequence of Range)
        For each mode, its ranges of lengths. ``Range(5, 1)`` means form 1 from length 5 on. Forms
        of all modes are numbered consecutively.
    mode : Value or None
        The mode; None if there is only one.
    length : Value
        Flits of a message.

    Examples
    --------
    Mode 0 has form 0 for up to 4 flits and form 1 for more, and mode 1 always has form 2. The
    result has 2 bits.

    >>> from amaranth.hdl import Signal
    >>> len(find_form([(Range(1, 0), Range(5, 1)), (Range(1, 2),)], Signal(1), Signal(4)))
    2
    """
    bits = address_width(1 + max(form for ranges in served for _, form in ranges))
    reached = {start: length >= start for ranges in served for start, _ in ranges[1:]}
    found: list[Value] = []
    for ranges in served:
        number: Value = Const(ranges[0].form, bits)
        if len(ranges) > FEW_RANGES:
            number = _look_up_form(ranges, length)
        else:
            for start, form in ranges[1:]:
                number = Mux(reached[start], Const(form, bits), number)
        found.append(number)
    return found[0] if mode is None else choose_value(found, mode)


def _look_up_form(ranges: Sequence[Range], length: Value) -> Value:
    """Return the number of the form for a length, as the output of a look-up table.

    `ranges` says for each form of the mode from which length on it is used, see `find_form`. The
    table ends where the last range has begun; longer lengths use its last entry.
    """
    numbers = min(1 << len(length), 2 * ranges[-1].start)
    starts = [start for start, _ in ranges]
    forms = [ranges[max(bisect(starts, number) - 1, 0)].form for number in range(numbers)]
    if numbers == 1 << len(length):
        return look_up(forms, length)
    last = Const(numbers - 1, len(length))
    return look_up(forms, Mux(length > last, last, length))


def entry_members(start: data.StructLayout, entries: int) -> dict[str, Member]:
    """Return the inputs and outputs that a module needs in order to use `find_entry`.

    An *entry* is a program in the tables of the fabric: a form of a mode for one root.

    Inputs: ``starts``, for each entry the mode, root and least length that it serves; ``entries``,
    a bit for each entry that may run; ``loaded``, high if the tables are complete. Output:
    ``modes``, a bit for each mode that may run.

    Parameters
    ----------
    start : StructLayout
        The bit layout of mode, root and least length of an entry.
    entries : int
        Number of entries in the tables.
    """
    given = {"starts": entries * start.size, "entries": entries, "loaded": 1}
    return {name: In(bits) for name, bits in given.items()} | {"modes": Out(entries)}


def find_entry(
    m: Module, leaf: Leaf, start: data.StructLayout, chosen: Mapping[str, Value],
    beyond: Value | None = None,
) -> tuple[Value, Value, Value]:  # fmt: skip
    """Return the entry that serves a start in a fabric with writable tables.

    An entry is a program in these tables: a form of a mode for one root. Entry k is the default of
    mode k, unless it is marked as a *further* entry of some mode. The result is the first further
    entry of the mode that serves the length and the root, and without such an entry the default.

    Parameters
    ----------
    m : Module
        The module that takes the logic.
    leaf : Leaf
        The same module as a component; it has the inputs and outputs of `entry_members`.
    start : StructLayout
        The bit layout of mode, root and least length of an entry.
    chosen : dict of str to Value
        The mode, length and root of the start.
    beyond : Value, optional
        High if the root that the user asks for is no node, because it is too large for
        ``chosen["root"]``, which has only its low bits.

    Returns
    -------
    entry : Value
        The number of the entry.
    no_root : Value
        High if the mode has entries for other roots, but none for this root.
    missing : Value
        High if no program for the mode is loaded.
    """
    compared = [data.View(start, word) for word in leaf.input_words("starts", start.size)]
    mode, there = chosen["mode"], leaf.input_value("entries")
    entry, found = Signal.like(mode, name="entry"), mode
    by_root, of_root = Signal(len(compared), name="root_chosen"), list[Value]()
    for k, one in reversed([*enumerate(compared)]):
        fits = there[k] & one.further & (one.mode == mode)
        if "root" in start.members:
            fits &= ~one.chosen | (one.root == chosen["root"])
            m.d.comb += by_root[k].eq(one.chosen)
            of_root.append(fits)
        found = Mux(fits & (chosen["length"] >= one.least), k, found)
    m.d.comb += [entry.eq(found), leaf.modes.eq(there & ~Cat(each.further for each in compared))]
    no_root: Value = Const(0, 1)
    if of_root:
        known = Cat(of_root).any() | (chosen["root"] == 0)
        known = known if beyond is None else known & ~beyond
        no_root = by_root.bit_select(mode, 1) & ~known
    return entry, no_root, ~leaf.modes.bit_select(mode, 1)
