"""A collective communication, and how users name it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError
from ..toolchain.hints import no_such
from ..topology import Topology
from .blocks import Blocks
from .definitions import COLLECTIVES, Content, Definition, Target
from .layout import Layout

__all__ = ["Collective", "parse_collective"]


@dataclass(frozen=True)
class Collective:
    """A collective communication.

    Parameters
    ----------
    kind : str
        A key of `COLLECTIVES`.
    root : int or None
        The node that broadcasts, scatters, gathers or reduces; None where no node is special.
    axes : tuple of int or None
        The axes that span the groups in which it runs; None for one group of all nodes.

    Examples
    --------
    >>> scatter = parse_collective("scatter", root=3)
    >>> scatter.rooted, scatter.personal, scatter.single_origin
    (True, True, True)
    """

    kind: str
    root: int | None = None
    axes: tuple[int, ...] | None = None

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

    def blocks(self, topology: Topology, chunks: int) -> Blocks:
        """The blocks of this collective on a topology, where a message has so many chunks."""
        return Blocks(self, topology.nodes, chunks)

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
        return self.kind + (f" from {self.root}" if self.root else "")


def parse_collective(
    name: str,
    *,
    root: int | None = None,
    nodes: int | None = None,
    axes: Sequence[int] | None = None,
    dimensions: int | None = None,
) -> Collective:
    """The collective a user names.

    Parameters
    ----------
    name : str
        Its name or an alias of it, in any case, with blanks or dashes.
    root : int, optional
        The special node of a rooted collective (default 0).
    nodes : int, optional
        The number of nodes of the topology; the root must be one of them.
    axes : sequence of int, optional
        The axes that span the groups in which it runs. For the present these must be all axes.
    dimensions : int, optional
        The number of axes of the topology.

    Raises
    ------
    InputError
        If there is no such collective, or the root or the axes do not fit.

    Examples
    --------
    >>> parse_collective("All-to-all broadcast")
    Collective(kind='allgather', root=None, axes=None)
    >>> parse_collective("reduction", root=2, nodes=16)
    Collective(kind='reduce', root=2, axes=None)
    """
    key = str(name).strip().lower().replace(" ", "-").replace("_", "-")
    for kind, definition in COLLECTIVES.items():
        if key == kind or key in definition.aliases:
            collective = Collective(kind)
            break
    else:
        aliases = {alias: kind for kind, what in COLLECTIVES.items() for alias in what.aliases}
        raise no_such("Collective", name, COLLECTIVES, ways=aliases)
    _check_axes(axes, dimensions)
    if collective.rooted:
        return Collective(kind, _parse_root(root, nodes))
    if root is not None:
        raise InputError(f"Root must be left out for {kind}, which has none, not {root!r}")
    return collective


def _parse_root(root: int | None, nodes: int | None) -> int:
    """The root of a rooted collective."""
    root = 0 if root is None else root
    if not isinstance(root, int | np.integer) or isinstance(root, bool):
        raise InputError(f"Root must be a node number, not {root!r}")
    if root < 0 or (nodes is not None and root >= nodes):
        raise InputError(f"Root must be a node from 0 to {(nodes or 1) - 1}, not {root}")
    return int(root)


def _check_axes(axes: Sequence[int] | None, dimensions: int | None) -> None:
    """Refuse groups that are smaller than the topology: no algorithm plans for them yet."""
    if axes is None:
        return
    if not isinstance(axes, list | tuple) or not all(type(axis) is int for axis in axes):
        raise InputError(f"Axes must be a list of axis numbers, not {axes!r}")
    if dimensions is not None and sorted(axes) == list(range(dimensions)):
        return
    every = "" if dimensions is None else f" ({', '.join(map(str, range(dimensions)))})"
    raise InputError(
        f"Axes must be left out or be all axes of the topology{every}, not "
        f"{list(axes)}: a collective in groups of nodes is not supported yet"
    )
