"""The program representation: what every router and endpoint does, as plain data.

A run steps through the *rows* of a `Loop`. In a row no crossbar setting changes: each out-port
passes on what one of its sources brings, a reader streams a burst of words out of a memory, and
memories store what arrives. What each *control point* of the hardware does in each row is a
`Field`. Nodes that do the same are of one *variant*. Where the values of a field lie in hardware is
decided by `torusfabric.rtl`, from the values alone.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..topology import IntArray

__all__ = ["ACTIONS", "IDLE", "NEUTRAL", "Action", "Duty", "Field", "Holder", "Loop", "Memory",
           "Order", "Point", "Source", "Sources", "Stage", "first_own",
           "memories_of",
           "number_equal"]  # fmt: skip


class Stage(enum.IntEnum):
    """Where a node finds a word, in the order in which sources are numbered."""

    #: An in-port, and the register behind it.
    PORT = 0
    LATER = 1
    #: The operator behind an in-port, and the register behind that.
    RESULT = 2
    LATER_RESULT = 3
    #: What that operator makes, in the cycle before it is in its register.
    MADE = 4
    INJECTION = 5
    #: The word that changes nothing.
    IDENTITY = 6


#: A source: the stage, and the in-port or injection port there, if not by its number by its name.
Source: TypeAlias = tuple[Stage, Any]


@dataclass(frozen=True)
class Sources:
    """What out-ports, operators and memories of a node select from, by number.

    In-ports come first, then the registers behind those of `delayed`; where operators stand behind
    in-ports, their results, the registers behind those of `delayed_results`, and what operators
    make; then injection ports, and at last the word that changes nothing.

    Parameters
    ----------
    ports : int
        Of a node.
    delayed : tuple of int
        The in-ports with a second register.
    results : bool
        Whether every in-port has an operator behind it.
    delayed_results : tuple of int
        The in-ports whose results have a second register.
    injections : tuple of (tuple of int)
        The readers whose words are combined for each injection port; mostly one.
    latency : int
        Cycles that the hardware of operators takes by itself.
    injection_delay : int
        Cycles by which all words leave later for operators in front of injection ports.
    made : bool
        Whether out-ports take what operators make before it is in their registers, too: the
        register of the out-port is that of the result then, and a sum leaves a cycle earlier.

    Examples
    --------
    >>> sources = Sources(4, delayed=(0, 2), injections=((0,), (1,)))
    >>> sources.first(Stage.RESULT), sources.first_injection, sources.identity
    (6, 6, 8)
    """

    ports: int
    delayed: tuple[int, ...] = ()
    results: bool = False
    delayed_results: tuple[int, ...] = ()
    injections: tuple[tuple[int, ...], ...] = ()
    latency: int = 0
    injection_delay: int = 0
    made: bool = False

    def first(self, stage: Stage) -> int:
        """Return the first number of a stage, or of the next one if the stage has no sources."""
        return sum(each < stage for each, _ in self.listed)

    @property
    def first_injection(self) -> int:
        """The number of the first injection port."""
        return self.first(Stage.INJECTION)

    @property
    def identity(self) -> int:
        """The number of the word that changes nothing."""
        return self.first(Stage.IDENTITY)

    @property
    def readers(self) -> int:
        """Number of readers."""
        return sum(map(len, self.injections))

    @cached_property
    def listed(self) -> tuple[Source, ...]:
        """What each number means."""
        ports = range(self.ports)
        numbered = (
            (Stage.PORT, ports),
            (Stage.LATER, self.delayed),
            (Stage.RESULT, ports if self.results else ()),
            (Stage.LATER_RESULT, self.delayed_results),
            (Stage.MADE, ports if self.made else ()),
            (Stage.INJECTION, range(len(self.injections))),
            (Stage.IDENTITY, (0,)),
        )
        return tuple((stage, number) for stage, numbers in numbered for number in numbers)

    def numbers_in(
        self, others: Sources, *, ports: Sequence[int] | IntArray, injections: Sequence[int]
    ) -> IntArray:
        """The number of each source among others, and, from the end, of what is none.

        Parameters
        ----------
        ports, injections
            Which of the others each in-port and injection port is.

        Examples
        --------
        >>> common = Sources(2, delayed=(1,), injections=((0,), (1,)))
        >>> Sources(1, injections=((0,),)).numbers_in(common, ports=[1], injections=[0]).tolist()
        [1, 3, 5, -1]
        """
        number = {source: k for k, source in enumerate(others.listed)}
        named: dict[Stage, Sequence[int]] = {Stage.INJECTION: injections, Stage.IDENTITY: (0,)}
        numbers = [number[stage, named.get(stage, ports)[k]] for stage, k in self.listed]
        return np.array([*numbers, -1], np.int16)


#: A value that does not matter.
IDLE = -1

#: Memory number of the word that changes nothing (see `Operator.identity`).
NEUTRAL = -2


class Action(enum.Enum):
    """What a control point decides, and what its values are."""

    #: Of an out-port: the source that feeds it.
    SELECT = "select"
    #: Of the operator behind an in-port: the source that is combined with what arrives.
    OPERAND = "operand"
    #: Of a reader: the memory that it reads, or `NEUTRAL`.
    MEMORY = "memory"
    #: Of a reader: the first address of its burst; where that is `IDLE` it reads nothing.
    READ = "read"
    #: Of a reader: the cycles by which its burst begins later in the row.
    LAG = "lag"
    #: Of a memory: the first address at which it stores; where that is `IDLE` it stores nothing.
    WRITE = "write"
    #: Of a memory: the source of the words that it stores.
    SOURCE = "source"
    #: Of a memory: the cycles of the links from the sender of these words, 0 for what the node
    #: makes itself.
    TAP = "tap"


class Holder(enum.Enum):
    """The part of a node that has a control point, and what the numbers of points are."""

    #: Numbers are those of ports.
    ROUTER = "router"
    #: Operators; numbers are those of in-ports.
    COMBINER = "combiner"
    READER = "reader"
    MEMORY = "memory"


class Duty(NamedTuple):
    """What all that handle fields need to know of an action.

    Parameters
    ----------
    selects : bool
        Whether its values are sources.
    acts : bool
        Whether `IDLE` says that nothing is done, and so nothing is done but for words of the row;
        else it says that the value does not matter.
    stores : bool
        Whether it concerns words that have arrived, and so comes later where they do.
    """

    holder: Holder
    selects: bool = False
    acts: bool = False
    stores: bool = False


#: Of each action. What a router has besides settings is placed, and given to it, by these alone.
ACTIONS = {
    Action.SELECT: Duty(Holder.ROUTER, selects=True),
    Action.OPERAND: Duty(Holder.COMBINER, selects=True),
    Action.MEMORY: Duty(Holder.READER),
    Action.READ: Duty(Holder.READER, acts=True),
    Action.LAG: Duty(Holder.READER),
    Action.WRITE: Duty(Holder.MEMORY, acts=True, stores=True),
    Action.SOURCE: Duty(Holder.MEMORY, selects=True, stores=True),
    Action.TAP: Duty(Holder.MEMORY, stores=True),
}


class Point(NamedTuple):
    """A control point: what it decides, and of which out-port, in-port, reader or memory."""

    action: Action
    number: int


@dataclass(frozen=True, eq=False)
class Field:
    """What a control point does.

    Parameters
    ----------
    values : ndarray of int, shape (rows, variants)
        `IDLE` where the value does not matter, or nothing is done.
    delay : int
        Cycles from the slot in which a row is presented to that in which the point acts on it. What
        a memory stores comes as much later as its tap says.
    """

    point: Point
    values: IntArray
    delay: int

    def renumbered(
        self,
        sources: IntArray,
        points: Mapping[Holder, Mapping[int, int]],
        memories: IntArray | None = None,
    ) -> Field:
        """The same with other numbers of sources, of the points of some holders, and of memories.

        The last numbers are those of `IDLE`, and of memories the one before that of `NEUTRAL`.
        """
        (action, number), values = self.point, self.values
        duty = ACTIONS[action]
        if duty.selects:
            values = sources[values]
        elif action is Action.MEMORY and memories is not None:
            values = memories[values]
        number = points.get(duty.holder, {}).get(number, number)
        return Field(Point(action, number), values, self.delay)


class Order(enum.Enum):
    """How a loop runs through rows and flits."""

    #: All rows for the first flit of each block, then for the second, ..
    FLIT = "flit"
    #: All flits in each row.
    ROW = "row"


@dataclass(frozen=True)
class Memory:
    """A memory that every node has, though it may be of no words in some variants.

    Parameters
    ----------
    ports : tuple of int
        The in-ports whose words, or results, it stores.
    own : bool
        Whether the host writes into it what the node sends.
    layout : int
        By which of the send maps, where forms have different ones; the host writes by all of them.
    """

    ports: tuple[int, ...]
    own: bool = False
    layout: int = 0


def memories_of(ports: Iterable[int], own: int) -> tuple[Memory, ...]:
    """A memory for what comes by each of some in-ports, and so many for what the node sends."""
    return (*(Memory((port,)) for port in ports), *(Memory((), own=True) for _ in range(own)))


def first_own(memories: Sequence[Memory]) -> int:
    """Return the number of the first memory that the host writes; those of others come before."""
    return sum(not memory.own for memory in memories)


@dataclass(frozen=True, eq=False, kw_only=True)
class Loop:
    """The rows of a run, and in which order they are stepped through.

    Blocks have n flits, at most `flits`. In a loop by rows, blocks of a row follow one another; a
    row takes ``max(least, pause + blocks * n)`` cycles, and whoever reads or stores anything in it
    does so for all of its blocks. In a loop by flits a row takes a cycle each time it comes, n
    times.

    Parameters
    ----------
    flits : int
        The most flits of a block; in a loop by rows also the distance of the addresses of blocks.
    pause, blocks : ndarray of int, shape (rows,)
        Of each row of a loop by rows: cycles besides those of its blocks, and how many blocks. In a
        loop by flits 0 and 1. Words of a row may arrive while rows pass that follow without pause.
    fields : tuple of Field
        At most one for each control point.
    departure : ndarray of int, shape (steps of the schedule, ports)
        The row in which a sender reads what it sends by a port.
    departure_skew : ndarray of int, shape (nodes, ports)
        Cycles by which what a node sends by a port leaves later than what is read in slot 0 of the
        row. Where words of one row pass on as they come, these are those since the first read.
    least : int
        The least cycles of a row in a loop by rows.
    padded : bool
        Whether blocks of fewer flits are filled up, so that every run is as long.
    rests : bool
        Of a loop by rows, whether whatever is sent on has been in a memory since an earlier row, so
        that rows may take longer than they must. Words of a row then arrive while the next passes.
    pitch : tuple of int
        Of each memory, from the address of a flit of a block to that of the next; 1 in those that
        are not listed.
    """

    order: Order
    flits: int
    pause: IntArray
    blocks: IntArray
    sources: Sources
    fields: tuple[Field, ...] = ()
    departure: IntArray
    departure_skew: IntArray = field(default_factory=lambda: np.zeros(1, int))
    least: int = 1
    padded: bool = False
    rests: bool = False
    pitch: tuple[int, ...] = ()

    @cached_property
    def _by_point(self) -> dict[Point, Field]:
        return {field.point: field for field in self.fields}

    def field(self, action: Action, number: int) -> Field | None:
        """The field of a control point; None where it does nothing in any row."""
        return self._by_point.get(Point(action, number))

    def values(self, action: Action, number: int) -> IntArray:
        """The values of a control point, shape (rows, variants)."""
        field = self.field(action, number)
        return np.full((self.rows, self.variants), IDLE) if field is None else field.values

    def of(self, action: Action) -> tuple[Field, ...]:
        """The fields of all control points of an action."""
        return tuple(field for field in self.fields if field.point.action is action)

    @cached_property
    def select(self) -> IntArray:
        """What feeds each out-port, shape (rows, variants, ports)."""
        return np.stack([self.values(Action.SELECT, p) for p in range(self.ports)], axis=-1)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.pause)

    @property
    def variants(self) -> int:
        """Number of variants."""
        return int(self.fields[0].values.shape[1])

    @property
    def ports(self) -> int:
        """Number of ports of a node."""
        return self.sources.ports

    @property
    def combining(self) -> bool:
        """Whether what arrives passes the operators behind in-ports."""
        return bool(self.of(Action.OPERAND))

    def pitch_of(self, memory: int) -> int:
        """From the address of a flit of a block to that of the next, in a memory."""
        return self.pitch[memory] if memory < len(self.pitch) else 1

    def carried(self, flits: int) -> int:
        """Flits of each block that are sent, for blocks of so many."""
        return self.flits if self.padded else flits

    def duration(self, flits: int) -> IntArray:
        """Cycles of each row each time that it comes, for blocks of so many flits."""
        if self.order is Order.FLIT:
            return np.ones(self.rows, int)
        moving = self.blocks * self.carried(flits)
        cycles: IntArray = np.maximum(self.least, self.pause + moving)
        return cycles

    def left(self, flits: int) -> IntArray:
        """Of each row, the slots that follow that of its last word, for blocks of so many flits."""
        if self.order is Order.FLIT:
            return np.arange(self.rows)[::-1]
        duration = self.duration(flits)
        end: IntArray = duration.sum() - (np.cumsum(duration) - duration)
        return end - self.blocks * self.carried(flits)

    def slots(self, flits: int) -> int:
        """Cycles in which a row and a flit are presented, for blocks of so many flits."""
        times = self.carried(flits) if self.order is Order.FLIT else 1
        return int(self.duration(flits).sum()) * times

    @property
    def interval(self) -> int:
        """Cycles from a flit of a block to the next."""
        return self.rows if self.order is Order.FLIT else 1


def number_equal(values: Iterable[Hashable]) -> tuple[IntArray, IntArray]:
    """The variants of nodes that do the same, in the order of their first appearance.

    Parameters
    ----------
    values : iterable
        What each node does.

    Returns
    -------
    number : ndarray of int32, shape (nodes,)
        The variant of each node.
    first : ndarray of int, shape (variants,)
        The first node of each variant.

    Examples
    --------
    >>> number, first = number_equal("aba")
    >>> number.tolist(), first.tolist()
    ([0, 1, 0], [0, 1])
    """
    known: dict[Hashable, int] = {}
    number = np.array([known.setdefault(value, len(known)) for value in values], np.int32)
    return number, np.unique(number, return_index=True)[1]
