"""The rules that do not depend on the blocks that nodes hold, and the errors about faults."""

from collections.abc import Iterator, Sequence
from typing import SupportsInt

import numpy as np

from ...errors import ScheduleError
from ...schedule import Duplex, Grouped, KeptSums, Listed, Schedule, Switching, Transfers
from ...topology import BoolArray, IntArray

__all__ = ["SlowLinkUse", "check_arcs", "make_fault", "inspect_round", "inspect_schedule",
           "occurrence_ranks", "make_end_fault"]  # fmt: skip


def make_fault(
    schedule: Schedule,
    number: int | None,
    text: str,
    *,
    node: SupportsInt | None = None,
    port: SupportsInt | None = None,
    block: SupportsInt | None = None,
    when: str | None = None,
) -> ScheduleError:
    """Return the error for a fault in a schedule; its message names round, node, port and block.

    Parameters
    ----------
    number : int or None
        The round, counted from 1; None for a fault outside of rounds.
    text : str
        The description of the fault, which follows the location in the message. ``{block}`` is
        replaced by the name of the block.
    node, block : int, optional
        Node at the fault, and number of the block at fault.
    port : int, optional
        The out-port or in-port at the fault.
    when : str, optional
        The beginning of the message, by default ``Round 3:`` for round 3.
    """
    topology = schedule.topology
    at = None if node is None else int(node)
    arc = None if port is None else int(port)
    when = when or ("" if number is None else f"Round {number}:")
    location = [when] if when else []
    if at is not None and arc is not None and 0 <= arc < topology.ports:
        location.append(topology.arc_name(at, arc))
    elif at is not None:
        location.append(f"node {at} {topology.node_name(at)}")
    named = None if block is None else schedule.blocks.block_entry(int(block))
    message = " ".join([*location, text.replace("{block}", f"block {named}")])
    return ScheduleError(
        message[0].upper() + message[1:], round=number, node=at, port=arc, block=named
    )


def make_end_fault(
    schedule: Schedule, node: SupportsInt, block: SupportsInt, text: str = "ends without {block}"
) -> ScheduleError:
    """Return the error for a node that lacks a block after the last round.

    `block` is the number of the block, and `text` the description of the fault, as in `make_fault`.
    """
    count = schedule.round_count
    when = f"After {count} {schedule.switching.unit}{'s' * (count != 1)}:"
    return make_fault(schedule, None, text, node=node, block=block, when=when)


def inspect_schedule(schedule: Schedule) -> None:
    """Check the numbers of ports and chunks of a schedule, and the root of its collective."""
    groups = schedule.collective.groups(schedule.topology)
    degree, nodes = len(groups.port_in_topology), int(groups.sizes.min())
    if not 1 <= schedule.ports <= degree:
        raise make_fault(schedule, None, f"Ports must be 1 to {degree}, not {schedule.ports}")
    if schedule.chunks < 1:
        raise make_fault(schedule, None, f"Chunks must be positive, not {schedule.chunks}")
    root = schedule.collective.root
    if schedule.collective.rooted and (root is None or not 0 <= root < nodes):
        whole = groups.n_groups == 1 and not groups.listed
        what = "a node" if whole else "a position in a group"
        raise make_fault(schedule, None, f"Root must be {what} from 0 to {nodes - 1}, not {root}")


