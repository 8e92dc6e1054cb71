"""What an algorithm of the catalogue is, and what algorithms need of a selection.

What says what is needed completes the sentence "hamiltonian needs ..": a function returns what is
needed and not given, or None; ``or`` joins several.
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
from ..toolchain.values import flag, natural, positive, real, shown
from ..topology import CayleyGraph, Topology

__all__ = ["Algorithm", "AlgorithmFailed", "Options", "Planner", "as_flag", "asked_for",
           "chunk_for_each", "every_port", "one_chunk", "some_ports"]  # fmt: skip

#: More steps in which what arrived only waits are not worth a try.
MOST_LATENCY = 2**16


def _times(what: str, value: object) -> tuple[float, ...]:
    """Three numbers."""
    if not isinstance(value, tuple | list) or len(value) != 3:
        raise InputError(f"{what} must be three numbers, BETA TAU LENGTH, not {shown(value)}")
    return tuple(real(what, number) for number in value)


#: How each option is read; and those that may be None.
_READ: dict[str, Callable[[str, object], object]] = {
    "ports": positive,
    "chunks": positive,
    "large": flag,
    "seed": natural,
    "latency": positive,
    "duplex": lambda _, value: Duplex(value),
    "trees": positive,
    "packets": positive,
    "times": _times,
}
_OPEN = ("ports", "chunks", "trees", "packets", "times")


@public_class
@dataclass(frozen=True)
class Options:
    """What a user may ask of an algorithm; None (or the default) leaves the choice to it.

    Parameters
    ----------
    ports : int or None
        How many messages a node may send, and receive, in a round: 1 to the degree.
    chunks : int or None
        Into how many blocks a message is cut.
    large : bool
        Prefer more rounds with shorter messages, for long messages.
    seed : int
        Where a search starts; the same seed gives the same schedule.
    latency : int
        What arrives in step t may leave in step t + latency at the earliest; the papers have 1.
    duplex : Duplex
        Whether a link carries a message each way in a round, or one in all.
    trees : int or None
        Over how many spanning trees a broadcast sends at once.
    packets : int or None
        Into how many packets each tree's share of a message is cut, to be sent one after another.
    times : tuple of (float, float, float) or None
        Start-up time of a step, time to send a unit, and units of a message: for these the number
        of packets is chosen that takes the least time.

    Raises
    ------
    InputError
        If one of them is not what it must be, or the latency is beyond reason.

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
        for name, read in _READ.items():
            value = getattr(self, name)
            if value is not None or name not in _OPEN:
                object.__setattr__(self, name, read(name.replace("_", " ").capitalize(), value))
        if self.latency > MOST_LATENCY:
            raise InputError(f"Latency must be at most {MOST_LATENCY} steps, not {self.latency}")

    def given(self) -> list[str]:
        """Names of the options that differ from their default."""
        return [f.name for f in fields(self) if getattr(self, f.name) != f.default]


def as_flag(name: str) -> str:
    """An option as it is written on the command line."""
    return f"--{name.replace('_', '-')}"


def asked_for(reason: str, options: Options) -> str:
    """What was given for the option that a reason begins with; nothing if it begins with none."""
    for name in options.given():
        if reason.startswith(f"{as_flag(name)} "):
            value = getattr(options, name)
            return as_flag(name) if isinstance(value, bool | tuple) else str(value)
    return ""


#: Plans a collective that fits. It may take a topology of one class only, which `misfit` sees to.
Planner: TypeAlias = Callable[[Any, Collective, Options], Schedule]

#: Options with which an algorithm that knows a collective plans otherwise.
Variants: TypeAlias = Callable[[Topology, Collective], Sequence[Mapping[str, Any]]]


#: The package whose algorithms are ours.
PACKAGE = __name__.partition(".")[0]

#: Next step of a user whose network or collective an algorithm does not serve.
OTHERS = "; torusfabric compare lists the algorithms that fit"


class AlgorithmFailed(InputError):
    """An algorithm of another package that neither plans nor refuses."""

    def announce(self) -> None:
        """Say once that the algorithm is left out, where others may serve."""
        _warn(f"{self} (it is left out)")


@cache
def _warn(text: str) -> None:
    """Give a warning, each text once."""
    LOGGER.warning("%s", text)


