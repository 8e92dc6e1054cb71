"""Readers of graph files: `read_graph` recognises the format by the content, and reads the graph.

Formats are GraphML, GML, node-link JSON, edge lists, adjacency lists (plain and of several lines)
and the network files of BookSim. A file that could mean two different networks is refused, and the
message says how to write either; so is a file of another format, by its name.

Modules: `contents` has the value that readers return, and checks that they share; `read` recognises
the format; each other module reads one family of formats.
"""

from .contents import MOST_ARCS, MOST_NODES, Edge, GraphFile, take_relays
from .read import read_graph

__all__ = ["MOST_ARCS", "MOST_NODES", "Edge", "GraphFile", "read_graph", "take_relays"]
