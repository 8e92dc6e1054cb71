"""`compile`: from schedules to a program.

::

    schedule --planner--> Moves --make_program--> Program of one form     for each schedule
    Programs --merge--> Program of several forms
             --meet_operator_demands--> operators have their time
             --choose_ranges--> each length has its form

A program can have several *modes* (collectives), a mode several *forms* (compiled schedules), and a
schedule two *versions*: programs for the same schedule, of which one is faster for short messages.

Modules that only some programs need are imported where they are used. Why: these imports take
longer than the compilation of a small program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ..collective import ADD, Operator, common_longest, parse_operators
from ..errors import InputError
from ..schedule import (
    Lifted,
    Masked,
    Pattern,
    Rounds,
    Schedule,
    SumPattern,
    SumTable,
    Table,
)
from ..toolchain.public import public
from ..toolchain.values import is_iterable, message_text, parse_non_negative_int, require_bool
from ..topology import Faulty, shared_network
from .fields import Order
from .mode import Range
from .moves import CompileRequest, Moves, make_program

if TYPE_CHECKING:
    from ..schedule.sum_trees import SumTrees
    from .program import Program

__all__ = ["compile", "compile_versions"]

_Schedules: TypeAlias = Schedule | Sequence[Schedule | Sequence[Schedule]]


@public
def compile(
    schedule: Schedule | Sequence[Schedule | Sequence[Schedule]],
    *,
    flits: int | str | None = None,
    max_flits: int | str | None = None,
    operators: Operator | str | Sequence[Operator | str] = (),
    root: str | None = None,
    barrier: bool = False,
) -> Program:
    """Compile a schedule, or several, into the program that performs them.

    Parameters
    ----------
    schedule : Schedule or sequence of (Schedule or sequence of Schedule)
        A checked schedule, or several *modes*, of which each run chooses one. A mode is a schedule,
        or a sequence of schedules of the same collective, its *forms*: each run executes the
        fastest form for its length. Forms that are the fastest for no length are left out.
    flits : int, optional
        Flits of a message; by default one for each chunk. All blocks have the same length. If the
        number of chunks does not divide `flits`, the last block is padded: with four chunks, a run
        for 6 flits takes as many cycles as one for 8.
    max_flits : int, optional
        Largest number of flits, in place of `flits`, if each run is to choose the length of its
        messages. With several schedules each run always chooses it.
    operators : Operator, str, or sequence of them, optional
        Operators that combine the words of a reduction (default ``add``), such as ``max:signed``.
        From several, as in ``add,max``, each run chooses one by its number in this order.
    root : {"any"}, optional
        Lets each run choose its root; the schedule must be one for node 0.
    barrier : bool
        True for an additional, last mode without data: a run of this mode ends when all nodes have
        begun it. A barrier needs `max_flits` and hardware with streams.

    Raises
    ------
    InputError
        If there is nothing to build, because a single node already holds all data. Also if options
        exclude each other, or operators are given for a collective that combines nothing.
    ScheduleError
        If the schedule counts a contribution twice, and an operator is not idempotent.

    Examples
    --------
    >>> import torusfabric as tf
    >>> tf.compile(tf.plan(tf.Torus(4, 4), "allgather"), flits=2).cycles()
    13

    Trees are faster for a short message, and a schedule that scatters sums is for a long one:

    >>> names = ("spanning-tree", "necklace")
    >>> sums = [tf.plan("4x4", "allreduce", algorithm=name) for name in names]
    >>> program = tf.compile([sums, tf.plan("4x4", "allgather")], max_flits=64)
    >>> program.modes[0].range_starts, program.cycles(1, mode=0), program.cycles(64, mode=0)
    ((1, 53), 16, 41)
    """
    demands = _Demands(
        None if flits is None else parse_non_negative_int("Flits", flits),
        None if max_flits is None else parse_non_negative_int("Max flits", max_flits),
        operators=parse_operators(operators),
        any_root=root is not None,
    )
    if demands.flits is not None and demands.most is not None:
        raise InputError(
            "flits and max_flits (--flits, --max-flits) exclude each other; give one of them"
        )
    if root is not None and (not isinstance(root, str) or root != "any"):
        raise InputError(
            f"Root must be any or left out, not {message_text(root)}; a fixed root is given "
            "when the "
            "schedule is planned"
        )
    again = partial(_compile_for_beats, schedule, demands, barrier=require_bool("Barrier", barrier))
    return replace(again(), of_beats=again)


class _Demands(NamedTuple):
    """The properties that a user demands of a program, besides its schedules.

    Parameters
    ----------
    flits, most : int or None
        Flits of a message, or the largest number if each run chooses; at most one of the two is
        given.
    beat, operators, short, fixed, any_root
        Flits of a beat, operators of a reduction, and three properties that are true or false. They
        have the meaning of the fields of `CompileRequest` with these names.
    """

    flits: int | None
    most: int | None
    beat: int = 1
    operators: tuple[Operator, ...] = ()
    short: bool = False
    fixed: bool = True
    any_root: bool = False


def _compile_for_beats(
    schedule: _Schedules, demands: _Demands, *, barrier: bool, beat: int = 1
) -> Program:
    """Return the program of one or several schedules, for beats of `beat` flits.

    A beat is the flits that a stream or host port moves in a cycle. If each run chooses the length
    of its messages, a message is cut into chunks beat by beat (see `Program.any_length`), so the
    program depends on `beat`. The function uses `beat` in place of the field of the same name in
    `demands`. If `barrier`, the program has a barrier as a further mode.
    """
    program = _compile_undelayed(schedule, demands._replace(beat=beat))
    if barrier and not program.any_length:
        raise InputError(
            "A barrier needs messages whose length each run chooses; give max_flits "
            "(--max-flits) in place of flits"
        )
    # `meet_operator_demands` treats every form as a mode; forms are assigned to modes again
    # afterwards.
    modes, program = program.served, replace(program, barrier=barrier, served=())
    if program.operators:
        from .operator_demands import meet_operator_demands

        program = meet_operator_demands(program)
    program = replace(program, served=modes)
    if not modes:
        return program
    from .serving import choose_ranges

    served = tuple(choose_ranges(mode.forms, program.flits) for mode in program.modes)
    return replace(program, served=served)


def _compile_undelayed(schedule: _Schedules, demands: _Demands) -> Program:
    """Return the program of one or several schedules, without time for some of the operators.

    Operators that combine the words that a node reads from its memories are treated as if their
    hardware took no cycles. `meet_operator_demands` adds these cycles afterwards. `demands` has the
    properties that the user demands.
    """
    if not isinstance(schedule, Schedule):
        return _compile_all(schedule, demands)
    if schedule.topology.nodes == 1 or not schedule.round_count:
        raise InputError(
            f"Hardware needs at least 2 nodes and something to send, which {schedule.topology} "
            f"{schedule.collective} lacks; choose more nodes"
        )
    if isinstance(schedule, Lifted):
        from .lift import lift

        program = _compile_undelayed(schedule.part, demands)
        return lift(program, replace(schedule, part=program.schedule))
    if schedule.collective.axes is not None:
        raise InputError(
            f"The schedule of {schedule.collective.name} differs between groups, but hardware "
            "needs the same in each; plan it again in place of reading it"
        )
    chosen, collective = demands.operators, schedule.collective
    if collective.fixed_flits is not None:
        if demands.most is not None or demands.flits not in (None, collective.fixed_flits):
            raise InputError(
                f"{collective.kind} with messages of unequal lengths has the length of its longest "
                f"message, {collective.fixed_flits} flits; leave flits and max_flits out"
            )
        demands = demands._replace(flits=collective.fixed_flits)
    elif demands.flits is None and demands.most is None:
        demands = demands._replace(flits=collective.listed_flits)
    if chosen and not collective.reducing:
        raise InputError(
            f"{collective.kind} combines nothing, so it has no operators; leave out "
            f"{', '.join(map(str, chosen))}"
        )
    for operator in chosen:
        if chosen.count(operator) > 1:
            raise InputError(f"Operators must be different, not {operator} more than once")
    lengths = (demands.most, demands.flits, schedule.chunks)
    request = CompileRequest(
        schedule,
        next(flits for flits in lengths if flits is not None),
        chosen or (ADD,) * collective.reducing,
        any_length=demands.most is not None,
        beat=1 if demands.most is None else demands.beat,
        short=demands.short,
        fixed=demands.fixed,
        any_root=demands.any_root,
    )
    return _compile_one(request)


def compile_versions(
    schedule: Schedule,
    most: int,
    operators: Sequence[Operator | str] = (),
    root: str | None = None,
    *,
    beat: int = 1,
    fixed: bool = True,
) -> list[Program]:
    """Return one or two programs of a schedule whose runs choose the length of messages.

    The second program, if there is one, is faster for short messages, and may be slower for long
    ones.

    Parameters
    ----------
    most : int
        Flits of the longest message.
    operators : sequence of Operator or str
        Operators of a reduction, or their names. Collectives that combine nothing ignore them.
    root : str or None
        ``"any"`` if each run chooses its root. Collectives without a root ignore it.
    beat, fixed
        Flits of a beat, and True if tables are fixed, as in `CompileRequest`.

    Examples
    --------
    With 1 and 64 flits, runs of the first program take 48 cycles, runs of the second 23 and 74.

    >>> import torusfabric as tf
    >>> schedule = tf.plan("4x4", "allreduce", algorithm="matching")
    >>> [(each.cycles(1), each.cycles(64)) for each in compile_versions(schedule, 64)]
    [(48, 48), (23, 74)]
    """
    collective = schedule.collective
    demands = _Demands(
        None,
        most,
        beat,
        parse_operators(operators) if collective.reducing else (),
        fixed=fixed,
        any_root=root is not None and collective.rooted,
    )
    usual = _compile_undelayed(schedule, demands)
    by_flit = usual.loop.order is Order.FLIT and not usual.loop.padded
    waits = collective.reducing or schedule.topology.longest_link > 1
    if by_flit or not waits:
        return [usual]
    kernel = schedule.part if isinstance(schedule, Lifted) else schedule
    if not isinstance(kernel, Table | Masked):
        return [usual]
    return [usual, _compile_undelayed(schedule, demands._replace(short=True))]


def _compile_one(request: CompileRequest) -> Program:
    """Return the program of the schedule in `request`, which runs in one group of all nodes.

    A schedule of several groups (`Lifted`) is not for this function: its program is made from the
    program of one group.
    """
    schedule, collective = request.schedule, request.schedule.collective
    if request.any_root:
        collective.check_supports_any_root(schedule.topology)
        if collective.root:
            raise InputError(
                f"Root any needs a schedule from node 0, not from node {collective.root}; plan it "
                "with root 0"
            )
        if not collective.rooted:
            raise InputError(
                "Root any needs a collective with a root (broadcast, scatter, gather, reduce), "
                f"not {collective.kind}; leave it out"
            )
    if isinstance(schedule, Masked):
        if not request.any_root:
            raise InputError(
                "This schedule serves all roots alike; compile it with root any (root='any', "
                "--root any)"
            )
        program = _compile_one(replace(request, schedule=schedule.whole, any_root=False))
        return replace(program, forms=(replace(program.form, schedule=schedule, any_root=True),))
    trees = None
    if not request.any_root:
        kept = isinstance(schedule, SumTable) or (
            isinstance(schedule, Rounds) and schedule.keeps_sums
        )
        if kept and not all(each.idempotent for each in request.operators):
            # The schedule may have been checked for idempotent operators only.
            from ..analysis.check import check

            check(schedule)
        if request.operators:
            from ..schedule.sum_trees import find_sum_trees

            trees = find_sum_trees(schedule)
    if request.operators and not (request.fixed or request.any_root or trees):
        from .rounds import arriving_sum_moves

        if found := arriving_sum_moves(request):
            return make_program(replace(request, schedule=found[0]), found[1])
    return make_program(request, _plan_moves(request, trees))


def _plan_moves(request: CompileRequest, trees: SumTrees | None) -> Moves:
    """Choose the planner for the schedule of `request`, and return the moves that it plans.

    Moves are the actions of all nodes in each row of the program. If `trees` are given, sums move
    along these trees, whatever the class of the schedule.
    """
    schedule, sums = request.schedule, bool(request.operators)
    if schedule.topology.spacing_multiple > 1:
        from .rounds import round_moves

        return round_moves(request)
    if trees is not None:
        from .tree_moves import tree_moves

        return tree_moves(request, trees)
    if isinstance(schedule, Table | SumTable):
        if sums:
            from .sum_planner import plan_sums

            return plan_sums(request)
        from .table_planner import plan_table

        return plan_table(request)
    if sums and isinstance(schedule, SumPattern):
        from .sum_moves import sum_moves

        return sum_moves(request)
    slow = isinstance(schedule.topology, Faulty) and schedule.topology.slow_links
    if isinstance(schedule, Pattern) and not (schedule.streams or sums or slow or request.any_root):
        from .block_moves import block_moves

        return block_moves(request)
    from .rounds import round_moves

    return round_moves(request)


def _compile_all(schedules: Sequence[Schedule | Sequence[Schedule]], demands: _Demands) -> Program:
    """Return the program of several schedules; each is a mode, or a form of a mode.

    `demands` has the properties that the user demands of the program.
    """
    modes = _schedules_by_mode(schedules)
    chunks = max(schedule.chunks for mode in modes for schedule in mode)
    lengths = (demands.most, demands.flits, chunks)
    most = next(flits for flits in lengths if flits is not None)
    if len(modes) == 1 and isinstance(modes[0], _SingleSchedule) and demands.most is None:
        # A list with a single schedule is compiled like that schedule: without `max_flits`, runs
        # have a fixed length.
        (schedule,) = modes[0]
        return _compile_undelayed(schedule, demands._replace(flits=most))
    unequal = [each for mode in modes for each in mode if each.collective.fixed_flits]
    if unequal:
        return _compile_unequal(modes, unequal, demands)
    root = "any" if demands.any_root else None
    kept: list[list[Program]] = []
    for mode in modes:
        each = [
            compile_versions(schedule, most, demands.operators, root, beat=demands.beat)
            for schedule in mode
        ]
        kept.append(
            each[0][:1] if isinstance(mode, _SingleSchedule) else _fastest_versions(each, most)
        )
    forms = [program for of_mode in kept for program in of_mode]
    if len(forms) == 1:
        return forms[0]
    from .merge import merge  # here, because a single schedule does not need it

    merged = merge(forms)
    if len(forms) == len(modes):
        return merged
    # These ranges are provisional: `_compile_for_beats` computes them from the final cycles.
    served = (tuple(Range(1, k) for k in range(len(of_mode))) for of_mode in kept)
    return replace(merged, served=tuple(served))


def _compile_unequal(
    modes: Sequence[tuple[Schedule, ...]], unequal: Sequence[Schedule], demands: _Demands
) -> Program:
    """Return the program of several modes of one length, which is that of the longest message.

    `unequal` are the schedules of `modes` whose messages have unequal lengths.
    """
    longest = common_longest(each.collective.fixed_flits or 0 for each in unequal)
    if any(len(mode) > 1 for mode in modes) or demands.any_root:
        raise InputError(
            f"Beside {unequal[0].collective.name} with messages of unequal lengths, each mode must "
            "have one schedule and a fixed root"
        )
    from .merge import merge  # here, because a single schedule does not need it

    forms = [
        _compile_undelayed(
            schedule,
            demands._replace(
                flits=demands.flits or longest,
                operators=demands.operators if schedule.collective.reducing else (),
            ),
        )
        for (schedule,) in modes
    ]
    return merge(forms)


class _SingleSchedule(tuple[Schedule]):
    """The schedule of a mode that was given as one schedule, not as a sequence of forms.

    It gets a single form. A sequence of one schedule may get two: one more for short messages.
    """


def _schedules_by_mode(
    schedules: Sequence[Schedule | Sequence[Schedule]],
) -> list[tuple[Schedule, ...]]:
    """Check the schedules of all modes, and return them for one common network.

    A schedule for a network with a broken node becomes a schedule (`Lifted`) on the common network,
    in which this node does nothing.
    """
    listed = list(schedules) if is_iterable(schedules) else [schedules]
    modes = [tuple(one) if isinstance(one, Sequence) else _SingleSchedule([one]) for one in listed]
    if not modes or not all(modes):
        raise InputError(
            "Schedules must be at least one schedule, as tf.plan returns it, not "
            f"{message_text(schedules)}"
        )
    for mode in modes:
        for schedule in mode:
            if not isinstance(schedule, Schedule):
                raise InputError(
                    "Schedules must be at least one schedule, as tf.plan returns it, not "
                    f"{message_text(schedules)}"
                )
            if schedule.collective != mode[0].collective:
                raise InputError(
                    f"Forms of a mode must be of one collective, {mode[0].collective}, not "
                    f"{schedule.collective}"
                )
    network = shared_network(schedule.topology for mode in modes for schedule in mode)
    return [
        type(mode)(Lifted.for_network(schedule, network) for schedule in mode) for mode in modes
    ]


def _fastest_versions(each: Sequence[Sequence[Program]], most: int) -> list[Program]:
    """Return the programs that a mode needs to be fast at every length of messages.

    A schedule has one or two *versions*: programs of which one is faster for short messages.
    Versions that are the best ones at no length are left out. Those for the shortest lengths come
    first.

    Parameters
    ----------
    each : sequence of (sequence of Program)
        Versions of each schedule of the mode.
    most : int
        Flits of the longest message.
    """
    from .counts import estimate_luts
    from .serving import choose_ranges, cycles_of_lengths, dispensable_versions, sample_lengths

    programs = [program for one in each for program in one]
    if len(programs) > len(each):
        lengths, ends = sample_lengths(most), np.cumsum([0, *map(len, each)]).tolist()
        luts = [estimate_luts(program) for program in programs]
        dearest = [sorted(range(a, b), key=lambda k: -luts[k]) for a, b in pairwise(ends)]
        without = dispensable_versions(
            dearest, [cycles_of_lengths(program.form, lengths) for program in programs]
        )
        programs = [program for k, program in enumerate(programs) if k not in without]
    while True:
        ranges = choose_ranges([program.form for program in programs], most)
        kept = [programs[k] for k in dict.fromkeys(each.form for each in ranges)]
        if len(kept) == len(programs):
            return kept
        programs = kept  # the rest may cover the lengths with even fewer
