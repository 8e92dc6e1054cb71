"""Selections: the user's choice of a topology, a collective, an algorithm and its options.

`make_selection` reads a choice that is given by names or by values. `resolve` and `plan_selection`
in `plans.py` take the `Selection` that it returns. `with_faults` marks links and nodes of a
topology as broken.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, cast

from typing_extensions import Unpack

from ..algorithms import Algorithm, Options, choose_algorithm, find_algorithm
from ..analysis.cost import Costs, read_costs
from ..collective import (
    Collective,
    NameParts,
    Operator,
    parse_collective,
    parse_operators,
    split_name,
)
from ..errors import InputError
from ..schedule import Duplex, Schedule
from ..toolchain.reading import read_text
from ..toolchain.values import (
    Choice,
    is_iterable,
    message_text,
    parse_non_negative_int,
    unknown_name_error,
)
from ..topology import (
    Faulty,
    Latency,
    Rates,
    Topology,
    equalize_axis_links,
    parse_topology,
    split_faults,
    with_latency,
    with_rates,
    with_relays,
)

__all__ = ["FormChoice", "PlanOptions", "Selection", "make_selection", "with_faults"]


#: Largest accepted file of broken links, in bytes.
MOST_LINK_FILE_BYTES = 2**24

#: A broken link: the text ``0:+0`` (node 0, port +0), the text ``0:+0:out`` if only the outgoing
#: arc is broken, a pair of a node and a port (name or number), or a file with one link a line.
Link: TypeAlias = str | tuple[int, int | str] | os.PathLike[str]

#: Quantities that a choice of an algorithm minimizes: cycles of the hardware, or time in the model.
OBJECTIVES = ("cycles", "time")


class FormChoice(Choice):
    """Rule by which `plan_forms` chooses the forms: ``auto``, ``short``, ``long`` or ``all``.

    A form is one schedule of the collective, for messages of some lengths.
    """

    #: Forms whose savings in cycles are worth their LUTs; one form if all messages are short.
    AUTO = "auto"
    #: Only the form for the shortest messages.
    SHORT = "short"
    #: Only the form for the longest messages.
    LONG = "long"
    #: All forms that are needed to be close to the fewest cycles at each length.
    ALL = "all"


class PlanOptions(TypedDict, total=False):
    """Keyword arguments of the planning functions; numbers may be given as text.

    - For the algorithm: ``ports``, ``chunks``, ``large``, ``seed``, ``latency``, ``duplex``,
      ``trees``, ``packets`` and ``times``, see `Options`. ``latency="auto"`` selects the latency
      with which the hardware of a reduction takes the fewest cycles.
    - For the topology: ``broken_links``, ``broken_nodes``, ``relays``, ``link_latency`` and
      ``rate``. A broken link is ``"0:+0"``, a pair of a node and a port, or a `Path` of a file with
      one link a line. Relays are nodes that only pass on, by number or name. For the link latency,
      in cycles, see `Torus`; for the rates of links see `with_rates`.
    - ``beat``: flits that a stream moves in one cycle. If each run chooses the message length,
      parts of ``beat`` flits of a message go to its chunks in turn.
    - ``objective``: ``"cycles"`` selects the algorithm with the fewest cycles, ``"time"`` the one
      with the least time in the cost model, with the constants ``costs``.
    - ``operators``: the operators of a reduction. An operator that is not associative excludes
      algorithms in which nodes add in different orders.
    """

    ports: int | str | None
    chunks: int | str | None
    large: bool
    seed: int | str
    latency: int | str | Literal["auto"]
    broken_links: Link | Iterable[Link]
    broken_nodes: int | str | Iterable[int | str]
    relays: int | str | Iterable[int | str]
    link_latency: Latency | None
    rate: Rates | None
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
    """A topology, a collective and all other inputs of planning; see `make_selection`.

    Parameters
    ----------
    algorithm : Algorithm, optional
        The algorithm that plans. If left out, `resolve` chooses one.
    options : Options
        Options of the algorithm.
    any_latency : bool
        True for the option ``latency="auto"``: `resolve` then chooses the latency, which is the
        least number of steps from the arrival of a word at a node to the departure of the sum with
        this word.
    costs : Costs, optional
        Constants of the cost model. If given, the time in the model decides among algorithms,
        instead of the cycles of the hardware.
    beat : int
        Flits that a stream moves in one cycle. If each run chooses the message length, parts of
        `beat` flits of a message go to its chunks in turn.
    operators : tuple of Operator
        Operators that a reduction must support. If empty, any algorithm may be chosen.
    planned : Schedule, optional
        The schedule of this selection, if it has been planned before.
    why : str
        The reason for the choice of the algorithm, as text for the user.
    planner : function of Selection -> Schedule, optional
        A replacement of `plan_with_algorithm`, such as a function that caches schedules.
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

    @property
    def planned_arcs(self) -> int:
        """Nodes times ports of the network that is planned: that of one group, if axes span groups.

        Examples
        --------
        >>> make_selection("16x16", "alltoall").planned_arcs, make_selection(
        ...     "16x16", "alltoall@0").planned_arcs
        (1024, 32)
        """
        network = self.collective.groups(self.topology).group_topology
        return network.nodes * network.ports

    def cost_model(self, flits: int | None) -> Costs | None:
        """Return the constants of the cost model by name, for messages of `flits` flits.

        For example ``{"length": 64, "alpha": 100, ...}``. A length in `costs` takes precedence over
        `flits`. The result is None if cycles, and not the time in the model, decide among
        algorithms.
        """
        if self.costs is None or flits is None:
            return self.costs
        return cast(Costs, {"length": flits} | self.costs)

    def resolve_algorithm(self) -> Algorithm:
        """Return the algorithm of this selection, or else the catalogue's first suitable one.

        Raises
        ------
        InputError
            If no algorithm of the catalogue is suitable.
        """
        return self.algorithm or choose_algorithm(self.topology, self.collective, self.options)


