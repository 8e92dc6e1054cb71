"""The protocol between an adapter, which drives ports, and an engine, which simulates clock edges.

An adapter writes its work as a generator. The generator yields `Edges`: the number of clock edges
and the input values at each edge. The engine simulates them and sends back `Passed`: the number of
edges that passed and the requested output values. The adapter contains no code for one engine.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

__all__ = ["Access", "Edges", "Passed", "carry_out"]

_Result = TypeVar("_Result")


class Edges(NamedTuple):
    """A request to simulate clock edges.

    Parameters
    ----------
    most : int
        Largest number of edges.
    inputs : mapping of str to (sequence of int)
        Values of inputs of the fabric, one per edge. The last value remains for all later edges.
    shows : sequence of str
        Outputs to sample before each edge.
    busy : str
        An output; the request ends early when this output is low. Empty for none.
    report : function of int, optional
        Called from time to time with the number of edges that have passed.
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
        Samples of each requested output.
    seconds : float
        Processor time.
    """

    edges: int
    shown: dict[str, np.ndarray]
    seconds: float


#: The work of an adapter at ports; its return value is the result of the work.
Access: TypeAlias = Generator[Edges, Passed, _Result]


def carry_out(access: Access[_Result], play: Callable[[Edges], Passed]) -> _Result:
    """Run an access: answer each of its requests with `play`, and return its result."""
    try:
        edges = next(access)
        while True:
            edges = access.send(play(edges))
    except StopIteration as end:
        result: _Result = end.value
        return result
