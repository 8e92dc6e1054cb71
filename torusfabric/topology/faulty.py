"""Networks whose parts differ: broken links and nodes, slow links, and nodes that only relay.

Users write these differences, in short *faults*, behind the name of a network: ``8x8!0:+0,9`` has a
broken link at port +0 of node 0 and a broken node 9. In ``8x8!0:+0=4`` the link takes 4 cycles, and
in ``8x8!9=relay`` node 9 sends and receives nothing of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import Self, override

from ..errors import InputError
from ..toolchain.public import public_class
from .blocks import arcs_between_blocks, parse_block_counts
from .graph import describe_nodes
from .latency import MOST_CYCLES, Latency
from .registry import parse_topology, topology_from_json
from .subgraph import MOST_NODES, Subgraph
from .topology import BoolArray, IntArray, Topology, cached_array, limit_nodes, node_ranges

__all__ = ["Faulty", "arcs_of_link", "equalize_axis_links", "equal_links_as_text", "extra_faults",
           "shared_network", "split_faults", "with_latency", "with_relays",
           "without_faults"]  # fmt: skip

#: The end of the word, in the name of a network, for a node that only relays: ``9=relay``.
RELAY = "=relay"

#: The subject of messages about the size of a network with faults.
_SUBJECT = "Network with faults"


@public_class
class Faulty(Subgraph):
    """A network in which links or nodes are broken, links are slow, or nodes only relay.

    A broken node neither sends, nor receives, nor forwards. The other nodes are renumbered in
    order, and collectives run among them. A node that only relays keeps its number.

    Parameters
    ----------
    whole : Topology
        The network without these faults. If it is a `Faulty` network, the new faults are added to
        its own.
    broken_links : sequence of (str or (int, int))
        A link as ``9:+0``, or as a pair of a node and a port. ``9:+0:out`` breaks only the arc that
        leaves the node.
    broken_nodes : sequence of (int or str)
        Numbers or names of nodes in the whole network, as in `broken_links`.
    slow_links : sequence of str
        A link and its latency as ``9:+0=4``: 4 cycles in both directions, in place of the latency
        that the link has in `whole`. ``2x1=8`` gives this latency to all links between 2x1 equal
        blocks of nodes, but for those that are named singly.
    relays : sequence of (int or str)
        Numbers or names, in the whole network, of nodes that only relay: switches, which send and
        receive nothing of their own.

    Raises
    ------
    InputError
        If there is no such link or node, or if the remaining network is not strongly connected.

    Examples
    --------
    >>> faulty = Faulty(parse_topology("4x4"), ["5:-1"], [10], ["0:+0=4"])
    >>> faulty.name, faulty.nodes, faulty.node_name(10), faulty.longest_link
    ('4x4!4:+1,10,0:+0=4', 15, '(2,3)', 4)
    >>> switches = Faulty(parse_topology("4x4"), broken_nodes=[10], relays=[3, 12])
    >>> switches.name, switches.relays
    ('4x4!10,3=relay,12=relay', (3, 11))
    """

    kind = "faulty"
    notation = "any of these with faults as in 8x8!0:+0,9, slow links as in 8x8!0:+0=4 or relays "
    notation += "as in 8x8!9=relay"
    entry = '{"kind": "faulty", "whole": {..}, "broken_links": [..], "broken_nodes": [..], '
    entry += '"slow_links": [..], "relays": [..]}'

    broken_links: tuple[str, ...]
    broken_nodes: tuple[int, ...]
    slow_links: tuple[str, ...]
    #: The nodes of the whole network that only relay here, but not there.
    added_relays: tuple[int, ...]

    def __init__(
        self,
        whole: Topology,
        broken_links: Sequence[str | tuple[int, int | str]] = (),
        broken_nodes: Sequence[int | str] = (),
        slow_links: Sequence[str] = (),
        relays: Sequence[int | str] = (),
    ) -> None:
        if isinstance(whole, Faulty):
            relays = [*whole.added_relays, *relays]
            broken_links = [*whole.broken_links, *broken_links]
            broken_nodes = [*whole.broken_nodes, *broken_nodes]
            slow_links = [*whole.slow_links, *slow_links]
            whole = whole.whole.on_links(whole.link_latency)
        self.name = f"{whole}!"
        if whole.nodes > MOST_NODES:
            raise InputError(f"{_SUBJECT} must have at most {MOST_NODES} nodes, not {whole}")
        kept = np.ones(whole.nodes, bool)
        for node in broken_nodes:
            kept[whole.node_number(node, noun="Broken node")] = False
        if not kept.any():
            raise InputError("Broken nodes must leave at least one node; break fewer")
        arcs = np.ones((whole.nodes, whole.ports), bool)
        for link in broken_links:
            for arc in arcs_of_link(whole, link, "Broken link"):
                arcs[arc] = False
        between = [word for word in map(str, slow_links) if parse_block_counts(word.split("=")[0])]
        slow, usual = (
            np.where(arcs, _slow_arc_cycles(whole, words), 0)
            for words in ([each for each in slow_links if each not in between], between)
        )
        self.broken_nodes = tuple(int(node) for node in np.flatnonzero(~kept))
        self.broken_links = _broken_link_names(whole, arcs, kept)
        self.slow_links = (
            *dict.fromkeys(between),
            *(
                f"{name}={cycles}"
                for cycles in np.unique(slow[slow > 0]).tolist()
                for name in _broken_link_names(whole, slow != cycles, kept)
            ),
        )
        self._slow = np.where(slow > 0, slow, usual)[kept]
        relaying = {*whole.parse_relays(relays)} - {*whole.relays, *self.broken_nodes}
        self.added_relays = tuple(sorted(relaying))
        if not self.faults:
            raise InputError(
                f"No fault of {whole} is given; name a broken link or node, or use the topology "
                "itself"
            )
        self.name += self.faults
        self._fill_from_whole(whole, kept, arcs)
        relaying |= {*whole.relays}
        self.relays = self.parse_relays(np.flatnonzero(np.isin(self.kept, [*relaying])).tolist())
        if self.slow_links or self.relays:
            self.dimensions = 0

    @classmethod
    @override
    def parse(cls, text: str) -> Self | None:
        if "!" not in text:
            return None
        whole, _, faults = text.rpartition("!")
        with limit_nodes(_SUBJECT, MOST_NODES):
            found = parse_topology(whole)
        return cls.of(found, faults)

    @classmethod
    def of(cls, whole: Topology, faults: str) -> Self:
        """Return a network with the faults that users write behind its name.

        Parameters
        ----------
        whole : Topology
            The network without faults.
        faults : str
            Broken links, broken nodes, slow links and relays, separated by commas, as behind the
            ``!`` of a name.

        Raises
        ------
        InputError
            If there is no such link or node, or if nodes are cut off.

        Examples
        --------
        Node 9 and the link at port +0 of node 0 are broken. Links are written before nodes.

        >>> Faulty.of(parse_topology("4x4"), "9,0:+0").faults
        '0:+0,9'
        """
        network = whole.whole if isinstance(whole, Faulty) else whole
        words = split_faults(faults)
        relays = [word.removesuffix(RELAY) for word in words if word.endswith(RELAY)]
        words = [word for word in words if not word.endswith(RELAY)]
        slow = [word for word in words if "=" in word]
        others = [word for word in words if "=" not in word]
        nodes = [
            word
            for word in others
            if re.fullmatch(r"[0-9]{1,18}", word) or network.find_node(word) is not None
        ]
        return cls(whole, [word for word in others if word not in nodes], nodes, slow, relays)

    @property
    def faults(self) -> str:
        """The faults as users write them."""
        relays = (f"{nodes}{RELAY}" for nodes in node_ranges(self.added_relays))
        nodes = map(str, self.broken_nodes)
        return ",".join([*self.broken_links, *nodes, *self.slow_links, *relays])

    @cached_array
    @override
    def cycles_of_arc(self) -> IntArray:
        cycles = np.where(self._slow > 0, self._slow, self.cycles_of_port)
        return np.maximum(cycles, self.spacing_of_arc)

    @property
    @override
    def one_latency(self) -> int | None:
        return None if self.slow_links else super().one_latency

    @classmethod
    @override
    def from_json(cls, entry: dict[str, Any]) -> Self | None:
        match entry:
            case {"whole": whole, "broken_links": [*links], "broken_nodes": [*nodes]}:
                with limit_nodes(_SUBJECT, MOST_NODES):
                    found = topology_from_json(whole)
                slow, relays = entry.get("slow_links", ()), entry.get("relays", ())
                return cls(found, links, nodes, slow, relays)
        return None

    @override
    def to_json(self) -> dict[str, Any]:
        return {
            "kind": "faulty",
            "whole": self.whole.to_json(),
            "broken_links": list(self.broken_links),
            "broken_nodes": list(self.broken_nodes),
            **({"slow_links": list(self.slow_links)} if self.slow_links else {}),
            **({"relays": list(self.added_relays)} if self.added_relays else {}),
        }

    @override
    def validate(self) -> None:
        cut_off = self._unreachable_nodes()
        if len(cut_off):
            nodes = describe_nodes(self.whole, self.kept[cut_off])
            raise InputError(
                f"These broken links and nodes cut off {nodes}; break fewer, so that each node "
                "reaches every other"
            )

    @cached_property
    def renumbered(self) -> str:
        """Text about the nodes that have another number here than in the whole network.

        The text is empty if there are none. Without node 9, a network of 16 nodes has
        ``10 to 15 as 9 to 14``: the numbers in the whole network, then the numbers here.
        """
        moved = np.flatnonzero(self.kept != np.arange(self.nodes))
        runs = np.split(moved, np.flatnonzero(np.diff(self.kept[moved]) > 1) + 1)
        return ", ".join(
            f"{_node_range_text(self.kept[run])} as {_node_range_text(run)}"
            for run in runs
            if len(run)
        )


def split_faults(text: str) -> list[str]:
    """Return the faults in a text that joins them by commas; commas in parentheses do not count.

    Examples
    --------
    >>> split_faults("0:+0, (1,2),9")
    ['0:+0', '(1,2)', '9']
    """
    return [word.strip() for word in re.split(r",(?![^()]*\))", text)]


def with_latency(topology: Topology, latency: Latency) -> Topology:
    """Return a topology with the link latency that a user names.

    The latency may be that of all links, of the links of some axes, or of single links.

    Raises
    ------
    InputError
        If the latency is invalid, or names axes or links that the topology does not have.

    Examples
    --------
    All links take 2 cycles, except for the link at port +1 of node 0, which takes 4, and the links
    between the upper and the lower half, which take 8.

    >>> with_latency(parse_topology("4x4"), "2,0:+1=4,2x1=8").cycles_of_arc[0].tolist()
    [2, 8, 4, 2]
    """
    words = [word.strip() for word in latency.split(",")] if isinstance(latency, str) else []
    slow = [word for word in words if "=" in word]
    if not slow:
        return topology.on_links(latency)
    others = ",".join(word for word in words if "=" not in word)
    return Faulty(topology.on_links(others) if others else topology, slow_links=slow)


def with_relays(topology: Topology, relays: Sequence[int | str]) -> Topology:
    """Return a topology in which some nodes only relay: they send and receive nothing of their own.

    Parameters
    ----------
    relays : sequence of (int or str)
        Numbers or names of nodes. If nodes are broken, numbers are those of the whole network.

    Raises
    ------
    InputError
        If there is no such node, or if fewer than two nodes are left that send and receive.

    Examples
    --------
    >>> with_relays(parse_topology("4x4"), [5, "(1,2)"]).name
    '4x4!5=relay,6=relay'
    """
    network = topology.whole if isinstance(topology, Faulty) else topology
    if {*network.parse_relays(relays)} <= {*network.relays}:
        return topology
    return Faulty(topology, relays=relays)


def equalize_axis_links(topology: Topology) -> Topology:
    """Return the topology with every link as slow as the slowest link along its axis.

    Collectives in several groups at once need equal links along an axis, and so do boards with
    equal blocks of nodes. A topology without slow links, or without axes, is returned unchanged.

    Examples
    --------
    The link at port +1 of node 0 takes 4 cycles, so all links along axis 1 get this latency.

    >>> alike = equalize_axis_links(parse_topology("4x4!0:+1=4,9"))
    >>> alike.name, alike.latency_text
    ('4x4!9', '0:1,1:4')
    """
    if not isinstance(topology, Faulty) or not topology.slow_links:
        return topology
    whole, faults = topology.whole, _Faults.from_topology(topology)._replace(slow=())
    if not whole.dimensions:
        return topology
    slowest = np.where(topology.linked, topology.cycles_of_arc, 1).max(axis=0)
    by_axis = slowest.reshape(whole.dimensions, 2).max(axis=1).tolist()
    return faults.apply_to(whole.on_links(by_axis))


def equal_links_as_text(topology: str | None, latency: str | None) -> dict[str, str]:
    """Return the texts for a topology like the user's, with equal links along each axis.

    The result has the keys ``topology`` and ``link_latency``, and describes the
    `equalize_axis_links` of the topology that the user named by these texts. `latency` may be None.
    If no link is slow, the result is empty, because nothing changes.
    """
    if topology is None or "=" not in f"{latency}{topology}":
        return {}
    whole = parse_topology(topology)
    alike = equalize_axis_links(whole if latency is None else with_latency(whole, latency))
    return {"topology": str(alike), "link_latency": alike.latency_text}


def shared_network(topologies: Iterable[Topology]) -> Topology:
    """Return the network on which several topologies can all run.

    It has the broken links and nodes that all topologies have, and the slow links and relays of
    each.

    Raises
    ------
    InputError
        If the topologies differ by more than broken links and nodes, for example in their relays.

    Examples
    --------
    Node 9 is broken in both networks, the link only in the first.

    >>> networks = map(parse_topology, ["4x4!0:+0,9", "4x4!9"])
    >>> shared_network(networks)
    <Faulty 4x4!9>
    """
    first, *others = topologies
    if all(other == first for other in others):
        return first
    each, whole = [first, *others], _without_any_faults(first)
    faults = [_Faults.from_topology(topology) for topology in each]
    slow = sorted({link for of_one in faults for link in of_one.slow})
    for topology, of_one in zip(each, faults, strict=True):
        if (
            _without_any_faults(topology) != whole
            or of_one._replace(slow=slow, relays=faults[0].relays).apply_to(whole) != topology
        ):
            raise InputError(
                f"Topology must be the same for all collectives of a fabric, {first} but for "
                f"broken links and nodes, not {topology}"
            )
    links = [k for k in faults[0].links if all(k in of_one.links for of_one in faults)]
    nodes = [k for k in faults[0].nodes if all(k in of_one.nodes for of_one in faults)]
    return _Faults(links, nodes, slow, faults[0].relays).apply_to(whole)


class _Faults(NamedTuple):
    """The broken links, broken nodes, slow links and added relays of a network, as in `Faulty`.

    All four are empty for a network without faults.
    """

    links: Sequence[str]
    nodes: Sequence[int]
    slow: Sequence[str]
    relays: Sequence[int]

    @classmethod
    def from_topology(cls, topology: Topology) -> Self:
        """Return the faults of a network."""
        if not isinstance(topology, Faulty):
            return cls((), (), (), ())
        return cls(
            topology.broken_links, topology.broken_nodes, topology.slow_links, topology.added_relays
        )

    def apply_to(self, whole: Topology) -> Topology:
        """Return `whole` with these faults added; `whole` itself if there are none."""
        return Faulty(whole, *self) if any(self) else whole


def _without_any_faults(topology: Topology) -> Topology:
    """Return the network with all links and nodes repaired, alike links, and no added relays."""
    if not isinstance(topology, Faulty):
        return topology
    return topology.whole.on_links(topology.link_latency)


def extra_faults(network: Topology, topology: Topology) -> str:
    """Return the faults that `topology` has beyond those of `network`, as users write them.

    `network` is the `shared_network` of several topologies, of which `topology` is one.

    Examples
    --------
    >>> torus = parse_topology("4x4")
    >>> extra_faults(torus, Faulty(torus, ["0:+0"])), extra_faults(torus, torus)
    ('!0:+0', '')
    """
    if not isinstance(topology, Faulty) or topology == network:
        return ""
    known = network.faults.split(",") if isinstance(network, Faulty) else []
    return "!" + ",".join(word for word in topology.faults.split(",") if word not in known)


def without_faults(topology: Topology) -> Topology:
    """Return the network with its broken links repaired. Slow links stay slow, relays relays.

    A network with broken nodes is returned unchanged.

    Examples
    --------
    >>> torus = parse_topology("4x4")
    >>> [without_faults(Faulty.of(torus, faults)) for faults in ("0:+0", "9",
    ...     "0:+0,1:+0=2")]
    [<Torus 4x4>, <Faulty 4x4!9>, <Faulty 4x4!1:+0=2>]
    """
    if not isinstance(topology, Faulty) or topology.broken_nodes:
        return topology
    faults = _Faults.from_topology(topology)._replace(links=())
    return faults.apply_to(_without_any_faults(topology))


def _node_range_text(nodes: IntArray) -> str:
    """Return text, ``3`` or ``3 to 5``, for the consecutive node numbers in the array `nodes`."""
    first, last = int(nodes[0]), int(nodes[-1])
    return str(first) if first == last else f"{first} to {last}"


def arcs_of_link(whole: Topology, link: object, noun: str) -> list[tuple[int, int]]:
    """Return the arcs (node, port) of a link that is broken or slow, as users name it.

    `whole` is the network without faults. The arcs are both directions of the link, or one if its
    name ends in ``:out``. The name ``2x1`` stands for all links between two blocks, see `blocks`.
    Messages of errors begin with `noun`, such as "Slow link".
    """
    if isinstance(link, str) and (counts := parse_block_counts(link)):
        return [(v, p) for v, p in np.argwhere(arcs_between_blocks(whole, counts)).tolist()]
    alone = isinstance(link, str) and link.endswith(":out")
    node, port = whole.arc(link.removesuffix(":out") if isinstance(link, str) else link, noun=noun)
    if not whole.linked[node, port]:
        raise InputError(f"{noun} must be one of {whole}, not {node}:{whole.port_names[port]}")
    back = None if alone else _reverse_arc(whole, node, port)
    return [(node, port)] if back is None else [(node, port), back]


def _slow_arc_cycles(whole: Topology, slow_links: Sequence[str]) -> IntArray:
    """Return an array of shape (nodes, ports): the latency of slow arcs in cycles, 0 for others.

    `whole` is the network without faults. `slow_links` are texts such as ``0:+0=4``: link and
    cycles.
    """
    slow = np.zeros((whole.nodes, whole.ports), int)
    for word in slow_links:
        link, _, cycles = str(word).partition("=")
        if not re.fullmatch(r"[0-9]{1,9}", cycles) or not 1 <= int(cycles) <= MOST_CYCLES:
            raise InputError(
                f"Slow link must be NODE:PORT=CYCLES with 1 to {MOST_CYCLES} cycles, not {word}"
            )
        if link.endswith(":out"):
            raise InputError(f"Slow link must be slow both ways, not {word}")
        for arc in arcs_of_link(whole, link, "Slow link"):
            if slow[arc] not in (0, int(cycles)):
                raise InputError(
                    f"Slow link {word} is also given {slow[arc]} cycles; give each link one latency"
                )
            slow[arc] = int(cycles)
    return slow


def _reverse_arc(whole: Topology, node: int, port: int) -> tuple[int, int] | None:
    """Return the arc that leads back over the link of the arc (node, port), None if there is none.

    This is the arc at the opposite port if that leads back. Else, with k parallel arcs before this
    one, it is arc k among the parallel arcs back. `whole` is the network without faults.
    """
    there, back = int(whole.neighbours[node, port]), int(whole.opposite[port])
    if whole.linked[there, back] and whole.neighbours[there, back] == node:
        return there, back
    alike = np.flatnonzero(whole.linked[node] & (whole.neighbours[node] == there)).tolist()
    ways = np.flatnonzero(whole.linked[there] & (whole.neighbours[there] == node)).tolist()
    rank = alike.index(port)
    return (there, ways[rank]) if rank < len(ways) else None


def _broken_link_names(whole: Topology, arcs: BoolArray, kept: BoolArray) -> tuple[str, ...]:
    """Return the names of broken links, each once, in order.

    `arcs`, shape (nodes, ports), is False for a broken arc; `kept`, shape (nodes,), is False for a
    broken node, whose links are left out. A link is named by its end with the lower number. If only
    one of its arcs is broken, the link is named by that arc, with ``:out``. `whole` is the network
    without faults.
    """
    names: list[str] = []
    seen: set[tuple[int, int]] = set()
    for node, port in np.argwhere(~arcs).tolist():
        if not (kept[node] and kept[whole.neighbours[node, port]]) or (node, port) in seen:
            continue
        back, name = _reverse_arc(whole, node, port), f"{node}:{whole.port_names[port]}"
        both = back is not None and not arcs[back]
        if back is not None and both:
            seen.add(back)
        names.append(name if both or back is None else f"{name}:out")
    return tuple(names)
