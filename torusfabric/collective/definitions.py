"""The table of collectives: the data that each delivers, to which nodes, and its names in
papers.
"""

from dataclasses import dataclass
from enum import Enum

__all__ = ["COLLECTIVES", "DeliveredContent", "CollectiveDefinition", "DeliveryTarget"]


class DeliveredContent(Enum):
    """The data that a collective delivers: the message of one node, of all nodes, or a combination.

    The value of each member is text that completes the sentence "it delivers ..".
    """

    ROOT = "the message of the root"
    EACH = "the message of each node"
    COMBINED = "the combination of the messages of all nodes"


class DeliveryTarget(Enum):
    """The nodes to which a collective delivers data: the root, all nodes, or those at some offsets.

    With ``PERSONAL``, each receiver gets different data. The value of each member is text that
    completes the sentence "delivered ..".
    """

    ROOT = "at the root"
    ALL = "at every node"
    PERSONAL = "at every node a message, or a share, of its own"
    OFFSETS = "at the nodes at some offsets, the same message"


@dataclass(frozen=True)
class CollectiveDefinition:
    """One entry of the table `COLLECTIVES`: the data, the receivers and the other names.

    Parameters
    ----------
    content : DeliveredContent
        The data that the collective delivers.
    target : DeliveryTarget
        The nodes to which it delivers these data.
    aliases : tuple of str
        The names that papers use for the collective.
    local : bool
        True if a node sends only to some nodes: those at given offsets (exchange, halo), by default
        its neighbours, or those of the messages that a user lists (pattern).
    """

    content: DeliveredContent
    target: DeliveryTarget
    aliases: tuple[str, ...]
    local: bool = False


#: The definition of each collective, by its name.
COLLECTIVES = {
    "broadcast": CollectiveDefinition(
        DeliveredContent.ROOT,
        DeliveryTarget.ALL,
        ("one-to-all", "one-to-all-broadcast", "single-node-broadcast"),
    ),
    "allgather": CollectiveDefinition(
        DeliveredContent.EACH,
        DeliveryTarget.ALL,
        ("all-gather", "gossip", "gossiping", "multinode-broadcast", "multinode-broadcasting",
         "all-to-all-broadcast"),
    ),
    "scatter": CollectiveDefinition(
        DeliveredContent.ROOT,
        DeliveryTarget.PERSONAL,
        ("single-node-scatter", "single-node-scattering", "one-to-all-personalized"),
    ),
    "gather": CollectiveDefinition(
        DeliveredContent.EACH,
        DeliveryTarget.ROOT,
        ("single-node-gather", "single-node-gathering"),
    ),
    "alltoall": CollectiveDefinition(
        DeliveredContent.EACH,
        DeliveryTarget.PERSONAL,
        ("all-to-all", "total-exchange", "multinode-scatter", "multinode-scattering",
         "all-to-all-personalized"),
    ),
    "reduce": CollectiveDefinition(
        DeliveredContent.COMBINED,
        DeliveryTarget.ROOT,
        ("reduction", "single-node-accumulation"),
    ),
    "reduce-scatter": CollectiveDefinition(
        DeliveredContent.COMBINED,
        DeliveryTarget.PERSONAL,
        ("multinode-reduction", "multinode-accumulation"),
    ),
    "allreduce": CollectiveDefinition(
        DeliveredContent.COMBINED,
        DeliveryTarget.ALL,
        ("all-reduce",),
    ),
    "exchange": CollectiveDefinition(
        DeliveredContent.EACH,
        DeliveryTarget.PERSONAL,
        ("neighbour-exchange", "neighbor-exchange", "neighbor-alltoall"),
        local=True,
    ),
    "halo": CollectiveDefinition(
        DeliveredContent.EACH,
        DeliveryTarget.OFFSETS,
        ("halo-exchange", "neighbor-allgather"),
        local=True,
    ),
    "pattern": CollectiveDefinition(
        DeliveredContent.EACH,
        DeliveryTarget.PERSONAL,
        ("traffic", "traffic-pattern"),
        local=True,
    ),
}  # fmt: skip
