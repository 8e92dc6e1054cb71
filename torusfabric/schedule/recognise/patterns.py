"""Oblivious all-gathers and broadcasts: what feeds each out-port."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..pattern import Pattern
from ..rounds import Rounds
from ..table import Table
from .steps import Ints, Irregular, Step

__all__ = ["pattern_of_steps", "pattern_of_table", "without_unused_feeds"]


def pattern_of_steps(schedule: Rounds, steps: Sequence[Step]) -> Pattern:
    """Steps as a pattern; `Irregular` if they are none."""
    topology, blocks = schedule.topology, schedule.blocks
    shape = topology.nodes, topology.ports
    collective = schedule.collective
    spreads = collective.to_all and not collective.reducing
    if not spreads or any(len(step.ids) != len(step.arc) for step in steps):
        raise Irregular
    upstream = topology.upstream

    def on_ports() -> Iterator[tuple[Ints, Ints]]:
        for step in steps:
            sent = np.full(shape, -1, np.int64)
            sent.ravel()[step.arc] = step.ids
            yield sent, sent[upstream]

    first, nodes = next(on_ports())[0], np.arange(topology.nodes)[:, None]
    if np.any((first >= 0) & (blocks.origin(first) != nodes)):
        raise Irregular
    return Pattern(
        **schedule.head,
        steps=len(steps),
        feed=_feed(on_ports(), topology.opposite),
        inject=np.where(first >= 0, blocks.chunk(first), -1),
    )


def pattern_of_table(table: Table) -> Pattern:
    """A table as a pattern, in which all nodes have the same feed; `Irregular` if it is none."""
    topology, collective = table.topology, table.collective
    if not (collective.from_each and collective.to_all and table.round_count):
        raise Irregular
    idle, chunk = table.offset < 0, np.where(table.offset < 0, 0, table.chunk)
    before = topology.subtract(np.where(idle, 0, table.offset), topology.generators)
    sent = np.where(idle, -1, before * table.chunks + chunk)
    arriving = np.where(idle, -1, table.offset * table.chunks + chunk)
    if (sent[0] >= table.chunks).any():
        raise Irregular
    on_ports = zip(sent[:, None], arriving[:, None, topology.opposite], strict=True)
    feed = _feed(on_ports, topology.opposite)
    return Pattern(
        **table.head,
        steps=table.round_count,
        feed=np.tile(feed, (topology.nodes, 1)),
        inject=np.tile(np.where(idle[0], -1, chunk[0]), (topology.nodes, 1)),
    )


def _feed(on_ports: Iterable[tuple[Ints, Ints]], opposite: Ints) -> npt.NDArray[np.int8]:
    """The in-port that feeds each out-port.

    Of several in-ports that would do it is the one straight ahead; else, as far as possible, one
    that feeds no other out-port yet, the last of them. Given is what is on each out-port and each
    in-port in each step, -1 for nothing; `Irregular` if what feeds an out-port changes.
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
    feed, free = np.full(shape, -1, np.int8), np.ones(shape, bool)
    nodes = np.arange(shape[0])
    for port, straight in enumerate(opposite.tolist()):
        able = fits[:, port]
        rank = able * (1 + np.arange(shape[1]) + shape[1] * free)
        rank[:, straight] += able[:, straight] * 2 * shape[1]
        feed[:, port] = np.where(used[:, port], rank.argmax(axis=1), -1)
        free[nodes[used[:, port]], feed[used[:, port], port]] = False
    return feed


def without_unused_feeds(pattern: Pattern) -> Pattern:
    """A pattern without the feeds by which nothing ever comes."""
    topology, feed = pattern.topology, pattern.feed
    fed, upstream = feed >= 0, topology.feeding(feed)
    full, used = pattern.inject >= 0, np.zeros(feed.shape, bool)
    for _ in range(1, pattern.steps):
        full = fed & full[upstream]
        if not (full & ~used).any():
            break
        used |= full
    return pattern if (used == fed).all() else replace(pattern, feed=np.where(used, feed, -1))