@public_class
@dataclass(frozen=True)
class Algorithm:
    """An entry of the catalogue.

    Parameters
    ----------
    source : str
        The paper and section.
    summary : str
        One line for people.
    collectives : tuple of str
        The kinds it plans.
    options : tuple of str
        The names of the `Options` it understands.
    misfit : function of (Topology, Collective, Options) -> str or None
        Which topologies or options it needs, if the given ones do not fit: completes the sentence
        "hamiltonian needs ..".
    plan : function of (Topology, Collective, Options) -> Schedule
        Called only where `misfit` returns None.
    variants : function of (Topology, Collective) -> sequence of mappings from str to value
        Options with which it plans otherwise: where they are left open, those are tried, too, when
        the fewest cycles are looked for. In groups it is asked for one of them.
    last_for : tuple of str
        The collectives for which all others are preferred where neither an algorithm nor a length
        is given: it is the best for very long messages only.
    flit_chunks : function of (Topology, Collective) -> int
        Flits of a message up to which a chunk for each flit is tried, too.
    most_arcs : int, optional
        Arcs of the network up to which it is tried where no algorithm is named: for a search that
        takes long and is never quicker than what stands beside it.
    any_network : bool
        True if it plans on networks in which nodes differ: graphs, meshes, networks with faults.
        False, the default, if it is asked for networks alone that look the same from every node.

    Examples
    --------
    >>> from torusfabric.algorithms import find
    >>> find("hamiltonian").collectives
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

    def why_not(self, topology: Topology, collective: Collective, options: Options) -> str | None:
        """Why this algorithm cannot serve a selection, or None if it can.

        In groups of nodes it is asked for the torus of a group.
        """
        if collective.axes is not None:
            groups = collective.groups(topology)
            return self.why_not(groups.torus, collective.in_one_group, options)
        if collective.kind not in self.collectives:
            return f"one of the collectives {', '.join(self.collectives)}"
        for name in self.unknown(options):
            return f"{as_flag(name)} left out"
        if not (self.any_network or isinstance(topology, CayleyGraph)):
            hint = "" if self._is_ours else ": its Algorithm lacks any_network=True"
            return f"a network that looks the same from every node, such as a torus{hint}"
        try:
            return self._ask("misfit", topology, collective, options)  # type: ignore[no-any-return]
        except AlgorithmFailed as error:
            error.announce()
            return "another misfit: its own raises an error"

    def find_variants(
        self, topology: Topology, collective: Collective
    ) -> Sequence[Mapping[str, Any]]:
        """The variants for a selection; none where they are looked for in vain."""
        return self._ask_or((), "variants", topology, collective)  # type: ignore[no-any-return]

    def most_flit_chunks(self, topology: Topology, collective: Collective) -> int:
        """The flits up to which a chunk for each is tried; 0 where they are looked for in vain."""
        return self._ask_or(0, "flit_chunks", topology, collective)  # type: ignore[no-any-return]

    def _ask_or(self, otherwise: Any, what: str, *given: Any) -> Any:
        """What a function of the algorithm answers, or something else where it raises an error."""
        try:
            return self._ask(what, *given)
        except AlgorithmFailed as error:
            error.announce()
            return otherwise

    def _ask(self, what: str, *given: Any) -> Any:
        """What a function of the algorithm answers.

        Raises
        ------
        AlgorithmFailed
            If it raises an error and is of another package; ours are shown with their traceback.
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
        raise self._failure(reason)

    @property
    def _is_ours(self) -> bool:
        """True if this package defines it."""
        return str(getattr(self.plan, "__module__", "")).startswith(f"{PACKAGE}.")

    def _failure(self, reason: str) -> AlgorithmFailed:
        """The error of a function that fails, and how it does."""
        return AlgorithmFailed(
            f"Algorithm {self.name} failed, because its {reason}; correct it, or choose another"
        )

    def unknown(self, options: Options) -> list[str]:
        """Names of the options that were given and that it does not understand."""
        return [name for name in options.given() if name not in self.options]

    def __call__(
        self, topology: Topology, collective: Collective, options: Options | None = None
    ) -> Schedule:
        """Plan a collective; in groups, plan it for one of them and lift it to all.

        Raises
        ------
        InputError
            If the algorithm does not fit.
        """
        options = options or Options()
        for name in self.unknown(options):
            raise InputError(f"Algorithm {self.name} has no option {as_flag(name)}; leave it out")
        reason = self.why_not(topology, collective, options)
        if reason:
            given = asked_for(reason, options) or f"{topology} {collective.name}{OTHERS}"
            raise InputError(f"Algorithm {self.name} needs {reason}, not {given}")
        if collective.axes is not None:
            groups = collective.groups(topology)
            part = self(groups.torus, collective.in_one_group, options)
            return Lifted.of(part, topology, collective)
        schedule: Schedule = self._ask("plan", topology, collective, options)
        if not isinstance(schedule, Schedule):
            raise self._failure(f"plan returns {shown(schedule)}, which is no schedule")
        return replace(schedule, algorithm=self.name) if schedule.algorithm == UNNAMED else schedule


def every_port(options: Options, *counts: int) -> str | None:
    """Need all ports: one of some counts, the last of which is named."""
    if options.ports in (None, *counts):
        return None
    return f"--ports {counts[-1]} (all of them)"


def some_ports(options: Options, most: int) -> str | None:
    """Need a number of ports that a node has."""
    if options.ports is None or options.ports <= most:
        return None
    return f"--ports 1 to {most}"


def one_chunk(options: Options) -> str | None:
    """Need messages that are not cut."""
    return None if options.chunks in (None, 1) else "--chunks 1"


def chunk_for_each(topology: Topology, collective: Collective, options: Options) -> str | None:
    """Need messages that a store-and-forward all-reduce can cut into equal parts of the nodes."""
    if collective.reducing and collective.to_all and (options.chunks or 0) % topology.nodes:
        return f"--chunks divisible by the number of nodes, {topology.nodes}"
    return None
