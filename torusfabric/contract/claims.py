"""Claims about a fabric, each with the function that proves it."""

from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Claim"]


class Claim(NamedTuple):
    """A statement about a fabric, or about some of its modules, that can be proved.

    Parameters
    ----------
    name : str
        Short name of the claim, for the table that ``torusfabric prove`` prints.
    method : str
        Method of the proof in a few words, such as ``comparison``.
    statement : str
        The statement that is proved, as a sentence on one line.
    check : function of () -> int
        Function that proves the statement. It returns the number of proved properties, or raises
        `Refuted`.
    """

    name: str
    method: str
    statement: str
    check: Callable[[], int]
