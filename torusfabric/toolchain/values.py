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

__all__ = ["Choice", "entries_of", "require_bool", "suggest_name", "is_iterable",
           "parse_non_negative_int", "unknown_name_error", "require_type", "require_path",
           "plain_json", "parse_positive_int", "parse_number", "message_text"]  # fmt: skip

#: The longest value in a message, in characters.
LONGEST_TEXT = 80


def message_text(value: object) -> str:
    """Return any value as short text for an error message.

    The text is one line of at most `LONGEST_TEXT` characters.

    Examples
    --------
    >>> message_text("a"), message_text(10**5000), message_text("x" * 100)[-4:]
    ("'a'", 'an integer of 5001 digits', 'x...')
    """
    if isinstance(value, Integral) and abs(int(value)) >= 10**LONGEST_TEXT:
        return f"an integer of {int(math.log10(abs(int(value)))) + 1} digits"
    text = " ".join((repr(value) if isinstance(value, str) else str(value)).split())
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 3]}..."


def _as_integer(value: object) -> int | None:
    """Return an integer from an integer or from decimal text; None for any other value."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,4000}", value):
        return int(value)
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    return None


def parse_non_negative_int(what: str, value: object, *, most: int | None = None) -> int:
    """Return a value as a non-negative integer.

    Parameters
    ----------
    what : str
        Noun for the value, with which an error message begins.
    value : object
        The value of the user: a number, or its text.
    most : int, optional
        Largest number that is allowed.

    Examples
    --------
    >>> parse_non_negative_int("Seed", "7")
    7
    >>> parse_non_negative_int("Seed", -1)
    Traceback (most recent call last):
    torusfabric.errors.InputError: Seed must be a non-negative integer, not -1
    """
    number = _as_integer(value)
    if number is None or number < 0:
        raise InputError(f"{what} must be a non-negative integer, not {message_text(value)}")
    if most is not None and number > most:
        raise InputError(f"{what} must be at most {most}, not {message_text(number)}")
    return number


def parse_positive_int(what: str, value: object) -> int:
    """Return a value as an integer of at least 1.

    Parameters
    ----------
    what : str
        Noun for the value, with which an error message begins.
    value : object
        The value of the user: a number, or its text.

    Examples
    --------
    >>> parse_positive_int("Chunks", True)
    Traceback (most recent call last):
    torusfabric.errors.InputError: Chunks must be a positive integer, not True
    """
    number = _as_integer(value)
    if number is None or number < 1:
        raise InputError(f"{what} must be a positive integer, not {message_text(value)}")
    return number


def parse_number(what: str, value: object) -> float:
    """Return a value as a number that may have a fraction.

    Parameters
    ----------
    what : str
        Noun for the value, with which an error message begins.
    value : object
        The value of the user: a number, or its text.

    Examples
    --------
    >>> parse_number("Stall", "0.5")
    0.5
    """
    plain = not isinstance(value, str) or (value.isascii() and "_" not in value)
    if isinstance(value, str | Real) and not isinstance(value, bool) and plain:
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    raise InputError(f"{what} must be a number, not {message_text(value)}")


def require_bool(what: str, value: object) -> bool:
    """Check that a value is True or False, and return it; any other value is refused.

    Parameters
    ----------
    what : str
        Noun for the value, with which an error message begins.
    value : object
        The value of the user.

    Examples
    --------
    >>> require_bool("Large", 1)
    Traceback (most recent call last):
    torusfabric.errors.InputError: Large must be True or False, not 1
    """
    if not isinstance(value, bool):
        raise InputError(f"{what} must be True or False, not {message_text(value)}")
    return value


def is_iterable(value: object) -> TypeGuard[Iterable[Any]]:
    """Return True if a value can be iterated; False for a numpy array without axes.

    Examples
    --------
    >>> import numpy as np
    >>> [is_iterable(value) for value in ([1], "1", np.array([1]), np.array(1), 1)]
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
    listed = is_iterable(value) and not isinstance(value, str | bytes | bytearray | memoryview)
    entries: Iterable[Any] = value if listed else (value,)  # type: ignore[assignment]
    return tuple(
        int(one) if isinstance(one, Integral) and not isinstance(one, bool) else one
        for one in entries
    )


