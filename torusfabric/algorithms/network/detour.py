"""Collectives that leave slow links aside: for short messages, which a long link would hold up.

A round lasts as long as the slowest of its links. Planned on the network without its slow links,
by `ANY_NETWORK`, rounds are more, but each is short.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...collective import Collective
from ...errors import InputError
from ...schedule import Schedule
from ...topology import Faulty, Topology
from ..algorithm import Algorithm, Options
from .plan import ANY_NETWORK

__all__ = ["DETOUR"]


def _without_slow_links(topology: Topology) -> Topology | None:
    """The network with its slow links broken; None if it has none, or does not hold without."""
    if not isinstance(topology, Faulty) or not topology.slow_links:
        return None
    slow = [link.partition("=")[0] for link in topology.slow_links]
    broken = [*topology.broken_links, *slow]
    try:
        return Faulty(topology.whole.on_links(topology.link_latency), broken, topology.broken_nodes)
    except InputError:
        return None


def misfit(topology: Topology, collective: Collective, options: Options) -> str | None:
    """What the algorithm needs and does not get, or None."""
    rest = _without_slow_links(topology)
    if rest is None:
        return "a network with slow links, which holds together without them"
    return ANY_NETWORK.misfit(rest, collective, options)


def plan(topology: Topology, collective: Collective, options: Options) -> Schedule:
    """Plan a collective on a network without its slow links.

    Examples
    --------
    >>> import torusfabric as tf
    >>> for name in ("any-network", "detour"):
    ...     schedule = tf.plan("4x4!0:+0=16", "allgather", algorithm=name, chunks=1)
    ...     print(schedule.steps, tf.compile(schedule, flits=1).cycles())
    8 34
    5 18
    """
    rest = _without_slow_links(topology)
    assert rest is not None
    found = ANY_NETWORK.plan(rest, collective, options)
    return replace(found, topology=topology, algorithm="detour")


def _variants(topology: Topology, collective: Collective) -> Sequence[Mapping[str, Any]]:
    """Those of the network that is left."""
    rest = _without_slow_links(topology)
    return ANY_NETWORK.variants(rest, collective) if rest is not None else ()


DETOUR = Algorithm(
    name="detour",
    source="beyond the papers",
    summary="as any-network, without the slow links: for short messages",
    collectives=ANY_NETWORK.collectives,
    options=ANY_NETWORK.options,
    misfit=misfit,
    plan=plan,
    variants=_variants,
    any_network=True,
)
