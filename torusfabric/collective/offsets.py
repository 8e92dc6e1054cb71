"""Offsets to which nodes send in an exchange or halo, as users write them."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from ..topology import CayleyGraph

__all__ = ["Named", "parse_offset", "split_name", "split_names", "split_offsets"]

#: Signed coordinates.
_COORDINATES = re.compile(r"\(-?\d{1,9}(,-?\d{1,9})*\)")


class Named(NamedTuple):
    """What a user names by ``COLLECTIVE[:ALGORITHM][!FAULTS]``; empty for what is left out."""

    collective: str
    algorithm: str
    faults: str


def split_name(text: str) -> Named:
    """The parts of a name.

    Examples
    --------
    >>> split_name("allgather@0:any-network!0:+0,9")
    Named(collective='allgather@0', algorithm='any-network', faults='0:+0,9')
    """
    name, _, faults = text.partition("!")
    collective, _, algorithm = name.partition(":")
    return Named(collective, algorithm, faults)


def split_names(text: str) -> list[str]:
    """Names between commas, as far as these are not in brackets, and do not separate faults.

    Examples
    --------
    >>> split_names("exchange[+0,(1,2)],allreduce!0:+0,9:-1,allgather")
    ['exchange[+0,(1,2)]', 'allreduce!0:+0,9:-1', 'allgather']
    """
    names, depth = [""], 0
    for letter, following in zip(text, f"{text[1:]} ", strict=bool(text)):
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and depth == 0 and not ("!" in names[-1] and following.isdigit()):
            names.append("")
        else:
            names[-1] += letter
    return names


def split_offsets(text: str) -> tuple[str, ...]:
    """Offsets between commas, without blanks.

    Raises
    ------
    InputError
        If there are none, or one is there twice.

    Examples
    --------
    >>> split_offsets("+0, (1, -2)")
    ('+0', '(1,-2)')
    """
    offsets = tuple(split_names("".join(text.split())))
    if not all(offsets):
        raise InputError(f"Offsets must be ports or coordinates, as in [+0,(1,2)], not [{text}]")
    if len(set(offsets)) < len(offsets):
        raise InputError(f"Offsets must be different ones, not [{text}]")
    return offsets


def parse_offset(offset: str, topology: CayleyGraph) -> int:
    """The node at an offset from node 0: beyond a port, or at signed coordinates.

    Raises
    ------
    InputError
        If the topology has no such port, or not so many coordinates.

    Examples
    --------
    >>> from torusfabric.topology import Torus
    >>> [parse_offset(offset, Torus(4, 5)) for offset in ("+1", "-0", "(1,-2)")]
    [1, 15, 8]
    """
    if offset in topology.port_names:
        return int(topology.generators[topology.port(offset)])
    moduli: Sequence[int] = topology.moduli
    values = [int(v) for v in offset[1:-1].split(",")] if _COORDINATES.fullmatch(offset) else []
    if values and len(values) == len(moduli):
        wanted = np.array(values)[:, None] % np.array(moduli)[:, None]
        if not wanted.any():
            raise InputError(f"Offset must lead to another node of {topology}, not {offset}")
        every = topology.coordinates(np.arange(topology.nodes))
        return int((np.array([*every]) == wanted).all(axis=0).argmax())
    ports = ", ".join(topology.port_names)
    raise InputError(
        f"Offset must be one of the ports {ports} or {len(moduli)} coordinates such as "
        f"({','.join('1' for _ in moduli)}), not {offset}"
    )
