"""Offsets of an exchange or halo, and the parsing of names with algorithms and faults.

An *offset* leads from each node to another node. It is written as the name of a port, ``+0``, or as
signed coordinates, ``(1,-2)``.
"""

import re
from collections.abc import Sequence
from string import digits
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from ..toolchain.values import message_text
from ..topology import BoolArray, CayleyGraph, Faulty, IntArray, Mesh, Topology

__all__ = ["NO_NODE", "NameParts", "nodes_at_offset", "split_name", "split_names", "split_offsets"]

#: In tables of nodes: the offset leads to no node.
NO_NODE = -2

#: An offset in signed coordinates.
_COORDINATES = re.compile(r"\(-?[0-9]{1,9}(,-?[0-9]{1,9})*\)")


class NameParts(NamedTuple):
    """The parts of ``COLLECTIVE[:ALGORITHM][!FAULTS]``; an omitted part is empty text.

    For ``allgather:matching!9`` they are ``allgather``, ``matching`` and ``9``.
    """

    collective: str
    algorithm: str
    faults: str


def split_name(text: str) -> NameParts:
    """Split ``COLLECTIVE[:ALGORITHM][!FAULTS]`` into its parts.

    Parameters
    ----------
    text : str
        The name, as a user writes it.

    Raises
    ------
    InputError
        If a ``:`` or a ``!`` is not followed by text.

    Examples
    --------
    >>> split_name("allgather@0:any-network!0:+0,9")
    NameParts(collective='allgather@0', algorithm='any-network', faults='0:+0,9')
    """
    name, mark, faults = text.partition("!")
    collective, colon, algorithm = name.partition(":")
    for sign, what, named in ((colon, "an algorithm", algorithm), (mark, "faults", faults)):
        if sign and not named.strip():
            raise InputError(
                f"Collective must have {what} behind its {sign}, not {message_text(text)}"
            )
    return NameParts(collective, algorithm, faults)


def split_names(text: str) -> list[str]:
    """Split a list of names at its commas, except commas within brackets and commas between faults.

    A comma after a ``!`` separates faults if a digit follows, since every fault begins with a node
    number.

    Parameters
    ----------
    text : str
        Names with commas between them, as a user writes them.

    Examples
    --------
    >>> split_names("exchange[+0,(1,2)],allreduce@{0,5}!0:+0,9:-1,allgather")
    ['exchange[+0,(1,2)]', 'allreduce@{0,5}!0:+0,9:-1', 'allgather']
    """
    names, depth = [""], 0
    for letter, following in zip(text, f"{text[1:]} ", strict=bool(text)):
        depth += (letter in "[({") - (letter in "])}")
        if letter == "," and depth == 0 and not ("!" in names[-1] and following in digits):
            names.append("")
        else:
            names[-1] += letter
    return names


def split_offsets(text: str) -> tuple[str, ...]:
    """Split a list of offsets at its commas, and drop blanks.

    Parameters
    ----------
    text : str
        The offsets, as a user writes them between ``[`` and ``]``.

    Raises
    ------
    InputError
        If an offset is empty, or is there twice.

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


def nodes_at_offset(offset: str, topology: Topology) -> IntArray:
    """Return the node to which `offset` leads from each node of a topology.

    Neighbours are those of the whole network: broken links do not change the result.

    Returns
    -------
    ndarray of int, shape (nodes,)
        `NO_NODE` where the offset leads off a mesh, to a broken node, or to a port without a link.

    Raises
    ------
    InputError
        If the topology has no such port, if the number of coordinates is wrong, or if the offset
        leads from no node to another node.

    Examples
    --------
    Where the offset leads off the mesh, the result is -2 (`NO_NODE`).

    >>> from torusfabric.topology import parse_topology
    >>> torus = parse_topology("4x5")
    >>> [int(nodes_at_offset(offset, torus)[0]) for offset in ("+1", "-0", "(1,-2)")]
    [1, 15, 8]
    >>> nodes_at_offset("(-1,1)", parse_topology("mesh:2x3")).tolist()
    [-2, -2, -2, 1, 2, -2]
    """
    if isinstance(topology, Faulty):
        number = np.full(topology.whole.nodes + 1, NO_NODE)
        number[topology.kept] = np.arange(topology.nodes)
        return number[np.maximum(nodes_at_offset(offset, topology.whole)[topology.kept], -1)]
    if offset in topology.port_names:
        port = topology.port(offset)
        return np.where(topology.linked[:, port], topology.neighbours[:, port], NO_NODE)
    moduli, wraps, coordinates = _axis_tables(topology)
    values = [int(v) for v in offset[1:-1].split(",")] if _COORDINATES.fullmatch(offset) else []
    if not values or len(values) != len(moduli):
        ports = ", ".join(topology.port_names)
        example = f" or {len(moduli)} coordinates such as ({','.join('1' for _ in moduli)})"
        raise InputError(
            f"Offset must be one of the ports {ports}{example if moduli else ''}, not {offset}"
        )
    moved = coordinates + np.array(values)[:, None]
    wrapped = moved % np.array(moduli)[:, None]
    inside = ((moved == wrapped) | wraps[:, None]).all(axis=0)
    number = np.empty(topology.nodes, int)
    number[np.ravel_multi_index(tuple(coordinates), moduli)] = np.arange(topology.nodes)
    found = np.where(inside, number[np.ravel_multi_index(tuple(wrapped), moduli)], NO_NODE)
    if not (inside & (found != np.arange(topology.nodes))).any():
        raise InputError(f"Offset must lead to another node of {topology}, not {offset}")
    return found


def _axis_tables(topology: Topology) -> tuple[Sequence[int], BoolArray, IntArray]:
    """Return the sides of a topology, flags for wrap-around, and the coordinates of all nodes.

    A flag is True for an axis with wrap-around. A topology without coordinates has no axes.
    """
    if isinstance(topology, Mesh):
        sides, coordinates = topology.grid
        return sides, np.array(topology.wraps), coordinates
    if isinstance(topology, CayleyGraph):
        every = np.array([*topology.coordinates(np.arange(topology.nodes))])
        return topology.moduli, np.ones(len(topology.moduli), bool), every
    return (), np.ones(0, bool), np.empty((0, topology.nodes), int)
