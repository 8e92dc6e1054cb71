"""The representation of a program: the actions of all routers and memories, as plain data.

A run steps through the *rows* of a `Loop`. Within a row no crossbar setting changes:

- an out-port passes on the words of one of its sources,
- a *reader* streams a burst of words out of a memory, into an *injection port* of the router,
- memories store words that arrive.

A *control point* is a place in the hardware that rows control, such as the select of an out-port. A
`Field` holds the values of a control point in all rows. Nodes with equal values share a *variant*.
The package `torusfabric.rtl` decides where hardware keeps these values, from the values alone.

A *burst* is a series of words at successive addresses that a reader reads one after another. A
*slot* is a cycle in which the sequencer presents one row, and one flit of one block of that row.

Components are numbered from 0, and a *source* is a component whose words others can select. `IDLE`
is the value for no source, memory or address. The *identity word* is the word that an operator
combines with any word without changing it, such as 0 for a sum.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..topology import IntArray

__all__ = ["ACTIONS", "IDLE", "IDENTITY_MEMORY", "Action", "Duty", "Field", "NodeComponent", "Loop",
           "Memory", "Order", "Point", "Source", "Sources", "Stage", "first_own_memory",
           "make_node_memories", "number_by_value"]  # fmt: skip


class Stage(enum.IntEnum):
    """The kinds of sources, in the order in which the sources of a node are numbered.

    A *source* is a component whose words others can select: an in-port, the operator behind it, a
    register behind either, an injection port (an input of the router for words from the memories of
    the node), or the identity word (a constant such as 0, which changes nothing in a sum).
    """

    #: An in-port, and a second register behind it.
    PORT = 0
    DELAYED = 1
    #: The result register of the operator behind an in-port, and a second register behind that.
    RESULT = 2
    DELAYED_RESULT = 3
    #: The result of that operator one cycle earlier, before the result register.
    EARLY_RESULT = 4
    INJECTION = 5
    #: The identity word.
    IDENTITY = 6


#: A source: the stage, and the number (or another name) of the in-port or injection port there.
Source: TypeAlias = tuple[Stage, Any]


@dataclass(frozen=True)
class Sources:
    """The numbered sources that out-ports, operators and memories of a node select from.

    A *source* is a component that provides words. An *injection port* is an input of the router for
    words from the node's own memories; *readers* in front of it read the memories. The *identity
    word* is a constant, such as 0 for a sum, that an operator combines with any word without
    changing it.

    Sources are numbered stage by stage, in this order:

    1. all in-ports;
    2. second registers of the in-ports in `delayed`;
    3. results of the operators behind in-ports, if `results`;
    4. second registers of the results in `delayed_results`;
    5. results before their registers, if `made`;
    6. injection ports;
    7. the identity word.

    Parameters
    ----------
    ports : int
        Ports per node.
    delayed : tuple of int
        In-ports with a second register.
    results : bool
        True if every in-port has an operator behind it.
    delayed_results : tuple of int
        In-ports whose results have a second register.
    injections : tuple of (tuple of int)
        For each injection port, the numbers of its readers, mostly one. The words of several
        readers are combined by operators.
    latency : int
        Cycles of the operator's own hardware.
    injection_delay : int
        Cycles by which operators in front of injection ports delay the words of all injection
        ports.
    made : bool
        True if out-ports can select results before the result register. The register of the
        out-port then takes the role of the result register, and a sum leaves one cycle earlier.

    Examples
    --------
    >>> sources = Sources(4, delayed=(0, 2), injections=((0,), (1,)))
    >>> sources.first_of_stage(Stage.RESULT), sources.first_injection, sources.identity
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

    def first_of_stage(self, stage: Stage) -> int:
        """Return the number of the first source of a stage, such as the first injection port.

        If the node has no source of this stage, the result is the number of the first source of a
        later stage.
        """
        return sum(each < stage for each, _ in self.by_number)

    @property
    def first_injection(self) -> int:
        """The source number of injection port 0, an input of the router for words from memories."""
        return self.first_of_stage(Stage.INJECTION)

    @property
    def identity(self) -> int:
        """The source number of the identity word, a constant that changes no sum, such as 0."""
        return self.first_of_stage(Stage.IDENTITY)

    @property
    def n_readers(self) -> int:
        """Number of readers of a node, the components that read memories for injection ports."""
        return sum(map(len, self.injections))

    @cached_property
    def by_number(self) -> tuple[Source, ...]:
        """All sources in the order of their numbers, each as a pair (stage, number).

        The number is that of the in-port or injection port. ``(Stage.DELAYED, 2)`` is the second
        register behind in-port 2.
        """
        ports = range(self.ports)
        numbered = (
            (Stage.PORT, ports),
            (Stage.DELAYED, self.delayed),
            (Stage.RESULT, ports if self.results else ()),
            (Stage.DELAYED_RESULT, self.delayed_results),
            (Stage.EARLY_RESULT, ports if self.made else ()),
            (Stage.INJECTION, range(len(self.injections))),
            (Stage.IDENTITY, (0,)),
        )
        return tuple((stage, number) for stage, numbers in numbered for number in numbers)

    def numbers_within(
        self, others: Sources, *, ports: Sequence[int] | IntArray, injections: Sequence[int]
    ) -> IntArray:
        """Return the number that each source has in `others`, the sources of a larger node.

        Why: a fabric with several forms has nodes with the sources of all forms together, in which
        the sources of a single form get other numbers.

        Parameters
        ----------
        others : Sources
            Sources that include all of these, perhaps under other numbers of ports.
        ports, injections : sequence of int
            Numbers, within `others`, of each in-port and each injection port.

        Returns
        -------
        ndarray of int16, shape (sources + 1,)
            Entry k is the number of source k in `others`. The last entry is -1, so that the index
            `IDLE` (-1) gives `IDLE`.

        Examples
        --------
        The node with one port becomes a part of a node with two: its in-port 0 is in-port 1 there.

        >>> common = Sources(2, delayed=(1,), injections=((0,), (1,)))
        >>> sources = Sources(1, injections=((0,),))
        >>> sources.numbers_within(common, ports=[1], injections=[0]).tolist()
        [1, 3, 5, -1]
        """
        number = {source: k for k, source in enumerate(others.by_number)}
        named: dict[Stage, Sequence[int]] = {Stage.INJECTION: injections, Stage.IDENTITY: (0,)}
        numbers = [number[stage, named.get(stage, ports)[k]] for stage, k in self.by_number]
        return np.array([*numbers, -1], np.int16)


