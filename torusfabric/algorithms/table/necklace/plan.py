"""Collectives on k-ary n-cubes from rotated trees (Fragopoulou and Akl).

Model: store-and-forward, all-port, full duplex, one block a port and step; what arrives in step
``t`` may leave from step ``t + latency`` on. A message is cut into M chunks. With G = 2 n ports
(n for k = 2, where the two directions of an axis count as one port, +), the steps are

============== ==========================================================================
broadcast      M + n floor(k / 2) - 1
allgather      M (N - 1) / G
scatter        M (N - 1) / G
alltoall       M n k^(n+1) / 4 G for even k, M n (k^2 - 1) k^(n-1) / 4 G for odd k
gather         as scatter, which it is in reverse
reduce         as broadcast
reduce-scatter as all-gather
allreduce      twice that
============== ==========================================================================

with latency 1; and, but for broadcast and reduce, if M is a multiple of the odd part of n (odd k),
of 2 n (even k >= 4) or of n (k = 2): M = 1 will do where k is odd and n a power of 2. The default
for M is the smallest such number, and 1 for broadcast and reduce. With other M, a necklace whose
blocks cannot be shared evenly leaves some ports idle in one step.

References
----------
[1] P. Fragopoulou, S. G. Akl, "A Framework for Optimal Communication on the Multidimensional Torus
    Network", Technical Report 94-363, Queen's University, Kingston, 1994. Section 5.
"""

from ....collective import Collective
from ....schedule import Rounds, Table
from ....topology import Topology, Torus
from ...algorithm import Algorithm, Options
from ...requirements import chunk_for_each, every_port
from ...reversal import also_backwards
from ..build import build_table, chunks_of_owner
from .collectives import allgather, alltoall, broadcast, scatter
from .trees import Necklaces

__all__ = ["NECKLACE", "misfit", "plan"]

#: Collectives that are others in reverse (section 6 of [1]).
REVERSED = {"gather": "scatter", "reduce": "broadcast"}


def misfit(topology: Topology, collective: Collective, options: Options) -> str | None:
    """What the algorithm needs, if a selection does not fit, or None."""
    if not isinstance(topology, Torus) or len(set(topology.sides)) > 1:
        return "a torus with equal sides"
    reason = every_port(options, topology.ports, Necklaces(topology).ports)
    return reason or chunk_for_each(topology, collective, options)


def plan(topology: Torus, collective: Collective, options: Options) -> Table | Rounds:
    """Plan a collective: rounds for one from a root, a table for the others.

    Parameters
    ----------
    topology : Torus
        A k-ary n-cube: n sides of length k.
    options : Options
        ``chunks`` of a message and ``latency`` in steps.

    Examples
    --------
    >>> from torusfabric.collective import parse_collective
    >>> from torusfabric.topology import parse_topology
    >>> torus = parse_topology("5x5")
    >>> [NECKLACE(torus, parse_collective(kind)).round_count for kind in ("allgather", "alltoall")]
    [6, 15]
    """
    necklaces, latency = Necklaces(topology), options.latency
    default = 1 if collective.rooted and collective.to_all else necklaces.even_chunks
    chunks = chunks_of_owner(topology, collective, options.chunks) or default
    if collective.rooted:
        send = broadcast if collective.to_all else scatter
        blocks = collective.blocks(topology, chunks)
        return Rounds(
            topology=topology,
            collective=collective,
            ports=necklaces.ports,
            chunks=chunks,
            transfers=send(necklaces, collective.root or 0, blocks, latency),
        )
    exchange = collective.from_each and collective.personal
    columns = (alltoall if exchange else allgather)(necklaces, chunks, latency)
    return build_table(
        topology,
        collective,
        columns,
        ports=necklaces.ports,
        chunks=chunks,
        latency=latency,
    )


NECKLACE = Algorithm(
    name="necklace",
    source="Fragopoulou and Akl 1994",
    summary="trees that are rotations of each other, balanced over all ports of a k-ary n-cube",
    collectives=(
        "broadcast",
        "allgather",
        "scatter",
        "gather",
        "alltoall",
        "reduce",
        "reduce-scatter",
        "allreduce",
    ),
    options=("ports", "chunks", "latency"),
    misfit=misfit,
    plan=also_backwards(plan, REVERSED),
)
