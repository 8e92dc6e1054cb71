"""Modes, and their forms: what a run chooses, and the schedules that carry it out."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import gcd
from typing import TYPE_CHECKING, NamedTuple

from ..errors import InputError
from ..schedule import Masked
from ..toolchain.values import natural
from .fields import Loop
from .timing import MODE_SETUP, RUN_SETUP, CyclePiece, Timing

if TYPE_CHECKING:
    from ..collective import Collective, Operator
    from ..schedule import Schedule
    from ..topology import Groups
    from .address_map import AddressMap

__all__ = ["CycleCost", "Form", "Mode", "Range", "block_flits"]

#: The longest message: no address of a flit outgrows 64 bits, whatever else a node holds.
MOST_FLITS = 1 << 32


def block_flits(schedule: Schedule, flits: int, beat: int = 1) -> int:
    """Flits of one block, given the flits of a message; the last blocks may be cut short.

    Of messages that go to their blocks by beats of so many flits they are a multiple of these.

    Raises
    ------
    InputError
        If there are no flits, or more than `MOST_FLITS`.
    """
    if flits < 1:
        raise InputError(f"Flits must be at least 1, not {flits}")
    if flits > MOST_FLITS:
        raise InputError(f"Flits must be at most {MOST_FLITS}, not {flits}")
    return beat * -(-flits // (beat * schedule.chunks))


@dataclass(frozen=True)
class CycleCost:
    """What the cycles of a run are made of: the papers' cost formula with the hardware's constants.

    Parameters
    ----------
    rounds : int
        Rounds, or steps.
    hops : int
        The sum over the rounds of their longest path; 0 where the formula has no such term.
    flits : int
        The sum over the rounds of their longest message.
    alpha, hop_cycles, flit_cycles : int
        Cycles to start a round, for a hop, and for a flit.
    constant_parts : mapping of str to int
        Cycles once a run, by what they are spent on: ``start`` (the sequencer gets ready),
        then as in `Timing.drained`; in ``waits`` also the cycles of rows besides the rounds, in
        which sums wait for their last words, less than 0 where fewer steps are waited than the
        schedule allows for.

    Examples
    --------
    >>> cost = CycleCost(4, 0, 12, constant_parts={"sequencer": 1, "distribution": 2})
    >>> print(cost)
    tau flits + constant = 1 * 12 + 3 = 15 cycles
    >>> print(cost.constant_in_words)
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
        """Cycles once a run."""
        return sum(self.constant_parts.values())

    @property
    def constant_in_words(self) -> str:
        """The cycles once a run, and what they are spent on."""
        parts = ", ".join(
            f"{name} {cycles}" for name, cycles in self.constant_parts.items() if cycles
        )
        return f"{self.constant_cycles} cycles{': ' * bool(parts)}{parts}"

    @property
    def cycles(self) -> int:
        """The sum."""
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
    """One schedule that a fabric carries out: a collective, for messages of some lengths.

    Parameters
    ----------
    schedule : Schedule
        What it was compiled from.
    operators : tuple of Operator
        How a reduction combines words, chosen at the start of a run if there are several; empty
        where nothing is combined.
    any_root : bool
        Whether the root is chosen at the start of a run.
    send_map, receive_map : AddressMap
        Where a node keeps what it sends, and what it has received. With any root, the part of what
        a node receives of the root is the root (see `part_is_root`).
    moving : CycleCost
        What the cycles are made of, without those that are constant.
    any_length : bool
        Whether the length of messages is chosen at the start of a run.
    beat : int
        Flits that go to a chunk together, where the length is chosen: those of a stream word.
        Chunks have room for a multiple of them.
    chosen : bool
        Whether it is one of several.
    layout : int
        Which of the send maps it reads by, where forms have different ones.
    known_by : str
        How a receiver identifies the origin of a word.
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
        """What the cycles are made of, for blocks of as many flits as there may be."""
        loop, moving = self.loop, self.moving
        parts = {"start": self.timing.run_setup, **self.timing.drained}
        # A table of sums may have more rows than steps, and cycles of rows, in which sums wait for
        # operators; or fewer rows than steps that were planned to wait.
        of_rounds = moving.alpha * moving.rounds + moving.hop_cycles * moving.hops
        parts["waits"] += loop.slots(loop.flits) - moving.flits - of_rounds
        cost = replace(moving, constant_parts=parts)
        assert cost.cycles == self.timing.cycles, "the parts are all cycles of a run"
        return cost

    @property
    def grain(self) -> int:
        """Flits of a message by which blocks grow: as many in turn take the same cycles."""
        return self.unit * self.schedule.chunks

    @property
    def unit(self) -> int:
        """Flits by which a block grows: one where all of a message is in one."""
        return self.beat if self.schedule.chunks > 1 else 1

    def block_of(self, length: int) -> int:
        """Flits of a block, given the flits of a message."""
        return self.unit * -(-length // self.grain)

    @property
    def timing(self) -> Timing:
        """When what happens, for blocks of as many flits as there may be."""
        return self.timing_of(self.loop.flits)

    def timing_of(self, flits: int) -> Timing:
        """When what happens, for blocks of so many flits."""
        setup = RUN_SETUP * self.any_length + MODE_SETUP * self.chosen
        return Timing(self.loop, flits, setup)

    def pieces(self, first: int) -> list[CyclePiece]:
        """The cycles of runs as a function of what a block grows by, from so much on."""
        pieces, unit = self.timing.pieces(self.unit * first), self.unit
        starts = [-(-piece.first // unit) for piece in pieces]
        return [
            CyclePiece(start, piece.constant, piece.per_flit * unit)
            for start, piece, following in zip(starts, pieces, [*starts[1:], None], strict=True)
            if start != following
        ]

    @property
    def groups(self) -> Groups:
        """The groups of nodes that carry it out; address maps know nodes by their positions."""
        return self.schedule.blocks.groups

    @property
    def by_offset(self) -> bool:
        """True if the actions of a node depend on its offset from the root; data are by it."""
        return self.any_root and not isinstance(self.schedule, Masked)

    @property
    def part_is_root(self) -> bool:
        """Whether where a node keeps what it has received depends on which node is the root."""
        collective = self.schedule.collective
        return self.any_root and collective.single_origin and collective.personal

    @property
    def upper_half(self) -> int:
        """The address of what a node receives in a broadcast from any root; else 0.

        Below it the same memories have what the node would send as the root.
        """
        collective = self.schedule.collective
        halves = self.by_offset and collective.single_origin and collective.to_all
        return int(self.receive_map.base.max()) if halves else 0


class Range(NamedTuple):
    """Lengths of messages, up to where the next one starts, and the form that serves for them."""

    start: int
    form: int


@dataclass(frozen=True, eq=False)
class Mode:
    """A collective that runs choose; its forms do the same, each for messages of some lengths.

    Parameters
    ----------
    forms : tuple of Form
        For the shortest messages first.
    first : int
        The number of the first form among those of all modes.
    ranges : tuple of Range
        Which form serves for which lengths, in the order of these; the first begins with one flit.
    roots : int
        Where a form has one for each root, their number; forms are then counted for one root.
    """

    forms: tuple[Form, ...]
    first: int = 0
    ranges: tuple[Range, ...] = (Range(1, 0),)
    roots: int = 0

    def form_of(self, length: int, root: int | None = None) -> int:
        """The number of the form that serves for messages of so many flits.

        Examples
        --------
        >>> import torusfabric as tf
        >>> program = tf.compile(tf.plan("3x3", "broadcast"), max_flits=8)
        >>> program.modes[0].form_of(5)
        0
        """
        form = self.ranges[bisect(self.starts, length) - 1].form
        return self.first + (form * self.roots + (root or 0) if self.roots else form)

    def at(self, form: int) -> Form:
        """A form by the number that ranges say."""
        return self.forms[form * (self.roots or 1)]

    @property
    def several(self) -> bool:
        """Whether there are several forms."""
        return len(self.ranges) > 1

    @property
    def starts(self) -> tuple[int, ...]:
        """The least flits of each range."""
        return tuple(each.start for each in self.ranges)

    @property
    def first_starts(self) -> dict[int, int]:
        """The least flits for which each form serves, by its number in the mode."""
        found: dict[int, int] = {}
        for start, form in self.ranges:
            found.setdefault(form, start)
        return found

    @property
    def numbered(self) -> tuple[Range, ...]:
        """The ranges by the numbers that forms have among those of all modes."""
        return tuple(Range(start, self.first + form) for start, form in self.ranges)

    @property
    def chunks(self) -> int:
        """What the chunks of all forms are a multiple of, each as often as a beat has flits."""
        return gcd(*(form.grain for form in self.forms))

    def pieces(self, most: int) -> Iterator[CyclePiece]:
        """The cycles of runs as a function of n, the flits of a message for each of `chunks`.

        Where a form has more chunks than these, it takes as many cycles for several n.

        Parameters
        ----------
        most : int
            Flits of the longest message.

        Examples
        --------
        >>> import torusfabric as tf
        >>> names = ("ring-exchange", "matching")
        >>> sums = [tf.plan("4", "allreduce", algorithm=name) for name in names]
        >>> mode = tf.compile([sums], max_flits=8).modes[0]
        >>> [tuple(each) for each in mode.ranges], mode.chunks
        ([(1, 0), (5, 1)], 4)
        >>> [tuple(piece) for piece in mode.pieces(8)]
        [(1, 7, 8), (2, 19, 0)]
        """
        if not self.longest.any_length:
            yield from self.longest.timing.pieces(self.longest.loop.flits)
            return
        chunks = self.chunks
        firsts = [(start - 1) // chunks + 1 for start in self.starts]
        ends = [*firsts[1:], -(-most // chunks) + 1]
        for (_, number), first, end in zip(self.ranges, firsts, ends, strict=True):
            form = self.at(number)
            yield from _between(form, first, end, form.grain // chunks)

    @property
    def longest(self) -> Form:
        """The form for the longest messages, which says what all have in common."""
        return self.at(self.ranges[-1].form)

    @property
    def schedule(self) -> Schedule:
        """What is done for the longest messages."""
        return self.longest.schedule

    @property
    def collective(self) -> Collective:
        """What all forms do."""
        return self.schedule.collective

    @property
    def algorithms(self) -> str:
        """The algorithm of each form in words."""
        return " or ".join(dict.fromkeys(form.schedule.algorithm for form in self.forms))

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The operators among which a run chooses; none where nothing is combined."""
        return self.longest.operators

    @property
    def any_root(self) -> bool:
        """Whether the root is chosen at the start of a run."""
        return self.roots > 0 or self.longest.any_root

    @property
    def groups(self) -> Groups:
        """The groups of nodes that carry it out."""
        return self.longest.groups

    def operator_of(self, operation: int | None = None) -> Operator | None:
        """The operator that a run chooses by its number, or None where nothing is combined.

        Raises
        ------
        InputError
            If there is no such operator.
        """
        if not self.operators and operation is None:
            return None
        count = len(self.operators)
        operation = 0 if operation is None else natural("Operation", operation)
        if operation >= count:
            wanted = f"from 0 to {count - 1}" if count else "left out where nothing is combined"
            raise InputError(f"Operation must be {wanted}, not {operation}")
        return self.operators[operation]


def _between(form: Form, first: int, end: int, factor: int) -> Iterator[CyclePiece]:
    """The cycles from n = first to the last n below an end, n the flits of so many blocks."""
    if end <= first:
        return
    last = (end - 2) // factor + 1
    pieces = [p for p in form.pieces((first - 1) // factor + 1) if p.first <= last]
    ends = [*(piece.first for piece in pieces[1:]), last + 1]
    for piece, stop in zip(pieces, ends, strict=True):
        if factor == 1:
            yield piece
            continue
        for block in range(piece.first, stop if piece.per_flit else piece.first + 1):
            start = max(first, (block - 1) * factor + 1)
            yield CyclePiece(start, piece.constant + piece.per_flit * block, 0)