#: The value of a field in a row in which the value does not matter. In the fields of `Action.READ`
#: and `Action.WRITE` it means that the point does nothing.
IDLE = -1

#: The memory number of a reader that gives the identity word (see `Operator.identity`).
IDENTITY_MEMORY = -2


class Action(enum.Enum):
    """The kinds of values that a program gives to components row by row.

    Examples are the source that an out-port selects (`SELECT`), and the address at which a memory
    stores a word (`WRITE`). The comment on each action names the component and the meaning of the
    values.
    """

    #: Out-port: number of the source that feeds it.
    SELECT = "select"
    #: Operator behind an in-port: number of the source that is combined with the arriving word.
    OPERAND = "operand"
    #: Reader: number of the memory to read, or `IDENTITY_MEMORY`.
    MEMORY = "memory"
    #: Reader: first address of the burst; `IDLE` if it reads nothing.
    READ = "read"
    #: Reader: cycles by which the burst begins later in the row.
    LAG = "lag"
    #: Memory: first address of the words to store; `IDLE` if it stores nothing.
    WRITE = "write"
    #: Memory: number of the source of the words to store.
    SOURCE = "source"
    #: Memory: cycles of the links from the sender of these words; 0 for words from the node itself.
    TAP = "tap"


class NodeComponent(enum.Enum):
    """The kinds of components of a node that the rows of a program control."""

    #: The crossbar; points are numbered by out-port.
    ROUTER = "router"
    #: The operators behind in-ports; points are numbered by in-port.
    COMBINER = "combiner"
    READER = "reader"
    MEMORY = "memory"


