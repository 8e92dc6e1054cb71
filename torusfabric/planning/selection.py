"""What to plan: a topology, a collective, options and perhaps an algorithm, or a schedule file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, cast

from typing_extensions import Unpack

from ..algorithms import Algorithm, Options, choose, find
from ..analysis.cost import Costs, read_costs
from ..collective import (
    Collective,
    Named,
    Operator,
    parse_collective,
    parse_operators,
    split_name,
)
from ..errors import InputError
from ..schedule import Duplex, Schedule
from ..toolchain.reading import read_text
from ..toolchain.values import Choice, is_several, natural, no_such, shown
from ..topology import (
    Faulty,
    Latency,
    Topology,
    alike_along_axes,
    parse_topology,
    with_latency,
)

__all__ = ["FormChoice", "PlanOptions", "Selection", "select", "with_faults"]


#: Bytes of a file of broken links.
MOST_LINKS = 2**24

#: A link out of order: ``0:+0``, a node and a port by name or number, ``0:+0:out`` for one way
#: alone, or a file with one a line.
Link: TypeAlias = str | tuple[int, int | str] | os.PathLike[str]

#: What decides among algorithms.
OBJECTIVES = ("cycles", "time")


class FormChoice(Choice):
    """Which forms an engine has of those that are the best for some lengths."""

    #: Those that save more cycles than they cost in look-up tables; of short messages one.
    AUTO = "auto"
    #: That for short messages alone.
    SHORT = "short"
    #: That for long messages alone.
    LONG = "long"
    ALL = "all"


class PlanOptions(TypedDict, total=False):
    """What may be asked of an algorithm, as keyword arguments; see `Options`.

    Numbers may be given as text. A ``latency`` of ``auto`` is the one with which hardware for sums
    takes the fewest cycles. Broken links are named as on the command line, ``0:+0``, or by node and
    port, one or several; a `Path` is a file with one a line. They, and broken nodes, are part of
    the topology, as a ``link_latency`` is, which makes links so many cycles long, see `Torus`.
    Messages of any length may go to their chunks by a ``beat`` of flits, a word of a stream.
    Among algorithms the fewest cycles decide, or with an ``objective`` of ``time`` the least time
    in the model with these ``costs``. The ``operators`` of a reduction leave out what they do not
    allow: an algorithm by which nodes add up in different orders, where one is not associative.
    """

    ports: int | str | None
    chunks: int | str | None
    large: bool
    seed: int | str
    latency: int | str | Literal["auto"]
    broken_links: Link | Iterable[Link]
    broken_nodes: int | str | Iterable[int | str]
    link_latency: Latency | None
    duplex: Duplex | str
    trees: int | str | None
    packets: int | str | None
    times: tuple[float, float, float] | None
    beat: int | str
    objective: str
    costs: Costs | None
    operators: Operator | str | Sequence[Operator | str]


@dataclass(frozen=True)
class Selection:
    """What to plan.

    Parameters
    ----------
    algorithm : Algorithm, optional
        By default one is chosen, see `resolve`.
    any_latency : bool
        Whether sums may wait as many steps as make hardware the quickest.
    costs : Costs, optional
        The constants of the cost model, where time in it decides among algorithms.
    beat : int
        Flits that go to a chunk together, where messages are of any length.
    operators : tuple of Operator
        Of a reduction; none where any will do.
    planned : Schedule, optional
        What the algorithm plans with these options, where that is known already.
    why : str
        Why the algorithm was chosen, in words.
    planner : function of Selection -> Schedule, optional
        What plans in place of `plan_anew`, such as one that keeps what it has planned.
    """

    topology: Topology
    collective: Collective
    algorithm: Algorithm | None = None
    options: Options = field(default_factory=Options)
    any_latency: bool = False
    costs: Costs | None = None
    beat: int = 1
    operators: tuple[Operator, ...] = ()
    planned: Schedule | None = field(default=None, repr=False, compare=False)
    why: str = field(default="", repr=False, compare=False)
    planner: Callable[[Selection], Schedule] | None = field(default=None, repr=False, compare=False)

    def model(self, flits: int | None) -> Costs | None:
        """The costs for messages of a length, where these decide; a length among them counts."""
        if self.costs is None or flits is None:
            return self.costs
        return cast(Costs, {"length": flits} | self.costs)

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
    root: int | str | None = None,
    axes: Sequence[int] | int | str | None = None,
    **options: Unpack[PlanOptions],
) -> Selection:
    """Select what to plan, by values or by names.

    Parameters
    ----------
    collective : Collective or str
        By name perhaps with axes, an algorithm, and faults beside those of the topology,
        ``"alltoall@1:necklace"``, ``"allgather!0:+0"``.
    algorithm : Algorithm or str, optional
        By default the first of the catalogue that serves.
    root : int or str, optional
        The root of a collective that is given by name.
    axes : sequence of int, int or str, optional
        The axes that span its groups, where the name does not say; by default all.
    **options
        See `PlanOptions`.

    Raises
    ------
    InputError
        If a name is unknown, or a value is out of range.

    Examples
    --------
    >>> select("4x4", "gossip", algorithm="matching").collective.kind
    'allgather'
    """
    asked: dict[str, Any] = dict(options)
    named = split_name(collective) if isinstance(collective, str) else Named("", "", "")
    topology = _network(topology, named.faults, asked)
    if not isinstance(collective, str | Collective):
        raise InputError(f"Collective must be a name or a Collective, not {shown(collective)}")
    if isinstance(collective, Collective):
        if root is not None or axes is not None:
            raise InputError("Root and axes must be those of the collective, not given again")
        kind, root = replace(collective, axes=None).name, collective.root
        axes = collective.axes
    else:
        kind = named.collective
        if named.algorithm and algorithm is not None:
            raise InputError(f"Algorithm must be left out for {collective}, not {algorithm}")
        algorithm = named.algorithm or algorithm
    if axes is not None or "@" in str(kind):
        topology = alike_along_axes(topology)
    collective = parse_collective(str(kind), root=root, axes=axes, topology=topology)
    if algorithm is not None and not isinstance(algorithm, Algorithm):
        algorithm = find(algorithm)
    operators = parse_operators(asked.pop("operators", ())) if collective.reducing else ()
    costs = _costs(asked.pop("objective", "cycles"), asked.pop("costs", None))
    beat = natural("Beat", asked.pop("beat", 1))
    if beat.bit_count() != 1:
        raise InputError(f"Beat must be a power of two, not {beat}")
    latency = asked.get("latency")
    any_latency = isinstance(latency, str) and latency == "auto"
    if any_latency:
        del asked["latency"]
    chosen = _of_algorithm(asked, topology, collective)
    return Selection(topology, collective, algorithm, chosen, any_latency, costs, beat, operators)


def _network(topology: Topology | str, faults: str, asked: dict[str, Any]) -> Topology:
    """The topology with all that is out of order and its latencies, which are asked no more."""
    latency = asked.pop("link_latency", None)
    broken = (asked.pop(name, ()) for name in ("broken_links", "broken_nodes"))
    topology = with_faults(parse_topology(topology), *broken)
    topology = Faulty.of(topology, faults) if faults else topology
    return topology if latency is None else with_latency(topology, latency)


def _of_algorithm(asked: dict[str, Any], topology: Topology, collective: Collective) -> Options:
    """What is asked of the algorithm."""
    for name in asked:
        if name not in (known := [option.name for option in fields(Options)]):
            raise no_such("Option", name, known)
    chosen = Options(**asked)
    ports, groups = chosen.ports, collective.groups(topology)
    if ports is not None and not 1 <= ports <= groups.torus.ports:
        where = topology if collective.axes is None else f"{topology} {collective.name}"
        raise InputError(f"Ports must be from 1 to {groups.torus.ports} on {where}, not {ports}")
    return chosen


def _costs(objective: object, costs: Costs | None) -> Costs | None:
    """The constants of the cost model, where time in it decides."""
    if not isinstance(objective, str) or objective not in OBJECTIVES:
        raise InputError(f"Objective must be {' or '.join(OBJECTIVES)}, not {shown(objective)}")
    if objective == "time":
        return read_costs(costs)
    if costs is not None:
        raise InputError(f"Costs must be left out for cycles, not {shown(costs)}")
    return None


def with_faults(
    topology: Topology,
    links: Link | Iterable[Link] = (),
    nodes: int | str | Iterable[int | str] = (),
) -> Topology:
    """A topology with some links and nodes out of order.

    Parameters
    ----------
    links : link, or iterable of links
        Each as `PlanOptions` has it; several in one text are separated by commas.
    nodes : int or str, or iterable of these
        As numbers, or as text; several in one text are separated by commas.

    Raises
    ------
    InputError
        If there is no such link or node, no such file, or nodes are cut off.

    Examples
    --------
    >>> from torusfabric.topology import Torus
    >>> with_faults(Torus(4, 4), "0:+0"), with_faults(Torus(4, 4), [(0, "+0"), (1, 2)], 10)
    (<Faulty 4x4!0:+0>, <Faulty 4x4!0:+0,1:+1,10>)
    """
    found = list(_links(topology, links))
    single = isinstance(nodes, str) or not is_several(nodes)
    each = cast(list[int | str], [nodes]) if single else list(cast(Iterable[int | str], nodes))
    words = [
        word for node in each for word in (node.split(",") if isinstance(node, str) else [node])
    ]
    broken = [natural("Broken node", word) for word in words]
    return Faulty(topology, found, broken) if found or broken else topology


def _links(topology: Topology, links: Link | Iterable[Link]) -> Iterator[str | tuple[int, int]]:
    """Broken links, one by one."""
    pair = isinstance(links, tuple) and len(links) == 2 and isinstance(links[0], int)
    if pair or isinstance(links, str | os.PathLike) or not is_several(links):
        links = cast(list[Link], [links])
    for link in links:
        if isinstance(link, os.PathLike):
            lines = read_text(Path(link), "File of broken links", most=MOST_LINKS).splitlines()
            texts = [line.split("#")[0].strip() for line in lines]
            yield from (text for text in texts if text)
        elif isinstance(link, str):
            yield from (text.strip() for text in link.split(","))
        else:
            yield topology.arc(link)
