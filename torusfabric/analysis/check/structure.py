"""The rules of a round that hold whichever blocks the nodes hold."""

import numpy as np

from ...schedule import (
    Duplex,
    Everything,
    Grouped,
    KeptSums,
    Listed,
    Schedule,
    Switching,
    Transfers,
)
from ...topology import BoolArray, IntArray
from .fault import busy_arc, busy_node, fault

__all__ = ["check_arcs", "inspect_round", "inspect_schedule", "ranks"]


def inspect_schedule(schedule: Schedule) -> None:
    """Check what a schedule says of itself: links, ports, chunks and root."""
    groups = schedule.collective.groups(schedule.topology)
    degree, nodes = len(groups.ports), groups.size
    if not 1 <= schedule.ports <= degree:
        raise fault(schedule, None, f"Ports must be 1 to {degree}, not {schedule.ports}")
    if schedule.chunks < 1:
        raise fault(schedule, None, f"Chunks must be positive, not {schedule.chunks}")
    root = schedule.collective.root
    if schedule.collective.rooted and (root is None or not 0 <= root < nodes):
        what = "a node" if groups.count == 1 else "a position in a group"
        raise fault(schedule, None, f"Root must be {what} from 0 to {nodes - 1}, not {root}")


def inspect_round(schedule: Schedule, number: int, transfers: Transfers) -> tuple[int, int]:
    """Check paths, arcs, ports and the form of payloads of one round.

    Returns
    -------
    longest, arcs : int
        Hops of the longest path, and the sum of the lengths of all paths.

    Raises
    ------
    ScheduleError
        At the first fault.
    """
    _check_paths(schedule, number, transfers)
    _check_payload(schedule, number, transfers)
    if not len(transfers):
        return 0, 0
    check_arcs(schedule, number, transfers)
    lengths = transfers.lengths
    return int(lengths.max(initial=0)), int(lengths.sum())


def _check_paths(schedule: Schedule, number: int, transfers: Transfers) -> None:
    """Check the senders, and that each path is a run of ports, long enough and not too long."""
    topology, source, hops = schedule.topology, transfers.source, transfers.hops
    if np.ndim(source) != 1 or np.ndim(hops) != 2 or len(source) != len(hops):
        raise fault(schedule, number, "senders and paths must be arrays of equal length")
    if not len(source):
        return
    bad = np.flatnonzero((source < 0) | (source >= topology.nodes))
    if bad.size:
        raise fault(schedule, number, f"transfer {bad[0] + 1} starts at node {source[bad[0]]}, "
                    f"not at one of 0 to {topology.nodes - 1}")  # fmt: skip
    used = hops >= 0
    lengths = used.sum(axis=1)
    checks = [
        ((hops < -1) | (hops >= topology.ports), "starts a path through a port that is none"),
        (~used[:, :-1] & used[:, 1:], "starts a path that goes on after its end"),
        (lengths[:, None] == 0, "starts a path without a hop"),
    ]
    if schedule.collective.axes is not None:
        outside = np.flatnonzero(schedule.blocks.groups.port_in_group < 0)
        checks.append((np.isin(hops, outside), "starts a path that leaves its group"))
    if schedule.switching == Switching.STORE_AND_FORWARD:
        checks.append((lengths[:, None] > 1, "starts a path of more than one hop"))
    for wrong, text in checks:
        bad = np.flatnonzero(wrong.any(axis=1))
        if bad.size:
            port = int(hops[bad[0], 0]) if hops.shape[1] else -1
            known = 0 <= port < topology.ports
            raise fault(schedule, number, text, node=source[bad[0]], port=port if known else None)


def _check_payload(schedule: Schedule, number: int, transfers: Transfers) -> None:
    """Check that a payload has one entry a transfer and names blocks that exist."""
    payload, count = transfers.payload, schedule.blocks.count
    senders = len(transfers)
    match payload:
        case Everything() | KeptSums():
            return
        case Grouped(group=group, wanted=wanted):
            if np.shape(group) != (count,) or np.shape(wanted) != (senders,):
                raise fault(schedule, number, "groups must have one entry a block and a transfer")
            return
        case Listed(indptr=indptr, ids=ids):
            sizes = np.diff(indptr)
            if np.shape(indptr) != (senders + 1,) or indptr[0] or indptr[-1] != len(ids):
                raise fault(schedule, number, "lists of blocks must have one entry a transfer")
    first = {"node": None, "port": None}
    for wrong, text in [
        (sizes < 1, "sends a message without a block"),
        (_per_transfer((ids < 0) | (ids >= count), indptr), "sends a block that does not exist"),
    ]:
        bad = np.flatnonzero(wrong)
        if bad.size:
            first = {"node": transfers.source[bad[0]], "port": transfers.hops[bad[0], 0]}
            raise fault(schedule, number, text, **first)


def _per_transfer(flags: BoolArray, indptr: IntArray) -> BoolArray:
    """Whether any entry of each transfer's list is flagged."""
    total = np.concatenate([[0], np.cumsum(flags)])
    return total[indptr[1:]] > total[indptr[:-1]]


def check_arcs(schedule: Schedule, number: int, transfers: Transfers) -> None:
    """Check that arcs are used once, and that no node sends or receives too many messages."""
    topology, hops = schedule.topology, transfers.hops
    nodes = transfers.walk(topology)
    row, column = np.nonzero(hops >= 0)
    port = hops[row, column].astype(np.int64)
    none = np.flatnonzero(~topology.linked[nodes[row, column], port])
    if len(none):
        at = none[0]
        raise fault(schedule, number, "has no link", node=nodes[row[at], column[at]], port=port[at])
    arcs = nodes[row, column] * np.int64(topology.ports) + port
    twice = _overfull(arcs, 1, topology.nodes * topology.ports)
    if twice is None and schedule.duplex == Duplex.HALF:
        back = nodes[row, column + 1] * np.int64(topology.ports) + topology.opposite[port]
        twice = _overfull(np.minimum(arcs, back), 1, topology.nodes * topology.ports)
    if twice is not None:
        raise busy_arc(schedule, number, nodes[row[twice], column[twice]], port[twice])
    many = _overfull(transfers.source, schedule.ports, topology.nodes)
    if many is not None:
        raise busy_node(schedule, number, "sends", transfers.source[many], hops[many, 0])
    many = _overfull(nodes[:, -1], schedule.ports, topology.nodes)
    if many is not None:
        last = topology.opposite[hops[many, transfers.lengths[many] - 1]]
        raise busy_node(schedule, number, "receives", nodes[many, -1], last)


def _overfull(values: IntArray, limit: int, size: int) -> int | None:
    """Position of the first value that occurs more than ``limit`` times up to there, or None."""
    if len(values) * 16 > size:
        most = np.bincount(values).max(initial=0)
    else:
        most = np.unique(values, return_counts=True)[1].max(initial=0)
    if most <= limit:
        return None
    return int(np.flatnonzero(ranks(values) == limit)[0])


def ranks(values: IntArray) -> IntArray:
    """How many equal values stand before each: an array such as 0 0 1 0 2 for 5 7 5 8 5."""
    order = np.argsort(values, kind="stable")
    ordered = np.asarray(values)[order]
    new = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)]
    starts = np.flatnonzero(new)
    run = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
    result = np.empty(len(ordered), np.int64)
    result[order] = run
    return result
