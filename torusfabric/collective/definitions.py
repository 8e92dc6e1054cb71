"""The table of collectives: the data that each delivers, to which nodes, and its names in
papers.
"""

from dataclasses import dataclass
from enum import Enum

__all__ = ["COLLECTIVES", "Content", "Definition", "Target"]


class Content(Enum):
    """The data that a collective delivers."""

    ROOT = "the message of the root"
    EACH = "the message of each node"
    COMBINED = "the combination of the messages of all nodes"


class Target(Enum):
    """The nodes to which a collective delivers its content."""

    ROOT = "at the root"
    ALL = "at every node"
    PERSONAL = "at every node a message, or a share, of its own"
    OFFSETS = "at the nodes at some offsets, the same message"


@dataclass(frozen=True)
class Definition:
    """The definition of a collective: its content, its target and its other names.

    Parameters
    ----------
    aliases : tuple of str
        The names that papers use for the collective.
    local : bool
        True if a node sends only to the nodes at given offsets (exchange, halo). Without given
        offsets these are its neighbours.
    """

    content: Content
    target: Target
    aliases: tuple[str, ...]
    local: bool = False


#: The definition of each collective, by its name.
COLLECTIVES = {
    "broadcast": Definition(
        Content.ROOT,
        Target.ALL,
        ("one-to-all", "one-to-all-broadcast", "single-node-broadcast"),
    ),
    "allgather": Definition(
        Content.EACH,
        Target.ALL,
        ("all-gather", "gossip", "gossiping", "multinode-broadcast", "multinode-broadcasting",
         "all-to-all-broadcast"),
    ),
    "scatter": Definition(
        Content.ROOT,
        Target.PERSONAL,
        ("single-node-scatter", "single-node-scattering", "one-to-all-personalized"),
    ),
    "gather": Definition(
        Content.EACH,
        Target.ROOT,
        ("single-node-gather", "single-node-gathering"),
    ),
    "alltoall": Definition(
        Content.EACH,
        Target.PERSONAL,
        ("all-to-all", "total-exchange", "multinode-scatter", "multinode-scattering",
         "all-to-all-personalized"),
    ),
    "reduce": Definition(
        Content.COMBINED,
        Target.ROOT,
        ("reduction", "single-node-accumulation"),
    ),
    "reduce-scatter": Definition(
        Content.COMBINED,
        Target.PERSONAL,
        ("multinode-reduction", "multinode-accumulation"),
    ),
    "allreduce": Definition(
        Content.COMBINED,
        Target.ALL,
        ("all-reduce",),
    ),
    "exchange": Definition(
        Content.EACH,
        Target.PERSONAL,
        ("neighbour-exchange", "neighbor-exchange", "neighbor-alltoall"),
        local=True,
    ),
    "halo": Definition(
        Content.EACH,
        Target.OFFSETS,
        ("halo-exchange", "neighbor-allgather"),
        local=True,
    ),
}  # fmt: skip
