"""Data of one's own for a board: what it must look like, and what must come back."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...collective import expected_words, parse_collective
from ...errors import InputError
from ...topology import parse_topology
from .facts import Facts, operator_of

__all__ = ["data_length", "expected_data", "send_data"]


def data_length(data: ArrayLike, facts: Facts) -> int:
    """How many flits the messages in data have: all words of a node, by its messages.

    Parameters
    ----------
    data : array of int, shape (nodes, ..)
    facts : dict
        Of the longest run, from `job_facts`.

    Raises
    ------
    InputError
        If there are not as many rows as nodes, or the messages of a node are not equally long, or
        too long.
    """
    shape = np.shape(data)
    nodes, most = int(facts["nodes"]), int(facts["flits"])
    parts = int(facts["send_words"]) // most
    flits, rest = divmod(np.size(data), nodes * parts)
    if len(shape) < 2 or shape[0] != nodes or rest or not 1 <= flits <= most:
        words = f"{parts} x flits" if parts > 1 else "flits"
        raise InputError(
            f"Data must be of shape ({nodes}, {words}), flits from 1 to {most}; not {shape}"
        )
    return flits


def send_data(data: ArrayLike, facts: Facts) -> NDArray[np.unsignedinteger[Any]]:
    """Data as the words that the nodes of a board send.

    Parameters
    ----------
    data : array of int, shape (nodes, ..)
    facts : dict
        What the board says it is.

    Returns
    -------
    ndarray, shape (nodes, send words)
        Of the smallest unsigned type that holds a flit.

    Raises
    ------
    InputError
        If they do not fit the board.
    """
    nodes, words, width = facts["nodes"], facts["send_words"], facts["width"]
    if width > 64:
        raise InputError(f"Data in arrays must be for boards of up to 64 bits a flit, not {width}")
    data = np.asarray(data)
    if not np.issubdtype(data.dtype, np.integer):
        raise InputError(f"Data must be unsigned integers, not {data.dtype}")
    if data.ndim < 2 or data.shape[0] != nodes or data.size != nodes * words:
        raise InputError(
            f"Data must be of shape ({nodes}, {words}): nodes, words; not {data.shape}"
        )
    if data.min() < 0 or int(data.max()) >> width:
        worst = data.min() if data.min() < 0 else data.max()
        raise InputError(f"Data must be from 0 to {(1 << width) - 1}, not {worst}")
    size = next(bits for bits in (8, 16, 32, 64) if bits >= width)
    return data.reshape(nodes, words).astype(f"u{size // 8}")


def expected_data(messages: NDArray[Any], facts: Facts) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The words that the collective must deliver.

    Parameters
    ----------
    messages : ndarray, shape (nodes, send words)
        What each node sends.
    facts : dict
        What the board says it is.

    Returns
    -------
    words : ndarray, shape (nodes, receive words)
    receives : ndarray of bool, shape (nodes,)
        The nodes at which anything is delivered; the words of others have no meaning.
    """
    topology = parse_topology(facts["topology"])
    collective = parse_collective(facts["collective"], root=facts["root"], topology=topology)
    operator = operator_of(facts) if collective.reducing else None
    layout = collective.layout(topology, chunks=1)
    return expected_words(layout, messages, operator=operator, width=facts["width"])
