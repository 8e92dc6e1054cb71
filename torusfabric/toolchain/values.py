"""Numbers and words as users give them, on a command line or in Python: one rule for both.

A number may be given as text. What is none of what it must be is refused in one line. Numbers are
printed as JSON has them.
"""

import difflib
import math
import os
import re
from collections.abc import Iterable, Mapping
from enum import Enum, EnumMeta
from numbers import Integral, Real
from typing import Any, NoReturn, TypeGuard

from ..errors import InputError

__all__ = ["Choice", "entries_of", "flag", "hint", "is_several", "natural", "no_such", "of_type",
           "path_of", "plain_json", "positive", "real", "shown"]  # fmt: skip

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


def natural(what: str, value: object, *, most: int | None = None) -> int:
    """An integer of at least 0.

    Parameters
    ----------
    what : str
        What the number is called, to begin the message with.
    most : int, optional
        The largest that is allowed.

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
    if most is not None and number > most:
        raise InputError(f"{what} must be at most {most}, not {shown(number)}")
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
    plain = not isinstance(value, str) or (value.isascii() and "_" not in value)
    if isinstance(value, str | Real) and not isinstance(value, bool) and plain:
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


def entries_of(value: object) -> tuple[Any, ...]:
    """The entries of a list or an array; a value that is no list is the only one.

    Integers of numpy become those of Python. Bytes are no list of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> entries_of([3, 4]), entries_of(np.array([3, 4])), entries_of(np.int8(3)), entries_of(b"3")
    ((3, 4), (3, 4), (3,), (b'3',))
    """
    listed = is_several(value) and not isinstance(value, str | bytes | bytearray | memoryview)
    entries: Iterable[Any] = value if listed else (value,)  # type: ignore[assignment]
    return tuple(
        int(one) if isinstance(one, Integral) and not isinstance(one, bool) else one
        for one in entries
    )


def path_of(what: str, value: object) -> str | os.PathLike[str]:
    """The name of a file or a folder.

    Examples
    --------
    >>> path_of("Schedule file", 4)
    Traceback (most recent call last):
    torusfabric.errors.InputError: Schedule file must be a path, not 4
    """
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise InputError(f"{what} must be a path, not {shown(value)}")
    if "\0" in os.fspath(value):
        raise InputError(f"{what} must be a path without a byte of 0, not {shown(str(value))}")
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


#: Names are meant by others from this share of equal letters on.
CLOSE = 0.6


def hint(name: object, known: Iterable[str] | Mapping[str, str]) -> str:
    """The end of a message that names what is nearest to a name, or nothing.

    Parameters
    ----------
    name : object
        What the user wrote.
    known : iterable of str, or dict of str to str
        The names there are; or the ways to write one, and the name that each stands for.

    Examples
    --------
    >>> hint("Hamilton", ["hamiltonian", "matching"])
    ' (did you mean hamiltonian?)'
    >>> hint("gosip", {"allgather": "allgather", "gossip": "allgather"})
    ' (did you mean allgather?)'
    >>> hint("ad", ["add", "and", "or"])
    ' (did you mean add or and?)'
    >>> hint("xyz", ["hamiltonian", "matching"]) + hint(3, []) + hint("", ["add"])
    ''
    """
    names = dict(known) if isinstance(known, Mapping) else {entry: entry for entry in known}
    matcher = difflib.SequenceMatcher(b=str(name).lower())
    closeness: dict[str, float] = {}
    for entry, meant in names.items():
        matcher.set_seq1(entry.lower())
        closeness[meant] = max(matcher.ratio(), closeness.get(meant, 0))
    best = max(closeness.values(), default=0)
    nearest = [meant for meant, ratio in closeness.items() if ratio == best]
    return f" (did you mean {' or '.join(nearest)}?)" if best >= CLOSE else ""


def no_such(
    what: str,
    name: object,
    known: Iterable[str],
    *,
    ways: Mapping[str, str] | None = None,
    more: str = "",
) -> InputError:
    """The error of a name that there is none of.

    Parameters
    ----------
    what : str
        What is named, to begin the message with.
    name : object
        What the user wrote.
    known : iterable of str
        The names there are.
    ways : dict of str to str, optional
        Other ways to write them, and the name that each stands for.
    more : str
        What would do besides.

    Examples
    --------
    >>> print(no_such("Duplex", "hall", ["full", "half"]))
    Duplex must be full or half, not 'hall' (did you mean half?)
    >>> print(no_such("Target", "ecp5", ["ice40", "ecp5-25k", "gowin"], more=", or a file"))
    Target must be one of ice40, ecp5-25k, gowin, or a file, not 'ecp5' (did you mean ecp5-25k?)
    """
    names = list(known)
    which = " or ".join(names) if len(names) < 3 else f"one of {', '.join(names)}"
    meant = hint(name, {entry: entry for entry in names} | dict(ways or {}))
    return InputError(f"{what} must be {which}{more}, not {shown(name)}{meant}")


class _OfWords(EnumMeta):
    """Takes words alone: an array is not to be compared with any."""

    def __call__(cls, value: object, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(value, str):
            raise no_such(cls.__name__, value, map(str, cls))
        return super().__call__(value, *args, **kwargs)


class Choice(str, Enum, metaclass=_OfWords):
    """One of several words; equal to the word itself, as in a schedule file."""

    __str__ = str.__str__

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        raise no_such(cls.__name__, value, list(cls))
