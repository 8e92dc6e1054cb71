"""Networks: Cayley graphs, the torus, the arrowhead torus, and how users name them."""

from .arrays import BoolArray, IntArray, IntLike
from .arrowhead import Arrowhead
from .cayley import Topology
from .registry import parse_topology, register_topology, topology_from_json
from .torus import Torus

__all__ = [
    "Arrowhead",
    "BoolArray",
    "IntArray",
    "IntLike",
    "Topology",
    "Torus",
    "parse_topology",
    "register_topology",
    "topology_from_json",
]

for family in (Torus, Arrowhead):
    register_topology(family)
