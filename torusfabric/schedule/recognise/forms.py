"""Conversion of a list of steps into a pattern or a table, for blocks and for sums.

Each function raises `Irregular` if the steps do not have its form. `group_blocks` converts the
payloads of an all-gather over circuits to sets of blocks (see `Grouped`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
import numpy.typing as npt

from ...topology import BoolArray, CayleyGraph, require_cayley_graph
from ..base import Rounds
from ..held_blocks import HeldBlocks
from ..pattern import Pattern, SumPattern
from ..table import SumTable, Table
from ..transfers import Grouped, KeptSums, Listed, Transfers
from .steps import Ints, Irregular, Step, has_steps

__all__ = ["group_blocks", "pattern_of_steps", "sum_pattern_of_steps", "sum_table_of",
           "table_of_steps", "without_unused_feeds"]  # fmt: skip


def pattern_of_steps(schedule: Rounds | Table, steps: Iterable[Step]) -> Pattern:
    """Return the schedule as a `Pattern`, or raise `Irregular` if it is none.

    `steps` are the steps of `schedule`. They are read only until it is clear that it is no pattern.
    """
    topology, blocks = schedule.topology, schedule.blocks
    shape = topology.nodes, topology.ports
    collective = schedule.collective
    if not collective.to_all or collective.reducing or not schedule.round_count:
        raise Irregular
    upstream = topology.upstream

    def blocks_on_ports() -> Iterator[tuple[Ints, Ints]]:
        for step in steps:
            if len(step.ids) != len(step.arc):
                raise Irregular
            sent = np.full(shape, -1, np.int64)
            sent.ravel()[step.arc] = step.ids
            yield sent, sent[upstream]

    each = blocks_on_ports()
    first, received = next(each)
    if np.any((first >= 0) & (blocks.origin(first) != np.arange(topology.nodes)[:, None])):
        raise Irregular
    return Pattern(
        **schedule.head,
        steps=schedule.round_count,
        feed=_find_feeds(chain([(first, received)], each), topology.opposite),
        inject=np.where(first >= 0, blocks.chunk(first), -1),
    )


def _find_feeds(on_ports: Iterable[tuple[Ints, Ints]], opposite: Ints) -> npt.NDArray[np.int16]:
    """Return the in-port that feeds each out-port; raise `Irregular` if it changes.

    The result has the shape (nodes, ports), with -1 for an out-port that never forwards. For each
    step, `on_ports` yields the blocks on all out-ports and on all in-ports: two arrays of shape
    (nodes, ports), -1 for none. If several in-ports could feed an out-port, the in-port of the
    opposite port is chosen, or else the last one that feeds no other out-port, or else the last
    one.
    """
    steps = iter(on_ports)
    sent, received = next(steps)
    shape = sent.shape
    fits, used = np.ones((*shape, shape[1]), bool), np.zeros(shape, bool)
    for sent, arriving in steps:
        fits &= sent[:, :, None] == received[:, None, :]
        used |= sent >= 0
        if np.any(used & ~fits.any(axis=2)):
            raise Irregular
        received = arriving
    feed, free = np.full(shape, -1, np.int16), np.ones(shape, bool)
    nodes = np.arange(shape[0])
    for port, straight in enumerate(opposite.tolist()):
        able = fits[:, port]
        rank = able * (1 + np.arange(shape[1]) + shape[1] * free)
        rank[:, straight] += able[:, straight] * 2 * shape[1]
        feed[:, port] = np.where(used[:, port], rank.argmax(axis=1), -1)
        free[nodes[used[:, port]], feed[used[:, port], port]] = False
    return feed


def without_unused_feeds(pattern: Pattern) -> Pattern:
    """Return a pattern with -1 in `Pattern.feed` at out-ports that never forward a block."""
    topology, feed = pattern.topology, pattern.feed
    fed, upstream = feed >= 0, topology.feeding(feed)
    full, used = pattern.inject >= 0, np.zeros(feed.shape, bool)
    for _ in range(1, pattern.steps):
        full = fed & full[upstream]
        if not (full & ~used).any():
            break
        used |= full
    return pattern if (used == fed).all() else replace(pattern, feed=np.where(used, feed, -1))


def sum_pattern_of_steps(schedule: Rounds | Table, steps: Iterable[Step]) -> SumPattern:
    """Return the schedule as a `SumPattern`, or raise `Irregular` if it is none.

    `steps` are the steps of `schedule`.
    """
    if not (schedule.collective.reducing and schedule.round_count):
        raise Irregular
    each = iter(steps)
    # The first step rules out most schedules, long before all contributions are listed.
    first = next(each)
    pattern = _pattern_from_step(schedule, first)
    if not has_steps(pattern, chain([first], each)):
        raise Irregular
    return pattern


def _pattern_from_step(schedule: Rounds | Table, first: Step) -> SumPattern:
    """Return the only `SumPattern` that can begin with the step `first`.

    `Irregular` is raised if there is none. The later steps of the pattern are not compared with
    those of `schedule`, from which the result takes topology and collective.
    """
    topology, blocks, collective = schedule.topology, schedule.blocks, schedule.collective
    around = (topology.nodes - 1) * (1 + collective.to_all)
    turns, rest = divmod(schedule.round_count, around)
    if topology.nodes < 3 or rest:
        raise Irregular  # two nodes only exchange words: no sum goes round a cycle
    if len(first.ids) != len(first.arc):
        raise Irregular
    inject = np.full((topology.nodes, topology.ports), -1)
    inject.ravel()[first.arc] = blocks.chunk(first.ids) % max(schedule.sums_of_owner, 1)
    arriving = inject[topology.upstream]
    fits = (inject[:, :, None] == arriving[:, None, :]) & (inject >= 0)[:, :, None]
    feed = np.where(fits.any(axis=2), fits.argmax(axis=2), -1).astype(np.int16)
    pattern = SumPattern(**schedule.head, feed=feed, inject=inject, turns=turns)
    sent = inject[inject >= 0]
    once = all(((inject == number).sum(axis=1) == 1).all() for number in np.unique(sent))
    if not (len(sent) and once and (feed >= 0).sum() == len(sent)):
        raise Irregular  # some chunk does not leave every node once
    return pattern


def table_of_steps(schedule: Rounds, steps: Sequence[Step]) -> Table:
    """Return the steps as a table, if all nodes do the same as node 0.

    Raises
    ------
    Irregular
        If another node does something else.
    """
    topology, blocks, collective = schedule.topology, schedule.blocks, schedule.collective
    if not isinstance(topology, CayleyGraph):
        raise Irregular
    # In an all-reduce, chunks are counted within the share that the owner completes.
    shared = collective.reducing and collective.to_all
    part = schedule.sums_of_owner if shared else schedule.chunks
    exchange = collective.personal and not collective.reducing
    if not part:
        raise Irregular
    offset, chunk, destination = np.full((3, len(steps), topology.ports), -1)
    partial = 0
    for number, step in enumerate(steps):
        if not len(step.arc):
            continue
        port = step.arc[: np.searchsorted(step.arc, topology.ports)]
        first = step.ids[step.indptr[: len(port)]]
        owner = blocks.origin(first)
        if collective.reducing:
            owner = blocks.chunk(first) // part if shared else blocks.destination(first)
        offset[number, port] = topology.subtract(topology.neighbours[0, port], owner)
        chunk[number, port] = blocks.chunk(first) % part
        if exchange:
            goal = blocks.destination(first)
            destination[number, port] = goal if collective.local else topology.subtract(goal, owner)
        if (np.diff(step.indptr) < topology.nodes).any():
            partial = number + 1
    table = Table(
        **schedule.head,
        offset=offset,
        chunk=chunk,
        destination=destination if exchange else None,
        reducing=(partial if shared else len(steps)) if collective.reducing else 0,
    )
    if not has_steps(table, steps) or (shared and not _is_spread_from_owners(table)):
        raise Irregular
    return table


def _is_spread_from_owners(table: Table) -> bool:
    """Return True if all complete sums of an all-reduce spread from their owners.

    In such a table, a node sends a complete sum only after it has received the sum, or if it is the
    owner. Why: hardware for any other all-reduce is faster if the schedule stays in rounds.
    """
    there = {(0, chunk) for chunk in range(table.chunk.max() + 1)}
    for offset, chunk in zip(
        table.offset[table.reducing :], table.chunk[table.reducing :], strict=True
    ):
        (ports,) = np.nonzero(offset >= 0)
        sender = table.topology.subtract(offset[ports], table.topology.generators[ports])
        if not there.issuperset(zip(sender.tolist(), chunk[ports].tolist(), strict=True)):
            return False
        there.update(zip(offset[ports].tolist(), chunk[ports].tolist(), strict=True))
    return True


def sum_table_of(schedule: Rounds) -> SumTable:
    """Return a schedule in which nodes keep their sums as a `SumTable`.

    This is possible if all nodes do the same as node 0.

    Raises
    ------
    Irregular
        If another node does something else, if the collective is no all-reduce, or if the topology
        is no Cayley graph.
    """
    topology = schedule.topology
    if schedule.collective.kind != "allreduce" or not isinstance(topology, CayleyGraph):
        raise Irregular
    chunk, passed = np.full((2, schedule.round_count, topology.ports), -1)
    for number, transfers in enumerate(schedule.transfers):
        if not len(transfers):
            continue
        payload, ports = transfers.payload, transfers.hops[:, 0]
        if not isinstance(payload, KeptSums) or (transfers.lengths != 1).any():
            raise Irregular
        entries = np.full((3, topology.nodes, topology.ports), -1)
        entries[:, transfers.source, ports] = ports, payload.chunk, payload.passed
        alike = (entries == entries[:, :1]).all()
        if not alike or (entries[0] >= 0).sum() != len(transfers):  # an arc carries two words
            raise Irregular
        chunk[number], passed[number] = entries[1:, 0]
    table = SumTable(**schedule.head, chunk=chunk, passed=passed)
    if _has_replaced_sums(table):
        raise Irregular
    return table


def _has_replaced_sums(table: SumTable) -> bool:
    """Return True if every word fits the sum of its receiver, and some word replaces a sum.

    A word that has all contributions of a sum replaces it (see `kept_sums`). In a `SumTable`, nodes
    only add words, so a schedule for which the result is True cannot become one. A word that does
    not fit is left to the checker, which accepts it for idempotent operators. Only the sums of node
    0 are followed, since all nodes do the same.
    """
    topology = require_cayley_graph(table.topology)
    nodes, replaced = np.arange(topology.nodes), False
    total = np.tile(nodes == 0, (table.chunks, 1))
    came: dict[tuple[int, int], BoolArray] = {}
    for chunks, passed in zip(table.chunk.tolist(), table.passed.tolist(), strict=True):
        words = []
        for port, (chunk, by) in enumerate(zip(chunks, passed, strict=True)):
            word = total[chunk] if by < 0 else came.get((by, chunk))
            if chunk >= 0 and word is not None:
                # Node 0 receives the same word that it sends, translated by the generator.
                words.append((port, chunk, word[topology.add(nodes, topology.generators[port])]))
        before = total.copy()
        words.sort(key=lambda one: (bool((before[one[1]] & ~one[2]).any()), int(one[2].sum())))
        for port, chunk, word in words:
            held = total[chunk]
            if not (held & ~word).any():
                replaced = True
            elif (held & word).any():
                return False
            total[chunk] = word | held
            came[int(topology.opposite[port]), chunk] = word
    return replaced


#: The most pairs of node and block for which groups are searched. Hardware could not be built for
#: more.
MOST_HELD = 2**26


def group_blocks(schedule: Rounds) -> Rounds:
    """Return a schedule in which transfers name a set of blocks in place of a list, where possible.

    With such a `Grouped` payload, a transfer carries all blocks of one set that its sender holds:
    the same blocks as before. Hardware then needs fewer addresses. A round for which there are no
    such sets stays unchanged.
    """
    if not any(_needs_grouping(transfers) for transfers in schedule.transfers):
        return schedule
    topology, blocks = schedule.topology, schedule.blocks
    if topology.nodes * blocks.n_blocks > MOST_HELD:
        return schedule
    held_blocks = HeldBlocks(topology, blocks)
    result = []
    for transfers in schedule.transfers:
        held = held_blocks.held.copy() if _needs_grouping(transfers) else None
        listed = held_blocks.execute(transfers)
        result.append(transfers if held is None else _group_round(listed, held))
    return replace(schedule, transfers=tuple(result))


def _needs_grouping(transfers: Transfers) -> bool:
    """Return True if some transfer may carry several, but not all, blocks of its sender."""
    match transfers.payload:
        case Listed(indptr):
            return bool((np.diff(indptr) > 1).any())
        case Grouped():
            return True
    return False


def _group_round(transfers: Transfers, held: BoolArray) -> Transfers:
    """Return a round whose transfers name sets of blocks; the round itself if that is impossible.

    The blocks are divided into sets, so that each transfer carries exactly those blocks of one set
    that its sender holds (a `Grouped` payload). Blocks that are in one list belong to one set, so
    the sets are connected components. Blocks in no list form a set of their own. A round in which
    every sender sends all that it holds is returned unchanged, too.

    Parameters
    ----------
    transfers : Transfers
        The round, with a `Listed` payload.
    held : ndarray of bool, shape (nodes, blocks)
        True where a node holds a block before the round.
    """
    # Imported here because few schedules need it, and the import takes longer than reading a small
    # schedule.
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

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