def make_selection(  # noqa: PLR0913 (one choice of a user each)
    topology: Topology | str,
    collective: Collective | str,
    *,
    algorithm: Algorithm | str | None = None,
    root: int | str | None = None,
    axes: Sequence[int] | int | str | None = None,
    groups: Sequence[Sequence[int | str]] | str = (),
    traffic: Any = None,
    counts: Any = None,
    **options: Unpack[PlanOptions],
) -> Selection:
    """Read a user's choice, by values or by names, and return it as a `Selection`.

    Parameters
    ----------
    topology : Topology or str
        The network, such as ``"8x8"``.
    collective : Collective or str
        The collective. A name may also have axes and an algorithm, ``"alltoall@1:necklace"``, and
        faults in addition to those of the topology, ``"allgather!0:+0"``.
    algorithm : Algorithm or str, optional
        The algorithm. If left out, `resolve` chooses one.
    root : int or str, optional
        The root of a collective that is given by name.
    axes : sequence of int, int or str, optional
        The axes that span the groups of the collective, if its name has no axes. By default all
        nodes are one group.
    groups : sequence of (sequence of (int or str)), or str, optional
        The nodes of each group, if the name of the collective has none in braces.
    traffic : Traffic, path, or iterable of messages, optional
        The messages of a pattern, see `Traffic`.
    counts : array_like of int, or path, optional
        The flits of each message, if they are unequal, see `parse_collective`.
    **options
        Further options, see `PlanOptions`.

    Returns
    -------
    Selection
        The choice with all values checked. Nothing is planned.

    Raises
    ------
    InputError
        If a name is unknown, or a value is out of range.

    Examples
    --------
    >>> make_selection("4x4", "gossip", algorithm="matching").collective.kind
    'allgather'
    """
    asked: dict[str, Any] = dict(options)
    named = split_name(collective) if isinstance(collective, str) else NameParts("", "", "")
    topology = _parse_network(topology, named.faults, asked)
    if not isinstance(collective, str | Collective):
        raise InputError(
            f"Collective must be a name or a Collective, not {message_text(collective)}"
        )
    if isinstance(collective, Collective):
        given = (root, axes, traffic, counts)
        if any(value is not None for value in given) or len(groups):
            raise InputError(
                "The collective has its own root and groups; leave the arguments root, axes and "
                "groups out"
            )
        kind, root = replace(collective, axes=None).name, collective.root
        axes, traffic = collective.axes, collective.traffic
        counts = collective.lengths or None
    else:
        kind = named.collective
        if named.algorithm and algorithm is not None:
            raise InputError(
                f"{collective} names an algorithm already; leave the algorithm {algorithm} out"
            )
        algorithm = named.algorithm or algorithm
    if axes is not None or ("@" in str(kind) and "{" not in str(kind)):
        topology = equalize_axis_links(topology)
    collective = parse_collective(
        str(kind),
        root=root,
        axes=axes,
        groups=groups,
        traffic=traffic,
        counts=counts,
        topology=topology,
    )
    if algorithm is not None and not isinstance(algorithm, Algorithm):
        algorithm = find_algorithm(algorithm)
    operators = parse_operators(asked.pop("operators", ())) if collective.reducing else ()
    costs = _parse_costs(asked.pop("objective", "cycles"), asked.pop("costs", None))
    beat = parse_non_negative_int("Beat", asked.pop("beat", 1))
    if beat.bit_count() != 1:
        raise InputError(f"Beat must be a power of two, not {beat}")
    latency = asked.get("latency")
    any_latency = isinstance(latency, str) and latency == "auto"
    if any_latency:
        del asked["latency"]
    chosen = _check_options(asked, topology, collective)
    return Selection(topology, collective, algorithm, chosen, any_latency, costs, beat, operators)


