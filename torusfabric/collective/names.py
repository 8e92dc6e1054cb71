"""Parser of collective names, such as ``broadcast@0+2`` or ``exchange[+0,(1,-2)]``."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from ..errors import InputError
from ..toolchain.destinations import AnyPath
from ..toolchain.public import public
from ..toolchain.values import (
    entries_of,
    message_text,
    parse_non_negative_int,
    require_type,
    unknown_name_error,
)
from ..topology import Topology, check_members, parse_axes, split_faults
from .collective import Collective
from .counts import parse_counts
from .definitions import COLLECTIVES
from .offsets import split_offsets
from .traffic import Traffic

__all__ = ["parse_collective"]


#: The most nodes of one range in the text of a group.
MOST_RANGE = 2**20

#: Axes in any form that users may pass.
Axes: TypeAlias = Sequence[int] | int | str | None


@public
def parse_collective(  # noqa: PLR0913 (one choice of a user each)
    name: str,
    *,
    root: int | str | None = None,
    axes: Sequence[int] | int | str | None = None,
    offsets: Sequence[str] | str = (),
    groups: Sequence[Sequence[int | str]] | str = (),
    traffic: Traffic | AnyPath | Iterable[Any] | None = None,
    counts: Any = None,
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
        Also the name of a node, if `topology` is given and there is at most one group.
    axes : sequence of int, int or str, optional
        The axes that span the groups, if `name` has none: numbers, or text such as ``"0+2"``.
    offsets : sequence of str or str, optional
        The offsets to which nodes send in an exchange or halo, if `name` has none in brackets:
        names of ports, or coordinates such as ``"(1,-2)"``.
    groups : sequence of (sequence of (int or str)), or str, optional
        The nodes of each group, in the order of their positions, if `name` has none in braces. If
        `topology` is given, a node may be called by its name.
    traffic : Traffic, path, or iterable of messages, optional
        The messages of a pattern; a path is that of a file for `Traffic.read`. If `topology` is
        given, a node may be called by its name.
    counts : array_like of int, or path, optional
        The flits of each message, if they are unequal: a number for each origin (all-gather,
        gather) or each destination (scatter, reduce-scatter), or a matrix [origin, destination]
        (all-to-all). A path is that of a file with a row of numbers a line. The file may have the
        names of the nodes in its first line, in its first column, or in both.
    topology : Topology, optional
        If given, root, axes, offsets and nodes must exist in this topology.

    Raises
    ------
    InputError
        If there is no such collective, or the root, the axes or the offsets do not fit.

    Examples
    --------
    >>> parse_collective("All-to-all broadcast").kind
    'allgather'
    >>> from torusfabric.topology import Torus
    >>> print(parse_collective("reduction@1", root=2, topology=Torus(8, 4)))
    reduce@1 from 2
    >>> print(parse_collective("allreduce@0+1", topology=Torus(8, 4)))
    allreduce
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
    name, members = _extract_groups(name, groups, topology)
    kind, axes = _parse_name(name, axes)
    if members and axes is not None:
        raise InputError("Groups must be given by axes or by nodes, not by both")
    if offsets and not COLLECTIVES[kind].local:
        raise InputError(f"{kind} takes no offsets; leave [{','.join(offsets)}] out")
    messages: Any = traffic
    if isinstance(traffic, str | os.PathLike):
        messages = Traffic.read(traffic, topology)
    # On a network with relays, a collective runs among all other nodes.
    others = topology is not None and topology.relays and not members and kind != "pattern"
    if topology is not None and others:
        relays = {*topology.relays}
        members = (tuple(node for node in range(topology.nodes) if node not in relays),)
    collective = Collective(
        kind,
        axes=_parse_axes(axes, topology),
        offsets=offsets,
        members=members,
        traffic=None if messages is None else Traffic(messages, topology),
        lengths=() if counts is None else parse_counts(kind, counts, topology, members),
    )
    if topology is not None:
        check_members(topology, members)
        if collective.traffic is not None:
            collective.traffic.check_nodes(topology.nodes, topology.relays)
        _ = collective.blocks(topology, 1).message_lengths  # refuses counts of another shape
    if topology is not None and collective.local:
        if topology.nodes == 1:
            raise InputError(f"Topology must have two nodes or more for {kind}, not {topology}")
        collective.targets(topology)  # refuses an offset that a group does not have
    if collective.rooted:
        if topology is not None and others:
            root = _root_beside_relays(root, collective, topology)
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
    name: str, groups: Sequence[Sequence[int | str]] | str, topology: Topology | None
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
        return name, tuple(tuple(_node_number(node, topology) for node in group) for group in each)
    if groups and not re.fullmatch(r"\s*(\{[^{}]*\}\s*)+", groups):
        raise InputError(
            f"Groups must be nodes in braces, as in allgather@{{0-3}}{{8,9,12,13}}, not {groups!r}"
        )
    parts = re.findall(r"\{([^{}]*)\}", groups)
    return name, tuple(tuple(_nodes_of_text(part, topology)) for part in parts)


def _node_number(node: object, topology: Topology | None) -> int:
    """Return a node of a group, a number or a name, as an integer."""
    if isinstance(node, str) and topology is not None and not re.fullmatch("[0-9]{1,4000}", node):
        return topology.node_number(node, noun="Node of a group")
    return parse_non_negative_int("Node of a group", node)


def _nodes_of_text(text: str, topology: Topology | None) -> Iterator[int]:
    """Yield the nodes of a list of numbers, ranges and names, such as ``0-3,9`` or ``hub,leaf``."""
    for part in split_faults(text):
        ends = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part)
        named = None if topology is None else topology.find_node(part)
        if not ends and named is not None:
            yield named
            continue
        if not ends or int(ends[2] or ends[1]) < int(ends[1]):
            raise InputError(
                "Nodes of a group must be numbers and ranges, as in {0-3,9}, or names that reports "
                f"print, not {part or 'nothing'} in {{{text}}}"
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
    if isinstance(root, str) and topology is not None and collective.axes is None:
        root = _root_by_name(root, collective, topology)
    if not isinstance(root, int | np.integer) or isinstance(root, bool):
        raise InputError(f"Root must be {number}, not {message_text(root)}")
    nodes = None if topology is None else int(collective.groups(topology).sizes.min())
    if root < 0 or (nodes is not None and root >= nodes):
        raise InputError(f"Root must be {where} from 0 to {(nodes or 1) - 1}, not {root}")
    return int(root)


def _root_beside_relays(root: object, collective: Collective, topology: Topology) -> Any:
    """Return the position of the root of a collective among all nodes that are no relays.

    A user gives the root by its number or its name in the whole network. Any other value is
    returned unchanged.
    """
    node = topology.find_node(root)
    if node in topology.relays:
        raise InputError(
            f"Root must be a node that sends and receives, not {message_text(root)}, a relay of "
            f"{topology}"
        )
    (members,) = collective.members
    return root if node is None else members.index(node)


def _root_by_name(root: str, collective: Collective, topology: Topology) -> int:
    """Return the root that a user calls by the name of its node: the node, or its position.

    A position is that in the single group of `collective`. Several groups have a root each, which
    one name cannot tell.
    """
    if len(collective.members) > 1:
        raise InputError(
            f"Root must be a position in a group for several groups, not {message_text(root)}"
        )
    node = topology.node_number(root, noun="Root")
    for group in collective.members:
        if node not in group:
            raise InputError(f"Root must be a node of the group, not {message_text(root)}")
        return group.index(node)
    return node


def _parse_axes(axes: Axes, topology: Topology | None) -> tuple[int, ...] | None:
    """Return the axes that span the groups, ascending; None for one group of all nodes."""
    if axes is None:
        return None
    numbers = entries_of(axes)
    if not all(type(axis) is int for axis in numbers):
        raise InputError(f"Axes must be a list of axis numbers, not {message_text(axes)}")
    return tuple(sorted(numbers)) if topology is None else parse_axes(topology, numbers)
