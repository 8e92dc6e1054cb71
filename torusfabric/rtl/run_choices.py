"""What is chosen at the start of a run, and which choices cannot be carried out."""

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
from .memories import address_width, choose, look_up
from .modules import Leaf

if TYPE_CHECKING:
    from .lengths import Lengths
    from .operator_unit import OperatorUnit

__all__ = ["ERROR_BITS", "RunChoices", "RunError", "entry_members", "found_entry", "run_form"]

#: Bits of `error`.
ERROR_BITS = 4


class RunError(enum.IntEnum):
    """Why a start was not carried out."""

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
    #: Blocks were given different choices.
    UNEQUAL_CHOICES = 8
    #: A link between blocks lost something, or is silent.
    LINK = 9
    #: What was loaded is for another fabric, or incomplete.
    IMAGE = 10
    #: Other blocks were not started in time, or the start of one was withdrawn or lost in a reset.
    TIMEOUT = 11
    #: A command packet has fewer or more words than a command.
    COMMAND = 12


@dataclass(frozen=True)
class RunChoices:
    """What is chosen at the start of a run.

    Parameters
    ----------
    roots : tuple of (int or None)
        Of each mode, of how many nodes each can be the root; None where it is fixed.
    combining : tuple of bool
        Of each mode, whether it combines words.
    lengths : Lengths or None
        Those that a run can have, if there is a choice.
    operators : OperatorUnit or None
        Those among which a run chooses.
    served : tuple of (tuple of Range)
        Of each mode, which form serves for which lengths.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "broadcast"), max_flits=8, root="any")
    >>> RunChoices.of(program).inputs
    {'length': 4, 'root': 4}
    """

    roots: tuple[int | None, ...]
    combining: tuple[bool, ...]
    lengths: Lengths | None = None
    operators: OperatorUnit | None = None
    served: tuple[tuple[Range, ...], ...] = ()

    @classmethod
    def of(cls, program: Program) -> RunChoices:
        """Those that a program leaves."""
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
            tuple(mode.groups.size if mode.any_root else None for mode in modes),
            tuple(bool(mode.operators) for mode in modes),
            lengths,
            unit if unit and unit.bits else None,
            tuple(mode.numbered for mode in program.modes),
        )

    @property
    def modes(self) -> int:
        """Number of modes."""
        return len(self.roots)

    @property
    def nodes(self) -> int | None:
        """Of how many nodes each can be the root, in any mode; None where it is fixed in all."""
        return next((count for count in self.roots if count), None)

    @property
    def inputs(self) -> dict[str, int]:
        """The inputs that are sampled with the start, by name, and their bits."""
        bits = {
            "mode": address_width(self.modes) if self.modes > 1 else 0,
            "length": self.lengths.bits if self.lengths else 0,
            "root": address_width(self.nodes) if self.nodes else 0,
            "operation": self.operators.choice_bits if self.operators else 0,
        }
        return {name: width for name, width in bits.items() if width}

    def form(self, value: Callable[[str], Value]) -> Value:
        """The number of the form of a run, given what drives inputs."""
        mode = value("mode") if self.modes > 1 else None
        return run_form(self.served, mode, value("length"))

    def refusals(self, value: Callable[[str], Value]) -> list[tuple[RunError, Value]]:
        """Each reason not to carry out a run, and whether it holds, given what drives inputs.

        Of several that hold, the last counts. A root, or an operation, is looked at in modes that
        have a choice of it.
        """
        found: list[tuple[RunError, Value]] = []
        if self.operators and _has_gaps(len(self.operators.operators)):
            unknown = value("operation") >= len(self.operators.operators)
            found.append((RunError.OPERATION, unknown & self._used(value, self.combining)))
        if self.lengths:
            wrong = value("length") == 0
            if _has_gaps(self.lengths.most + 1):
                wrong |= value("length") > self.lengths.most
            found.append((RunError.LENGTH, wrong))
        if self.nodes and _has_gaps(self.nodes):
            chosen = [count is not None for count in self.roots]
            unknown = value("root") >= self.nodes
            found.append((RunError.ROOT, unknown & self._used(value, chosen)))
        if _has_gaps(self.modes):
            found.append((RunError.MODE, value("mode") >= self.modes))
        return found

    def accepted(self, m: Module, leaf: Leaf, others: Sequence[tuple[RunError, Value]]) -> Signal:
        """High in the cycle in which a start is carried out; else the error tells why it was not.

        An error is shown from the next edge on, if it can be.
        """
        start, refusals = leaf.value("start"), [*self.refusals(leaf.value), *others]
        wrong, begin = Signal(len(refusals), name="wrong"), Signal(name="begins")
        m.d.comb += wrong.eq(Cat(condition for _, condition in refusals))
        m.d.comb += begin.eq(start & ~wrong.any())
        if "error" in leaf.signature.members:
            # A code in front of the registers would share tables with the start, and delay it.
            refused = Signal(len(wrong), name="refused")
            with m.If(start):
                m.d.sync += refused.eq(wrong)
            code: Value = Const(RunError.NONE, ERROR_BITS)
            for (why, _), condition in zip(refusals, refused, strict=True):
                code = Mux(condition, why, code)
            m.d.comb += leaf.error.eq(code)
        return begin

    def _used(self, value: Callable[[str], Value], by_mode: Sequence[bool]) -> Value:
        """Whether the mode is one of some."""
        if all(by_mode):
            return Const(1)
        return choose([Const(int(used), 1) for used in by_mode], value("mode"))


