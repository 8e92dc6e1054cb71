"""The links that messages take in a round: a hop to a neighbour, or a path of free arcs.

A *rank* is a participant of a foreign schedule, such as a GPU, and its *peers* are the ranks with
which it exchanges messages. An arc is *free* if no message has taken it in the present round.
"""

from itertools import pairwise

from ...errors import InputError
from ...schedule.foreign.dataflow import Dataflow, Message
from ...topology import IntArray, Topology

__all__ = ["FreePaths", "FreeArcs"]

Arc = tuple[int, int]


class FreeArcs:
    """The arcs that no message has taken yet in the present round, for hops between neighbours.

    An arc carries one block a round; blocks that the file itself puts into one round share an arc.
    If several links lead to the same neighbour, the *channel* of a message, a number in the file,
    selects the link that the message prefers.

    Parameters
    ----------
    nodes : ndarray of int, shape (ranks,)
        The node of each rank, a participant of the foreign schedule.

    Raises
    ------
    InputError
        If a rank sends to a rank whose node is no neighbour. The error names the first such pair.
    """

    has_whole_messages = False

    def __init__(self, dataflow: Dataflow, topology: Topology, nodes: IntArray) -> None:
        self.ports: dict[Arc, list[int]] = {}
        for source, target, index in dataflow.rank_pairs():
            here, there = int(nodes[source]), int(nodes[target])
            leads = topology.neighbours[here] == there
            if not leads.any():
                distance = int(topology.distance(here, there))
                others = ", or --switching circuit" * (not dataflow.kept)
                raise InputError(
                    f"Rank {source} sends to rank {target}, but their nodes {here} and {there} "
                    f"are {distance} hops apart on {topology} "
                    f"({dataflow.graph.location_text(index)}); "
                    f"try --map auto{others}"
                )
            self.ports[source, target] = leads.nonzero()[0].tolist()
        self.taken: set[Arc] = set()

    def begin_round(self) -> None:
        """Mark all arcs as free: no message has taken them in the new round."""
        self.taken.clear()

    def take_paths(self, message: Message, count: int) -> list[tuple[int, ...]]:
        """Take free arcs for up to `count` blocks of a message, and return the port of each.

        Each block goes over one arc, so the result is a list of paths of one out-port, such as
        ``[(0,)]``.
        """
        ports = self.ports[message.source, message.target]
        first = message.channel % len(ports)
        if message.together:
            return [(ports[first],)] * count
        free = [
            port
            for port in (*ports[first:], *ports[:first])
            if (message.source, port) not in self.taken
        ][:count]
        self.taken.update((message.source, port) for port in free)
        return [(port,) for port in free]


class FreePaths:
    """The arcs that no message has taken yet in the present round, for paths of several links.

    A message takes one path of free arcs for all its blocks.

    Parameters
    ----------
    nodes : ndarray of int, shape (ranks,)
        The node of each rank, a participant of the foreign schedule.
    """

    has_whole_messages = True

    def __init__(self, topology: Topology, nodes: IntArray) -> None:
        import networkx as nx

        self.nodes: list[int] = nodes.tolist()
        self.all = nx.DiGraph()
        self.ports: dict[Arc, list[int]] = {}
        for node, row in enumerate(topology.neighbours.tolist()):
            for port, other in enumerate(row):
                self.ports.setdefault((node, other), []).append(port)
        self.all.add_nodes_from(range(topology.nodes))
        self.all.add_edges_from(self.ports)
        self.begin_round()

    def begin_round(self) -> None:
        """Mark all arcs as free: no message has taken them in the new round."""
        self.free = self.all.copy()
        self.left = {arc: list(ports) for arc, ports in self.ports.items()}

    def take_paths(self, message: Message, count: int) -> list[tuple[int, ...]]:
        """Take the shortest path of free arcs from the sender to the receiver of a message, if any.

        Return a list with this path as a tuple of out-ports, or an empty list. The path serves all
        blocks of the message, so the number of blocks, `count`, has no effect.
        """
        import networkx as nx

        source, target = self.nodes[message.source], self.nodes[message.target]
        if not (self.free.out_degree(source) and self.free.in_degree(target)):
            return []
        try:
            path = nx.bidirectional_shortest_path(self.free, source, target)
        except nx.NetworkXNoPath:
            return []
        return [tuple(self._take_link(arc) for arc in pairwise(path))]

    def _take_link(self, arc: Arc) -> int:
        """Take a free link between two nodes, given as a pair `arc`, and return its out-port.

        The link is not free afterwards.
        """
        port = self.left[arc].pop(0)
        if not self.left[arc]:
            self.free.remove_edge(*arc)
        return port
