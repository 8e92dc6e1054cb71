"""The protocol between an adapter, which drives ports, and an engine, which simulates clock edges.

An adapter writes its work, such as "write all messages, start, read all words", as a generator (an
`Access`). The generator yields `EdgeRequest`: the number of clock edges and the input values at
each edge. The engine simulates them and sends back `EdgeResult`: the number of edges that passed
and the requested output values. The work is therefore written once for all engines.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

__all__ = ["Access", "EdgeRequest", "EdgeResult", "run_access"]

_Result = TypeVar("_Result")


class EdgeRequest(NamedTuple):
    """A request of an adapter to an engine: simulate clock edges with these input values.

    Parameters
    ----------
    most : int
        Largest number of edges.
    inputs : mapping of str to (sequence of int)
        Input of the fabric -> its values, one for each edge. The last value remains for all later
        edges.
    shows : sequence of str
        Outputs to sample before each edge.
    busy : str
        Name of an output. The request ends before the first edge at which this output is low. If
        the name is empty, `most` edges are always simulated.
    report : function of int, optional
        Called from time to time with the number of edges that have passed.
    """

    most: int
    inputs: Mapping[str, Any] = {}
    shows: Sequence[str] = ()
    busy: str = ""
    report: Callable[[int], object] | None = None


class EdgeResult(NamedTuple):
    """The answer of an engine to an `EdgeRequest`.

    Parameters
    ----------
    edges : int
        Number of edges that have passed.
    shown : dict of str to ndarray, shape (edges,)
        Requested output -> its value before each edge.
    seconds : float
        Processor time of the simulation of these edges.
    """

    edges: int
    shown: dict[str, np.ndarray]
    seconds: float


#: The work of an adapter at ports; its return value is the result of the work.
Access: TypeAlias = Generator[EdgeRequest, EdgeResult, _Result]


def run_access(access: Access[_Result], play: Callable[[EdgeRequest], EdgeResult]) -> _Result:
    """Execute the work of an adapter, a generator of `EdgeRequest`, and return its result.

    Parameters
    ----------
    access : Access
        The generator; it has not begun yet.
    play : function of EdgeRequest -> EdgeResult
        Simulates the clock edges of one request; its result is sent to the generator.
    """
    try:
        edges = next(access)
        while True:
            edges = access.send(play(edges))
    except StopIteration as end:
        result: _Result = end.value
        return result