def _parse_network(topology: Topology | str, faults: str, asked: dict[str, Any]) -> Topology:
    """Return the topology with its faults, rates, link latencies and relays.

    `faults` is the text behind ``!`` in the name of the collective, such as ``0:+0``; empty without
    one. Further faults, the rates and the link latencies are in the user's options `asked`; they
    are removed from `asked`, so that only the options of the algorithm remain.
    """
    latency = asked.pop("link_latency", None)
    broken = (asked.pop(name, ()) for name in ("broken_links", "broken_nodes"))
    rate = asked.pop("rate", None)
    topology = parse_topology(topology) if rate is None else with_rates(topology, rate)
    topology = with_faults(topology, *broken)
    topology = Faulty.of(topology, faults) if faults else topology
    topology = topology if latency is None else with_latency(topology, latency)
    # Relays come last, because a network with relays has no axes with a latency each.
    return with_relays(topology, _split_nodes(asked.pop("relays", ())))


def _check_options(asked: dict[str, Any], topology: Topology, collective: Collective) -> Options:
    """Check the options of the algorithm in `asked`, and return them as `Options`.

    The number of ports is checked against the groups of `collective` on the topology.
    """
    for name in asked:
        if name not in (known := [option.name for option in fields(Options)]):
            raise unknown_name_error("Option", name, known)
    chosen = Options(**asked)
    ports, groups = chosen.ports, collective.groups(topology)
    if ports is not None and not 1 <= ports <= groups.group_topology.ports:
        where = topology if collective.axes is None else f"{topology} {collective.name}"
        raise InputError(
            f"Ports must be from 1 to {groups.group_topology.ports} on {where}, not {ports}"
        )
    return chosen


def _parse_costs(objective: object, costs: Costs | None) -> Costs | None:
    """Return all constants of the cost model, or None if the objective is cycles.

    `costs` has the constants that the user gives, by name; all others get their defaults. It must
    be None unless `objective` is "time".
    """
    if not isinstance(objective, str) or objective not in OBJECTIVES:
        raise InputError(
            f"Objective must be {' or '.join(OBJECTIVES)}, not {message_text(objective)}"
        )
    if objective == "time":
        return read_costs(costs)
    if costs is not None:
        raise InputError(
            f"Costs {message_text(costs)} have no effect on cycles; choose the objective time "
            "(--objective time), or leave costs out"
        )
    return None


def with_faults(
    topology: Topology,
    links: Link | Iterable[Link] = (),
    nodes: int | str | Iterable[int | str] = (),
) -> Topology:
    """Return a topology in which some links and nodes are broken.

    Parameters
    ----------
    topology : Topology
        The topology without these faults.
    links : link, or iterable of links
        Broken links; a link is a text, a pair or a file, see `PlanOptions`. A text may list several
        links, separated by commas.
    nodes : int or str, or iterable of these
        Numbers or names of broken nodes. A text may list several nodes, separated by commas.

    Returns
    -------
    Topology
        The same topology if no fault is given.

    Raises
    ------
    InputError
        If a link, a node or a file does not exist, or if the faults cut off working nodes.

    Examples
    --------
    >>> from torusfabric.topology import Torus
    >>> with_faults(Torus(4, 4), "0:+0"), with_faults(Torus(4, 4), [(0, "+0"), (1, 2)], 10)
    (<Faulty 4x4!0:+0>, <Faulty 4x4!0:+0,1:+1,10>)
    """
    found, broken = list(_each_broken_link(topology, links)), _split_nodes(nodes)
    return Faulty(topology, found, broken) if found or broken else topology


def _split_nodes(nodes: int | str | Iterable[int | str]) -> list[int | str]:
    """Return nodes that a user gives as a list; a text may join several by commas."""
    single = isinstance(nodes, str) or not is_iterable(nodes)
    each = cast(list[int | str], [nodes]) if single else list(cast(Iterable[int | str], nodes))
    return [
        word for node in each for word in (split_faults(node) if isinstance(node, str) else [node])
    ]


def _each_broken_link(
    topology: Topology, links: Link | Iterable[Link]
) -> Iterator[str | tuple[int, int]]:
    """Yield the broken links one by one, each as text or as an arc (node, out-port)."""
    pair = isinstance(links, tuple) and len(links) == 2 and isinstance(links[0], int)
    if pair or isinstance(links, str | os.PathLike) or not is_iterable(links):
        links = cast(list[Link], [links])
    for link in links:
        if isinstance(link, os.PathLike):
            lines = read_text(
                Path(link), "File of broken links", most=MOST_LINK_FILE_BYTES
            ).splitlines()
            texts = [line.split("#")[0].strip() for line in lines]
            yield from (text for text in texts if text)
        elif isinstance(link, str):
            yield from split_faults(link)
        else:
            yield topology.arc(link)
