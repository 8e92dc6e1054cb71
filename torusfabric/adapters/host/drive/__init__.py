"""Driver of the host port in simulation: runs through the port, with any simulator."""

from .port import HostPortDriver, execute_runs
from .words import PortAccesses, RunWords

__all__ = ["HostPortDriver", "PortAccesses", "RunWords", "execute_runs"]
