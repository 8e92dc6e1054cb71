"""Parser of collective names, such as ``broadcast@0+2`` or ``exchange[+0,(1,-2)]``."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from ..errors import InputError
from ..toolchain.public import public
from ..toolchain.values import (
    entries_of,
    message_text,
    parse_non_negative_int,
    require_type,
    unknown_name_error,
)
from ..topology import Topology, check_members, parse_axes
from .collective import Collective
from .definitions import COLLECTIVES
from .offsets import split_offsets

__all__ = ["parse_collective"]


#: The most nodes of one range in the text of a group.
MOST_RANGE = 2**20

#: Axes in any form that users may pass.
Axes: TypeAlias = Sequence[int] | int | str | None


@public
def parse_collective(
    name: str,
    *,
    root: int | str | None = None,
    axes: Sequence[int] | int | str | None = None,
    offsets: Sequence[str] | str = (),
    groups: Sequence[Sequence[int]] | str = (),
    topology: Topology | None = None,
) -> Collective:
    """Return the collective that a user names.

    Parameters
    ----------
    name : str
        The name of the collective or one of its aliases, in upper or lower case, with blanks or
        dashes. ``@`` and axes joined by ``+`` may follow, or ``@`` and the nodes of one or several
        groups in braces, as in ``allreduce@{0-3}{8,9,12,13}``. ``shift[+0]`` is an exchange with a
        single offset.
    root : int or str, optional
        The position of the root in its group (default 0). Only for a collective that has a root.
    axes : sequence of int, int or str, optional
        The axes that span the groups, if `name` has none: numbers, or text such as ``"0+2"``.
    offsets : sequence of str or str, optional
        The offsets to which nodes send in an exchange or halo, if `name` has none in brackets:
        names of ports, or coordinates such as ``"(1,-2)"``.
    groups : sequence of (sequence of int), or str, optional
        The nodes of each group, in the order of their positions, if `name` has none in braces. All
        groups have the same number of nodes.
    topology : Topology, optional
        If given, root, axes, offsets and nodes must exist in this topology.

    Raises
    ------
    InputError
        If there is no such collective, or the root, the axes or the offsets do not fit.

    Examples
    --------
    >>> parse_collective("All-to-all broadcast")
    Collective(kind='allgather', root=None, axes=None, offsets=(), without=(), members=())
    >>> from torusfabric.topology import Torus
    >>> parse_collective("reduction@1", root=2, topology=Torus(8, 4))
    Collective(kind='reduce', root=2, axes=(1,), offsets=(), without=(), members=())
    >>> parse_collective("allreduce@0+1", topology=Torus(8, 4))
    Collective(kind='allreduce', root=None, axes=None, offsets=(), without=(), members=())
    >>> print(parse_collective("exchange[+1, (1, -2)]"))
    exchange[+1,(1,-2)]
    >>> parse_collective("allgather@{0-2,5}").members
    ((0, 1, 2, 5),)
    """
    if topology is not None:
        require_type("Topology", topology, Topology, "a Topology, such as tf.Torus(4, 4)")
    name, offsets = _extract_offsets(name if isinstance(name, str) else repr(name), offsets)
    if name.lower().startswith("shift") and len(offsets) != 1:
        raise InputError(f"Shift must be by one offset, as in shift[+0], not by {len(offsets)}")
    name, members = _extract_groups(name, groups)
    kind, axes = _parse_name(name, axes)
    if members and axes is not None:
        raise InputError("Groups must be given by axes or by nodes, not by both")
    if offsets and not COLLECTIVES[kind].local:
        raise InputError(f"{kind} takes no offsets; leave [{','.join(offsets)}] out")
    collective = Collective(
        kind, axes=_parse_axes(axes, topology), offsets=offsets, members=members
    )
    if topology is not None:
        check_members(topology, members)
    if topology is not None and collective.local:
        if topology.nodes == 1:
            raise InputError(f"Topology must have two nodes or more for {kind}, not {topology}")
        collective.targets(topology)  # refuses an offset that a group does not have
    if collective.rooted:
        return replace(collective, root=_parse_root(root, collective, topology))
    if root is not None:
        raise InputError(f"{kind} has no root; leave the root {message_text(root)} out")
    return collective


def _extract_offsets(name: str, offsets: Sequence[str] | str) -> tuple[str, tuple[str, ...]]:
    """Split `name` into the name without brackets and the offsets in the brackets.

    Offsets that the caller passes separately, in `offsets`, are returned instead; giving both is
    refused.
    """
    inside = re.fullmatch(r"([^\[\]]*)\[([^\[\]]*)\]([^\[\]]*)", name)
    if inside and offsets:
        raise InputError(f"Offsets must be given once, not by {name!r} and as {offsets!r}")
    if inside:
        return inside[1] + inside[3], split_offsets(inside[2])
    text = offsets if isinstance(offsets, str) else ",".join(map(str, offsets))
    return name, split_offsets(text) if text else ()


def _extract_groups(
    name: str, groups: Sequence[Sequence[int]] | str
) -> tuple[str, tuple[tuple[int, ...], ...]]:
    """Split `name` into the name without groups, and the nodes of each group in braces.

    Groups that the caller passes separately, in `groups`, are returned instead; giving both is
    refused.
    """
    base, _, text = name.partition("@")
    if "{" in text:
        if len(groups):
            raise InputError(f"Groups must be given once, not by {name!r} and as {groups}")
        groups, name = text, base
    if not isinstance(groups, str):
        each = (entries_of(group) for group in entries_of(groups))
        return name, tuple(tuple(map(_node_number, group)) for group in each)
    if groups and not re.fullmatch(r"\s*(\{[^{}]*\}\s*)+", groups):
        raise InputError(
            f"Groups must be nodes in braces, as in allgather@{{0-3}}{{8,9,12,13}}, not {groups!r}"
        )
    return name, tuple(tuple(_nodes_of_text(part)) for part in re.findall(r"\{([^{}]*)\}", groups))


def _node_number(node: object) -> int:
    """Return a node of a group as an integer, after checking that it is one."""
    return parse_non_negative_int("Node of a group", node)


def _nodes_of_text(text: str) -> Iterator[int]:
    """Yield the nodes of a list of numbers and ranges, such as ``0-3,9``."""
    for part in text.split(","):
        ends = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part.strip())
        if not ends or int(ends[2] or ends[1]) < int(ends[1]):
            raise InputError(
                f"Nodes of a group must be numbers and ranges, as in {{0-3,9}}, not {{{text}}}"
            )
        last = int(ends[2] or ends[1])
        if last - int(ends[1]) >= MOST_RANGE:
            raise InputError(f"A range of nodes must have at most {MOST_RANGE} of them, not {part}")
        yield from range(int(ends[1]), last + 1)


def _parse_name(name: str, axes: Axes) -> tuple[str, Axes]:
    """Return the kind of a collective and its axes.

    The axes stand behind ``@`` in `name`, or are passed as `axes`.
    """
    base, at, text = name.partition("@")
    key = base.strip().lower().replace(" ", "-").replace("_", "-")
    key = "exchange" if key == "shift" else key
    if key == "barrier":
        raise InputError(
            "A barrier moves no data, so it comes beside a collective: verilog 4x4 "
            "allgather,barrier --top stream --max-flits 4, or compile(.., barrier=True)"
        )
    for kind, definition in COLLECTIVES.items():
        if key == kind or key in definition.aliases:
            break
    else:
        aliases = {alias: kind for kind, what in COLLECTIVES.items() for alias in what.aliases}
        raise unknown_name_error("Collective", base, COLLECTIVES, ways=aliases)
    if not at and not isinstance(axes, str):
        return kind, axes
    if at and axes is not None:
        raise InputError(f"Axes must be given once, not by {name!r} and as {axes}")
    text = text if at else str(axes)
    if not re.fullmatch(r"[0-9]{1,9}(\+[0-9]{1,9})*", text.strip()):
        raise InputError(f"Axes must be numbers joined by +, as in {kind}@0+2, not {text!r}")
    return kind, [int(axis) for axis in text.split("+")]


def _parse_root(root: int | str | None, collective: Collective, topology: Topology | None) -> int:
    """Return the root of a collective that has one, after checking it; 0 if the user gives none."""
    root = int(root) if isinstance(root, str) and re.fullmatch(r"[0-9]{1,4000}", root) else root
    root = 0 if root is None else root
    whole = collective.axes is None and not collective.members
    where = "a node" if whole else "a position in a group"
    number = "a node number" if whole else where
    if not isinstance(root, int | np.integer) or isinstance(root, bool):
        raise InputError(f"Root must be {number}, not {message_text(root)}")
    nodes = None if topology is None else collective.groups(topology).group_size
    if root < 0 or (nodes is not None and root >= nodes):
        raise InputError(f"Root must be {where} from 0 to {(nodes or 1) - 1}, not {root}")
    return int(root)


def _parse_axes(axes: Axes, topology: Topology | None) -> tuple[int, ...] | None:
    """Return the axes that span the groups, ascending; None for one group of all nodes."""
    if axes is None:
        return None
    numbers = entries_of(axes)
    if not all(type(axis) is int for axis in numbers):
        raise InputError(f"Axes must be a list of axis numbers, not {message_text(axes)}")
    return tuple(sorted(numbers)) if topology is None else parse_axes(topology, numbers)
