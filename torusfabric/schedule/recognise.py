"""Recognise the regularity of a schedule: whether it is a pattern or a table.

A schedule that is read from a file lists transfers and says nothing of their regularity. Hardware
depends on it: a `Pattern` needs little more than wires, a `Table` one program for all nodes.
`recognise` reads the regularity off the transfers:

- An all-gather in which each out-port always carries what the same in-port received in the step
  before is a `Pattern`.
- An all-gather, a total exchange, a reduce-scatter or an all-reduce that looks the same from every
  node is a `Table`. What node 0 does is the candidate; all other nodes must do the same.

What is both, such as an all-gather on a ring, becomes a `Pattern`, which has the smaller hardware
and takes fewer cycles. An all-gather over circuits whose nodes send parts of what they hold is
arranged by `Grouped` payloads, so that such a part lies in few places of a memory.

The result lists exactly the same transfers in each round, and its arrays are canonical: -1 wherever
nothing is used, one choice where several in-ports would do, groups numbered by their first blocks.
So the form in which a schedule was written does not matter: planned and read from a file it is the
same.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from ..errors import InputError
from ..topology import Topology
from .base import Schedule
from .held_blocks import HeldBlocks
from .model import Switching
from .pattern import Pattern
from .rounds import Rounds
from .table import Table
from .transfers import Grouped, Listed, Transfers

__all__ = ["recognise"]

Ints = npt.NDArray[np.integer]
Form = TypeVar("Form", bound=Schedule)

#: Collectives whose tables move single blocks, and those whose tables move sums.


#: More nodes times blocks are not searched for groups; no hardware could be built of them.
MOST_HELD = 2**26


class _Irregular(Exception):
    """The schedule does not have the form that is tried."""


def recognise(schedule: Schedule) -> Schedule:
    """The form of a schedule that has the smallest hardware.

    Parameters
    ----------
    schedule : Schedule
        Of any form.

    Returns
    -------
    Schedule
        A `Pattern` or a `Table` that lists the same transfers; the schedule itself if it is in
        its smallest form already.

    Examples
    --------
    >>> from torusfabric.schedule import Rounds, Transfers
    >>> from torusfabric.collective import Collective
    >>> from torusfabric.topology import Torus
    >>> import numpy as np
    >>> swap = Transfers(np.arange(2), np.zeros((2, 1), np.int8))
    >>> schedule = Rounds(topology=Torus([2]), collective=Collective("allgather"),
    ...                   algorithm="swap", switching="store-and-forward", ports=1,
    ...                   transfers=(swap,))
    >>> recognise(schedule).form
    'pattern'
    """
    match schedule:
        case Pattern():
            return _without_unused_feeds(schedule)
        case Table():
            return _first_of(schedule, [_pattern_of_table])
        case Rounds(switching=Switching.STORE_AND_FORWARD):
            return _from_rounds(schedule)
        case Rounds() if schedule.collective.from_each and schedule.collective.to_all:
            return _grouped(schedule)
    return schedule


def _first_of(schedule: Form, forms: Iterable[Callable[[Form], Schedule]]) -> Schedule:
    """The first form that a schedule has; the schedule itself if it has none."""
    for form in forms:
        try:
            return form(schedule)
        except _Irregular:
            continue
    return schedule


def _common(schedule: Schedule) -> dict[str, Any]:
    """What a schedule keeps in any form."""
    names = ("topology", "collective", "algorithm", "switching", "ports", "chunks", "duplex")
    return {name: getattr(schedule, name) for name in names}


# Rounds, with the arcs of each step in canonical order.


class _Step(NamedTuple):
    """What moves in a step: the arcs in use, ascending, and the blocks on each, ascending.

    Arc k, which is ``node * ports + port``, carries ``ids[indptr[k]:indptr[k + 1]]``.
    """

    arc: Ints
    indptr: Ints
    ids: Ints


def _from_rounds(schedule: Rounds) -> Schedule:
    """A pattern or a table that lists the same transfers as some rounds, or the rounds."""
    if schedule.collective.rooted:
        return schedule
    if sum(map(len, schedule.transfers)) < schedule.topology.nodes:
        return schedule  # some node does nothing, so that there is nothing regular in it
    try:
        steps = list(_steps(schedule))
    except _Irregular:
        return schedule
    forms = _pattern_of_steps, _table_of_steps
    return _first_of(schedule, [partial(form, steps=steps) for form in forms])


def _steps(schedule: Schedule) -> Iterator[_Step]:
    """The steps of a schedule in which every path is one hop."""
    rounds, holdings = list(schedule.rounds()), None
    if any(len(t) and not isinstance(t.payload, Listed) for t in rounds):
        try:
            holdings = HeldBlocks(schedule.topology, schedule.blocks)
        except InputError:
            raise _Irregular from None
    for transfers in rounds:
        listed = holdings.carry_out(transfers) if holdings else transfers
        yield _step(schedule.topology, listed)


def _step(topology: Topology, transfers: Transfers) -> _Step:
    """One step."""
    none = np.empty(0, np.int64)
    if not len(transfers):
        return _Step(none, np.zeros(1, np.int64), none)
    assert isinstance(transfers.payload, Listed)
    if (transfers.lengths != 1).any():
        raise _Irregular
    arc = transfers.source.astype(np.int64) * topology.ports + transfers.hops[:, 0]
    order = np.argsort(arc, kind="stable")
    arc = arc[order]
    if (arc[1:] == arc[:-1]).any():
        raise _Irregular
    sizes = np.diff(transfers.payload.indptr)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    ids = np.asarray(transfers.payload.ids, np.int64)
    ids = ids[np.lexsort((ids, np.repeat(rank, sizes)))]
    return _Step(arc, np.concatenate([[0], np.cumsum(sizes[order])]), ids)


def _agree(candidate: Schedule, steps: Sequence[_Step]) -> bool:
    """Whether a candidate lists the transfers of all steps, and no others."""
    return all(
        all(map(np.array_equal, _step(candidate.topology, transfers), step))
        for transfers, step in zip(candidate.rounds(), steps, strict=True)
    )


# Patterns.


def _pattern_of_steps(schedule: Rounds, steps: Sequence[_Step]) -> Pattern:
    """Steps as a pattern.

    Raises
    ------
    _Irregular
        If they are none.
    """
    topology, blocks = schedule.topology, schedule.blocks
    shape = topology.nodes, topology.ports
    allgather = schedule.collective.from_each and schedule.collective.to_all
    if not allgather or any(len(step.ids) != len(step.arc) for step in steps):
        raise _Irregular
    upstream = topology.neighbours, np.broadcast_to(topology.opposite, shape)

    def on_ports() -> Iterator[tuple[Ints, Ints]]:
        for step in steps:
            sent = np.full(shape, -1, np.int64)
            sent.ravel()[step.arc] = step.ids
            yield sent, sent[upstream]

    first, nodes = next(on_ports())[0], np.arange(topology.nodes)[:, None]
    if np.any((first >= 0) & (blocks.origin(first) != nodes)):
        raise _Irregular
    return Pattern(
        **_common(schedule),
        steps=len(steps),
        feed=_feed(on_ports(), topology.opposite),
        inject=np.where(first >= 0, blocks.chunk(first), -1),
    )


def _pattern_of_table(table: Table) -> Pattern:
    """A table as a pattern: all nodes have the same feed.

    Raises
    ------
    _Irregular
        If it is none.
    """
    topology, collective = table.topology, table.collective
    if not (collective.from_each and collective.to_all and table.round_count):
        raise _Irregular
    idle, chunk = table.offset < 0, np.where(table.offset < 0, 0, table.chunk)
    before = topology.subtract(np.where(idle, 0, table.offset), topology.generators)
    sent = np.where(idle, -1, before * table.chunks + chunk)
    arriving = np.where(idle, -1, table.offset * table.chunks + chunk)
    if (sent[0] >= table.chunks).any():
        raise _Irregular
    on_ports = zip(sent[:, None], arriving[:, None, topology.opposite], strict=True)
    feed = _feed(on_ports, topology.opposite)
    return Pattern(
        **_common(table),
        steps=table.round_count,
        feed=np.tile(feed, (topology.nodes, 1)),
        inject=np.tile(np.where(idle[0], -1, chunk[0]), (topology.nodes, 1)),
    )


def _feed(on_ports: Iterable[tuple[Ints, Ints]], opposite: Ints) -> npt.NDArray[np.int8]:
    """The in-port that feeds each out-port.

    Of several in-ports that would do it is the one straight ahead; else, as far as possible, one
    that feeds no other out-port yet, the last of them.

    Parameters
    ----------
    on_ports : iterable of (ndarray of int, ndarray of int), each of shape (nodes, ports)
        What is on each out-port and on each in-port in each step, -1 for nothing.
    opposite : ndarray of int, shape (ports,)

    Raises
    ------
    _Irregular
        If an out-port is not always fed by the same in-port.
    """
    steps = iter(on_ports)
    sent, received = next(steps)
    shape = sent.shape
    fits, used = np.ones((*shape, shape[1]), bool), np.zeros(shape, bool)
    for sent, arriving in steps:
        fits &= sent[:, :, None] == received[:, None, :]
        used |= sent >= 0
        if np.any(used & ~fits.any(axis=2)):
            raise _Irregular
        received = arriving
    feed, free = np.full(shape, -1, np.int8), np.ones(shape, bool)
    nodes = np.arange(shape[0])
    for port, straight in enumerate(opposite.tolist()):
        able = fits[:, port]
        rank = able * (1 + np.arange(shape[1]) + shape[1] * free)
        rank[:, straight] += able[:, straight] * 2 * shape[1]
        feed[:, port] = np.where(used[:, port], rank.argmax(axis=1), -1)
        free[nodes[used[:, port]], feed[used[:, port], port]] = False
    return feed


def _without_unused_feeds(pattern: Pattern) -> Pattern:
    """A pattern without the feeds by which nothing ever comes."""
    topology, feed = pattern.topology, pattern.feed
    fed, upstream = feed >= 0, topology.neighbours[np.arange(topology.nodes)[:, None], feed]
    full, used = pattern.inject >= 0, np.zeros(feed.shape, bool)
    for _ in range(1, pattern.steps):
        full = fed & full[upstream, topology.opposite[feed]]
        if not (full & ~used).any():
            break
        used |= full
    return pattern if (used == fed).all() else replace(pattern, feed=np.where(used, feed, -1))


# Tables.


def _table_of_steps(schedule: Rounds, steps: Sequence[_Step]) -> Table:
    """Steps as a table, if all nodes do what node 0 does.

    Raises
    ------
    _Irregular
        If they do not.
    """
    topology, blocks, collective = schedule.topology, schedule.blocks, schedule.collective
    # An all-reduce counts chunks within the share of the message that its owner completes.
    shared = collective.reducing and collective.to_all
    part = schedule.chunks // topology.nodes if shared else schedule.chunks
    exchange = collective.personal and not collective.reducing
    if not part:
        raise _Irregular
    offset, chunk, destination = np.full((3, len(steps), topology.ports), -1)
    partial = 0
    for number, step in enumerate(steps):
        port = step.arc[: np.searchsorted(step.arc, topology.ports)]
        first = step.ids[step.indptr[: len(port)]]
        owner = blocks.origin(first)
        if collective.reducing:
            owner = blocks.chunk(first) // part if shared else blocks.destination(first)
        offset[number, port] = topology.subtract(topology.neighbours[0, port], owner)
        chunk[number, port] = blocks.chunk(first) % part
        if exchange:
            destination[number, port] = topology.subtract(blocks.destination(first), owner)
        if (np.diff(step.indptr) < topology.nodes).any():
            partial = number + 1
    table = Table(
        **_common(schedule),
        offset=offset,
        chunk=chunk,
        destination=destination if exchange else None,
        reducing=(partial if shared else len(steps)) if collective.reducing else 0,
    )
    if not _agree(table, steps):
        raise _Irregular
    return table


# Groups.


def _grouped(schedule: Rounds) -> Rounds:
    """A schedule whose lists are given as groups where that says the same."""
    if not any(_splits(transfers) for transfers in schedule.transfers):
        return schedule
    topology, blocks = schedule.topology, schedule.blocks
    if topology.nodes * blocks.count > MOST_HELD:
        return schedule
    holdings = HeldBlocks(topology, blocks)
    result = []
    for transfers in schedule.transfers:
        held = holdings.held.copy() if _splits(transfers) else None
        listed = holdings.carry_out(transfers)
        result.append(transfers if held is None else _by_groups(listed, held))
    return replace(schedule, transfers=tuple(result))


def _splits(transfers: Transfers) -> bool:
    """Whether payloads may be parts of what the senders hold, of several blocks."""
    match transfers.payload:
        case Listed(indptr):
            return bool((np.diff(indptr) > 1).any())
        case Grouped():
            return True
    return False


def _by_groups(transfers: Transfers, held: npt.NDArray[np.bool_]) -> Transfers:
    """A round with its lists given as groups, if each lists all that its sender holds of a group.

    Blocks that stand in one list are of one group; those in no list form a group of their own.
    """
    assert isinstance(transfers.payload, Listed)
    count, ids, sizes = held.shape[1], transfers.payload.ids, np.diff(transfers.payload.indptr)
    owner = count + np.repeat(np.arange(len(sizes)), sizes)
    graph = coo_matrix((np.ones(len(ids), np.int8), (ids, owner)), (count + len(sizes),) * 2)
    _, joined = connected_components(graph, directed=False)
    listed = np.isin(np.arange(count), ids)
    joined[:count][~listed] = joined.max() + 1
    _, first, group = np.unique(joined[:count], return_index=True, return_inverse=True)
    group = np.argsort(np.argsort(first))[group]
    if not sizes.all():
        return transfers
    wanted = group[ids[transfers.payload.indptr[:-1]]]
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(len(first)))
    have = np.add.reduceat(held[:, order], starts, axis=1, dtype=np.int64)
    whole = have.sum(axis=1)[transfers.source] == sizes
    if whole.all() or (have[transfers.source, wanted] != sizes).any():
        return transfers
    return replace(transfers, payload=Grouped(group, wanted))
