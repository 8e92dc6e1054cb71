"""`Form`: one schedule that a fabric carries out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..errors import InputError
from ..toolchain.values import natural
from .fields import Loop
from .timing import MODE_SETUP, RUN_SETUP, CyclePiece, Timing

if TYPE_CHECKING:
    from ..collective import Operator
    from ..schedule import Schedule
    from ..topology import Groups
    from .address_map import AddressMap

__all__ = ["CycleCost", "Form", "block_flits"]

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
        Cycles once a run, by what they are spent on: ``start`` (the sequencer gets ready, or waits
        for the last word of the host), then as in `Timing.drained`; in ``waits`` also the cycles of
        rows besides the rounds, in which sums wait for their last words, less than 0 where fewer
        steps are waited than the schedule allows for.

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
    by_offset : bool
        Whether what a node does then depends on its offset from the root; data are by it.
    send_map, receive_map : AddressMap
        Where a node keeps what it sends, and what it has received. With any root, the part of what
        a node receives of the root is the root (see `part_is_root`).
    write_delay : int
        Cycles by which a word that the host writes arrives later than it could.
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
    by_offset: bool = False
    loop: Loop
    send_map: AddressMap
    receive_map: AddressMap
    write_delay: int = 0
    moving: CycleCost
    any_length: bool = False
    beat: int = 1
    chosen: bool = False
    layout: int = 0
    known_by: str

    @property
    def cost(self) -> CycleCost:
        """What the cycles are made of, for blocks of as many flits as there may be."""
        cost = replace(self.moving, constant_parts=self._constant_parts())
        assert cost.cycles == self.timing.cycles, "the parts are all cycles of a run"
        return cost

    def _constant_parts(self) -> dict[str, int]:
        """The cycles that the formula of `moving` leaves out, by what they are spent on."""
        loop, moving = self.loop, self.moving
        parts = {"start": self.timing.wait, **self.timing.drained}
        # A table of sums may have more rows than steps, and cycles of rows, in which sums wait for
        # operators; or fewer rows than steps that were planned to wait.
        more_rows = int(loop.blocks.sum()) * loop.flits - moving.flits
        of_rounds = moving.alpha * moving.rounds + moving.hop_cycles * moving.hops
        parts["waits"] += more_rows + loop.pauses(loop.flits) - of_rounds
        return parts

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
        return Timing(self.loop, flits, self.write_delay, setup)

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
    def part_is_root(self) -> bool:
        """Whether where a node keeps what it has received depends on which node is the root."""
        collective = self.schedule.collective
        return self.any_root and collective.single_origin and collective.personal

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
