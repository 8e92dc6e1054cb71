"""What an engine does: it runs a fabric, driven only through its host port."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Engine", "Run"]


class Run(NamedTuple):
    """What came of a run.

    Parameters
    ----------
    words : list of list of int
        What the host read at each node, in the order of its receive addresses.
    cycles : int
        What the fabric's own counter says.
    edges : int
        Clock edges from the start pulse to done, as counted from outside.
    clocks : int
        Clock cycles simulated in all, loading and reading included.
    """

    words: list[list[int]]
    cycles: int
    edges: int
    clocks: int


class Engine(ABC):
    """A way to run a fabric.

    Parameters
    ----------
    fabric : Fabric
    """

    name: str

    def __init__(self, fabric):
        self.fabric = fabric

    @abstractmethod
    def run(self, messages, *, progress: Callable[[int, int], None] | None = None) -> Run:
        """Load a message into every node, start, wait for done, and read every node.

        Parameters
        ----------
        messages : sequence of (sequence of int)
            The words of each node's send memory.
        progress : function of (done, total), optional
            Called now and then with the words loaded and read so far.
        """
