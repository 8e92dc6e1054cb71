"""Choice of an algorithm where the user names none, and comparison of all algorithms.

The *catalogue* is the ordered list of all algorithms. A *variant* of an algorithm is a set of
options that the algorithm proposes for a selection, such as ``trees=1``. A *candidate* is a
selection with an algorithm and one of its variants.

With a length of L flits, candidates are planned and compiled, and their cycles are compared
(`choose_by_cycles`). A schedule is *near* if it takes at most 3 % more cycles than the quickest
schedule. Let Q be the fewest cycles that any near schedule takes for L + 1 flits. Among the near
schedules that take at most Q cycles for L flits, the choice has the fewest LUTs by estimate. Why:
without the limit Q, a message of L + 1 flits could be quicker than one of L flits, although the
shorter message could be padded.

Without a length, long messages decide (`choose_by_times`). A *message time* is the time in which a
link carries one message. The choice is the first algorithm of the catalogue whose message times
exceed the lower bound of all schedules by at most a limit: 10 % on tori, and for an alltoall or an
exchange on networks whose nodes differ; 3 % otherwise. If no algorithm is within the limit, the
choice is the one with the fewest message times.

The *cost model* of the papers gives each step or round a start-up time, each hop a delay, and each
unit of data a time on a link. If the user gives the constants of the model (``costs``), the choice
is the candidate with the least time in the model (`choose_by_model`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from typing_extensions import Unpack

from ..algorithms import CATALOGUE, Algorithm, Options
from ..algorithms.algorithm import AlgorithmFailed
from ..analysis.cost import Costs, Number, schedule_cost
from ..analysis.facts import require_message_length
from ..analysis.volume import cycle_limit, least_time
from ..collective import Collective
from ..errors import InputError
from ..schedule import Schedule
from ..schedule.sum_trees import find_sum_trees
from ..toolchain.public import public
from ..toolchain.values import is_iterable, parse_non_negative_int
from ..topology import CayleyGraph, Topology, Torus
from .selection import PlanOptions, Selection, make_selection
from .selection_schedule import (
    choose_latency,
    length_arguments,
    length_of_collective,
    schedule_of_selection,
)

if TYPE_CHECKING:
    from ..program import Program

__all__ = ["Candidate", "candidate_name", "choose_by_cycles", "choose_by_model", "choose_by_times",
           "compare", "first_that_fits", "rank_candidates", "suitable_selections"]  # fmt: skip


#: Rounds times ports from which on compiling a schedule takes seconds.
LONG_PLAN = 2**15

#: Share by which message times may exceed the lower bound, on tori and on other networks.
TORUS_TIME_TOLERANCE, OTHER_TIME_TOLERANCE = Fraction(1, 10), Fraction(3, 100)


class Candidate(NamedTuple):
    """The schedule of one algorithm for one message length, with its cycles: a row of `compare`.

    Parameters
    ----------
    algorithm : str
        Name of the algorithm.
    options : tuple of str
        Options that the algorithm proposed for this length, such as ``trees=1``.
    flits : int
        Flits of a message.
    cycles : int
        Cycles of a run, from start to done.
    limit : int
        Lower bound on the cycles of any hardware.
    steps : int
        Steps or rounds of the schedule.
    schedule : Schedule
        The schedule, which is not checked.
    time : number, optional
        Time in the cost model, if `compare` was called with ``objective="time"``.

    Examples
    --------
    >>> import torusfabric as tf
    >>> best = tf.compare("4x4", "broadcast", flits=1)[0]
    >>> isinstance(best, tf.Candidate), best.algorithm, best.options, best.cycles
    (True, 'spanning-tree', ('trees=1',), 9)
    """

    algorithm: str
    options: tuple[str, ...]
    flits: int
    cycles: int
    limit: int
    steps: int
    schedule: Schedule
    time: Number | None = None


class _CompiledCandidate(NamedTuple):
    """An algorithm with its options (a candidate), its compiled program, and its cycles.

    `cycles` is the larger of two numbers: the cycles of a run, and the cycles in which the stream
    of a node moves its messages of one run.
    """

    selection: Selection
    program: Program
    cycles: int


def candidate_name(selection: Selection) -> str:
    """Return the algorithm of a selection and the variant's options: "spanning-tree trees=1".

    A variant is a set of options that the algorithm itself proposes.

    Parameters
    ----------
    selection : Selection
        A selection with an algorithm.
    """
    return " ".join([selection.resolve_algorithm().name, *_variant_options(selection)])


def first_that_fits(selection: Selection, reason: str = "") -> Selection:
    """Return a selection with the first algorithm of the catalogue that fits, and say so.

    Parameters
    ----------
    selection : Selection
        The choice of the user.
    reason : str
        Reason why no other algorithm is compared, such as "because a seed was given".

    Raises
    ------
    InputError
        If no algorithm fits.
    """
    why = "the first of the catalogue that fits" + (f", {reason}" if reason else "")
    return replace(selection, algorithm=selection.resolve_algorithm(), why=why)


def _variant_options(selection: Selection) -> tuple[str, ...]:
    """Return the options that the algorithm of a selection proposed, such as ``("trees=1",)``.

    Options that only a user sets are left out.
    """
    options = selection.options
    short = 2  # flits of a message that may have a chunk for each flit
    names = {
        name for flits in (0, short) for one in _option_variants(selection, flits) for name in one
    }
    return tuple(f"{name}={getattr(options, name)}" for name in options.given() if name in names)


def _option_variants(
    selection: Selection, flits: int = 0, *, padded: bool = False
) -> Sequence[Mapping[str, Any]]:
    """Return the variants of a selection's algorithm: sets of options that the algorithm proposes.

    Examples are ``{"trees": 1}`` and ``{"chunks": 4}``. For short messages, some algorithms are
    best with chunks of one flit. If `flits` is at most their limit (`Algorithm.most_flit_chunks`),
    all variants with up to `flits` chunks are therefore replaced by ``{"chunks": flits}``. With
    `padded`, there are further variants with more chunks than flits, up to the limit; the message
    is then padded to one flit a chunk. With ``flits=0``, for messages of any length, nothing is
    replaced.
    """
    topology, collective = selection.topology, selection.collective
    if collective.axes is not None:
        topology, collective = collective.groups(topology).group_topology, collective.in_one_group
    algorithm = selection.resolve_algorithm()
    variants = [*algorithm.find_variants(topology, collective), *_packet_variants(selection)]
    if 1 < flits <= (most := algorithm.most_flit_chunks(topology, collective)):
        last = most if padded else flits
        cuts = [{"chunks": count} for count in range(flits, last + 1)]  # in place of fewer chunks
        return [one for one in variants if not 0 < one.get("chunks", 0) <= last] + cuts
    return variants


def _packet_variants(selection: Selection) -> Iterator[Mapping[str, Any]]:
    """Yield the option ``times``, from which an algorithm computes its best number of packets.

    A packet is one of the equal parts of a message that follow each other along a path. ``times``
    holds three constants of the user's cost model: ``beta`` (the start-up time of a step), ``tau``
    (the time of a flit on a link) and the length of a message. Nothing is yielded if ``beta`` is 0,
    or if the algorithm of `selection` does not have this option.
    """
    costs = selection.costs or {}
    beta, tau, length = costs.get("beta", 0), costs.get("tau", 0), costs.get("length", 1)
    if beta > 0 and "times" in selection.resolve_algorithm().options:
        yield {"times": (float(beta), float(tau), float(length))}


def suitable_selections(
    selection: Selection, flits: int = 0, *, padded: bool = False
) -> Iterator[Selection]:
    """Yield `selection` with each suitable algorithm: with the user's options, then with variants.

    A variant is a set of options that the algorithm proposes, such as ``trees=1``. Algorithms come
    in the order of the catalogue, the list of all algorithms. A variant is left out if the user
    gave one of its options. An algorithm whose search takes long on this network (`most_arcs`) is
    left out unless no other one suits.

    Parameters
    ----------
    selection : Selection
        The choice of the user; an algorithm in it is the only one.
    flits : int
        Flits of a message; 0 if each run chooses its message length.
    padded : bool
        True if a short message may be padded to more chunks of one flit each.

    Yields
    ------
    Selection
        The selection with an algorithm and the options of a variant.
    """
    collective, arcs = selection.collective, selection.planned_arcs
    every = CATALOGUE.by_preference(collective)
    named = selection.algorithm
    slow, found = [], False
    for algorithm in every if named is None else (named,):
        if collective.kind not in algorithm.collectives:
            continue
        if collective.is_irregular and not algorithm.irregular:
            continue
        if named is None and arcs > (algorithm.most_arcs or arcs):
            slow.append(algorithm)
            continue
        for one in _suitable_variants(selection, algorithm, flits, padded=padded):
            found = True
            yield one
    for algorithm in () if found else slow:
        yield from _suitable_variants(selection, algorithm, flits, padded=padded)


def _suitable_variants(
    selection: Selection, algorithm: Algorithm, flits: int, *, padded: bool
) -> Iterator[Selection]:
    """Yield `selection` with an algorithm, if it suits, and with each of its variants.

    The arguments are those of `suitable_selections`.
    """
    topology, collective, asked = selection.topology, selection.collective, selection.options
    of_this = replace(selection, algorithm=algorithm)
    given = {*asked.given(), *(["latency"] * selection.any_latency)}
    for variant in ({}, *_option_variants(of_this, flits, padded=padded)):
        options = replace(asked, **variant)
        given_again = not given.isdisjoint(variant)
        if not given_again and algorithm.why_not(topology, collective, options) is None:
            yield replace(of_this, options=options)


def choose_by_times(selection: Selection, *, root: str | None = None) -> Selection:
    """Choose the algorithm for long messages, by the message times of its schedule.

    The choice is the first suitable algorithm of the catalogue (the list of all algorithms, in
    order of preference) whose message times exceed the lower bound of all schedules by at most a
    tolerance (10 % or 3 %, see `_time_tolerance`). If no algorithm is within the tolerance, the
    choice is the one with the fewest message times.

    Parameters
    ----------
    selection : Selection
        A selection without an algorithm.
    root : {"any"}, optional
        ``"any"`` if each run chooses its root.

    Returns
    -------
    Selection
        The selection with an algorithm, and the reason of the choice.

    Examples
    --------
    >>> choose_by_times(make_selection("7x7x7", "allgather")).algorithm.name
    'hamiltonian'
    """
    options = selection.options
    least = least_time(
        selection.topology, selection.collective, ports=options.ports, duplex=options.duplex
    )
    best, fewest = None, None
    for candidate in _long_message_candidates(selection):
        try:
            schedule = schedule_of_selection(replace(candidate, any_latency=False))
        except InputError as error:
            if isinstance(error, AlgorithmFailed):
                error.warn_once()
            continue
        if root and find_sum_trees(schedule) is not None:
            continue  # with a root that each run chooses, hardware cannot stream sums
        times = schedule_cost(schedule).hardware_times
        if fewest is None or times < fewest:
            known = None if candidate.any_latency else schedule
            best, fewest = replace(candidate, planned=known), times
        if times <= (1 + _time_tolerance(selection)) * least:
            break
    if best is None or fewest is None:
        return first_that_fits(selection)
    number = f"{fewest} message time{'s' * (fewest != 1)}"
    return replace(best, why=f"{number} for long messages, at least {least}")


def choose_by_model(selection: Selection, costs: Costs) -> Selection:
    """Choose the algorithm and the options whose schedule takes the least time in the cost model.

    The cost model of the papers gives each step or round a start-up time, each hop a delay, and
    each unit of data a time on a link. Among equal times, the first in the order of the catalogue
    wins. The result is `selection` with the algorithm, the options, the schedule and the reason
    (`why`).

    Parameters
    ----------
    selection : Selection
        The choice of the user.
    costs : Costs
        Constants of the cost model.

    Examples
    --------
    The algorithm max-flow is chosen. The reason lists its time, then the times of the others:

    >>> costs = {"alpha": 1000, "beta": 1000, "tau": 1}
    >>> print(choose_by_model(make_selection("8x8", "broadcast"), costs).why)
    a time of 3003; spanning-tree 36009/4, spanning-tree trees=1 8008, diagonal 4004, necklace 8008
    """
    selection = replace(selection, costs=costs)
    tried: list[tuple[Number, Selection]] = []
    for candidate in suitable_selections(selection):
        try:
            candidate = choose_latency(candidate, None, any_length=False)
            schedule = schedule_of_selection(candidate)
        except InputError as error:
            if isinstance(error, AlgorithmFailed):
                error.warn_once()
            continue
        time = schedule_cost(schedule).time(**costs)
        tried.append((time, replace(candidate, planned=schedule)))
    if not tried:
        return first_that_fits(selection)
    least, best = min(tried, key=lambda one: one[0])
    others = ", ".join(f"{candidate_name(one)} {time}" for time, one in tried if one is not best)
    return replace(best, why=f"a time of {least}" + (f"; {others}" if others else ""))


def _time_tolerance(selection: Selection) -> Fraction:
    """Return the tolerance of `choose_by_times` for the topology and collective of a selection.

    An algorithm is accepted if its message times exceed the lower bound by at most this part of the
    bound: 1/10 on tori, and for an all-to-all or an exchange on networks whose nodes differ; 3/100
    otherwise. The larger tolerance admits algorithms with smaller hardware.
    """
    torus = isinstance(selection.topology, Torus) or selection.collective.axes is not None
    exchange = selection.collective.from_each and selection.collective.personal
    differ = not isinstance(selection.topology, CayleyGraph)
    return TORUS_TIME_TOLERANCE if torus or (exchange and differ) else OTHER_TIME_TOLERANCE


def _long_message_candidates(selection: Selection) -> Iterator[Selection]:
    """Yield a selection with each algorithm to try for long messages.

    First come all suitable algorithms with the options of the user. If the topology is no torus,
    the algorithms follow again, with each number of chunks that they propose.
    """
    variants = []
    for one in suitable_selections(selection):
        if one.options == selection.options:
            yield one
        elif one.options.chunks and not selection.options.chunks:
            variants.append(one)
    if not isinstance(selection.topology, Torus):
        yield from variants


def choose_by_cycles(
    selection: Selection, flits: int, *, any_length: bool = False, root: str | None = None
) -> Selection:
    """Choose the algorithm whose program takes the fewest cycles, or nearly so with fewer LUTs.

    Each suitable algorithm is planned and compiled for messages of `flits` flits. Among the
    schedules that take at most 3 % more cycles than the quickest, the choice has the fewest LUTs by
    estimate. A schedule is left out if another one of these takes fewer cycles even for messages of
    one more flit, because it would then be quicker to pad the message by a flit.

    Parameters
    ----------
    selection : Selection
        The choice of the user.
    flits : int
        Flits of a message; with `any_length`, flits of the longest message.
    any_length : bool
        True if each run chooses its message length.
    root : {"any"}, optional
        ``"any"`` if each run chooses its root.

    Returns
    -------
    Selection
        The selection with an algorithm, a latency, the schedule, and the reason of the choice.

    Examples
    --------
    The reason (`why`) lists the cycles of the choice, then the cycles of the others:

    >>> for flits in (1, 64):
    ...     print(choose_by_cycles(make_selection("8x8", "broadcast"), flits).why)
    13 cycles for 1 flit; spanning-tree 14, max-flow 23, diagonal 19, necklace 13
    29 cycles for 64 flits; at least 16
    """
    require_message_length(flits)
    tried = list(_compile_candidates(selection, flits, any_length=any_length, root=root))
    if not tried:
        return first_that_fits(selection)
    fixed = any_length or selection.collective.fixed_flits is not None
    best = _fewest_luts(tried, None if fixed else flits, root)
    others = ", ".join(
        f"{candidate_name(one.selection)} {one.cycles}" for one in tried if one is not best
    )
    length = f"{'up to ' * any_length}{flits} flit{'s' * (flits != 1)}"
    if not others:
        others = f"at least {cycle_limit(selection.topology, selection.collective, flits)}"
    return replace(best.selection, why=f"{best.cycles} cycles for {length}; {others}")


def _fewest_luts(
    tried: Sequence[_CompiledCandidate], flits: int | None, root: str | None
) -> _CompiledCandidate:
    """Return, among the candidates with nearly the fewest cycles, the one with the fewest LUTs.

    Candidates count that take at most 3 % more cycles than the quickest. LUTs are estimated.

    Parameters
    ----------
    tried : sequence of _CompiledCandidate
        All candidates.
    flits : int or None
        Flits L of a message. A candidate is left out if another one takes fewer cycles for L + 1
        flits than this one for L flits. None if each run chooses its message length, or if the
        lengths of messages are listed; then none is left out.
    root : {"any"} or None
        ``"any"`` if each run chooses its root.
    """
    from ..program.serving import TIE_SHARE

    fewest = min(one.cycles for one in tried)
    near = [one for one in tried if one.cycles <= (1 + TIE_SHARE) * fewest]
    if len(near) == 1:
        return near[0]
    from ..program.counts import estimate_luts

    near.sort(key=lambda one: (estimate_luts(one.program), one.cycles))
    if flits is None:
        return near[0]
    longer = partial(_cycles_at_length, flits=flits + 1, root=root)
    return next(
        one
        for one in near
        if not any(other.cycles < one.cycles and longer(other) < one.cycles for other in near)
    )


def _cycles_at_length(tried: _CompiledCandidate, flits: int, root: str | None) -> int:
    """Return the cycles that the schedule of `tried` takes for messages of `flits` flits.

    The known cycles are returned if the blocks have the same number of flits as in the compiled
    program. Otherwise the schedule is compiled for this length. `root` is "any" if each run chooses
    its root.
    """
    from ..program import compile
    from ..program.mode import block_flits

    selection, schedule = tried.selection, tried.selection.planned
    assert schedule is not None
    if tried.program.block_flits == block_flits(schedule, flits):
        return tried.cycles
    return compile(schedule, flits=flits, operators=selection.operators, root=root).cycles()


def _compile_candidates(
    selection: Selection,
    flits: int,
    *,
    any_length: bool = False,
    root: str | None = None,
    prune: bool = True,
) -> Iterator[_CompiledCandidate]:
    """Yield each suitable algorithm, in each of its variants, with its program and cycles.

    `flits` is the length of a message. With `any_length` each run chooses its length, at most
    `flits`; `root` is "any" if each run chooses its root.

    `prune` saves work: a candidate that cannot have nearly the fewest cycles is skipped, by a lower
    bound that is known before planning, or before compiling. If a schedule is long, the search ends
    as soon as a candidate has nearly as few cycles as the cycle limit allows. With `prune`, short
    messages are also tried with padding to more chunks, see `suitable_selections`.
    """
    from ..program import compile
    from ..program.serving import TIE_SHARE

    fewest: int | None = None
    limit = cycle_limit(selection.topology, selection.collective, flits) if prune else 0
    for candidate in suitable_selections(selection, 0 if any_length else flits, padded=prune):
        if prune and isinstance(candidate.topology, CayleyGraph):
            least = _least_padded_cycles(candidate, flits)
            if fewest is not None and least > (1 + TIE_SHARE) * fewest:
                continue
        elif prune and _least_chunks(candidate, selection.options) > 2 * flits:
            continue  # chunks of less than half a flit: more than half of the cycles are padding
        try:
            candidate = choose_latency(candidate, flits, any_length=any_length)
            schedule = schedule_of_selection(candidate)
            if prune and fewest is not None and least_cycles(schedule, flits) > 2 * fewest:
                continue
            lengths = length_arguments(schedule, flits, any_length=any_length)
            operators = selection.operators
            program = compile(schedule, **lengths, operators=operators, root=root)
            program = program.by_beats(selection.beat)
        except InputError as error:
            if isinstance(error, AlgorithmFailed):
                error.warn_once()
            continue
        cycles = max(program.cycles(), _port_cycles(program, selection.beat))
        fewest = cycles if fewest is None else min(fewest, cycles)
        yield _CompiledCandidate(replace(candidate, planned=schedule), program, cycles)
        long = schedule.round_count * schedule.ports > LONG_PLAN
        if long and fewest <= (1 + TIE_SHARE) * limit:
            return


def _port_cycles(program: Program, beat: int) -> int:
    """Return the cycles in which the stream of a node moves its messages of one run.

    In one cycle the stream moves flits of one block only: `beat` flits, or fewer if `beat` does not
    divide the flits of a block (the largest power of two that does). The result is 0 if each run
    chooses its message length or if `beat` is 1; the stream is then no limit.
    """
    if program.any_length or beat == 1:
        return 0
    blocks = program.schedule.blocks
    flits = min(program.block_flits & -program.block_flits, beat)
    return -(-program.flits // flits) * (
        max(blocks.messages_per_origin, blocks.messages_per_receiver) - 1
    )


def _least_padded_cycles(candidate: Selection, flits: int) -> Fraction:
    """Return a lower bound on the cycles of a candidate whose message is padded; 0 without padding.

    A message of `flits` flits is padded if the candidate cuts it into more chunks: each chunk then
    has one flit, and the message has as many flits as chunks. The bound is this number of flits
    times the least message times of any schedule.
    """
    chunks = candidate.options.chunks or 0
    if chunks <= flits:
        return Fraction(0)
    return chunks * least_time(candidate.topology, candidate.collective)


def _least_chunks(candidate: Selection, asked: Options) -> int:
    """Return a lower bound on the number of chunks that a candidate will use, before it is planned.

    If the options of `candidate` have a number of chunks, the result is this number. If they are
    just those of the user (`asked`), the algorithm chooses. On networks that do not look the same
    from every node, it then chooses at least the largest number that it proposes as a variant, so
    this is the result. If the user gave ``chunks``, the result is 0.
    """
    if asked.chunks is not None:
        return 0
    differ = not isinstance(candidate.topology, CayleyGraph)
    variants = _option_variants(candidate) if differ and candidate.options == asked else ()
    chunks = (int(one.get("chunks", 0)) for one in variants)
    return max(candidate.options.chunks or 0, *chunks, 0)


def least_cycles(schedule: Schedule, flits: Any) -> Any:
    """Return a lower bound on the cycles of a schedule: its message times, without latencies.

    The chunks of a message are padded to equal numbers of whole flits.

    Parameters
    ----------
    schedule : Schedule
        Any schedule.
    flits : int, or ndarray of int
        Flits of a message, or an array of several lengths.

    Returns
    -------
    float, or ndarray of float
        The bound for each length.
    """
    times = float(schedule_cost(schedule).hardware_times)
    return times * schedule.chunks * -(-flits // schedule.chunks)


@public
def compare(
    topology: Topology | str,
    collective: Collective | str,
    *,
    flits: int | str | Sequence[int] | None = None,
    root: int | str | None = None,
    **options: Unpack[PlanOptions],
) -> tuple[Candidate, ...]:
    """Compare the cycles of all suitable algorithms for messages of one or several lengths.

    Parameters
    ----------
    topology : Topology or str
        The network, such as ``"8x8"``.
    collective : Collective or str
        The collective, such as ``"allgather"``.
    flits : int or sequence of int
        Flits of a message: one length, or several lengths to compare at. Default: that of the
        longest message if a user lists lengths, else 1.
    root : int or str, optional
        The node that broadcasts, scatters, gathers or reduces (default 0).
    **options
        Options of the algorithms, see `plan`. With ``objective="time"`` each candidate also has its
        time in the cost model.

    Returns
    -------
    tuple of Candidate
        Candidates of the first length, then of the next. Each length begins with the candidate of
        the fewest cycles, or of the least time. Algorithms without hardware are left out.

    Raises
    ------
    InputError
        If a name is unknown, a length is not a positive number, or no algorithm is suitable.

    Examples
    --------
    Every fifth row of the comparison, with its cycles and their lower bound:

    >>> import torusfabric as tf
    >>> for row in tf.compare("8x8", "broadcast", flits=[1, 64])[::5]:
    ...     print(row.flits, row.algorithm, *row.options, row.cycles, row.limit)
    1 spanning-tree trees=1 13 8
    64 spanning-tree 29 16
    """
    selection = make_selection(topology, collective, root=root, **options)
    if flits is None:
        flits = selection.collective.listed_flits or 1
    lengths = flits if is_iterable(flits) and not isinstance(flits, str) else [flits]
    numbers = [parse_non_negative_int("Flits", length) for length in lengths]
    return tuple(
        row
        for number in numbers
        for row in _compare_at_length(
            replace(selection, costs=selection.cost_model(number)), number
        )
    )


def _compare_at_length(selection: Selection, flits: int) -> list[Candidate]:
    """Return the candidates of `compare` for messages of `flits` flits, the fewest cycles first.

    If the selection has costs, each candidate also has its time in the cost model, and the least
    time comes first.
    """
    rows, model = rank_candidates(selection, flits), selection.costs
    if model is None:
        return rows
    timed = [row._replace(time=schedule_cost(row.schedule).time(**model)) for row in rows]
    return sorted(timed, key=lambda row: row.time or 0)


def rank_candidates(selection: Selection, flits: int) -> list[Candidate]:
    """Return a `Candidate` for each suitable algorithm at one length, the fewest cycles first.

    Parameters
    ----------
    selection : Selection
        The choice of the user.
    flits : int
        Flits of a message.

    Raises
    ------
    InputError
        If no algorithm is suitable, or messages have unequal lengths and `flits` is not that of
        the longest one.
    """
    length_of_collective(selection.collective, flits, any_length=False)
    rows = [
        _comparison_row(one, flits) for one in _compile_candidates(selection, flits, prune=False)
    ]
    if not rows:
        selection.resolve_algorithm()  # raises the error that says why no algorithm is suitable
    return sorted(rows, key=lambda row: row.cycles)


def _comparison_row(tried: _CompiledCandidate, flits: int) -> Candidate:
    """Return the row of `compare` for `tried`, a compiled candidate, at a length of `flits`."""
    selection, schedule = tried.selection, tried.program.schedule
    return Candidate(
        algorithm=selection.resolve_algorithm().name,
        options=_variant_options(selection),
        flits=flits,
        cycles=tried.cycles,
        limit=cycle_limit(selection.topology, selection.collective, flits),
        steps=schedule.round_count,
        schedule=schedule,
    )
