"""Checks of values that users give: the same rules for a command line and for Python.

A number may be given as text. A value that breaks its rule raises an `InputError` of one line. The
first argument of a check is the noun with which that line begins, such as ``Seed``.
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

#: The longest value in a message, in characters.
LONGEST = 80


def shown(value: object) -> str:
    """Return a value as text for a message: one line of at most `LONGEST` characters.

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
    """Return an integer from an integer or from decimal text; None for any other value."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,4000}", value):
        return int(value)
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    return None


def natural(what: str, value: object, *, most: int | None = None) -> int:
    """Return a value as an integer of at least 0.

    Parameters
    ----------
    most : int, optional
        Largest number that is allowed.

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
    """Return a value as an integer of at least 1.

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
    """Return a value as a number that may have a fraction.

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
    """Return a value that is True or False, and refuse others that merely have a truth value.

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
    """Return True if a value can be iterated; an array without axes cannot, though it seems so.

    Examples
    --------
    >>> import numpy as np
    >>> [is_several(value) for value in ([1], "1", np.array([1]), np.array(1), 1)]
    [True, True, True, False, False]
    """
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) > 0


def entries_of(value: object) -> tuple[Any, ...]:
    """Return the entries of a list or an array; any other value is its own single entry.

    Integers of numpy become integers of Python. Text and bytes count as single values.

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
    """Return a value that is the path of a file or folder.

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
    """Return a value that is an instance of a class.

    Parameters
    ----------
    kind : type
        Class of the value.
    how : str
        Source of such values, with which the error message tells users how to get one.

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
    """Return a number or an array of a library in a form that JSON has; other values as text.

    This is the parameter `default` of `json.dumps`. A fraction becomes a float.
    """
    if hasattr(value, "denominator") and hasattr(value, "numerator"):
        return int(value) if value.denominator == 1 else float(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


#: The least similarity, as `difflib` measures it, of a name that is suggested for another.
CLOSE = 0.6


def hint(name: object, known: Iterable[str] | Mapping[str, str]) -> str:
    """Return " (did you mean X?)" for the known name closest to a given one, or empty text.

    Parameters
    ----------
    name : object
        Name that the user wrote.
    known : iterable of str, or dict of str to str
        Known names; or known spellings, each with the name that it stands for.

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
    """Return the error about an unknown name, which lists the known names and suggests one.

    Parameters
    ----------
    what : str
        Noun for the named thing, with which the message begins.
    name : object
        Name that the user wrote.
    known : iterable of str
        Known names.
    ways : dict of str to str, optional
        Further spellings, each with the name that it stands for.
    more : str
        Alternatives to a known name, appended to the list of names.

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
    """The metaclass of `Choice`: only text can be looked up.

    Why: comparing a numpy array with each word would give arrays instead of True or False.
    """

    def __call__(cls, value: object, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(value, str):
            raise no_such(cls.__name__, value, map(str, cls))
        return super().__call__(value, *args, **kwargs)


class Choice(str, Enum, metaclass=_OfWords):
    """An enumeration of words; a member equals its word, as read from a schedule file."""

    __str__ = str.__str__

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        raise no_such(cls.__name__, value, list(cls))
