"""Proof for `Lifted` schedules: all groups of nodes do the same, so one group is checked.

A `Lifted` schedule is correct if two things hold:

- The schedule of one group (its *part*) is correct on the topology of the group.
- The whole network contains a copy of that topology for each group, and no two copies share a node
  or an arc. `has_separate_copies` proves this from the arrays of the network.

A path of the part then has one image in each copy. Nodes of different copies never meet, so every
rule on nodes, arcs, links and blocks holds in the whole network if it holds in the part. The caller
therefore multiplies the traffic of the part by the number of groups (`multiply_traffic`).
"""

from dataclasses import replace

import numpy as np

from ...schedule import Lifted
from ...topology import IntArray
from .follow import CheckedTraffic

__all__ = ["has_separate_copies", "multiply_traffic"]


def has_separate_copies(schedule: Lifted) -> bool:
    """Return True if the groups are copies of the part's topology that share no node and no arc.

    The result is True only if all of the following holds:

    - Part and whole have the same collective within a group, the same chunks, ports, duplex and
      switching, and their blocks have the same origins and destinations.
    - Every position of every group is a node of its own.
    - Every port of the part is a port of its own, and opposite ports of the part are opposite
      ports of the whole network.
    - Every arc of the part leads, in each group, over an arc that exists, to the node at the same
      position as in the part.

    Examples
    --------
    The rows of a torus are four copies of a ring. A ring of another length is no copy of them:

    >>> from dataclasses import replace
    >>> import torusfabric as tf
    >>> rows = tf.plan("4x6", "allgather@1", algorithm="matching")
    >>> other = tf.plan("5", "allgather", algorithm="matching")
    >>> has_separate_copies(rows), has_separate_copies(replace(rows, part=other))
    (True, False)
    """
    return (
        _has_equal_blocks(schedule)
        and _is_injective(schedule.blocks.groups.members, schedule.topology.nodes)
        and _is_injective(schedule.blocks.groups.port_in_topology, schedule.topology.ports)
        and _has_equal_arcs(schedule)
    )


def multiply_traffic(traffic: CheckedTraffic, groups: int) -> CheckedTraffic:
    """Return the traffic of `groups` groups that do the same at the same time.

    `traffic` is that of one group.
    """
    return replace(
        traffic,
        transfers=groups * traffic.transfers,
        arcs_used=groups * traffic.arcs_used,
        duplicates=groups * traffic.duplicates,
    )


def _has_equal_blocks(schedule: Lifted) -> bool:
    """Return True if part and whole have equal heads, and equal blocks within a group.

    The head is the collective, the chunks, the ports, the duplex and the switching.
    """
    part, collective = schedule.part, schedule.collective.in_one_group
    names = ("chunks", "ports", "duplex", "switching")
    if part.collective != collective or part.topology.nodes != schedule.blocks.group_size:
        return False
    if collective.members or collective.traffic or collective.lengths:
        return False  # these blocks may have other numbers in the part than in the whole
    if any(getattr(part, name) != getattr(schedule, name) for name in names):
        return False
    if not collective.local:
        return True  # origins and destinations follow from the collective and the number of nodes
    # Offsets lead to nodes that depend on the topology as well.
    return np.array_equal(part.blocks.target_positions, schedule.blocks.target_positions)


def _is_injective(numbers: IntArray, count: int) -> bool:
    """Return True if all `numbers` are different, and each is from 0 to `count` - 1."""
    inside = (numbers >= 0) & (numbers < count)
    return bool(inside.all()) and int(np.bincount(numbers.ravel()).max(initial=0)) <= 1


def _has_equal_arcs(schedule: Lifted) -> bool:
    """Return True if each arc of the part has an image in each group, between the same positions.

    Opposite ports of the part must also be opposite ports of the whole topology.
    """
    whole, one, groups = schedule.topology, schedule.part.topology, schedule.blocks.groups
    ports = groups.port_in_topology
    if len(ports) != one.ports or (whole.opposite[ports] != ports[one.opposite]).any():
        return False
    for port, image in enumerate(ports.tolist()):
        linked = np.flatnonzero(one.linked[:, port])
        nodes = groups.members[:, linked]
        arrived = groups.members[:, one.neighbours[linked, port]]
        if not whole.linked[nodes, image].all():
            return False
        if (whole.neighbours[nodes, image] != arrived).any():
            return False
    return True
