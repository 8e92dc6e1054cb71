"""Networks: tori, other Cayley graphs, meshes, graphs of any structure, and networks with faults.

`parse_topology` finds the class for a name such as ``8x8``.
"""

from .arrowhead import Arrowhead
from .cayley import CayleyGraph, check_supports_any_root, require_cayley_graph
from .circulant import Circulant, Complete, Cube
from .faulty import (
    Faulty,
    equal_links_as_text,
    equalize_axis_links,
    extra_faults,
    shared_network,
    split_faults,
    with_latency,
    with_relays,
    without_faults,
)
from .graph import Graph
from .groups import Groups, check_members, parse_axes
from .latency import Latency
from .rated import Multigraph, ParallelLinks, Rated, at_equal_rates, with_rates
from .rates import Rates
from .registry import parse_topology, register_topology, topology_from_json
from .subgraph import Mesh, Subgraph
from .topology import BoolArray, IntArray, IntLike, Topology, hops_from, node_ranges
from .torus import Torus
from .twisted import TwistedTorus

__all__ = ["Arrowhead", "BoolArray", "CayleyGraph", "Circulant", "Complete", "Cube", "Faulty",
           "Graph", "Groups", "IntArray", "IntLike", "Latency", "Mesh", "Multigraph",
           "ParallelLinks", "Rated", "Rates", "Subgraph", "Topology", "Torus", "TwistedTorus",
           "at_equal_rates", "check_members", "equalize_axis_links", "equal_links_as_text",
           "require_cayley_graph", "extra_faults", "hops_from", "parse_axes", "parse_topology",
           "register_topology", "check_supports_any_root", "shared_network", "split_faults",
           "topology_from_json", "with_latency", "with_rates", "node_ranges", "with_relays",
           "without_faults"]  # fmt: skip

for family in (
    Torus,
    Arrowhead,
    TwistedTorus,
    Circulant,
    Complete,
    Cube,
    Mesh,
    Graph,
    Rated,
    Faulty,
):
    register_topology(family)
