"""Schedules of which every group of nodes carries out the same."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from ...topology import Groups
from ..lifted import Lifted
from ..rounds import Rounds
from ..transfers import Grouped, KeptSums, Listed, Transfers

__all__ = ["lifted_from_group"]


def lifted_from_group(schedule: Rounds) -> Lifted | None:
    """What the first group does, lifted to all groups; None if these do not all do the same.

    Parameters
    ----------
    schedule : Rounds
        Of a collective in groups.
    """
    groups = schedule.blocks.groups
    if any((groups.port_in_group[t.hops[t.hops >= 0]] < 0).any() for t in schedule.transfers):
        return None
    part = replace(
        schedule,
        topology=groups.torus,
        collective=schedule.collective.in_one_group,
        transfers=tuple(_of_first_group(transfers, groups) for transfers in schedule.transfers),
    )
    lifted = Lifted.of(part, schedule.topology, schedule.collective)
    pairs = zip(lifted.rounds(), schedule.transfers, strict=True)
    same = all(len(mine) == len(given) and _contents(mine) == _contents(given)
               for mine, given in pairs)  # fmt: skip
    return lifted if same else None


def _of_first_group(transfers: Transfers, groups: Groups) -> Transfers:
    """The transfers of the group that contains node 0, on the torus of a group."""
    mine = transfers.of(groups.group[transfers.source] == 0)
    return mine.moved(groups.position[mine.source], groups.port_in_group)


def _contents(transfers: Transfers) -> set[tuple[int, ...]]:
    """What the transfers of a round do, in any order: sender, path and blocks of each."""
    paths = (tuple(port for port in hops if port >= 0) for hops in transfers.hops.tolist())
    blocks: list[list[int]] = [[]] * len(transfers)
    match transfers.payload:
        case Listed(indptr=indptr, ids=ids):
            cuts = indptr.tolist()
            every = np.asarray(ids).tolist()
            blocks = [sorted(every[a:b]) for a, b in pairwise(cuts)]
        case Grouped(wanted=wanted):
            blocks = [[group] for group in wanted.tolist()]
        case KeptSums(chunk=chunk, passed=passed):
            blocks = np.stack([chunk, passed], axis=1).tolist()
    each = zip(transfers.source.tolist(), paths, blocks, strict=True)
    return {(source, len(path), *path, *carried) for source, path, carried in each}
