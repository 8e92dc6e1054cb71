"""What numbers and words a user may write on the command line."""

import argparse
import re
from typing import Literal

from ..toolchain.destinations import STANDARD_OUTPUT

__all__ = ["folder", "latency_or_auto", "natural", "node_or_any", "positive", "real"]


def folder(text: str) -> str:
    """The path of a folder."""
    if text == STANDARD_OUTPUT:
        raise argparse.ArgumentTypeError("must be a folder, not - (several files are written)")
    return text


def natural(text: str) -> int:
    """An integer of at least 0."""
    if not re.fullmatch(r"\d{1,4000}", text):
        raise argparse.ArgumentTypeError(f"must be a whole number, not {text!r}")
    return int(text)


def positive(text: str) -> int:
    """An integer of at least 1."""
    if not re.fullmatch(r"\d{1,4000}", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, not {text!r}")
    return int(text)


def real(text: str) -> float:
    """A number that need not be whole."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, not {text!r}") from None


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
