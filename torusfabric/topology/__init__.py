"""Networks: Cayley graphs, the torus and its sub-tori and others, and their names."""

from .arrays import BoolArray, IntArray, IntLike
from .arrowhead import Arrowhead
from .cayley import Topology
from .circulant import Circulant, Complete, Cube
from .groups import Groups, parse_axes
from .registry import parse_topology, register_topology, topology_from_json
from .torus import Torus
from .twisted import TwistedTorus

__all__ = [
    "Arrowhead",
    "BoolArray",
    "Circulant",
    "Complete",
    "Cube",
    "Groups",
    "IntArray",
    "IntLike",
    "Topology",
    "Torus",
    "TwistedTorus",
    "parse_axes",
    "parse_topology",
    "register_topology",
    "topology_from_json",
]

for family in (Torus, Arrowhead, TwistedTorus, Circulant, Complete, Cube):
    register_topology(family)
