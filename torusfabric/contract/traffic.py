"""The interface through which simulators drive the ports of nodes.

There are two simulators: Amaranth's own, and a compiled model of the Verilog. Both drive a host
port by themselves. Ports of nodes, such as AXI4-Streams, belong to an adapter. The adapter
therefore has a *driver* for each simulator: code that sends and receives words at these ports.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

__all__ = ["PortTraffic"]


class PortTraffic(ABC):
    """The words of some runs, and the code that sends and receives them at ports of nodes.

    There is a method for each simulator: Amaranth's, and a compiled model. Each returns a log: the
    received words, as they arrived. Each raises `WorkFailed` if words are still missing at the end.
    """

    @abstractmethod
    def simulate(self, design: Any, run: Callable[..., Any], progress: Any) -> Any:
        """Send and receive the words at the ports of a fabric in Amaranth's simulator.

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
        """Send and receive the words at the ports of a compiled model.

        Parameters
        ----------
        session : Session
            The running model, compiled with a C++ file of the adapter that drives the ports (named
            by `Interface.kernel`).
        progress : function of (done, total), optional
            Called now and then with the number of words done and in all.
        """
