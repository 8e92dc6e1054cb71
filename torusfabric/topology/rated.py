"""Networks with links of several rates: parallel links, and links with a flit every few cycles.

Users write rates behind the name of a network: in ``4x4%0:2,1:1/2`` the links along axis 0 carry
two flits a cycle, those along axis 1 a flit every two cycles. A link of rate p/q is planned as p
parallel links. Each of them is a *slow link* with *spacing* q: it carries a flit at most every q
cycles, and has a latency of at least q cycles, in which narrow wires can carry a flit in q parts.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import Self, override

from ..errors import InputError
from ..toolchain.public import public, public_class
from .cayley import CayleyGraph
from .faulty import Faulty, arcs_of_link
from .graph import Graph, copy_name
from .graph_file import MOST_ARCS
from .latency import Latency
from .rates import Rates, is_attribute, list_rates
from .registry import parse_topology, topology_from_json
from .subgraph import MOST_NODES
from .topology import IntArray, IntLike, Topology, cached_array, limit_nodes

__all__ = ["Multigraph", "ParallelLinks", "Rated", "at_equal_rates", "with_rates"]

#: The subject of messages about the size of a network with rates.
_SUBJECT = "Network with rates"


class ArcRates(NamedTuple):
    """The rates of all arcs of a network.

    Parameters
    ----------
    links, spacing : ndarray of int, shape (nodes, ports)
        Number of parallel links in place of each arc, and the cycles from a flit to the next on
        each of them.
    text : str
        The rates as a user writes them, in lowest terms.
    """

    links: IntArray
    spacing: IntArray
    text: str


def rates_of_arcs(topology: Topology, rates: Rates) -> ArcRates:
    """Return the rates of all arcs of a network.

    A rate of a single link is stronger than that of the links between blocks, which is stronger
    than that of an axis, and that than the rate of all links. Other links carry a flit a cycle.

    Raises
    ------
    InputError
        If a rate is invalid, or names axes or links that the network does not have.

    Examples
    --------
    The links along axis 1 carry a flit every two cycles, but for the link at port +1 of node 0:

    >>> from torusfabric.topology import Torus
    >>> rates = rates_of_arcs(Torus(4, 4), "1:1/2,0:+1=3")
    >>> rates.links[0].tolist(), rates.spacing[0].tolist(), rates.text
    ([1, 1, 3, 1], [1, 1, 1, 2], '1:1/2,0:+1=3')
    """
    entries = list_rates(rates)
    shape = topology.nodes, topology.ports
    links, spacing = np.ones(shape, np.int64), np.ones(shape, np.int64)
    # Links between blocks, such as 2x1, have no colon in their place.
    strength = lambda entry: (["", ":", "="].index(entry[0]), ":" in entry[1])
    for kind, place, rate in sorted(entries, key=strength):
        arcs = _arcs_of_entry(topology, kind, place)
        links[arcs], spacing[arcs] = rate.numerator, rate.denominator
    text = ",".join(f"{place}{kind}{rate}" for kind, place, rate in entries)
    return ArcRates(links, spacing, text)


def _arcs_of_entry(topology: Topology, kind: str, place: str) -> Any:
    """Return the index of the arcs in an array of shape (nodes, ports) that an entry means."""
    if not kind:
        return ...
    if kind == ":":
        axes = topology.dimensions
        if not re.fullmatch(r"[0-9]{1,3}", place) or int(place) >= axes:
            known = ", ".join(map(str, range(axes)))
            have = f"some of the axes {known} of {topology}" if axes else f"links of {topology}"
            raise InputError(f"Rate must be of {have}, or of a link as in 0:+0=1/2, not of {place}")
        return np.s_[:, 2 * int(place) : 2 * int(place) + 2]
    return tuple(np.array(arcs_of_link(topology, place, "Link with a rate")).T)


class _Copies:
    """The ports of a network in which links are replaced by parallel links.

    Parameters
    ----------
    whole : Topology
        The network.
    links : ndarray of int, shape (nodes, ports)
        Number of parallel links in place of each arc.

    Attributes
    ----------
    port : ndarray of int, shape (new ports,)
        The port of `whole` that each new port multiplies.
    rank : ndarray of int, shape (new ports,)
        Number of the parallel link, from 0.
    names : tuple of str
        The names of the new ports: ``+0``, then ``+0.2``, ``+0.3`` for parallel links.
    opposite : ndarray of int, shape (new ports,)
        The in-port at which a message arrives that leaves by each new port.
    """

    def __init__(self, whole: Topology, links: IntArray) -> None:
        most = np.where(whole.linked, links, 1).max(axis=0)
        # A port and its opposite have the same number of copies, and so has the port opposite that.
        while (most != (wider := np.maximum(most, most[np.argsort(whole.opposite)]))).any():
            most = wider
        self.port = np.repeat(np.arange(whole.ports), most)
        first = np.cumsum(most) - most
        self.rank = np.arange(len(self.port)) - first[self.port]
        self.names = tuple(
            copy_name(whole.port_names[port], rank)
            for port, rank in zip(self.port.tolist(), self.rank.tolist(), strict=True)
        )
        self.opposite = first[whole.opposite[self.port]] + self.rank


class _ParallelPorts(Topology):
    """A network with the nodes of another network, and parallel links in place of its links.

    Attributes
    ----------
    whole : Topology
        The other network.
    copies : _Copies
        The ports, and the port of `whole` that each multiplies.
    """

    whole: Topology
    copies: _Copies

    @cached_array
    @override
    def cycles_of_port(self) -> IntArray:
        return self.whole.cycles_of_port[self.copies.port]

    @property
    @override
    def grid(self) -> tuple[tuple[int, ...], IntArray]:
        return self.whole.grid

    @override
    def node_name(self, node: int) -> str:
        return self.whole.node_name(node)


class _NamedRates(_ParallelPorts):
    """A network of parallel links that a file describes by another network and rates.

    Attributes
    ----------
    rates : str
        The rates of links, as in the name of the network.
    """

    rates: str

    @override
    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "whole": self.whole.to_json(), "rates": self.rates}

    @override
    def on_links(self, latency: Latency) -> Self:
        return type(self)(self.whole.on_links(latency), self.rates)  # type: ignore[call-arg]


class Multigraph(_ParallelPorts, Graph):
    """A network in which each arc of another network is replaced by a number of parallel arcs.

    Parameters
    ----------
    whole : Topology
        The other network.
    links : ndarray of int, shape (nodes, ports)
        Number of parallel arcs in place of each arc.
    """

    def __init__(self, whole: Topology, links: IntArray) -> None:
        self.whole, self.copies, self.name = whole, _Copies(whole, links), whole.name
        self.nodes, self.ports = whole.nodes, len(self.copies.port)
        self.port_names, self.opposite = self.copies.names, self.copies.opposite
        self.link_latency, self.relays = whole.link_latency, whole.relays
        self._names = [str(node) for node in range(whole.nodes)]
        port = self.copies.port
        self._linked = whole.linked[:, port] & (self.copies.rank < links[:, port])
        here = np.arange(self.nodes)[:, None]
        self._neighbours = np.where(self._linked, whole.neighbours[:, port], here).astype(np.int32)
        if self._linked.sum() > MOST_ARCS:
            raise InputError(
                f"{_SUBJECT} must have at most {MOST_ARCS} arcs, not {self._linked.sum()}"
            )

    @property
    @override
    def spacing_of_arc(self) -> IntArray:
        return np.broadcast_to(np.int64(1), (self.nodes, self.ports))


@public_class
class Rated(_NamedRates, Multigraph):
    """A network whose links have several rates.

    Parameters
    ----------
    whole : Topology
        The network in which each link carries a flit a cycle.
    rates : int, float, Fraction, str or mapping
        Flits a cycle: of all links, as ``"1/2"``; of the links of axes, as ``"0:2,1:1/2"`` or ``{0:
        2}``; of single links in both directions, as ``"0:+0=1/2"``.

    Raises
    ------
    InputError
        If a rate is invalid, or names axes or links that the network does not have.

    Examples
    --------
    >>> rated = Rated(parse_topology("4x4"), "0:2,1:1/2")
    >>> rated.name, rated.port_names
    ('4x4%0:2,1:1/2', ('+0', '+0.2', '-0', '-0.2', '+1', '-1'))
    >>> rated.spacing_of_arc[0].tolist(), rated.cycles_of_arc[0].tolist()
    ([1, 1, 1, 1, 2, 2], [1, 1, 1, 1, 2, 2])
    """

    kind = "rated"
    notation = "any of these with rates as in 8x8%0:2,1:1/2"
    entry = '{"kind": "rated", "whole": {..}, "rates": ".."}'

    def __init__(self, whole: Topology, rates: Rates) -> None:
        if whole.nodes > MOST_NODES:
            raise InputError(f"{_SUBJECT} must have at most {MOST_NODES} nodes, not {whole}")
        found = rates_of_arcs(whole, rates)
        super().__init__(whole, found.links)
        self.rates, self.name = found.text, f"{whole}%{found.text}"
        self._spacing = np.where(
            self._linked, np.maximum(found.spacing, whole.spacing_of_arc)[:, self.copies.port], 1
        )

    @property
    @override
    def spacing_of_arc(self) -> IntArray:
        return self._spacing

    @classmethod
    @override
    def parse(cls, text: str) -> Self | None:
        whole, mark, rates = text.rpartition("%")
        if not mark or "!" in rates:
            return None
        if whole.startswith("graph:") and is_attribute(rates):
            return None  # `Graph` reads the attribute
        with limit_nodes(_SUBJECT, MOST_NODES):
            return with_rates(parse_topology(whole), rates)  # type: ignore[return-value]

    @classmethod
    @override
    def from_json(cls, entry: dict[str, Any]) -> Self | None:
        match entry:
            case {"whole": whole, "rates": str(rates)}:
                with limit_nodes(_SUBJECT, MOST_NODES):
                    return with_rates(topology_from_json(whole), rates)  # type: ignore[return-value]
        return None

    @override
    def validate(self) -> None:
        return  # the whole network is valid, and no link is missing


class ParallelLinks(_NamedRates, CayleyGraph):
    """A Cayley graph whose links carry a whole number of flits a cycle, equal along each axis.

    The network looks the same from every node. `with_rates` makes it.

    Parameters
    ----------
    whole : CayleyGraph
        The network in which each link carries a flit a cycle.
    rates : int, str or mapping
        The rates, see `Rated`.

    Examples
    --------
    >>> network = ParallelLinks(parse_topology("4x4"), {0: 2})
    >>> network.name, network.ports, network.neighbours[0].tolist()
    ('4x4%0:2', 6, [4, 4, 12, 12, 1, 3])
    """

    kind = Rated.kind
    notation, entry = Rated.notation, Rated.entry

    whole: CayleyGraph

    def __init__(self, whole: CayleyGraph, rates: Rates) -> None:
        found = rates_of_arcs(whole, rates)
        self.whole, self.rates, self.name = whole, found.text, f"{whole}%{found.text}"
        self.copies = _Copies(whole, found.links)
        self.nodes, self.ports = whole.nodes, len(self.copies.port)
        self.port_names, self.opposite = self.copies.names, self.copies.opposite
        self.link_latency = whole.link_latency

    @classmethod
    @override
    def parse(cls, text: str) -> Self | None:
        return Rated.parse(text)  # type: ignore[return-value]

    @classmethod
    @override
    def from_json(cls, entry: dict[str, Any]) -> Self | None:
        return Rated.from_json(entry)  # type: ignore[return-value]

    @property
    @override
    def generators(self) -> IntArray:
        return self.whole.generators[self.copies.port]

    @property
    @override
    def moduli(self) -> tuple[int, ...]:
        return self.whole.moduli

    @override
    def coordinates(self, nodes: IntLike) -> IntArray:
        return self.whole.coordinates(nodes)


@public
def with_rates(topology: Topology | str, rates: Rates) -> Topology:
    """Return a network whose links have the rates that a user names, in flits a cycle.

    A rate is a whole number or a ratio. A rate p/q is planned as p parallel links, each of which
    carries a flit every q cycles.

    Parameters
    ----------
    topology : Topology or str
        The network, or its name. It must not have rates yet.
    rates : int, float, Fraction, str or mapping
        The rate of all links, or the rates of axes and links, see `Rated`. For the name of a graph
        file also an attribute of its edges with the value of a flit a cycle: ``"capacity/50"``.

    Raises
    ------
    InputError
        If a rate is invalid, or names axes or links that the network does not have.

    Examples
    --------
    >>> [type(with_rates(parse_topology("4x4"), rates)).__name__ for rates in ("0:2", "1/2")]
    ['ParallelLinks', 'Rated']
    """
    if isinstance(topology, str):
        if topology.startswith("graph:") and is_attribute(rates):
            whole, mark, faults = topology.partition("!")
            return parse_topology(f"{whole}%{rates}{mark}{faults}")
        topology = parse_topology(topology)
    if isinstance(topology, Rated | ParallelLinks):
        raise InputError(f"{topology} has rates already; give all rates in one place")
    if isinstance(topology, Faulty):
        faults = topology.faults
        return Faulty.of(with_rates(topology.whole.on_links(topology.link_latency), rates), faults)
    found = rates_of_arcs(topology, rates)
    alike = (found.links == found.links[:1]).all() and (found.spacing == 1).all()
    if isinstance(topology, CayleyGraph) and alike:
        return ParallelLinks(topology, rates) if (found.links > 1).any() else topology
    return Rated(topology, rates)


@lru_cache(maxsize=16)
def at_equal_rates(topology: Topology) -> Multigraph:
    """Return a network in which all arcs have the same rate, with the capacities of `topology`.

    Let Q be the least common multiple of the spacings (`Topology.spacing_multiple`). An arc of
    spacing n becomes Q / n parallel arcs, each of which carries a message in Q cycles. Bounds and
    planners for equal links so serve networks with slow links.

    Examples
    --------
    >>> at_equal_rates(Rated(parse_topology("4x4"), "0:1/2")).port_names
    ('+0', '-0', '+1', '+1.2', '-1', '-1.2')
    """
    return Multigraph(topology, topology.spacing_multiple // topology.spacing_of_arc)