def require_path(what: str, value: object) -> str | os.PathLike[str]:
    """Check that a value is the path of a file or folder, and return it; the file may be missing.

    Parameters
    ----------
    what : str
        Noun for the value, with which an error message begins.
    value : object
        The value of the user.

    Examples
    --------
    >>> require_path("Schedule file", 4)
    Traceback (most recent call last):
    torusfabric.errors.InputError: Schedule file must be a path, not 4
    """
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise InputError(f"{what} must be a path, not {message_text(value)}")
    if "\0" in os.fspath(value):
        raise InputError(
            f"{what} must be a path without a byte of 0, not {message_text(str(value))}"
        )
    return value


def require_type(what: str, value: object, kind: type, how: str) -> Any:
    """Check that a value is an instance of a class, and return it.

    Parameters
    ----------
    what : str
        Noun for the value, with which an error message begins.
    value : object
        The value of the user.
    kind : type
        Class of the value.
    how : str
        Words that follow "must be" in the error message, and tell users how to get such a value.

    Examples
    --------
    >>> require_type("Schedule", 4, str, "as plan returns it")
    Traceback (most recent call last):
    torusfabric.errors.InputError: Schedule must be as plan returns it, not 4
    """
    if not isinstance(value, kind):
        raise InputError(f"{what} must be {how}, not {message_text(value)}")
    return value


def plain_json(value: Any) -> Any:
    """Return a value as JSON can hold it: numbers of numpy become numbers, arrays become lists.

    A fraction becomes a float (or an integer), and an object of any other class becomes text. The
    function is the parameter `default` of `json.dumps`.
    """
    if hasattr(value, "denominator") and hasattr(value, "numerator"):
        return int(value) if value.denominator == 1 else float(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


#: The least similarity, as `difflib` measures it, of a name that is suggested for another.
LEAST_SIMILARITY = 0.6


def suggest_name(name: object, known: Iterable[str] | Mapping[str, str]) -> str:
    """Return " (did you mean X?)" for the known name closest to a given one, or empty text.

    Parameters
    ----------
    name : object
        Name that the user wrote.
    known : iterable of str, or dict of str to str
        Known names; or known spellings, each with the name that it stands for.

    Examples
    --------
    >>> suggest_name("Hamilton", ["hamiltonian", "matching"])
    ' (did you mean hamiltonian?)'
    >>> suggest_name("gosip", {"allgather": "allgather", "gossip": "allgather"})
    ' (did you mean allgather?)'
    >>> suggest_name("ad", ["add", "and", "or"])
    ' (did you mean add or and?)'
    >>> suggest_name("xyz", ["hamiltonian", "matching"]) + suggest_name(3, []) + suggest_name("",
    ...     ["add"])
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
    return f" (did you mean {' or '.join(nearest)}?)" if best >= LEAST_SIMILARITY else ""


def unknown_name_error(
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
    >>> print(unknown_name_error("Duplex", "hall", ["full", "half"]))
    Duplex must be full or half, not 'hall' (did you mean half?)
    >>> print(unknown_name_error("Target", "ecp5", ["ice40", "ecp5-25k", "gowin"],
    ...     more=", or a file"))
    Target must be one of ice40, ecp5-25k, gowin, or a file, not 'ecp5' (did you mean ecp5-25k?)
    """
    names = list(known)
    which = " or ".join(names) if len(names) < 3 else f"one of {', '.join(names)}"
    meant = suggest_name(name, {entry: entry for entry in names} | dict(ways or {}))
    return InputError(f"{what} must be {which}{more}, not {message_text(name)}{meant}")


class _ChoiceMeta(EnumMeta):
    """The metaclass of `Choice`: only text can be looked up.

    Why: comparing a numpy array with each word would give arrays instead of True or False.
    """

    def __call__(cls, value: object, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(value, str):
            raise unknown_name_error(cls.__name__, value, map(str, cls))
        return super().__call__(value, *args, **kwargs)


class Choice(str, Enum, metaclass=_ChoiceMeta):
    """An enumeration whose members are texts, such as the names of options.

    A member is equal to its text. A text that is no member raises an `InputError` with the known
    texts.
    """

    __str__ = str.__str__

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        raise unknown_name_error(cls.__name__, value, list(cls))
