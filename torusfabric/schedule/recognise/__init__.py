"""Recognition of regular schedules: finds the form with the smallest hardware.

A schedule file only lists transfers. Hardware depends on their regularity: a `Pattern` needs little
more than wires, and a `Table` needs one program for all nodes. `recognise` finds these forms:

- `Pattern`: an all-gather in which each out-port always carries the block that the same in-port
  received in the step before; also a broadcast along trees.
- `SumPattern`: a reduce-scatter or an all-reduce in which all sums go round cycles through all
  nodes.
- `Table`, or `SumTable` if nodes keep their sums: an all-gather, an all-to-all, a reduce-scatter
  or an all-reduce that looks the same from every node. The table is read from node 0; then all
  other nodes are compared with it.
- `Lifted`: a collective in groups, if all groups do the same. The schedule of one group is then
  recognised in turn.

Some schedules, such as an all-gather on a ring, are both a pattern and a table. They become a
`Pattern`, which has smaller hardware and takes fewer cycles. An all-gather over circuits in which
nodes send only some of the blocks that they hold gets `Grouped` payloads: each message carries one
set of blocks, and each set occupies few address ranges of a memory.

The result lists exactly the same transfers, and its arrays are canonical: -1 for everything unused,
a fixed choice between equivalent in-ports, sets of blocks numbered by their first blocks. A planned
schedule and the same schedule read from a file are therefore equal.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from ...errors import InputError
from ..base import Rounds, Schedule
from ..held_blocks import HeldBlocks
from ..lifted import Lifted
from ..model import Switching
from ..pattern import Pattern
from ..sum_trees import find_sum_trees, has_single_hops
from ..table import Table
from ..transfers import Grouped, KeptSums, Listed, Transfers
from .forms import (
    group_blocks,
    pattern_of_steps,
    sum_pattern_of_steps,
    sum_table_of,
    table_of_steps,
    without_unused_feeds,
)
from .steps import Irregular, step_of_round, steps_of

__all__ = ["lifted_from_group", "recognise"]

Form = TypeVar("Form", bound=Schedule)


def recognise(schedule: Schedule) -> Schedule:
    """Return a schedule in the form that has the smallest hardware.

    Returns
    -------
    Schedule
        A `Pattern`, a `SumPattern` or a `Table`, perhaps `Lifted`, with the same transfers. The
        schedule itself if it is already in its smallest form.

    Examples
    --------
    Two nodes swap their messages. Each out-port always does the same, so the schedule is a pattern.

    >>> import torusfabric as tf
    >>> import numpy as np
    >>> swap = tf.Transfers(np.arange(2), np.zeros((2, 1), np.int8))
    >>> schedule = tf.Rounds(topology=tf.Torus([2]), collective=tf.Collective("allgather"),
    ...                   algorithm="swap", switching="store-and-forward", ports=1,
    ...                   transfers=(swap,))
    >>> recognise(schedule).form
    'pattern'
    """
    match schedule:
        case Pattern():
            return without_unused_feeds(schedule)
        case Table():
            form = sum_pattern_of_steps if schedule.collective.reducing else pattern_of_steps
            steps = map(partial(step_of_round, schedule.topology), schedule.rounds())
            return _first_form(schedule, [partial(form, steps=steps)])
        case Lifted():
            return replace(schedule, part=recognise(schedule.part))
        case Rounds() if schedule.collective.axes is not None:
            lifted = lifted_from_group(schedule)
            return schedule if lifted is None else recognise(lifted)
        case Rounds() if schedule.collective.is_irregular:
            return schedule
        case Rounds() if schedule.keeps_sums:
            return _first_form(schedule, [sum_table_of])
        case Rounds():
            found = _recognise_rounds(schedule)
            if isinstance(found, Rounds) and found.collective.reducing:
                # For trees and for single hops, the compiler needs only the chunk of a transfer.
                known = find_sum_trees(found) or has_single_hops(found)
                return found if known else _list_contributions(found)
            return found
    return schedule


def _recognise_rounds(schedule: Rounds) -> Schedule:
    """Return the smallest form of a schedule in rounds, for one group of nodes."""
    collective = schedule.collective
    if collective.rooted:
        broadcast = collective.single_origin and collective.to_all
        if not broadcast or schedule.switching == Switching.CIRCUIT or not schedule.transfers:
            return schedule
        try:
            pattern = pattern_of_steps(schedule, list(steps_of(schedule)))
        except Irregular:
            return schedule
        return pattern if pattern.streams else schedule  # only a broadcast along trees
    if schedule.switching == Switching.CIRCUIT:
        plain = not (collective.reducing or collective.personal)
        return group_blocks(schedule) if plain else schedule
    counts = np.array([len(transfers) for transfers in schedule.transfers])
    if counts.sum() < schedule.topology.nodes:
        return schedule  # some node sends nothing, so the schedule is not regular
    if collective.reducing and (counts % schedule.topology.nodes).any():
        return schedule  # in the regular forms, all nodes send the same number of sums
    try:
        steps = list(steps_of(schedule))
    except Irregular:
        return schedule
    forms = pattern_of_steps, sum_pattern_of_steps, table_of_steps
    return _first_form(schedule, [partial(form, steps=steps) for form in forms])


def _first_form(schedule: Form, forms: Iterable[Callable[[Form], Schedule]]) -> Schedule:
    """Return the schedule in the first form that fits; the schedule itself if none fits.

    Each function in `forms` converts the schedule to one form, or raises `Irregular`.
    """
    for form in forms:
        try:
            return form(schedule)
        except Irregular:
            continue
    return schedule


def _list_contributions(schedule: Rounds) -> Rounds:
    """Return a reduction with the contributions of each transfer listed.

    If there are too many to follow, the schedule is returned unchanged. Why they are listed: the
    compiler adds up chunk by chunk, and needs the chunks of each partial sum.
    """
    if all(isinstance(transfers.payload, Listed) for transfers in schedule.transfers):
        return schedule
    try:
        state = HeldBlocks(schedule.topology, schedule.blocks)
    except InputError:
        return schedule
    return replace(schedule, transfers=tuple(map(state.execute, schedule.transfers)))


def lifted_from_group(schedule: Rounds) -> Lifted | None:
    """Return the schedule as one that all groups share (`Lifted`); None if the groups differ.

    Parameters
    ----------
    schedule : Rounds
        The schedule of a collective in groups.
    """
    groups = schedule.blocks.groups
    if any((groups.port_in_group[t.hops[t.hops >= 0]] < 0).any() for t in schedule.transfers):
        return None
    firsts = (t.of(groups.group_of_node[t.source] == 0) for t in schedule.transfers)
    part = replace(
        schedule,
        topology=groups.group_topology,
        collective=schedule.collective.in_one_group,
        transfers=tuple(
            t.moved(groups.position_of_node[t.source], groups.port_in_group) for t in firsts
        ),
    )
    lifted = Lifted.from_group(part, schedule.topology, schedule.collective)
    pairs = zip(lifted.rounds(), schedule.transfers, strict=True)
    same = all(len(mine) == len(given) and _transfer_set(mine) == _transfer_set(given)
               for mine, given in pairs)  # fmt: skip
    return lifted if same else None


def _transfer_set(transfers: Transfers) -> set[tuple[int, ...]]:
    """Return the transfers of a round as a set of tuples, so that two rounds can be compared.

    A tuple has the sender, the number of hops, the out-ports along the path, and the blocks.
    """
    paths = (tuple(port for port in hops if port >= 0) for hops in transfers.hops.tolist())
    blocks: list[list[int]] = [[]] * len(transfers)
    match transfers.payload:
        case Listed(lists=lists):
            blocks = [sorted(ids.tolist()) for ids in lists]
        case Grouped(wanted=wanted):
            blocks = [[group] for group in wanted.tolist()]
        case KeptSums(chunk=chunk, passed=passed):
            blocks = np.stack([chunk, passed], axis=1).tolist()
    each = zip(transfers.source.tolist(), paths, blocks, strict=True)
    return {(source, len(path), *path, *carried) for source, path, carried in each}
