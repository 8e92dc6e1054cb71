"""Networks: Cayley graphs, the torus, the arrowhead torus, and how users name them."""

from .arrowhead import Arrowhead
from .cayley import Topology
from .torus import Torus, parse_topology, topology_from_json

__all__ = ["Arrowhead", "Topology", "Torus", "parse_topology", "topology_from_json"]
