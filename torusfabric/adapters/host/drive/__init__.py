"""Driver of the host port in simulation: runs through the port, with any engine."""

from .port import HostPort, host_runs
from .words import PortWords, Words

__all__ = ["HostPort", "PortWords", "Words", "host_runs"]
