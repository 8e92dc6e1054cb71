"""What numbers and words a user may write on the command line."""

import argparse
import re
from collections.abc import Callable
from typing import Literal, TypeVar

from ..errors import InputError
from ..toolchain import values
from ..toolchain.destinations import STANDARD_OUTPUT

__all__ = ["folder", "latency_or_auto", "natural", "node_or_any", "positive", "real"]


T = TypeVar("T")


def _given(read: Callable[[str, object], T], text: str) -> T:
    """A value that Python takes as well, with a message that argparse puts its name before."""
    try:
        return read("", text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error).strip()) from None


def folder(text: str) -> str:
    """The path of a folder."""
    if text == STANDARD_OUTPUT:
        raise argparse.ArgumentTypeError("must be a folder, not - (several files are written)")
    return text


def natural(text: str) -> int:
    """An integer of at least 0."""
    return _given(values.natural, text)


def positive(text: str) -> int:
    """An integer of at least 1."""
    return _given(values.positive, text)


def real(text: str) -> float:
    """A number that need not be whole."""
    return _given(values.real, text)


def node_or_any(text: str) -> int | Literal["any"]:
    """A node number, or the word any."""
    if text == "any":
        return "any"
    if not re.fullmatch(r"\d{1,4000}", text):
        raise argparse.ArgumentTypeError(f"must be a node number or any, not {text!r}")
    return int(text)


def latency_or_auto(text: str) -> int | Literal["auto"]:
    """A positive integer, or the word auto."""
    return "auto" if text == "auto" else positive(text)
