"""What to plan: a topology, a collective, options and perhaps an algorithm, or a schedule file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from ..algorithms import Algorithm, Options, choose, find
from ..collective import Collective, parse_collective
from ..errors import InputError
from ..schedule import Duplex
from ..topology import Topology, parse_topology

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["PlanOptions", "Selection", "select"]


class PlanOptions(TypedDict, total=False):
    """What may be asked of an algorithm, as keyword arguments; see `Options`.

    A ``latency`` of ``auto`` is the one with which hardware for sums takes the fewest cycles.
    """

    ports: int | None
    chunks: int | None
    large: bool
    seed: int
    latency: int | Literal["auto"]
    broken_links: tuple[tuple[int, int], ...]
    duplex: Duplex | str
    trees: int | None
    packets: int | None
    times: tuple[float, float, float] | None


@dataclass(frozen=True)
class Selection:
    """What to plan.

    Parameters
    ----------
    topology : Topology
    collective : Collective
    algorithm : Algorithm, optional
        By default the first of the catalogue that serves.
    options : Options
    any_latency : bool
        Whether sums may wait as many steps as make hardware the quickest.
    """

    topology: Topology
    collective: Collective
    algorithm: Algorithm | None = None
    options: Options = field(default_factory=Options)
    any_latency: bool = False

    def chosen(self) -> Algorithm:
        """The algorithm that plans it.

        Raises
        ------
        InputError
            If none serves.
        """
        return self.algorithm or choose(self.topology, self.collective, self.options)


def select(
    topology: Topology | str,
    collective: Collective | str,
    *,
    algorithm: Algorithm | str | None = None,
    root: int | None = None,
    axes: Sequence[int] | None = None,
    **options: Unpack[PlanOptions],
) -> Selection:
    """Select what to plan, by values or by names.

    Parameters
    ----------
    topology : Topology or str
    collective : Collective or str
        By name perhaps with axes and an algorithm, ``"alltoall@1:necklace"``.
    algorithm : Algorithm or str, optional
        By default the first of the catalogue that serves.
    root : int, optional
        The root of a collective that is given by name.
    axes : sequence of int, optional
        The axes that span its groups, where the name does not say; by default all.
    **options
        See `PlanOptions`.

    Returns
    -------
    Selection

    Raises
    ------
    InputError
        If a name is unknown, or a value is out of range.

    Examples
    --------
    >>> select("4x4", "gossip", algorithm="matching").collective.kind
    'allgather'
    """
    topology = parse_topology(topology) if isinstance(topology, str) else topology
    kind = collective
    if isinstance(collective, Collective):
        if root is not None or axes is not None:
            raise InputError("Root and axes must be those of the collective, not given again")
        kind, root, axes = collective.kind, collective.root, collective.axes
    elif ":" in collective:
        kind, _, named = collective.partition(":")
        if algorithm is not None:
            raise InputError(f"Algorithm must be left out for {collective}, not {algorithm}")
        algorithm = named
    collective = parse_collective(str(kind), root=root, axes=axes, topology=topology)
    if isinstance(algorithm, str):
        algorithm = find(algorithm)
    ports, groups = options.get("ports"), collective.groups(topology)
    if ports is not None and not 1 <= ports <= groups.torus.ports:
        where = topology if collective.axes is None else f"{topology} {collective.name}"
        raise InputError(f"Ports must be from 1 to {groups.torus.ports} on {where}, not {ports}")
    asked: dict[str, Any] = dict(options)
    any_latency = asked.get("latency") == "auto"
    if any_latency:
        del asked["latency"]
    return Selection(topology, collective, algorithm, Options(**asked), any_latency)
