"""Offsets to which nodes send in an exchange or halo, as users write them."""

import re
from collections.abc import Sequence

import numpy as np

from ..errors import InputError
from ..topology import CayleyGraph

__all__ = ["parse_offset", "split_names", "split_offsets"]

#: Signed coordinates.
_COORDINATES = re.compile(r"\(-?\d{1,9}(,-?\d{1,9})*\)")


def split_names(text: str) -> list[str]:
    """Names between commas, as far as these are not in brackets.

    Examples
    --------
    >>> split_names("exchange[+0,(1,2)],allreduce")
    ['exchange[+0,(1,2)]', 'allreduce']
    """
    names, depth = [""], 0
    for letter in text:
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and depth == 0:
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
