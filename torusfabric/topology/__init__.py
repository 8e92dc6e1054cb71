"""Networks: tori, other Cayley graphs, meshes, any graphs, networks with faults, and their
names.
"""

from .arrowhead import Arrowhead
from .cayley import CayleyGraph, cayley, require_alike
from .circulant import Circulant, Complete, Cube
from .faulty import (
    Faulty,
    alike_along_axes,
    alike_links,
    faults_within,
    shared_network,
    with_latency,
    without_faults,
)
from .graph import Graph
from .groups import Groups, parse_axes
from .latency import Latency
from .part import Mesh, Part
from .registry import parse_topology, register_topology, topology_from_json
from .topology import BoolArray, IntArray, IntLike, Topology, hops_from
from .torus import Torus
from .twisted import TwistedTorus

__all__ = ["Arrowhead", "BoolArray", "CayleyGraph", "Circulant", "Complete", "Cube", "Faulty",
           "Graph", "Groups", "IntArray", "IntLike", "Latency", "Mesh", "Part", "Topology", "Torus",
           "TwistedTorus", "alike_along_axes", "alike_links", "cayley", "faults_within",
           "hops_from", "parse_axes", "parse_topology", "register_topology", "require_alike",
           "shared_network", "topology_from_json", "with_latency", "without_faults"]  # fmt: skip

for family in (Torus, Arrowhead, TwistedTorus, Circulant, Complete, Cube, Mesh, Graph, Faulty):
    register_topology(family)
