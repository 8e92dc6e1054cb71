"""Writer of the text of schedule files.

A file lists the transfers of each round, with their paths as nodes. A path over parallel links also
lists its out-ports, under ``via``.
"""

import gc
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from ..collective import Blocks
from .held_blocks import EVERY_ORIGIN, HeldBlocks, whole_sum_id
from .transfers import Everything, Grouped, KeptSums, Listed, Transfers

__all__ = ["BEGINNING", "file_lines", "without_garbage_collector"]

FORMAT, VERSION = "torusfabric-schedule", 1

#: If a file would list more contributions to sums, each transfer names whole sums instead.
MOST_LISTED = 2**20

#: The first characters of every schedule file.
BEGINNING = '{"format": "torusfabric-schedule"'


@contextmanager
def without_garbage_collector() -> Iterator[None]:
    """Disable the garbage collector in the body of the ``with`` statement.

    Why: while a large file is written, it would take as long as the writing itself.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def file_lines(
    head: dict[str, Any], blocks: Blocks, rounds: Callable[[], Iterator[Transfers]]
) -> Iterator[str]:
    """Yield the text of a schedule file, one line for each round.

    `blocks` are the blocks of the schedule. `head` has all entries of the file except the rounds.
    `rounds` is called several times, and returns a new iterator over all rounds each time.
    """
    # Listing the blocks of groups and naming whole sums both need the blocks that nodes hold.
    grouped = any(isinstance(transfers.payload, Grouped) for transfers in rounds())
    named = blocks.collective.reducing and _count_listed(rounds(), blocks) > MOST_LISTED
    topology = blocks.groups.topology
    held_blocks = HeldBlocks(topology, blocks) if grouped or named else None
    yield json.dumps({"format": FORMAT, "version": VERSION} | head)[:-1] + ', "rounds": ['
    for number, transfers in enumerate(rounds()):
        if held_blocks is not None:
            sums = held_blocks.with_whole_sums(transfers) if named else None
            listed = held_blocks.execute(transfers)
            if isinstance(transfers.payload, Grouped):
                transfers = listed
            transfers = sums or transfers
        yield ",\n" if number else "\n"
        yield json.dumps(_transfer_entries(blocks, transfers))
    yield "\n]}\n"


def _count_listed(rounds: Iterable[Transfers], blocks: Blocks) -> int:
    """Return the number of blocks that a file would list for all transfers of all `rounds`.

    In a reduction these are contributions. For transfers with a `Grouped` payload, an upper limit
    is counted. `blocks` are the blocks of the schedule.
    """
    count = 0
    for payload in (transfers.payload for transfers in rounds):
        if isinstance(payload, Listed):
            count += len(payload.ids)
        elif isinstance(payload, Grouped):
            count += len(payload.wanted) * blocks.group_size
    return count


def _transfer_entries(blocks: Blocks, transfers: Transfers) -> list[dict[str, Any]]:
    """Return the transfers of a round as entries of a file, with path and data.

    `blocks` are the blocks of the schedule.
    """
    topology = blocks.groups.topology
    paths, hops = transfers.walk(topology).tolist(), np.asarray(transfers.hops).tolist()
    there = topology.neighbours
    alike = (there[:, :, None] == there[:, None, :]) & topology.linked[:, None, :]
    several = np.argwhere(topology.linked & (alike.sum(axis=2) > 1))
    ambiguous = {(node, port) for node, port in several.tolist()}  # beside a parallel arc
    entries = []
    for path, ports, length, carried in zip(
        paths, hops, transfers.lengths.tolist(), _payload_entries(blocks, transfers), strict=True
    ):
        entry = {"path": path[: length + 1]}
        if ambiguous and not ambiguous.isdisjoint(zip(path, ports[:length], strict=False)):
            entry["via"] = [topology.port_names[port] for port in ports[:length]]
        entries.append(entry | carried)
    return entries


def _payload_entries(blocks: Blocks, transfers: Transfers) -> list[dict[str, Any]]:
    """Return, for each transfer of a round, the entries of a file that say which data it carries.

    The result is ``{"blocks": ..}``, or ``{"sum": chunk}`` where nodes keep their sums. `blocks`
    are the blocks of the schedule.
    """
    payload, ports = transfers.payload, blocks.groups.topology.port_names
    if isinstance(payload, KeptSums):
        return [
            {"sum": chunk, "passes": ports[by]} if by >= 0 else {"sum": chunk}
            for chunk, by in zip(payload.chunk.tolist(), payload.passed.tolist(), strict=True)
        ]
    if isinstance(payload, Everything):
        return [{"blocks": "all"}] * len(transfers)
    assert isinstance(payload, Listed), "blocks of groups are listed first"
    whole = payload.ids < 0  # whole sums, see `whole_sum_id`
    ids = np.where(whole, whole_sum_id(payload.ids), payload.ids)
    columns = blocks.entry_columns(ids)
    names, cuts = np.stack(columns, axis=1).tolist(), np.asarray(payload.indptr).tolist()
    for place in np.flatnonzero(whole).tolist():
        names[place][0] = EVERY_ORIGIN
    return [{"blocks": names[low:high]} for low, high in pairwise(cuts)]
