"""Words that go into a fabric, and come out of it, by ports that engines do not know."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

__all__ = ["Traffic"]


class Traffic(ABC):
    """The words of some runs, and the drivers of their ports.

    An adapter that has ports of nodes has one driver for each kind of engine. Both return the log
    of what came, and raise `WorkFailed` if not all words have passed.
    """

    @abstractmethod
    def simulate(self, design: Any, run: Callable[..., Any], progress: Any) -> Any:
        """Drive the ports in Amaranth's simulator.

        Parameters
        ----------
        design : Assembly
        run : function of testbenches
            Runs the simulation until the first testbench ends.
        progress : function of (done, total), optional
        """

    @abstractmethod
    def run_compiled(self, session: Any, progress: Any) -> Any:
        """Drive the ports of a compiled model.

        Parameters
        ----------
        session : Session
            A session with the library that is built from the `Interface.kernel` of the fabric.
        """
