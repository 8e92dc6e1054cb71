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
    """Arcs between neighbours, each for one block a round.

    Among parallel links a message prefers the link with the number of its channel. Blocks that go
    in the same round by their file share an arc.

    Parameters
    ----------
    nodes : ndarray of int, shape (ranks,)
        The node of each rank.

    Raises
    ------
    InputError
        If two peers are no neighbours; names the first two.
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
        """Free all arcs."""
        self.taken.clear()

    def take_paths(self, message: Message, count: int) -> list[tuple[int, ...]]:
        """Take arcs for up to `count` blocks of a message; return a path of one arc for each."""
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
    """Paths of free arcs, each for all blocks of a message.

    Parameters
    ----------
    nodes : ndarray of int, shape (ranks,)
        The node of each rank.
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
        """Free all arcs."""
        self.free = self.all.copy()
        self.left = {arc: list(ports) for arc, ports in self.ports.items()}

    def take_paths(self, message: Message, count: int) -> list[tuple[int, ...]]:
        """Take the shortest path of free arcs between the ends of a message, if any.

        The path serves all blocks of the message, so the number of blocks, `count`, has no effect.
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
        """Take a free link from a node to the next, so that it is free no more; return its port.

        `arc` is the pair of the two nodes.
        """
        port = self.left[arc].pop(0)
        if not self.left[arc]:
            self.free.remove_edge(*arc)
        return port
