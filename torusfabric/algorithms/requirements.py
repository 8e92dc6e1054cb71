"""What algorithms need of a selection, in words that complete the sentence "hamiltonian needs ..".

Each function returns what is needed and not given, or None: ``or`` joins several.
"""

from ..collective import Collective
from ..topology import Topology
from .algorithm import Options

__all__ = ["chunk_for_each", "every_port", "one_chunk", "some_ports"]


def every_port(options: Options, *counts: int) -> str | None:
    """Need all ports: one of some counts, the last of which is named."""
    if options.ports in (None, *counts):
        return None
    return f"--ports {counts[-1]} (all of them)"


def some_ports(options: Options, most: int) -> str | None:
    """Need a number of ports that a node has."""
    if options.ports is None or options.ports <= most:
        return None
    return f"--ports 1 to {most}"


def one_chunk(options: Options) -> str | None:
    """Need messages that are not cut."""
    return None if options.chunks in (None, 1) else "--chunks 1"


def chunk_for_each(topology: Topology, collective: Collective, options: Options) -> str | None:
    """Need messages that a store-and-forward all-reduce can cut into equal parts of the nodes."""
    if collective.reducing and collective.to_all and (options.chunks or 0) % topology.nodes:
        return f"--chunks divisible by the number of nodes, {topology.nodes}"
    return None