def _has_gaps(count: int) -> bool:
    """Whether there are numbers, of as many bits as so many values take, that are none of them."""
    return bool(count & (count - 1))


#: So many ranges are compared with one after another; where there are more, a table is smaller.
FEW_RANGES = 4


def run_form(served: Sequence[Sequence[Range]], mode: Value | None, length: Value) -> Value:
    """The number of the form of a run.

    Parameters
    ----------
    served : sequence of (sequence of Range)
        Of each mode, which form serves for which lengths, by the numbers of forms of all modes.
    mode : Value or None
        None where there is only one.

    Examples
    --------
    >>> from amaranth.hdl import Signal
    >>> len(run_form([(Range(1, 0), Range(5, 1)), (Range(1, 2),)], Signal(1), Signal(4)))
    2
    """
    bits = address_width(1 + max(form for ranges in served for _, form in ranges))
    reached = {start: length >= start for ranges in served for start, _ in ranges[1:]}
    found: list[Value] = []
    for ranges in served:
        number: Value = Const(ranges[0].form, bits)
        if len(ranges) > FEW_RANGES:
            number = _listed(ranges, length)
        else:
            for start, form in ranges[1:]:
                number = Mux(reached[start], Const(form, bits), number)
        found.append(number)
    return found[0] if mode is None else choose(found, mode)


def _listed(ranges: Sequence[Range], length: Value) -> Value:
    """The form from a table with all lengths up to the last range; then that of this."""
    numbers = min(1 << len(length), 2 * ranges[-1].start)
    starts = [start for start, _ in ranges]
    forms = [ranges[max(bisect(starts, number) - 1, 0)].form for number in range(numbers)]
    if numbers == 1 << len(length):
        return look_up(forms, length)
    last = Const(numbers - 1, len(length))
    return look_up(forms, Mux(length > last, last, length))


def entry_members(start: data.StructLayout, entries: int) -> dict[str, Member]:
    """What finds the entries of starts in tables is given, and shows.

    These are what a start is compared with, of each entry; a bit for each that may run; whether
    nothing is missing; and a bit for each mode that may run.
    """
    given = {"starts": entries * start.size, "entries": entries, "loaded": 1}
    return {name: In(bits) for name, bits in given.items()} | {"modes": Out(entries)}


def found_entry(
    m: Module, leaf: Leaf, start: data.StructLayout, chosen: Mapping[str, Value],
    beyond: Value | None = None,
) -> tuple[Value, Value, Value]:  # fmt: skip
    """The entry of a start, the form of a mode for a length and a root: the first of those that
    serve besides that of the mode itself.

    Parameters
    ----------
    leaf : Leaf
        With `entry_members`.
    chosen : dict of str to Value
        The mode, length and root.
    beyond : Value, optional
        Whether the root has higher bits, so that there is no such node.

    Returns
    -------
    entry : Value
    no_root : Value
        Whether the mode knows other roots, but not this one.
    missing : Value
        Whether the mode is not there.
    """
    compared = [data.View(start, word) for word in leaf.words("starts", start.size)]
    mode, there = chosen["mode"], leaf.value("entries")
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