def inspect_round(
    schedule: Schedule, number: int, transfers: Transfers, *, kept: bool, crowded: bool = False
) -> tuple[int, int]:
    """Check one round: paths, arcs, ports, and the blocks that transfers name.

    Parameters
    ----------
    number : int
        Number of the round, counted from 1.
    transfers : Transfers
        The transfers of the round.
    kept : bool
        True if nodes keep their sums in this schedule.
    crowded : bool
        True if arcs may carry, and nodes may send and receive, any number of messages.

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
    for wrong, text in _payload_faults(schedule, number, transfers, kept=kept):
        bad = np.flatnonzero(wrong)
        if bad.size:
            raise make_fault(schedule, number, text, node=transfers.source[bad[0]],
                        port=transfers.hops[bad[0], 0])  # fmt: skip
    if not len(transfers):
        return 0, 0
    check_arcs(schedule, number, transfers, crowded=crowded)
    lengths = transfers.lengths
    return int(lengths.max(initial=0)), int(lengths.sum())


def _check_paths(schedule: Schedule, number: int, transfers: Transfers) -> None:
    """Check that each transfer starts at a node, and that its path is valid.

    A path must use existing ports, stay within its group of nodes, and have at least one hop; with
    store-and-forward switching it has exactly one. `number` is the number of the round for
    messages, and `transfers` are its transfers.
    """
    topology, source, hops = schedule.topology, transfers.source, transfers.hops
    if np.ndim(source) != 1 or np.ndim(hops) != 2 or len(source) != len(hops):
        raise make_fault(schedule, number, "senders and paths must be arrays of equal length")
    if not len(source):
        return
    bad = np.flatnonzero((source < 0) | (source >= topology.nodes))
    if bad.size:
        raise make_fault(
            schedule,
            number,
            f"transfer {bad[0] + 1} starts at node {source[bad[0]]}, "
            f"not at one of 0 to {topology.nodes - 1}",
        )
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
            raise make_fault(
                schedule, number, text, node=source[bad[0]], port=port if known else None
            )


def _payload_faults(
    schedule: Schedule, number: int, transfers: Transfers, *, kept: bool
) -> Iterator[tuple[BoolArray, str]]:
    """Yield, for each rule about the data of transfers, the transfers that break the rule.

    Each result is a pair: a mask, True for these transfers, and the text of the fault. `number` is
    the number of the round for messages. `kept` is True if nodes keep their sums in this schedule.
    """
    payload, count, collective = transfers.payload, schedule.blocks.n_blocks, schedule.collective
    senders = (len(transfers),)
    if kept and not isinstance(payload, KeptSums) and senders[0]:
        raise make_fault(schedule, number, "lists blocks, in a schedule of sums that nodes keep")
    match payload:
        case KeptSums(chunk=chunk, passed=passed):
            if not collective.reducing or collective.personal:
                text = f"sends a sum that it keeps, which is no part of {collective.kind}"
                yield np.ones(senders, bool), text
            if collective.is_irregular:
                text = "sends a sum that it keeps, which is no part of irregular collectives"
                yield np.ones(senders, bool), text
            if np.shape(chunk) != senders or np.shape(passed) != senders:
                raise make_fault(
                    schedule, number, "sums that nodes keep must have one entry a transfer"
                )
            yield (chunk < 0) | (chunk >= schedule.chunks), "sends a chunk that is none"
            none = (passed < -1) | (passed >= schedule.topology.ports)
            yield none, "passes on from an in-port that is none"
        case Grouped(group=group, wanted=wanted):
            if np.shape(group) != (count,) or np.shape(wanted) != senders:
                raise make_fault(
                    schedule, number, "groups must have one entry a block and a transfer"
                )
        case Listed(indptr=indptr, ids=ids):
            if len(indptr) != senders[0] + 1 or indptr[0] or indptr[-1] != len(ids):
                raise make_fault(schedule, number, "lists of blocks must have one entry a transfer")
            yield np.diff(indptr) < 1, "sends a message without a block"
            lacking = (ids < 0) | (ids >= count)
            if schedule.blocks.groups.has_several_sizes:
                lacking |= ~schedule.blocks.is_in_group(np.clip(ids, 0, count - 1))
            wrong = np.append(0, np.cumsum(lacking))
            yield wrong[indptr[1:]] > wrong[indptr[:-1]], "sends a block that does not exist"


def check_arcs(
    schedule: Schedule, number: int, transfers: Transfers, *, crowded: bool = False
) -> None:
    """Check that, in one round, no arc is used twice, and no node uses too many ports.

    The number of messages that a node sends, or receives, is limited by `Schedule.ports`. `number`
    is the number of the round for messages, and `transfers` are its transfers. If `crowded`, only
    the existence of the links is checked.
    """
    topology, hops = schedule.topology, transfers.hops
    nodes = transfers.walk(topology)
    row, column = np.nonzero(hops >= 0)
    port = hops[row, column].astype(np.int64)
    none = np.flatnonzero(~topology.linked[nodes[row, column], port])
    if len(none):
        at = none[0]
        raise make_fault(
            schedule, number, "has no link", node=nodes[row[at], column[at]], port=port[at]
        )
    if crowded:
        return
    arcs = nodes[row, column] * np.int64(topology.ports) + port
    twice = _first_overfull(arcs, 1, topology.nodes * topology.ports)
    text = "carries two messages at once"
    if twice is None and schedule.duplex == Duplex.HALF:
        back = nodes[row, column + 1] * np.int64(topology.ports) + topology.opposite[port]
        twice = _first_overfull(np.minimum(arcs, back), 1, topology.nodes * topology.ports)
    if schedule.duplex == Duplex.HALF:
        text += " (half duplex: counting both ways of its link)"
    if twice is not None:
        raise make_fault(
            schedule, number, text, node=nodes[row[twice], column[twice]], port=port[twice]
        )
    limit, by = schedule.ports, hops[:, 0]
    for verb, node in (("sends", transfers.source), ("receives", nodes[:, -1])):
        many = _first_overfull(node, limit, topology.nodes)
        if many is not None:
            if verb == "receives":
                by = topology.opposite[hops[np.arange(len(hops)), transfers.lengths - 1]]
            text = f"{verb} message {limit + 1} of at most {limit} in a round"
            raise make_fault(schedule, number, text, node=node[many], port=by[many])


class SlowLinkUse:
    """Check that slow links carry messages far enough apart, round by round.

    A link with spacing n is busy for n rounds with each message, so the message must be sent at
    least n - 1 rounds before the last. All rounds must take equally long: a message is one block,
    and goes one hop.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self._spacing = schedule.topology.spacing_of_arc
        self._free = np.ones(self._spacing.shape, np.int64)

    def check_round(self, number: int, transfers: Transfers) -> None:
        """Check the transfers of round `number`, counted from 1, whose paths are valid."""
        if not len(transfers):
            return
        topology, hops = self.schedule.topology, transfers.hops
        nodes = transfers.walk(topology)
        row, column = np.nonzero(hops >= 0)
        tail, port = nodes[row, column], hops[row, column].astype(np.int64)
        arcs: list[tuple[IntArray, IntArray]] = [(tail, port)]
        if self.schedule.duplex == Duplex.HALF:
            arcs.append((nodes[row, column + 1], topology.opposite[port]))
        early = np.flatnonzero(self._free[tail, port] > number)
        if early.size:
            at = tail[early[0]], port[early[0]]
            spacing, free = self._spacing[at], self._free[at]
            text = (
                f"carries a message {number - free + spacing} rounds after the one before; its "
                f"rate is a message every {spacing} rounds"
            )
            raise make_fault(self.schedule, number, text, node=at[0], port=at[1])
        for used in arcs:
            self._free[used] = number + self._spacing[used]

    def check_end(self, blocks: Sequence[int]) -> None:
        """Check that each message is over after the last round, and that rounds are equally long.

        `blocks` has the blocks of the longest message of each round.
        """
        rounds, long = len(blocks), [k for k, count in enumerate(blocks, 1) if count > 1]
        if self.schedule.switching == Switching.CIRCUIT or long:
            text = "messages must be one block over one hop where links have rates below 1"
            raise make_fault(self.schedule, long[0] if long else None, text)
        late = np.argwhere(self._free > rounds + 1)
        if len(late):
            (node, port), spacing = late[0], self._spacing[tuple(late[0])]
            number = int(self._free[node, port] - spacing)
            text = (
                f"carries a message for {spacing} rounds, of which there are only {rounds}; add "
                "rounds without transfers"
            )
            raise make_fault(self.schedule, number, text, node=node, port=port)


def _first_overfull(values: IntArray, limit: int, size: int) -> int | None:
    """Return the index at which a value first occurs more than `limit` times; None if none does.

    With limit 1 and the values 5 7 5 8, it is 2. All values are less than `size`, by which the
    faster of two ways of counting is chosen.
    """
    if len(values) * 16 > size:
        most = np.bincount(values).max(initial=0)
    else:
        most = np.unique(values, return_counts=True)[1].max(initial=0)
    if most <= limit:
        return None
    return int(np.flatnonzero(occurrence_ranks(values) == limit)[0])


def occurrence_ranks(values: IntArray) -> IntArray:
    """Return for each of `values` the number of equal values before it: 0 0 1 0 2 for 5 7 5 8 5."""
    order = np.argsort(values, kind="stable")
    ordered = np.asarray(values)[order]
    new = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)]
    starts = np.flatnonzero(new)
    run = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
    result = np.empty(len(ordered), np.int64)
    result[order] = run
    return result