class Duty(NamedTuple):
    """Properties of an `Action`, which is a kind of values that rows give to a component.

    Code that handles all actions alike reads these properties.

    Parameters
    ----------
    holder : NodeComponent
        Kind of the component that acts by these values.
    selects : bool
        True if the values are numbers of sources that the component selects.
    acts : bool
        True if the value `IDLE` means that the component does nothing. Otherwise `IDLE` means that
        the value does not matter.
    stores : bool
        True if the action concerns words that have arrived. The component then acts later by the
        cycles that these words spend on links.
    """

    holder: NodeComponent
    selects: bool = False
    acts: bool = False
    stores: bool = False


#: The properties of each action. Hardware is built from them: no other code lists the actions.
ACTIONS = {
    Action.SELECT: Duty(NodeComponent.ROUTER, selects=True),
    Action.OPERAND: Duty(NodeComponent.COMBINER, selects=True),
    Action.MEMORY: Duty(NodeComponent.READER),
    Action.READ: Duty(NodeComponent.READER, acts=True),
    Action.LAG: Duty(NodeComponent.READER),
    Action.WRITE: Duty(NodeComponent.MEMORY, acts=True, stores=True),
    Action.SOURCE: Duty(NodeComponent.MEMORY, selects=True, stores=True),
    Action.TAP: Duty(NodeComponent.MEMORY, stores=True),
}


class Point(NamedTuple):
    """A control point: a component of a node, and a kind of value that rows give to it.

    `number` counts the components of the kind. ``Point(Action.SELECT, 2)`` is the select of
    out-port 2.
    """

    action: Action
    number: int


