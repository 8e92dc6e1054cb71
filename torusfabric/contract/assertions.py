"""SystemVerilog assertions about the ports of a fabric.

They are written into a file that a user binds to the fabric in a simulator or a formal tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

__all__ = ["Assertion", "handshake_assertions"]


class Assertion(NamedTuple):
    """A SystemVerilog property of the ports of a fabric.

    Parameters
    ----------
    name : str
        Label of the assertion.
    text : str
        Body of the property, without clock and reset.
    clock : str
        Port at whose edges the property is tested.
    reset : str
        Port during whose reset the property is not tested.
    environment : bool
        True if the logic around the fabric has to keep the property, False if the fabric itself has
        to. By the parameter ``CHECK_ENVIRONMENT`` of the emitted file, a user decides if properties
        of the first kind are tested.
    """

    name: str
    text: str
    clock: str = "clk"
    reset: str = "rst"
    environment: bool = False


def handshake_assertions(
    ports: Mapping[str, Mapping[str, Any]], prefix: str, payload: Iterable[str]
) -> Iterator[Assertion]:
    """Yield the assertions of a handshake by two ports, ``valid`` and ``ready``.

    The sender offers a word by a high ``valid``; the receiver takes it by a high ``ready``. The
    first assertion: an offered word stays, unchanged, until it is taken. If the fabric is the
    sender, a second one follows: the fabric offers no word directly after a reset.

    Parameters
    ----------
    ports : mapping of str to mapping
        Entries of the manifest for all ports, by port name.
    prefix : str
        Common beginning of the names of the two ports ``valid`` and ``ready``.
    payload : iterable of str
        Names of the other ports of the sender: data, and bits that go with them.

    Yields
    ------
    Assertion
        Its `environment` is true if ``valid`` is an input of the fabric, so that the sender is the
        logic around the fabric.
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
