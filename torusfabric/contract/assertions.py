"""Assertions about the ports of a fabric, which a user binds to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

__all__ = ["Assertion", "handshake"]


class Assertion(NamedTuple):
    """A property of SystemVerilog.

    Parameters
    ----------
    environment : bool
        True if what drives the fabric has to keep it.
    clock, reset : str
        The ports by which it goes.
    """

    name: str
    text: str
    clock: str = "clk"
    reset: str = "rst"
    environment: bool = False


def handshake(
    ports: Mapping[str, Mapping[str, Any]], prefix: str, payload: Iterable[str]
) -> Iterator[Assertion]:
    """Yield the rules of a handshake: an offered word stays, and none is offered after a reset.

    Parameters
    ----------
    ports : mapping of str to mapping
        All ports, as the manifest has them.
    prefix : str
        The beginning of the names of the ports ``valid`` and ``ready``.
    payload : iterable of str
        The other ports, which belong to the word.
    """
    valid, ready = f"{prefix}valid", f"{prefix}ready"
    clock = ports[valid]["clock"]
    reset = next(name for name, port in ports.items()
                 if port["role"] == "reset" and port["clock"] == clock)  # fmt: skip
    environment = ports[valid]["direction"] == "input"
    same = " && ".join([valid, *(f"$stable({name})" for name in payload)])
    waits = f"$past({valid} && !{ready}) && !$past({reset})"
    yield Assertion(f"{valid}_stays", f"{waits} |-> {same}", clock, reset, environment)
    if not environment:
        yield Assertion(f"{valid}_is_low_after_reset", f"$past({reset}) |-> !{valid}", clock, reset)
