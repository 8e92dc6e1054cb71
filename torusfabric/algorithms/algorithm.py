"""Entries of the catalogue (`Algorithm`), options of planning (`Options`), and checks of both.

A *selection* is a topology, a collective and options. A *misfit* is the reason why an algorithm
cannot plan a selection. It is a noun phrase that completes the sentence "hamiltonian needs ..",
such as "a torus" or "--ports 4 (all of them)". A function that looks for a misfit returns None
where the selection fits, so that ``or`` joins several such functions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, TypeAlias

from ..collective import Collective
from ..errors import InputError, TorusfabricError
from ..schedule import Duplex, Lifted, Schedule
from ..schedule.base import UNNAMED
from ..toolchain.notices import LOGGER
from ..toolchain.public import public_class
from ..toolchain.values import (
    message_text,
    parse_non_negative_int,
    parse_number,
    parse_positive_int,
    require_bool,
)
from ..topology import CayleyGraph, Topology

__all__ = ["Algorithm", "AlgorithmFailed", "Options", "Planner", "option_flag", "requested_value",
           "chunk_multiple_reason", "all_ports_reason", "single_chunk_reason",
           "port_count_reason"]  # fmt: skip

#: The largest latency in steps: with a larger one, blocks would mostly wait.
MOST_LATENCY = 2**16


def _parse_times(what: str, value: object) -> tuple[float, ...]:
    """Return `value`, the three numbers of `Options.times`, as floats, or raise an `InputError`.

    `what` is the subject of the message.
    """
    if not isinstance(value, tuple | list) or len(value) != 3:
        raise InputError(
            f"{what} must be three numbers, BETA TAU LENGTH, not {message_text(value)}"
        )
    return tuple(parse_number(what, number) for number in value)


#: The reader of each option, which checks the value. The options in `_OPTIONAL_OPTIONS` may also be
#: None.
_OPTION_PARSERS: dict[str, Callable[[str, object], object]] = {
    "ports": parse_positive_int,
    "chunks": parse_positive_int,
    "large": require_bool,
    "seed": parse_non_negative_int,
    "latency": parse_positive_int,
    "duplex": lambda _, value: Duplex(value),
    "trees": parse_positive_int,
    "packets": parse_positive_int,
    "times": _parse_times,
}
_OPTIONAL_OPTIONS = ("ports", "chunks", "trees", "packets", "times")


@public_class
@dataclass(frozen=True)
class Options:
    """The requests of a user to an algorithm. None, or the default, leaves it the choice.

    Parameters
    ----------
    ports : int or None
        Number of messages that a node may send, and may receive, in a round: 1 to its degree.
    chunks : int or None
        Number M of chunks that a message is cut into.
    large : bool
        True to prefer more rounds with shorter messages, for long messages.
    seed : int
        Seed of the searches; the same seed gives the same schedule.
    latency : int
        Steps from arrival to departure: a block that arrives in step t leaves in step t + latency
        at the earliest. The papers have 1.
    duplex : Duplex
        With full duplex, a link carries a message each way in a round; with half duplex, one
        message in all.
    trees : int or None
        Number of spanning trees over which a broadcast sends at the same time.
    packets : int or None
        Number of packets into which the part of a message for each tree is cut. They are sent one
        after another.
    times : tuple of (float, float, float) or None
        The start-up time of a step, the time to send a unit of data, and the length of a message in
        units. The planner then chooses the number of packets with which the broadcast takes least
        time.

    Raises
    ------
    InputError
        If a value has the wrong type or is out of range, or the latency exceeds `MOST_LATENCY`.

    Examples
    --------
    >>> import torusfabric as tf
    >>> tf.Options(ports=2, seed=7).given()
    ['ports', 'seed']
    """

    ports: int | None = None
    chunks: int | None = None
    large: bool = False
    seed: int = 0
    latency: int = 1
    duplex: Duplex = Duplex.FULL
    trees: int | None = None
    packets: int | None = None
    times: tuple[float, float, float] | None = None

    def __post_init__(self) -> None:
        for name, read in _OPTION_PARSERS.items():
            value = getattr(self, name)
            if value is not None or name not in _OPTIONAL_OPTIONS:
                object.__setattr__(self, name, read(name.replace("_", " ").capitalize(), value))
        if self.latency > MOST_LATENCY:
            raise InputError(f"Latency must be at most {MOST_LATENCY} steps, not {self.latency}")

    def given(self) -> list[str]:
        """Return the names of the options that differ from their default."""
        return [f.name for f in fields(self) if getattr(self, f.name) != f.default]


def option_flag(name: str) -> str:
    """Return the option of the command line for a field of `Options`, such as ``--ports``.

    Parameters
    ----------
    name : str
        Name of the field.
    """
    return f"--{name.replace('_', '-')}"


def requested_value(reason: str, options: Options) -> str:
    """Return the value that the user gave to an option that does not fit, for an error message.

    Parameters
    ----------
    reason : str
        The need of the algorithm. If it begins with an option, such as "--ports 4 (all of them)",
        this option is meant.
    options : Options
        The options that the user gave.

    Returns
    -------
    str
        The value, such as "2"; for a flag or `times`, the name of the option. Empty if the user did
        not give the option, or if `reason` begins with no option.
    """
    for name in options.given():
        if reason.startswith(f"{option_flag(name)} "):
            value = getattr(options, name)
            return option_flag(name) if isinstance(value, bool | tuple) else str(value)
    return ""


#: A function that plans a selection that fits. It may take topologies of one class only; `misfit`
#: of the algorithm excludes the others.
Planner: TypeAlias = Callable[[Any, Collective, Options], Schedule]

#: A function that returns sets of options worth trying for a collective, see `Algorithm.variants`.
Variants: TypeAlias = Callable[[Topology, Collective], Sequence[Mapping[str, Any]]]


#: The name of this package. An error of one of its own algorithms is a defect, and is not caught.
PACKAGE = __name__.partition(".")[0]

#: Next step of a user whose network or collective an algorithm does not serve.
OTHERS = "; torusfabric compare lists the algorithms that fit"


class AlgorithmFailed(InputError):
    """The error of an algorithm of another package, one of whose functions fails unexpectedly.

    Such an algorithm neither returns a plan nor says which of its needs is not met.
    """

    def warn_once(self) -> None:
        """Warn once that the algorithm is left out, where other algorithms may serve."""
        _warn_once(f"{self} (it is left out)")


@cache
def _warn_once(text: str) -> None:
    """Give a warning; each text is given once."""
    LOGGER.warning("%s", text)


@public_class
@dataclass(frozen=True)
class Algorithm:
    """An algorithm that plans collectives, as an entry of the catalogue.

    Parameters
    ----------
    name : str
        The name by which users choose the algorithm.
    source : str
        The paper and section.
    summary : str
        One line for people.
    collectives : tuple of str
        The kinds of collectives that the algorithm plans.
    options : tuple of str
        The names of the `Options` that the algorithm understands.
    misfit : function of (Topology, Collective, Options) -> str or None
        Function that returns the need that a selection does not meet, such as "a torus", or None if
        the algorithm can plan it.
    plan : function of (Topology, Collective, Options) -> Schedule
        Function that plans a selection. It is called only if `misfit` returns None.
    variants : function of (Topology, Collective) -> sequence of mappings from str to value
        Function that returns sets of options that give other plans, such as ``[{"trees": 1}]``.
        When the fewest cycles are searched for, each set is tried as well, if the user left its
        options open. If the collective runs in groups, the function is called with the torus of one
        group.
    last_for : tuple of str
        Collectives for which this algorithm comes last if the user gives neither an algorithm nor a
        length. Why: it is the best for very long messages only.
    flit_chunks : function of (Topology, Collective) -> int
        Function that returns the longest message, in flits, for which one chunk for each flit is
        tried as well.
    most_arcs : int, optional
        Arcs of the largest network on which the algorithm is tried unless it is named, or no other
        one fits. It is set for a search that takes long and hardly ever gives fewer cycles than the
        other algorithms.
    any_network : bool
        True if the algorithm plans on networks in which nodes differ: graphs, meshes, networks with
        faults. If False, the default, it is asked only for networks that look the same from every
        node.
    irregular : bool
        True if the algorithm plans collectives in groups of nodes that a user lists. If False, the
        default, it is asked only for one group of all nodes, and for the groups along axes.
    slow_links : bool
        True if the algorithm plans on networks with links that carry less than a flit a cycle, see
        `Rated`.

    Examples
    --------
    >>> from torusfabric.algorithms import find_algorithm
    >>> find_algorithm("hamiltonian").collectives
    ('allgather', 'reduce-scatter', 'allreduce')
    """

    name: str
    source: str
    summary: str
    collectives: tuple[str, ...]
    options: tuple[str, ...]
    misfit: Callable[[Topology, Collective, Options], str | None]
    plan: Planner
    variants: Variants = lambda topology, collective: ()
    flit_chunks: Callable[[Topology, Collective], int] = lambda topology, collective: 0
    last_for: tuple[str, ...] = ()
    most_arcs: int | None = None
    any_network: bool = False
    irregular: bool = False
    slow_links: bool = False

    def why_not(self, topology: Topology, collective: Collective, options: Options) -> str | None:
        """Return the need of the algorithm that a selection does not meet, or None if it fits.

        The need is a noun phrase, such as "a torus". For a collective in groups of nodes, the
        selection is that of one group: the torus of a group and the collective within it.

        Parameters
        ----------
        options : Options
            The options of the selection.
        """
        if collective.axes is not None:
            groups = collective.groups(topology)
            return self.why_not(groups.group_topology, collective.in_one_group, options)
        if collective.kind not in self.collectives:
            return f"one of the collectives {', '.join(self.collectives)}"
        if collective.is_irregular and not self.irregular:
            beside = "a network without relays, and " if topology.relays else ""
            return f"{beside}all nodes, or groups along axes such as @0"
        for name in self.unknown(options):
            return f"{option_flag(name)} left out"
        if topology.spacing_multiple > 1 and not self.slow_links:
            return "links of at least a flit a cycle"
        if not (self.any_network or isinstance(topology, CayleyGraph)):
            hint = "" if self._is_built_in else ": its Algorithm lacks any_network=True"
            return f"a network that looks the same from every node, such as a torus{hint}"
        try:
            return self._call_function("misfit", topology, collective, options)  # type: ignore[no-any-return]
        except AlgorithmFailed as error:
            error.warn_once()
            return "another misfit: its own raises an error"

    def find_variants(
        self, topology: Topology, collective: Collective
    ) -> Sequence[Mapping[str, Any]]:
        """Return the sets of options that the algorithm proposes, such as ``[{"trees": 1}]``.

        The field `variants` of the algorithm, a function, gives them. The result is empty if this
        function comes from another package and fails.

        Parameters
        ----------
        collective : Collective
            The collective of the selection, in one group.
        """
        return self._call_or_default((), "variants", topology, collective)  # type: ignore[no-any-return]

    def most_flit_chunks(self, topology: Topology, collective: Collective) -> int:
        """Return the longest message, in flits, for which a chunk for each flit is tried.

        The field `flit_chunks` of the algorithm, a function, gives the value. It is 0 if this
        function comes from another package and fails.

        Parameters
        ----------
        collective : Collective
            The collective of the selection.
        """
        return self._call_or_default(0, "flit_chunks", topology, collective)  # type: ignore[no-any-return]

    def _call_or_default(self, otherwise: Any, what: str, *given: Any) -> Any:
        """Return the result of the function in field `what`, such as "variants".

        If the function fails, `otherwise` is returned. `given` are the arguments of the function.
        """
        try:
            return self._call_function(what, *given)
        except AlgorithmFailed as error:
            error.warn_once()
            return otherwise

    def _call_function(self, what: str, *given: Any) -> Any:
        """Call the function in field `what` of the algorithm, such as ``"plan"``.

        Raises
        ------
        AlgorithmFailed
            If the function raises an unexpected error and is of another package. An error in this
            package is passed on with its traceback.
        """
        function = getattr(self, what)
        try:
            return function(*given)
        except TorusfabricError:
            raise
        except Exception as error:
            if getattr(function, "__module__", "").startswith(f"{PACKAGE}."):
                raise
            reason = f"{what} raises {type(error).__name__}: {error}"
        raise self._failure_error(reason)

    @property
    def _is_built_in(self) -> bool:
        """True if this package defines the algorithm."""
        return str(getattr(self.plan, "__module__", "")).startswith(f"{PACKAGE}.")

    def _failure_error(self, reason: str) -> AlgorithmFailed:
        """Return the error that a function of the algorithm failed, with the reason."""
        return AlgorithmFailed(
            f"Algorithm {self.name} failed, because its {reason}; correct it, or choose another"
        )

    def unknown(self, options: Options) -> list[str]:
        """Return the names of options that the user gave and the algorithm does not understand."""
        return [name for name in options.given() if name not in self.options]

    def __call__(
        self, topology: Topology, collective: Collective, options: Options | None = None
    ) -> Schedule:
        """Plan a collective. A collective in groups is planned for one group and copied to all.

        Parameters
        ----------
        options : Options, optional
            The requests of the user; by default there are none.

        Raises
        ------
        InputError
            If the selection does not fit.
        """
        options = options or Options()
        for name in self.unknown(options):
            raise InputError(
                f"Algorithm {self.name} has no option {option_flag(name)}; leave it out"
            )
        reason = self.why_not(topology, collective, options)
        if reason:
            given = requested_value(reason, options) or f"{topology} {collective.name}{OTHERS}"
            raise InputError(f"Algorithm {self.name} needs {reason}, not {given}")
        if collective.axes is not None:
            groups = collective.groups(topology)
            part = self(groups.group_topology, collective.in_one_group, options)
            return Lifted.from_group(part, topology, collective)
        schedule: Schedule = self._call_function("plan", topology, collective, options)
        if not isinstance(schedule, Schedule):
            raise self._failure_error(
                f"plan returns {message_text(schedule)}, which is no schedule"
            )
        return replace(schedule, algorithm=self.name) if schedule.algorithm == UNNAMED else schedule


def all_ports_reason(options: Options, *counts: int) -> str | None:
    """Return a need such as "--ports 4 (all of them)" if the user asks for fewer ports, else None.

    Parameters
    ----------
    options : Options
        The options of the selection.
    *counts : int
        Numbers of ports with which the algorithm can work, such as 3 and 6; the message names the
        last one, which is all ports of a node.
    """
    if options.ports in (None, *counts):
        return None
    return f"--ports {counts[-1]} (all of them)"


def port_count_reason(options: Options, most: int) -> str | None:
    """Return a need such as "--ports 1 to 4" if the user asks for more ports, else None.

    Parameters
    ----------
    options : Options
        The options of the selection.
    most : int
        Number of ports of a node.
    """
    if options.ports is None or options.ports <= most:
        return None
    return f"--ports 1 to {most}"


def single_chunk_reason(options: Options) -> str | None:
    """Return the need for a single chunk if the user asks for several chunks, else None.

    Parameters
    ----------
    options : Options
        The options of the selection.
    """
    return None if options.chunks in (None, 1) else "--chunks 1"


def chunk_multiple_reason(
    topology: Topology, collective: Collective, options: Options
) -> str | None:
    """Return a need such as "--chunks divisible by the number of nodes, 16", or None if it is met.

    A store-and-forward all-reduce is a reduce-scatter followed by an all-gather, in which each node
    completes an equal part of the sum. So each node needs equally many chunks. The result is None
    for any other collective.

    Parameters
    ----------
    options : Options
        The options of the selection.
    """
    if collective.reducing and collective.to_all and (options.chunks or 0) % topology.nodes:
        return f"--chunks divisible by the number of nodes, {topology.nodes}"
    return None