@dataclass(frozen=True, eq=False)
class Field:
    """The values of a control point in all rows.

    A *control point* is a kind of value for one component, such as the select of out-port 2. Nodes
    with equal values share a *variant*.

    Parameters
    ----------
    point : Point
        The control point.
    values : ndarray of int, shape (rows, variants)
        Value in each row at the nodes of each variant, or `IDLE`.
    delay : int
        Cycles from the cycle in which the sequencer presents a row to the cycle in which the
        component acts on it. A memory stores later than that by its value of `Action.TAP`.
    """

    point: Point
    values: IntArray
    delay: int

    def renumber(
        self,
        sources: IntArray,
        points: Mapping[NodeComponent, Mapping[int, int]],
        memories: IntArray | None = None,
    ) -> Field:
        """Return the field with other numbers of its component, sources and memories.

        Parameters
        ----------
        sources : ndarray of int
            New number of each source; the last entry belongs to `IDLE`.
        points : mapping of NodeComponent to mapping of int to int
            For each kind of component, a map from the old number of a component to the new one.
            Numbers that are missing stay the same.
        memories : ndarray of int, optional
            New number of each memory. The last two entries are the new values of
            `IDENTITY_MEMORY` and `IDLE`.
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
    """The order in which a run steps through rows and flits: row by row, or flit by flit.

    Row by row, a row lasts until all flits of its blocks have been sent. Flit by flit, a row lasts
    one cycle, and all rows are repeated for each flit.
    """

    #: Flit by flit: all rows for flit 0 of each block, then all rows for flit 1, ..
    FLIT = "flit"
    #: Row by row: all flits of the blocks in row 0, then in row 1, ..
    ROW = "row"


@dataclass(frozen=True)
class Memory:
    """A memory of each node. Nodes that never use it may have a memory of no words.

    Parameters
    ----------
    ports : tuple of int
        In-ports whose arriving words, or results, the memory stores.
    own : bool
        True if the host writes the node's own message into the memory.
    layout : int
        If `own`: number of the send map, the table of the addresses of the message in this memory.
        Forms with different send maps have different memories, and the host then writes a message
        once for each send map. The number is 0 if all forms share the memory.
    """

    ports: tuple[int, ...]
    own: bool = False
    layout: int = 0


def make_node_memories(ports: Iterable[int], own: int) -> tuple[Memory, ...]:
    """Return the memories of a node: one for each of `ports`, then `own` for its message."""
    return (*(Memory((port,)) for port in ports), *(Memory((), own=True) for _ in range(own)))


def first_own_memory(memories: Sequence[Memory]) -> int:
    """Return the number of the first memory that the host writes.

    The memories before it are those for words that arrive.
    """
    return sum(not memory.own for memory in memories)


@dataclass(frozen=True, eq=False, kw_only=True)
class Loop:
    """The rows of a run, and the order in which the sequencer steps through them.

    Blocks have n flits in a run, at most `flits`. A *slot* is a cycle in which the sequencer
    presents one row and one flit. A *control point* is a component that rows control, such as the
    select of an out-port, and a *variant* a set of nodes that act alike.

    - Row by row (`Order.ROW`), a row takes ``max(least, pause + blocks * n)`` cycles, in which its
      blocks follow one another. Every point acts on all blocks of the row.
    - Flit by flit (`Order.FLIT`), a row takes one cycle each time, and comes n times.

    Two rows, each with one block of n = 3 flits, and with a pause of one cycle row by row::

        slot          0   1   2   3   4   5   6   7
        row by row    0.0 0.1 0.2  -  1.0 1.1 1.2  -      (row.flit)
        flit by flit  0.0 1.0 0.1 1.1 0.2 1.2

    Parameters
    ----------
    flits : int
        Largest number of flits of a block. Row by row, it is also the distance between the
        addresses of successive blocks of a row.
    pause, blocks : ndarray of int, shape (rows,)
        Row by row: cycles of each row beyond those of its blocks, and the number of its blocks.
        Flit by flit: 0 and 1. Words of a row may still arrive during later rows without a pause.
    fields : tuple of Field
        Values of the control points in all rows and variants, at most one field for each control
        point.
    departure : ndarray of int, shape (steps of the schedule, ports)
        Row in which a sender reads the words that it sends through a port in a step.
    departure_skew : ndarray of int, shape (nodes, ports)
        Cycles by which the words of a row leave a node through a port later than words that are
        read in the first slot of the row. Down or up a tree, a word passes several nodes in the
        same row. The skew then includes the cycles of its path from the node that reads it.
    least : int
        Row by row, the least number of cycles of a row.
    padded : bool
        True if shorter blocks are filled up to `flits`, so that all runs take equally long.
    rests : bool
        Row by row, true if every word that is sent on was stored in an earlier row. A row may then
        take more cycles, and words of a row may arrive during the next row.
    pitch : tuple of int
        Distance in each memory between the addresses of successive flits of a block; 1 in memories
        beyond the end of the tuple.
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
    def _fields_by_point(self) -> dict[Point, Field]:
        return {field.point: field for field in self.fields}

    def field(self, action: Action, number: int) -> Field | None:
        """Return the values of one component in all rows; None if it never does anything.

        Parameters
        ----------
        action : Action
            Kind of the values, such as `Action.SELECT` for the source that an out-port selects.
        number : int
            Number of the component, such as an out-port or a memory, among those of its kind.
        """
        return self._fields_by_point.get(Point(action, number))

    def point_values(self, action: Action, number: int) -> IntArray:
        """Return the values of one component as an array of shape (rows, variants).

        A variant is a set of nodes that act alike. The values are all `IDLE` if the component does
        nothing in any row.

        Parameters
        ----------
        action, number
            Kind of the values, and number of the component, as in `field`.
        """
        field = self.field(action, number)
        return np.full((self.n_rows, self.n_variants), IDLE) if field is None else field.values

    def fields_of_action(self, action: Action) -> tuple[Field, ...]:
        """Return the fields of all components with one kind of value.

        For `Action.SELECT`, these are the fields of all out-ports.
        """
        return tuple(field for field in self.fields if field.point.action is action)

    @cached_property
    def selected_sources(self) -> IntArray:
        """The number of the source that feeds each out-port, shape (rows, variants, ports).

        `IDLE` stands for an out-port that carries no word. A variant is a set of nodes that act
        alike.
        """
        return np.stack([self.point_values(Action.SELECT, p) for p in range(self.n_ports)], axis=-1)

    @property
    def n_rows(self) -> int:
        """Number of rows of the loop; a row counts once even if it comes for every flit."""
        return len(self.pause)

    @property
    def n_variants(self) -> int:
        """Number of variants, the sets of nodes that act alike in all rows."""
        return int(self.fields[0].values.shape[1])

    @property
    def n_ports(self) -> int:
        """Number of ports of a node."""
        return self.sources.ports

    @property
    def has_operators(self) -> bool:
        """True if there are operators behind in-ports, which arriving words pass."""
        return bool(self.fields_of_action(Action.OPERAND))

    def pitch_of(self, memory: int) -> int:
        """Return the distance between the addresses of successive flits of a block in a memory."""
        return self.pitch[memory] if memory < len(self.pitch) else 1

    def padded_flits(self, flits: int) -> int:
        """Return the flits that are sent for a block of `flits` flits, padding included."""
        return self.flits if self.padded else flits

    def row_cycles(self, flits: int) -> IntArray:
        """Return the cycles of each row, for blocks of `flits` flits, shape (rows,).

        If all rows are repeated for each flit, every row takes one cycle each time.
        """
        if self.order is Order.FLIT:
            return np.ones(self.n_rows, int)
        moving = self.blocks * self.padded_flits(flits)
        cycles: IntArray = np.maximum(self.least, self.pause + moving)
        return cycles

    def slots_after_words(self, flits: int) -> IntArray:
        """Return the cycles (slots) of a run from the last word of each row to the end of all rows.

        Blocks have `flits` flits. If rows are repeated for each flit, the last word of a row is
        that of the last flit.
        """
        if self.order is Order.FLIT:
            return np.arange(self.n_rows)[::-1]
        duration = self.row_cycles(flits)
        end: IntArray = duration.sum() - (np.cumsum(duration) - duration)
        return end - self.blocks * self.padded_flits(flits)

    def n_slots(self, flits: int) -> int:
        """Return the cycles of all rows of a run, for blocks of `flits` flits.

        Cycles before the first row and after the last one are not included.
        """
        times = self.padded_flits(flits) if self.order is Order.FLIT else 1
        return int(self.row_cycles(flits).sum()) * times

    @property
    def flit_interval_cycles(self) -> int:
        """Cycles from one flit of a block to the next.

        The value is 1 if a run goes row by row, and the number of rows if it goes flit by flit.
        """
        return self.n_rows if self.order is Order.FLIT else 1


def number_by_value(values: Iterable[Hashable]) -> tuple[IntArray, IntArray]:
    """Give equal values the same number, from 0 in the order in which they first appear.

    Given the actions of each node, the numbers are those of the variants, the sets of nodes that
    act alike.

    Parameters
    ----------
    values : iterable
        Actions of each node, in any hashable form.

    Returns
    -------
    number : ndarray of int32, shape (nodes,)
        Variant of each node.
    first : ndarray of int, shape (variants,)
        First node of each variant.

    Examples
    --------
    Nodes 0 and 2 act alike, so they share variant 0. Variants 0 and 1 appear first at nodes 0 and
    1.

    >>> number, first = number_by_value("aba")
    >>> number.tolist(), first.tolist()
    ([0, 1, 0], [0, 1])
    """
    known: dict[Hashable, int] = {}
    number = np.array([known.setdefault(value, len(known)) for value in values], np.int32)
    return number, np.unique(number, return_index=True)[1]
