"""Clock edges: an adapter says which ones, an engine lets them pass and says what it has seen.

What is done at ports is a generator of `Edges`, which is answered with `Passed`, so that all
engines drive ports alike.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

__all__ = ["Access", "Edges", "Passed", "carry_out"]

_Result = TypeVar("_Result")


class Edges(NamedTuple):
    """Clock edges that an engine lets pass.

    Parameters
    ----------
    most : int
        Number of edges, unless they end before.
    inputs : mapping of str to (sequence of int)
        Values of inputs of the whole, a value an edge; the last value stays.
    shows : sequence of str
        Outputs whose values before each edge are wanted.
    busy : str
        An output; edges end as soon as it is low.
    report : function of int, optional
        Called now and then with the number of edges that have passed.
    """

    most: int
    inputs: Mapping[str, Any] = {}
    shows: Sequence[str] = ()
    busy: str = ""
    report: Callable[[int], object] | None = None


class Passed(NamedTuple):
    """The answer of an engine to `Edges`.

    Parameters
    ----------
    edges : int
        Number of edges that have passed.
    shown : dict of str to ndarray, shape (edges,)
        Values of the outputs that were asked for.
    seconds : float
        Processor time.
    """

    edges: int
    shown: dict[str, np.ndarray]
    seconds: float


#: What is done at a port, and what comes of it.
Access: TypeAlias = Generator[Edges, Passed, _Result]


def carry_out(access: Access[_Result], play: Callable[[Edges], Passed]) -> _Result:
    """Let all edges of an access pass, by a function; returns what comes of the access."""
    try:
        edges = next(access)
        while True:
            edges = access.send(play(edges))
    except StopIteration as end:
        result: _Result = end.value
        return result
