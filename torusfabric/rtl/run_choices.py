"""What is chosen at the start of a run, which choices cannot be carried out, and what is kept.

A message of L flits in C chunks makes blocks of n = ceil(L / C) flits, or of n = R * ceil(L / RC)
where they go to several chunks by beats of R, a power of two. Addresses leave room for N
flits a block, so that from the last flit of a block to the first of the next the address grows by
N - (n - 1).
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

from ..program.mode import Range
from ..program.timing import MODE_SETUP, RUN_SETUP, TABLE_BITS
from .memories import address_width, choose, constant_at, look_up
from .place import Loops

if TYPE_CHECKING:
    from ..program import Program
    from .modules import Leaf
    from .operator_unit import OperatorUnit

__all__ = ["ERROR_BITS", "Lengths", "RunChoices", "RunError", "RunLength", "divided",
           "entry_members", "found_entry", "run_form"]  # fmt: skip

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
    #: Boards were given different choices.
    BOARDS = 8
    #: A link between boards lost something, or is silent.
    LINK = 9
    #: What was loaded is for another fabric, or incomplete.
    IMAGE = 10


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
    def of(cls, program: Program, *, by_form: bool = False) -> RunChoices:
        """Those that a program leaves; with forms for modes where what starts runs knows forms."""
        modes = program.forms if by_form else program.modes
        lengths = unit = None
        if program.any_length:
            lengths = Lengths(
                program.flits,
                tuple(form.schedule.chunks for form in program.forms),
                tuple(form.beat for form in program.forms),
            )
        if program.operators:
            from .operator_unit import OperatorUnit

            unit = OperatorUnit(program.operators)
        return cls(
            tuple(mode.groups.size if mode.any_root else None for mode in modes),
            tuple(bool(mode.operators) for mode in modes),
            lengths,
            unit if unit and unit.bits else None,
            tuple((Range(1, number),) for number in range(len(modes)))
            if by_form
            else tuple(mode.numbered for mode in program.modes),
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

    def accepted(
        self,
        m: Module,
        value: Callable[[str], Value],
        others: Sequence[tuple[RunError, Value]],
        error: Value | None,
    ) -> Signal:
        """High in the cycle in which a start is carried out; else the error tells why it was not.

        Parameters
        ----------
        others : sequence of (RunError, Value)
            What refuses a start besides its choices.
        error : Value or None
            What shows it from the next edge on, if anything does.
        """
        start, refusals = value("start"), [*self.refusals(value), *others]
        wrong, begin = Signal(len(refusals), name="wrong"), Signal(name="begins")
        m.d.comb += wrong.eq(Cat(condition for _, condition in refusals))
        m.d.comb += begin.eq(start & ~wrong.any())
        if error is not None:
            # A code in front of the registers would share tables with the start, and delay it.
            refused = Signal(len(wrong), name="refused")
            with m.If(start):
                m.d.sync += refused.eq(wrong)
            code: Value = Const(RunError.NONE, ERROR_BITS)
            for (why, _), condition in zip(refusals, refused, strict=True):
                code = Mux(condition, why, code)
            m.d.comb += error.eq(code)
        return begin

    def keep_operator(
        self, m: Module, value: Callable[[str], Value], begin: Value, code: Value
    ) -> None:
        """Keep what the operator of a run is told, from its begin on."""
        assert self.operators is not None
        codes = [Const(each, self.operators.bits) for each in self.operators.codes]
        with m.If(begin):
            m.d.sync += code.eq(choose(codes, value("operation")))

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


assert (RUN_SETUP, MODE_SETUP) == (1, 1), "a register holds what a run follows, another the form"


@dataclass(frozen=True)
class Lengths:
    """The lengths that a fabric is made for.

    Parameters
    ----------
    most : int
        Flits of the longest message.
    chunks : tuple of int
        Of a message, in each form.
    beats : tuple of int
        Of each form, the flits that go to a chunk together; by default 1.

    Examples
    --------
    >>> lengths = Lengths(most=64, chunks=(2, 3))
    >>> lengths.bits, lengths.blocks
    (7, (32, 22))
    """

    most: int
    chunks: tuple[int, ...]
    beats: tuple[int, ...] = ()

    @property
    def cuts(self) -> list[tuple[int, int]]:
        """Of each form, the flits of a beat and the chunks."""
        return [*zip(self.beats or (1,) * len(self.chunks), self.chunks, strict=True)]

    @property
    def bits(self) -> int:
        """Bits of a length."""
        return self.most.bit_length()

    @property
    def blocks(self) -> tuple[int, ...]:
        """Flits of the longest block, in each form."""
        return tuple(beat * -(-self.most // (beat * chunks)) for beat, chunks in self.cuts)


class RunLength:
    """Registers that hold what follows from the length, and the form, of the run under way.

    They are there a cycle after the run is accepted, and one more if there are several forms.

    Parameters
    ----------
    form : Value or None
        Of several.
    begin : Value
        High in the cycle in which a run is accepted.

    Attributes
    ----------
    form : Value
        The form of the run, a cycle after that.
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

    def __init__(
        self,
        m: Module,
        lengths: Lengths,
        loops: Loops,
        length: Value,
        form: Value | None,
        begin: Value,
    ) -> None:
        self._loops, before = loops, (length - 1)[: lengths.bits]
        self.form: Value = Const(0, 1)
        settled = begin
        if form is not None:
            # Some form is known before the first run, too, for simulators with four states.
            self.form = Signal(len(form), name="run_form")
            held = Signal(len(before), name="flits_before", reset_less=True)
            with m.If(begin):
                m.d.sync += [self.form.eq(form), held.eq(before)]
            before, settled = held, Const(1)
        quotients = {cut: _last_of_block(before, *cut) for cut in dict.fromkeys(lengths.cuts)}
        last = self.of_form(
            [
                Const(loop.flits - 1) if loop.padded else quotients[cut]
                for loop, cut in zip(loops.loops, lengths.cuts, strict=True)
            ]
        )
        block = self.constant(lengths.blocks)
        least = max(loop.least for loop in loops.loops)
        self.last = Signal(address_width(max(lengths.blocks)), reset_less=True, name="last")
        self.single = Signal(name="single_flit", reset_less=True)
        self.skip = Signal(range(max(lengths.blocks) + 1), reset_less=True, name="skip")
        self.idle = Signal(range(max(least, 2)), reset_less=True, name="idle")
        self.never_idle = Signal(name="never_idle", reset_less=True)
        self.next_single = Mux(settled, last == 0, self.single)
        with m.If(settled):
            m.d.sync += [self.last.eq(last), self.single.eq(self.next_single)]
            m.d.sync += self.skip.eq(block - last)
            if least > 1:
                rests = [
                    Mux(last < loop.least - 1, loop.least - 1 - last, 0)
                    if loop.least > 1
                    else Const(0)
                    for loop in loops.loops
                ]
                idle = self.of_form(rests)
                m.d.sync += [self.idle.eq(idle), self.never_idle.eq(idle == 0)]

    def of_form(self, values: Sequence[Value]) -> Value:
        """The value that belongs to the form."""
        if all(value is values[0] for value in values):
            return values[0]
        return choose(values, self.form)

    def constant(self, values: Sequence[int]) -> Value:
        """The constant that belongs to the form."""
        return constant_at(values, self.form)


def _last_of_block(last: Value, beat: int, chunks: int) -> Value:
    """The number of the last flit of a block, given that of the last of a message."""
    bits = beat.bit_length() - 1
    if not bits or chunks == 1:
        return divided(last, chunks)
    return Cat(Const(beat - 1, bits), divided(last[bits:], chunks))


def divided(value: Value, divisor: int) -> Value:
    """The quotient of a value of few bits and a constant, rounded down, at once.

    Examples
    --------
    A power of two drops bits; else it is looked up, or multiplied by a rounded reciprocal.

    >>> len(divided(Signal(6), 4)), len(divided(Signal(6), 3)), len(divided(Signal(7), 3))
    (4, 5, 6)
    """
    if not divisor & (divisor - 1):
        return value[divisor.bit_length() - 1 :]
    if len(value) <= TABLE_BITS:
        return look_up([number // divisor for number in range(1 << len(value))], value)
    # Exact while the error of the reciprocal, times the value, stays below a 1 / divisor.
    shift = len(value) + divisor.bit_length()
    reciprocal = -(-(1 << shift) // divisor)
    most = ((1 << len(value)) - 1) // divisor
    return (value * reciprocal)[shift:][: max(most.bit_length(), 1)]
