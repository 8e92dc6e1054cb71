"""The interface through which engines simulate ports of nodes.

An engine drives the host port by itself. Ports of nodes, such as AXI4-Streams, belong to an
adapter, which brings the drivers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

__all__ = ["Traffic"]


class Traffic(ABC):
    """The words of some runs, with the drivers that send and receive them at the ports of nodes.

    An adapter with ports of nodes implements a driver for each engine. Both drivers return the log
    of the received words, and raise `WorkFailed` if words are still missing at the end.
    """

    @abstractmethod
    def simulate(self, design: Any, run: Callable[..., Any], progress: Any) -> Any:
        """Drive the ports in Amaranth's simulator.

        Parameters
        ----------
        design : Assembly
            The fabric, elaborated.
        run : function of testbenches
            Runs the simulation until the first testbench ends.
        progress : function of (done, total), optional
            Called now and then with the number of words done and in all.
        """

    @abstractmethod
    def run_compiled(self, session: Any, progress: Any) -> Any:
        """Drive the ports of a compiled model.

        Parameters
        ----------
        session : Session
            A session of the library that was built from `Interface.kernel`.
        progress : function of (done, total), optional
            Called now and then with the number of words done and in all.
        """
