"""Networks: Cayley graphs, the torus and its sub-tori, the arrowhead torus, and their names."""

from .arrays import BoolArray, IntArray, IntLike
from .arrowhead import Arrowhead
from .cayley import Topology
from .groups import Groups, parse_axes
from .registry import parse_topology, register_topology, topology_from_json
from .torus import Torus

__all__ = [
    "Arrowhead",
    "BoolArray",
    "Groups",
    "IntArray",
    "IntLike",
    "Topology",
    "Torus",
    "parse_axes",
    "parse_topology",
    "register_topology",
    "topology_from_json",
]

for family in (Torus, Arrowhead):
    register_topology(family)
