"""Numbers and words as users give them, on a command line or in Python: one rule for both.

A number may be given as text. What is none of what it must be is refused in one line. Numbers are
printed as JSON has them.
"""

import math
import os
import re
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, TypeGuard

from ..errors import InputError

__all__ = ["flag", "is_several", "natural", "of_type", "path_of", "plain_json", "positive", "real",
           "shown"]  # fmt: skip

#: Characters of a value in a message.
LONGEST = 80


def shown(value: object) -> str:
    """A value as a message shows it: one line, and not too long.

    Examples
    --------
    >>> shown("a"), shown(10**5000), shown("x" * 100)[-4:]
    ("'a'", 'an integer of 5001 digits', 'x...')
    """
    if isinstance(value, Integral) and abs(int(value)) >= 10**LONGEST:
        return f"an integer of {int(math.log10(abs(int(value)))) + 1} digits"
    text = " ".join((repr(value) if isinstance(value, str) else str(value)).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _integer(value: object) -> int | None:
    """The integer that a value is, or that a text writes; None if there is none."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,4000}", value):
        return int(value)
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    return None


def natural(what: str, value: object) -> int:
    """An integer of at least 0.

    Parameters
    ----------
    what : str
        What the number is called, to begin the message with.

    Examples
    --------
    >>> natural("Seed", "7")
    7
    >>> natural("Seed", -1)
    Traceback (most recent call last):
    torusfabric.errors.InputError: Seed must be a whole number, not -1
    """
    number = _integer(value)
    if number is None or number < 0:
        raise InputError(f"{what} must be a whole number, not {shown(value)}")
    return number


def positive(what: str, value: object) -> int:
    """An integer of at least 1; see `natural`.

    Examples
    --------
    >>> positive("Chunks", True)
    Traceback (most recent call last):
    torusfabric.errors.InputError: Chunks must be a positive integer, not True
    """
    number = _integer(value)
    if number is None or number < 1:
        raise InputError(f"{what} must be a positive integer, not {shown(value)}")
    return number


def real(what: str, value: object) -> float:
    """A number that need not be whole; see `natural`.

    Examples
    --------
    >>> real("Stall", "0.5")
    0.5
    """
    if isinstance(value, str | Real) and not isinstance(value, bool):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    raise InputError(f"{what} must be a number, not {shown(value)}")


def flag(what: str, value: object) -> bool:
    """True or False, and nothing that only counts as one of them.

    Examples
    --------
    >>> flag("Large", 1)
    Traceback (most recent call last):
    torusfabric.errors.InputError: Large must be True or False, not 1
    """
    if not isinstance(value, bool):
        raise InputError(f"{what} must be True or False, not {shown(value)}")
    return value


def is_several(value: object) -> TypeGuard[Iterable[Any]]:
    """Whether a value is several: not an array without axes, which only looks like that.

    Examples
    --------
    >>> import numpy as np
    >>> [is_several(value) for value in ([1], "1", np.array([1]), np.array(1), 1)]
    [True, True, True, False, False]
    """
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) > 0


def path_of(what: str, value: object) -> str | os.PathLike[str]:
    """The name of a file or a folder.

    Examples
    --------
    >>> path_of("Schedule file", 4)
    Traceback (most recent call last):
    torusfabric.errors.InputError: Schedule file must be a path, not 4
    """
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{what} must be a path, not {shown(value)}")
    return value


def of_type(what: str, value: object, kind: type, how: str) -> Any:
    """A value of a class, and how users come by one to end the message with.

    Examples
    --------
    >>> of_type("Schedule", 4, str, "as plan returns it")
    Traceback (most recent call last):
    torusfabric.errors.InputError: Schedule must be as plan returns it, not 4
    """
    if not isinstance(value, kind):
        raise InputError(f"{what} must be {how}, not {shown(value)}")
    return value


def plain_json(value: Any) -> Any:
    """Numbers that JSON does not know, as numbers that it does; others as text."""
    if hasattr(value, "denominator") and hasattr(value, "numerator"):
        return int(value) if value.denominator == 1 else float(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)
