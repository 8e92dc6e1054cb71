"""Claims about a fabric, and the way in which each is checked."""

from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Claim"]


class Claim(NamedTuple):
    """A claim about a fabric, or about modules of it.

    Parameters
    ----------
    method : str
        The way in which it is proved, in a few words.
    says : str
        The claim in a line.
    check : function of () -> int
        Checks the claim: returns the number of properties that are proved, or raises `Refuted`.
    """

    name: str
    method: str
    says: str
    check: Callable[[], int]
