"""Modes and forms: the collectives that a run chooses from, and the schedules that perform them.

A *mode* is one collective. It has one or several *forms*, each of which is a compiled schedule and
serves messages of some lengths. The lengths are divided into *ranges*, each with the form that
serves it.

The *grain* of a form is a number of flits. Messages are padded to a multiple of it, so that all
blocks have equal lengths. Runs therefore take equal cycles for all lengths between two multiples.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import gcd
from typing import TYPE_CHECKING, NamedTuple

from ..errors import InputError
from ..schedule import Masked
from ..toolchain.values import parse_non_negative_int
from .fields import Loop
from .timing import MODE_SETUP, RUN_SETUP, CyclePiece, Timing

if TYPE_CHECKING:
    from ..collective import Collective, Operator
    from ..schedule import Schedule
    from ..topology import Groups
    from .address_map import AddressMap

__all__ = ["CycleCost", "Form", "Mode", "Range", "block_flits"]

#: The longest message in flits. It keeps all addresses within 64 bits.
MOST_FLITS = 1 << 32


def block_flits(schedule: Schedule, flits: int, beat: int = 1) -> int:
    """Return the number of flits of a block of a message, a multiple of `beat`.

    The last block of a message may be partly padding.

    Parameters
    ----------
    flits : int
        Flits of a message.
    beat : int
        Flits that belong to the same chunk, before the next flits belong to the next chunk.

    Raises
    ------
    InputError
        If the message has no flits, or more than `MOST_FLITS`.
    """
    if flits < 1:
        raise InputError(f"Flits must be at least 1, not {flits}")
    if flits > MOST_FLITS:
        raise InputError(f"Flits must be at most {MOST_FLITS}, not {flits}")
    return beat * -(-flits // (beat * schedule.chunks))


@dataclass(frozen=True)
class CycleCost:
    """The cycles of a run, as the papers' cost formula with the constants of the hardware.

    The formula is ``alpha rounds + delta hops + tau flits + constant``. Here ``alpha`` is the
    cycles of each round, ``delta`` those of each hop, and ``tau`` those of each flit.

    Parameters
    ----------
    rounds : int
        Rounds or steps.
    hops : int
        Hops on the longest path of each round, summed over the rounds; 0 if the formula has no
        such term.
    flits : int
        Flits of the longest message of each round, summed over the rounds.
    alpha, hop_cycles, flit_cycles : int
        Cycles for each round, each hop and each flit.
    constant_parts : mapping of str to int
        Cycles that a run takes once, by purpose: ``start`` for the preparation of the sequencer,
        and the keys of `Timing.drain_cycles_by_purpose` for the end of the run. The entry ``waits``
        includes additional rows, in which sums wait for their last words. It is negative if a run
        needs fewer rows than the schedule has steps.

    Examples
    --------
    Four steps of together 12 flits, in which neither rounds nor hops take additional cycles.

    >>> cost = CycleCost(4, 0, 12, constant_parts={"sequencer": 1, "distribution": 2})
    >>> print(cost)
    tau flits + constant = 1 * 12 + 3 = 15 cycles
    >>> print(cost.constant_cycles_text)
    3 cycles: sequencer 1, distribution 2
    """

    rounds: int
    hops: int
    flits: int
    alpha: int = 0
    hop_cycles: int = 0
    flit_cycles: int = 1
    constant_parts: Mapping[str, int] = field(default_factory=dict)

    @property
    def constant_cycles(self) -> int:
        """Cycles that a run takes once, whatever its rounds, hops and flits are."""
        return sum(self.constant_parts.values())

    @property
    def constant_cycles_text(self) -> str:
        """The cycles that a run takes once, as text such as ``3 cycles: sequencer 1, write 2``."""
        parts = ", ".join(
            f"{name} {cycles}" for name, cycles in self.constant_parts.items() if cycles
        )
        return f"{self.constant_cycles} cycles{': ' * bool(parts)}{parts}"

    @property
    def cycles(self) -> int:
        """Cycles of a run: the terms for rounds, hops and flits, plus `constant_cycles`."""
        return (
            self.alpha * self.rounds
            + self.hop_cycles * self.hops
            + self.flit_cycles * self.flits
            + self.constant_cycles
        )

    def __str__(self) -> str:
        terms = [
            ("alpha", "rounds", self.alpha, self.rounds),
            ("delta", "hops", self.hop_cycles, self.hops),
            ("tau", "flits", self.flit_cycles, self.flits),
        ]
        terms = [term for term in terms if term[2]]
        names = [f"{name} {of}" for name, of, _, _ in terms]
        values = [f"{value} * {count}" for _, _, value, count in terms]
        if self.constant_cycles:
            names.append("constant")
            values.append(str(self.constant_cycles))
        return f"{' + '.join(names)} = {' + '.join(values)} = {self.cycles} cycles"


@dataclass(frozen=True, eq=False, kw_only=True)
class Form:
    """A compiled schedule: one way to perform a collective, for messages of some lengths.

    Parameters
    ----------
    schedule : Schedule
        Schedule that the form was compiled from.
    operators : tuple of Operator
        Operators that combine words. A run chooses one of several; empty if nothing is combined.
    any_root : bool
        True if a run chooses its root.
    loop : Loop
        Rows of the form.
    send_map, receive_map : AddressMap
        Tables of memory addresses: of the blocks that a node sends, and of those that it has
        received. If runs choose the root, addresses of received blocks may depend on the root (see
        `has_root_addresses`).
    moving : CycleCost
        Cycles of a run for rounds, hops and flits, without those that a run takes once.
    any_length : bool
        True if a run chooses the length of messages.
    beat : int
        If a run chooses the length: flits of a message that belong to the same chunk, before the
        next flits belong to the next chunk. The size of a chunk is a multiple of `beat`.
    chosen : bool
        True if the program has several forms. A run then takes `MODE_SETUP` cycles more, in which
        the sequencer looks up the form.
    layout : int
        Number of the send map. Forms with the same number keep the message to send at the same
        addresses.
    known_by : str
        A text for people: the fact by which a receiver knows the origin of a word, such as
        ``"step and port"``.
    """

    schedule: Schedule
    operators: tuple[Operator, ...] = ()
    any_root: bool = False
    loop: Loop
    send_map: AddressMap
    receive_map: AddressMap
    moving: CycleCost
    any_length: bool = False
    beat: int = 1
    chosen: bool = False
    layout: int = 0
    known_by: str

    @property
    def cost(self) -> CycleCost:
        """The cycles of a run with the largest blocks, as a formula of rounds, hops and flits."""
        loop, moving = self.loop, self.moving
        parts = {"start": self.timing.run_setup, **self.timing.drain_cycles_by_purpose}
        # A table of sums may have additional rows and cycles, in which sums wait for operators. It
        # may also have fewer rows than steps, if planned waiting steps turn out to be needless.
        of_rounds = moving.alpha * moving.rounds + moving.hop_cycles * moving.hops
        parts["waits"] += loop.n_slots(loop.flits) - moving.flits - of_rounds
        cost = replace(moving, constant_parts=parts)
        assert cost.cycles == self.timing.cycles, "the parts are all cycles of a run"
        return cost

    @property
    def grain_flits(self) -> int:
        """The grain: message lengths are rounded up to a multiple of this number of flits.

        Between two multiples, messages are padded to equal blocks, and runs take equal cycles. It
        is the number of chunks times `block_unit_flits`.
        """
        return self.block_unit_flits * self.schedule.chunks

    @property
    def block_unit_flits(self) -> int:
        """The unit of the size of a block, in flits: a beat, or 1 if a message is one block."""
        return self.beat if self.schedule.chunks > 1 else 1

    def block_of(self, length: int) -> int:
        """Return the flits of a block, for messages of `length` flits."""
        return self.block_unit_flits * -(-length // self.grain_flits)

    @property
    def timing(self) -> Timing:
        """The cycles of all events in a run with the largest blocks."""
        return self.timing_of(self.loop.flits)

    def timing_of(self, flits: int) -> Timing:
        """Return the cycles of all events in a run with blocks of `flits` flits."""
        setup = RUN_SETUP * self.any_length + MODE_SETUP * self.chosen
        return Timing(self.loop, flits, setup)

    def cycle_pieces(self, first: int) -> list[CyclePiece]:
        """Return the cycles of runs as a piecewise linear function of n, for n >= `first`.

        Here n is the size of a block in units of `block_unit_flits` flits. The field
        `CyclePiece.per_flit` of the result is therefore the number of cycles for each such unit.
        """
        pieces, unit = (
            self.timing.cycle_pieces(self.block_unit_flits * first),
            self.block_unit_flits,
        )
        starts = [-(-piece.first // unit) for piece in pieces]
        return [
            CyclePiece(start, piece.constant, piece.per_flit * unit)
            for start, piece, following in zip(starts, pieces, [*starts[1:], None], strict=True)
            if start != following
        ]

    @property
    def groups(self) -> Groups:
        """The groups of nodes in which the form runs; mostly one group of all nodes."""
        return self.schedule.blocks.groups

    @property
    def by_offset(self) -> bool:
        """True if actions and addresses of a node depend on its offset from the root."""
        return self.any_root and not isinstance(self.schedule, Masked)

    @property
    def has_root_addresses(self) -> bool:
        """True if the addresses of received words depend on the root."""
        collective = self.schedule.collective
        return self.any_root and collective.single_origin and collective.personal

    @property
    def upper_half_address(self) -> int:
        """The first address of the words that a node receives, in a broadcast from any root.

        There each memory has two halves. The lower half holds the words that the node sends if it
        is the root, the upper half the words that it receives. In all other forms the value is 0.
        """
        collective = self.schedule.collective
        halves = self.by_offset and collective.single_origin and collective.to_all
        return int(self.receive_map.base.max()) if halves else 0


class Range(NamedTuple):
    """A range of message lengths, and the form that serves it.

    The range begins with `start` flits, and ends before the `start` of the next range. `form` is
    the number of the form within its mode, or among the forms of all modes in
    `Mode.numbered_ranges`. If a mode has the ranges (1, 0) and (5, 1), form 0 serves messages of 1
    to 4 flits, form 1 longer ones.
    """

    start: int
    form: int


@dataclass(frozen=True, eq=False)
class Mode:
    """A collective that a run can choose; its forms perform it for messages of different lengths.

    Parameters
    ----------
    forms : tuple of Form
        Forms, beginning with the one for the shortest messages.
    first : int
        Number of the first form among the forms of all modes.
    ranges : tuple of Range
        Ranges of lengths in ascending order, with the form for each. The first begins with one
        flit.
    roots : int
        Number of roots, if the mode has a form of its own for each root; otherwise 0. With r roots,
        number f in `ranges` then means the forms from f * r on, one for each root.
    """

    forms: tuple[Form, ...]
    first: int = 0
    ranges: tuple[Range, ...] = (Range(1, 0),)
    roots: int = 0

    def form_of(self, length: int, root: int | None = None) -> int:
        """Return the number of the form for messages of `length` flits, among those of all modes.

        Parameters
        ----------
        length : int
            Flits of a message.
        root : int, optional
            Number of the root of the run, by default 0. It matters only if `roots` is not 0.

        Examples
        --------
        The only mode has only one form, number 0.

        >>> import torusfabric as tf
        >>> program = tf.compile(tf.plan("3x3", "broadcast"), max_flits=8)
        >>> program.modes[0].form_of(5)
        0
        """
        form = self.ranges[bisect(self.range_starts, length) - 1].form
        return self.first + (form * self.roots + (root or 0) if self.roots else form)

    def form_at(self, form: int) -> Form:
        """Return the form with the number `form`, as `ranges` number the forms of this mode.

        If the mode has a form of its own for each root, `ranges` have one number for all of them.
        The result is then the form for root 0.
        """
        return self.forms[form * (self.roots or 1)]

    @property
    def has_several_ranges(self) -> bool:
        """True if the choice of the form depends on the length of the messages."""
        return len(self.ranges) > 1

    @property
    def range_starts(self) -> tuple[int, ...]:
        """The shortest length of each range, in flits."""
        return tuple(each.start for each in self.ranges)

    @property
    def first_starts(self) -> dict[int, int]:
        """The shortest length that each form serves: {number of the form: flits}, ascending."""
        found: dict[int, int] = {}
        for start, form in self.ranges:
            found.setdefault(form, start)
        return found

    @property
    def numbered_ranges(self) -> tuple[Range, ...]:
        """The ranges, in which each form has its number among the forms of all modes."""
        return tuple(Range(start, self.first + form) for start, form in self.ranges)

    @property
    def common_grain_flits(self) -> int:
        """The greatest common divisor of the grains of all forms, in flits.

        The grain of a form is the number of flits to a multiple of which messages are padded.
        """
        return gcd(*(form.grain_flits for form in self.forms))

    def cycle_pieces(self, most: int) -> Iterator[CyclePiece]:
        """Yield the cycles of runs as a piecewise function of n, for lengths up to a limit.

        A piece (first, constant, slope) says that a run takes ``constant + slope * n`` cycles from
        n = `first` up to the next piece. If runs choose the length, n is the length of a message
        divided by `common_grain_flits`, rounded up. With a fixed length, n is the flits of a block.

        Parameters
        ----------
        most : int
            Flits of the longest message.

        Examples
        --------
        Messages of 1 to 4 flits (n = 1) take 7 + 8 = 15 cycles by the first form, and messages of 5
        to 8 flits (n = 2) take 19 cycles by the second.

        >>> import torusfabric as tf
        >>> names = ("ring-exchange", "matching")
        >>> sums = [tf.plan("4", "allreduce", algorithm=name) for name in names]
        >>> mode = tf.compile([sums], max_flits=8).modes[0]
        >>> [tuple(each) for each in mode.ranges], mode.common_grain_flits
        ([(1, 0), (5, 1)], 4)
        >>> [tuple(piece) for piece in mode.cycle_pieces(8)]
        [(1, 7, 8), (2, 19, 0)]
        """
        if not self.longest_form.any_length:
            yield from self.longest_form.timing.cycle_pieces(self.longest_form.loop.flits)
            return
        chunks = self.common_grain_flits
        firsts = [(start - 1) // chunks + 1 for start in self.range_starts]
        ends = [*firsts[1:], -(-most // chunks) + 1]
        for (_, number), first, end in zip(self.ranges, firsts, ends, strict=True):
            form = self.form_at(number)
            yield from _pieces_between(form, first, end, form.grain_flits // chunks)

    @property
    def longest_form(self) -> Form:
        """The form for the longest messages.

        It serves to read properties that all forms of the mode have in common.
        """
        return self.form_at(self.ranges[-1].form)

    @property
    def schedule(self) -> Schedule:
        """The schedule for the longest messages."""
        return self.longest_form.schedule

    @property
    def collective(self) -> Collective:
        """The collective that all forms perform."""
        return self.schedule.collective

    @property
    def algorithm_names(self) -> str:
        """The algorithms of all forms, joined by "or"."""
        return " or ".join(dict.fromkeys(form.schedule.algorithm for form in self.forms))

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The operators that a run chooses from; empty if nothing is combined."""
        return self.longest_form.operators

    @property
    def any_root(self) -> bool:
        """True if a run chooses its root."""
        return self.roots > 0 or self.longest_form.any_root

    @property
    def groups(self) -> Groups:
        """The groups of nodes that perform the collective."""
        return self.longest_form.groups

    def operator_of(self, operation: int | None = None) -> Operator | None:
        """Return the operator that a run chooses by its number; None if nothing is combined.

        Parameters
        ----------
        operation : int, optional
            Number of the operator among `operators`, by default 0.

        Raises
        ------
        InputError
            If the mode has no such operator.
        """
        if not self.operators and operation is None:
            return None
        count = len(self.operators)
        operation = 0 if operation is None else parse_non_negative_int("Operation", operation)
        if operation >= count:
            wanted = f"from 0 to {count - 1}" if count else "left out where nothing is combined"
            raise InputError(f"Operation must be {wanted}, not {operation}")
        return self.operators[operation]


def _pieces_between(form: Form, first: int, end: int, factor: int) -> Iterator[CyclePiece]:
    """Yield the cycles of runs of one form as pieces of a function of n, for first <= n < end.

    Here n is the length of a message divided by the common grain of the mode, rounded up, as in
    `Mode.cycle_pieces`. The form pads messages to multiples of its own grain, which is `factor`
    times the common grain, so runs take equal cycles for `factor` successive n.
    """
    if end <= first:
        return
    last = (end - 2) // factor + 1
    pieces = [p for p in form.cycle_pieces((first - 1) // factor + 1) if p.first <= last]
    ends = [*(piece.first for piece in pieces[1:]), last + 1]
    for piece, stop in zip(pieces, ends, strict=True):
        if factor == 1:
            yield piece
            continue
        for block in range(piece.first, stop if piece.per_flit else piece.first + 1):
            start = max(first, (block - 1) * factor + 1)
            yield CyclePiece(start, piece.constant + piece.per_flit * block, 0)
