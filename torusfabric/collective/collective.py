"""A collective communication, and how users name it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from ..errors import InputError
from ..toolchain.hints import no_such
from ..topology import Groups, Topology, parse_axes
from .blocks import Blocks
from .definitions import COLLECTIVES, Content, Definition, Target
from .layout import Layout

__all__ = ["Collective", "parse_collective"]


#: Axes as users give them.
Axes: TypeAlias = Sequence[int] | int | str | None


@dataclass(frozen=True)
class Collective:
    """A collective communication.

    Parameters
    ----------
    kind : str
        A key of `COLLECTIVES`.
    root : int or None
        The position, in each group, of the node that broadcasts, scatters, gathers or reduces; None
        where no node is special.
    axes : tuple of int or None
        The axes that span the groups in which it runs, ascending; None for one group of all nodes.

    Examples
    --------
    >>> scatter = parse_collective("scatter", root=3)
    >>> scatter.rooted, scatter.personal, scatter.single_origin
    (True, True, True)
    >>> print(parse_collective("broadcast@2+0", root=3))
    broadcast@0+2 from 3
    """

    kind: str
    root: int | None = None
    axes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in COLLECTIVES:
            raise no_such("Collective", self.kind, COLLECTIVES)

    @property
    def definition(self) -> Definition:
        """What the collective is."""
        return COLLECTIVES[self.kind]

    @property
    def rooted(self) -> bool:
        """Whether one node is special."""
        return self.single_origin or self.to_root

    @property
    def single_origin(self) -> bool:
        """Whether the root is the only origin: broadcast, scatter."""
        return self.definition.content is Content.ROOT

    @property
    def from_each(self) -> bool:
        """Whether a message of each node is delivered: allgather, gather, alltoall."""
        return self.definition.content is Content.EACH

    @property
    def reducing(self) -> bool:
        """Whether messages are combined: reduce, reduce-scatter, allreduce."""
        return self.definition.content is Content.COMBINED

    @property
    def to_root(self) -> bool:
        """Whether the root is the only destination: gather, reduce."""
        return self.definition.target is Target.ROOT

    @property
    def to_all(self) -> bool:
        """Whether every node receives the same: broadcast, allgather, allreduce."""
        return self.definition.target is Target.ALL

    @property
    def personal(self) -> bool:
        """Whether a block has a destination of its own: scatter, alltoall, reduce-scatter."""
        return self.definition.target is Target.PERSONAL

    @property
    def name(self) -> str:
        """What the user writes, e.g. ``allreduce@0+2``."""
        return self.kind if self.axes is None else f"{self.kind}@{'+'.join(map(str, self.axes))}"

    @property
    def in_one_group(self) -> "Collective":
        """The same collective of one group alone."""
        return replace(self, axes=None)

    def groups(self, topology: Topology) -> Groups:
        """The groups of a topology in which it runs."""
        return Groups(topology, self.axes)

    def blocks(self, topology: Topology, chunks: int) -> Blocks:
        """The blocks of this collective on a topology, where a message has so many chunks."""
        return Blocks(self, self.groups(topology), chunks)

    def layout(self, topology: Topology, chunks: int) -> Layout:
        """The layout of the nodes' memories, where a message has so many chunks."""
        return Layout(self.blocks(topology, chunks))

    def to_json(self) -> dict[str, Any]:
        """The collective as an entry of a schedule file."""
        entry: dict[str, Any] = {"kind": self.kind}
        if self.rooted:
            entry["root"] = self.root
        if self.axes is not None:
            entry["axes"] = list(self.axes)
        return entry

    def __str__(self) -> str:
        return self.name + (f" from {self.root}" if self.root else "")


def parse_collective(
    name: str,
    *,
    root: int | str | None = None,
    axes: Sequence[int] | int | str | None = None,
    topology: Topology | None = None,
) -> Collective:
    """The collective a user names.

    Parameters
    ----------
    name : str
        Its name or an alias of it, in any case, with blanks or dashes; ``@`` and axes joined by
        ``+`` may follow.
    root : int or str, optional
        The special node of a rooted collective (default 0): its position in its group.
    axes : sequence of int, int or str, optional
        The axes that span the groups in which it runs, if the name does not say: also ``"0+2"``.
    topology : Topology, optional
        The root must be one of its nodes, and the axes some of its axes.

    Raises
    ------
    InputError
        If there is no such collective, or the root or the axes do not fit.

    Examples
    --------
    >>> parse_collective("All-to-all broadcast")
    Collective(kind='allgather', root=None, axes=None)
    >>> from torusfabric.topology import Torus
    >>> parse_collective("reduction@1", root=2, topology=Torus(8, 4))
    Collective(kind='reduce', root=2, axes=(1,))
    >>> parse_collective("allreduce@0+1", topology=Torus(8, 4))
    Collective(kind='allreduce', root=None, axes=None)
    """
    kind, axes = _parse_name(name if isinstance(name, str) else repr(name), axes)
    collective = Collective(kind, axes=_parse_axes(axes, topology))
    if collective.rooted:
        return replace(collective, root=_parse_root(root, collective, topology))
    if root is not None:
        raise InputError(f"Root must be left out for {kind}, which has none, not {root!r}")
    return collective


def _parse_name(name: str, axes: Axes) -> tuple[str, Axes]:
    """The kind of a collective, and its axes."""
    base, at, text = name.partition("@")
    key = base.strip().lower().replace(" ", "-").replace("_", "-")
    for kind, definition in COLLECTIVES.items():
        if key == kind or key in definition.aliases:
            break
    else:
        aliases = {alias: kind for kind, what in COLLECTIVES.items() for alias in what.aliases}
        raise no_such("Collective", base, COLLECTIVES, ways=aliases)
    if not at and not isinstance(axes, str):
        return kind, axes
    if at and axes is not None:
        raise InputError(f"Axes must be given once, not by {name!r} and as {axes}")
    text = text if at else str(axes)
    if not re.fullmatch(r"[0-9]{1,9}(\+[0-9]{1,9})*", text.strip()):
        raise InputError(f"Axes must be numbers joined by +, as in {kind}@0+2, not {text!r}")
    return kind, [int(axis) for axis in text.split("+")]


def _parse_root(root: int | str | None, collective: Collective, topology: Topology | None) -> int:
    """The root of a rooted collective."""
    root = int(root) if isinstance(root, str) and re.fullmatch(r"\d{1,4000}", root) else root
    root = 0 if root is None else root
    where = "a node" if collective.axes is None else "a position in a group"
    number = "a node number" if collective.axes is None else where
    if not isinstance(root, int | np.integer) or isinstance(root, bool):
        raise InputError(f"Root must be {number}, not {root!r}")
    nodes = None if topology is None else collective.groups(topology).size
    if root < 0 or (nodes is not None and root >= nodes):
        raise InputError(f"Root must be {where} from 0 to {(nodes or 1) - 1}, not {root}")
    return int(root)


def _parse_axes(axes: Axes, topology: Topology | None) -> tuple[int, ...] | None:
    """The axes that span groups, ascending."""
    if axes is None:
        return None
    if isinstance(axes, int | np.integer) and not isinstance(axes, bool):
        axes = [int(axes)]
    if isinstance(axes, np.ndarray):
        axes = axes.tolist()
    if not isinstance(axes, list | tuple) or not all(type(axis) is int for axis in axes):
        raise InputError(f"Axes must be a list of axis numbers, not {axes!r}")
    return tuple(sorted(axes)) if topology is None else parse_axes(topology, axes)
