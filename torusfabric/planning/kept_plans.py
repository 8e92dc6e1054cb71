"""Plans that took long, kept in the cache under the digest of all that they depend on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np

from ..schedule import Grouped, Listed, Rounds, Schedule, Switching, Transfers
from ..schedule.single_hops import single_hops

if TYPE_CHECKING:
    from pathlib import Path

    from ..schedule.transfers import Payload
    from .selection import Selection

__all__ = ["kept_plan"]

#: Nodes times arcs from which on planning on any network takes longer than reading a plan.
LARGE = 50_000

#: More blocks than these in all transfers are planned again, not read.
MOST_BLOCKS = 2**22

#: The file of an entry.
FILE = "plan.npz"


def kept_plan(selection: Selection, plan: Callable[[], Schedule]) -> Schedule:
    """What is planned for a selection, or was planned for the same before by the same planners."""
    topology = selection.topology
    large = topology.nodes * int(topology.linked.sum()) >= LARGE
    if not (large and selection.chosen().name == "any-network"):
        return plan()
    # Few plans are kept: what does that is imported for them alone.
    from ..toolchain.cache import Cache
    from ..toolchain.folders import work_folder

    cache, key = Cache(), _key(selection)
    if (path := cache.get_file(key, FILE)) and (found := _read(path, selection)):
        return found
    schedule = plan()
    if isinstance(schedule, Rounds) and _lists_few(schedule):
        with work_folder("plan") as folder:
            _write(folder / FILE, schedule)
            cache.put_file(key, FILE, folder / FILE)
    return schedule


def _key(selection: Selection) -> str:
    """A name for a selection and the planners."""
    from ..toolchain.cache import digest, source_digest

    options = asdict(selection.options) | {"duplex": selection.options.duplex.value}
    return digest(
        "plan",
        source_digest("algorithms", "analysis", "collective", "schedule", "topology"),
        selection.topology.to_entry(),
        selection.collective.to_json(),
        selection.chosen().name,
        options,
    )


def _lists_few(schedule: Rounds) -> bool:
    """Whether transfers go one hop and list their blocks, not too many of them."""
    count = 0
    for transfers in schedule.transfers:
        if not isinstance(transfers.payload, Listed | Grouped) or transfers.hops.shape[1] != 1:
            return False
        count += len(_listed(transfers.payload).ids)
    return count <= MOST_BLOCKS and (not _sums(schedule) or single_hops(schedule))


def _sums(schedule: Rounds) -> bool:
    """Whether transfers carry the sum of a chunk each, which their senders hold."""
    return any(isinstance(transfers.payload, Grouped) for transfers in schedule.transfers)


def _listed(payload: Payload) -> Listed:
    """Blocks as they are listed; of sums, their chunks."""
    if isinstance(payload, Grouped):
        return Listed.single(payload.wanted)
    assert isinstance(payload, Listed)
    return payload


def _write(path: Path, schedule: Rounds) -> None:
    """Write rounds as arrays, one behind another."""
    listed = [_listed(transfers.payload) for transfers in schedule.transfers]
    np.savez_compressed(
        path,
        chunks=schedule.chunks,
        ports=schedule.ports,
        transfers=[len(transfers) for transfers in schedule.transfers],
        source=np.concatenate([transfers.source for transfers in schedule.transfers]),
        port=np.concatenate([transfers.hops[:, 0] for transfers in schedule.transfers]),
        blocks=np.concatenate([np.diff(each.indptr) for each in listed]),
        ids=np.concatenate([each.ids for each in listed]),
        sums=_sums(schedule),
    )


def _read(path: Path, selection: Selection) -> Rounds | None:
    """Rounds from their arrays; None of a file that has not all of these."""
    try:
        with path.open("rb") as file, np.load(file) as arrays:
            found = {name: arrays[name] for name in arrays.files}
        ends = np.cumsum(found["transfers"])[:-1]
        sizes = np.split(found["blocks"], ends)
        ids = np.split(found["ids"], np.cumsum([size.sum() for size in sizes])[:-1])
        rounds = zip(
            np.split(found["source"], ends), np.split(found["port"], ends), sizes, ids, strict=True
        )
        blocks = selection.collective.blocks(selection.topology, int(found["chunks"]))
        chunk = blocks.chunk(np.arange(blocks.count)) if found["sums"] else None
        return Rounds(
            topology=selection.topology,
            collective=selection.collective,
            algorithm=selection.chosen().name,
            switching=Switching.STORE_AND_FORWARD,
            ports=int(found["ports"]),
            chunks=int(found["chunks"]),
            transfers=tuple(
                Transfers(
                    source,
                    port[:, None],
                    Listed(np.append(0, np.cumsum(size)), block)
                    if chunk is None
                    else Grouped(chunk, block),
                )
                for source, port, size, block in rounds
            ),
        )
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None
