"""Random changes of bytes, and of values as in JSON."""

import copy
import random
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["NASTY_NUMBERS", "NASTY_TEXTS", "changed_bytes", "changed_value", "nasty"]

#: Numbers at the limits of number types, and beyond.
NASTY_NUMBERS = (
    -1, 0, 1, 2, 3, 7, 8, 255, 256, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64,
    10**9, 10**30, -(2**63) - 1, 10**400,
)  # fmt: skip

#: Texts that have broken programs.
NASTY_TEXTS = (
    "",
    " ",
    "\x00",
    "\n",
    "\r\n",
    "a\nb",
    "'",
    '"',
    "\\",
    "%s%n",
    "{}",
    "../..",
    "/dev/null",
    "-",
    "--",
    "NaN",
    "Infinity",
    "-0",
    "1e999",
    "0x10",
    "١",
    "\u202e",
    "\ud800",
    "\U0001f600",
    "é",
    "x" * 5000,
    "[b]",
    "\x1b[31m",
    "None",
    "all",
    "allgather",
    "+0",
    "8x8",
    "0x0",
    "1x1",
    "arrowhead:1",
)

#: Other values of JSON.
NASTY_VALUES = (None, True, False, 0.5, -0.0, 1e308, [], {}, [[]], [{}], {"": {}}, [None])

#: Pieces to insert into texts.
PIECES = (
    b"",
    b"\x00",
    b"\xff",
    b"\n",
    b"[",
    b"]",
    b"{",
    b"}",
    b'"',
    b",",
    b":",
    b"<",
    b">",
    b"&",
    b"-",
    b"9",
    b"e9",
    b"null",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"<!--",
    b"]]>",
    b"\\u0000",
    b"\\ud800",
)


def nasty(draw: random.Random) -> Any:
    """Return a random value that may break a program."""
    return copy.deepcopy(draw.choice(draw.choice([NASTY_NUMBERS, NASTY_TEXTS, NASTY_VALUES])))


def changed_bytes(data: bytes, draw: random.Random) -> bytes:
    """Return a text with random bytes changed, removed, repeated or inserted."""
    found = bytearray(data)
    for _ in range(draw.choice([1, 1, 1, 2, 5])):
        place = draw.randrange(len(found) + 1)
        end = min(len(found), place + draw.choice([0, 1, 1, 2, 8, 64]))
        match draw.randrange(5):
            case 0 if place < len(found):
                found[place] ^= 1 << draw.randrange(8)
            case 1:
                del found[place:end]
            case 2:
                found[place:end] = draw.choice(PIECES) * draw.choice([1, 1, 1, 9])
            case 3:
                other = draw.randrange(len(found) + 1)
                found[place:place] = found[other : other + draw.choice([1, 8, 64])]
            case 4:
                if draw.random() < 0.2:
                    del found[place:]
    return bytes(found)


def changed_value(value: Any, draw: random.Random) -> Any:
    """Return a copy of a JSON value with random changes."""
    root = [copy.deepcopy(value)]
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        holder, key = draw.choice(_places(root))
        draw.choice(CHANGES)(holder, key, draw)
    return root[0]


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return all places in a value, each as a list or an object, and an index or key in it."""
    found, waiting = [], [value]
    while waiting:
        holder = waiting.pop()
        keys: Sequence[Any] = (
            list(holder) if isinstance(holder, dict) else range(min(len(holder), 50))
        )
        found += [(holder, key) for key in keys]
        waiting += [holder[key] for key in keys if isinstance(holder[key], list | dict)]
    return found


def _replace(holder: Any, key: Any, draw: random.Random) -> None:
    holder[key] = nasty(draw)


def _nudge(holder: Any, key: Any, draw: random.Random) -> None:
    if type(holder[key]) is int:
        holder[key] += draw.choice([-1, 1, 1, 2, 16])
    else:
        holder[key] = nasty(draw)


def _remove(holder: Any, key: Any, draw: random.Random) -> None:
    if isinstance(holder, list) and len(holder) <= 1:
        holder[key] = nasty(draw)
    else:
        del holder[key]


def _repeat(holder: Any, key: Any, draw: random.Random) -> None:
    if isinstance(holder, list):
        holder.insert(draw.randrange(len(holder) + 1), copy.deepcopy(holder[key]))
    else:
        holder[draw.choice(NASTY_TEXTS)] = copy.deepcopy(holder[key])


def _swap(holder: Any, key: Any, draw: random.Random) -> None:
    other = draw.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    holder[key], holder[other] = holder[other], holder[key]


def _nest(holder: Any, key: Any, draw: random.Random) -> None:
    holder[key] = draw.choice([[holder[key]], {"path": holder[key]}])


#: A change of one place, all equally likely.
CHANGES: tuple[Callable[[Any, Any, random.Random], None], ...] = (
    _replace, _replace, _nudge, _nudge, _remove, _repeat, _swap, _nest,
)  # fmt: skip
