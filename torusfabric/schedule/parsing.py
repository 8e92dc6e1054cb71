"""Parser of schedule files: turns the JSON content of a file into `Rounds`, and checks all of it.

The JSON Schema defines the form of a file. The head of a file is checked by the schema itself.
Rounds may be large, so they are checked by columns with numpy. If a round is malformed, the schema
is run on that round to produce the message. The parser adds the checks that a schema cannot
express, for example that paths follow links.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ..collective import Blocks, parse_collective
from ..errors import InputError, NotEnoughMemory
from ..toolchain.reading import excerpt, json_location
from ..toolchain.resources import available_memory
from ..topology import Topology, topology_from_json
from .base import Rounds
from .held_blocks import EVERY_ORIGIN, HeldBlocks, whole_sum_id
from .schema import check_head, check_round
from .transfers import ALL, KeptSums, Listed, Transfers

__all__ = ["check_rounds", "parse_schedule"]

Ints = npt.NDArray[np.integer]

#: Cache of parsed paths: from (path, via) to the out-ports of the path.
KnownPaths = dict[tuple[tuple[int, ...], tuple[str | int, ...]], list[int]]

#: The largest accepted numbers of arcs, of blocks, of pairs of node and block, and of rounds.
MOST_ARCS, MOST_BLOCKS, MOST_BITS, MOST_ROUNDS = 2**27, 2**25, 2**40, 2**18

#: Bytes of memory for each block while blocks are followed, and for each arc of a topology.
BYTES_PER_BLOCK, BYTES_PER_ARC = 55, 24

#: Up to this many arcs, the available memory is not checked.
FEW_ARCS = 2**20

#: Keys that a transfer must have and keys that it may have: of blocks, and of kept sums.
NEEDED_KEYS = {"path", "blocks"}, {"path", "sum"}
KNOWN_KEYS = {"path", "blocks", "via"}, {"path", "sum", "passes", "via"}


def parse_schedule(data: Any) -> Rounds:
    """Return the schedule in the content of a file.

    Parameters
    ----------
    data : object
        The result of `json.loads` for a file.

    Raises
    ------
    InputError
        If the content is no valid schedule. The message names the location in the file.
    """
    check_head(data)
    check_rounds(len(data["rounds"]))
    topology = _parse_topology(data["topology"])
    entry = data["collective"]
    optional = {
        "root": entry.get("root"),
        "axes": entry.get("axes"),
        "groups": entry.get("groups", ()),
        "traffic": entry.get("traffic"),
        "counts": entry.get("lengths"),
    }
    collective = parse_collective(
        entry["kind"], **optional, offsets=entry.get("offsets", ()), topology=topology
    )
    collective = replace(collective, turn_flits=entry.get("turn_flits", 0))
    _check_at_most("ports", data["ports"], len(collective.groups(topology).port_in_topology))
    most = min(MOST_BLOCKS, MOST_BITS // topology.nodes)
    _check_at_most("chunks", data["chunks"], most)
    blocks = collective.blocks(topology, data["chunks"])
    if blocks.n_blocks > most:
        raise InputError(f"Blocks must be at most {most}, not {blocks.n_blocks}")
    fitting = available_memory() // BYTES_PER_BLOCK
    if blocks.n_blocks > fitting:
        raise NotEnoughMemory(
            f"Blocks must fit in memory, at most {fitting}, not {blocks.n_blocks}"
        )
    head = ("algorithm", "switching", "ports", "chunks", "duplex")
    return Rounds(
        topology=topology,
        collective=collective,
        **{name: data[name] for name in head if name in data},
        transfers=_parse_rounds(topology, blocks, data["rounds"]),
    )


def check_rounds(count: int) -> None:
    """Check `count`, the number of rounds of a file.

    Raises
    ------
    InputError
        If there are too many.
    """
    if count > MOST_ROUNDS:
        raise InputError(f"rounds must be a list of at most {MOST_ROUNDS} rounds, not {count}")


def _parse_topology(entry: dict[str, Any]) -> Topology:
    """Return the topology of the entry `entry` of a file.

    Its number of arcs is checked, so that tables with an entry for each arc fit in memory.
    """
    sides = entry.get("sides", [])
    if len(sides) > MOST_ARCS.bit_length() or max(sides, default=0) > MOST_ARCS:
        raise InputError(f"Topology must have at most {MOST_ARCS} arcs, not sides {excerpt(sides)}")
    topology: Topology = topology_from_json(entry)
    arcs = topology.nodes * topology.ports
    if arcs > MOST_ARCS:
        raise InputError(f"Topology must have at most {MOST_ARCS} arcs, not {topology}")
    if arcs > FEW_ARCS and arcs > (fitting := available_memory() // BYTES_PER_ARC):
        raise NotEnoughMemory(f"Topology must fit in memory, at most {fitting} arcs, not {arcs}")
    return topology


def _check_at_most(name: str, value: int, most: int) -> None:
    """Check that `value`, a number of a file called `name` in messages, is at most `most`."""
    if value > most:
        raise InputError(f"{name} must be a number from 1 to {most}, not {excerpt(value)}")


def _parse_rounds(topology: Topology, blocks: Blocks, rounds: list[Any]) -> tuple[Transfers, ...]:
    """Return the transfers of all rounds of a file.

    A transfer of a file lists its blocks, or names them as "all", or as whole sums (all
    contributions to a sum that the sender holds). One payload object describes all transfers of a
    round. So if some transfers of a round list their blocks, those of "all" and of whole sums are
    listed, too. For this, the blocks that nodes hold are followed from round to round.
    """
    known: KnownPaths = {}
    idle = _RoundParser(topology, 0, [], known).parse_transfers(blocks)
    listed = [
        idle
        if entries == []
        else _RoundParser(topology, number, entries, known).parse_transfers(blocks)
        for number, entries in enumerate(rounds)
    ]
    kept = [
        ("sum" in entry, number, place)
        for number, entries in enumerate(rounds)
        for place, entry in enumerate(entries)
    ]
    if any(has for has, _, _ in kept) and not all(has for has, _, _ in kept):
        place = json_location(["rounds", *min(kept)[1:]])
        raise InputError(f"{place} must have sum, as other transfers have, not blocks")
    if all(whole is None for _, whole in listed):
        return tuple(transfers for transfers, _ in listed)
    held_blocks, result = HeldBlocks(topology, blocks), []
    for transfers, whole in listed:
        played = held_blocks.execute(transfers, whole)
        result.append(transfers if whole is None else played)
    return tuple(result)


class _RoundParser:
    """Parser of one round of a file; it checks the form of the round when it is made.

    Parameters
    ----------
    number : int
        Index of the round in the file, from 0.
    entries : object
        The JSON value of the round.
    known : dict
        The out-ports along each path that has been parsed before, shared by all rounds.
    """

    def __init__(self, topology: Topology, number: int, entries: Any, known: KnownPaths) -> None:
        self.topology, self.number, self.entries, self.known = topology, number, entries, known
        if not _is_well_formed(entries):
            check_round(entries, number)
            raise AssertionError("the schema accepts what is not well formed")

    def parse_transfers(self, blocks: Blocks) -> tuple[Transfers, npt.NDArray[np.bool_] | None]:
        """Return the transfers of the round, and a mask of those whose blocks must still be listed.

        One payload describes all transfers of a round. If some transfers of the file list their
        blocks and others carry all that their sender holds, the payload is a list. The mask is True
        for the transfers that carry all, whose lists are still empty; `HeldBlocks.execute` fills
        them in. Whole sums in a list are replaced by blocks there, too. The mask is None if neither
        is needed: all transfers list single blocks, or all carry everything.
        """
        source, hops = self._parse_hops()
        if any("sum" in entry for entry in self.entries):
            return Transfers(source, hops, self._parse_sums(blocks)), None
        payloads = [entry["blocks"] for entry in self.entries]
        whole = np.array([payload == "all" for payload in payloads], bool)
        if whole.all():
            return Transfers(source, hops, ALL), None
        lists = [[] if payload == "all" else payload for payload in payloads]
        indptr = np.cumsum([0, *map(len, lists)])
        ids = self._parse_block_ids(blocks, lists)
        followed = whole.any() or (ids < 0).any()
        return Transfers(source, hops, Listed(indptr, ids)), whole if followed else None

    def _transfer_error(self, transfer: int, rest: str) -> InputError:
        """Return an error whose message is the location of a transfer and then `rest`.

        `transfer` is the index of the transfer in the round.
        """
        return InputError(json_location(["rounds", self.number, transfer]) + rest)

    def _parse_hops(self) -> tuple[Ints, Ints]:
        """Return two arrays: the sender of each transfer, and the out-ports along its path.

        The second has the shape (transfers, longest path), with -1 past the end of a path.
        """
        ports = []
        for transfer, entry in enumerate(self.entries):
            way = tuple(entry["path"]), tuple(entry.get("via", ()))
            if way not in self.known:
                self.known[way] = self._parse_path(transfer, entry)
            ports.append(self.known[way])
        lengths = np.array([len(chosen) for chosen in ports], np.int64)
        hops = np.full((len(ports), int(lengths.max(initial=1))), -1, np.int16)
        hops[np.arange(hops.shape[1]) < lengths[:, None]] = [*chain.from_iterable(ports)]
        return np.array([entry["path"][0] for entry in self.entries], np.int64), hops

    def _parse_path(self, transfer: int, entry: dict[str, Any]) -> list[int]:
        """Return the out-ports of the path in `entry`; ``via`` chooses between parallel links.

        `entry` is the JSON value of transfer `transfer` of the round.
        """
        topology, path, via = self.topology, entry["path"], entry.get("via")
        most, ports = topology.nodes * topology.ports, []
        if len(path) > most + 1:
            raise self._transfer_error(
                transfer, f".path must have at most {most} hops, not {len(path) - 1}"
            )
        if max(path) >= topology.nodes:
            node = next(node for node in path if node >= topology.nodes)
            last = topology.nodes - 1
            raise self._transfer_error(
                transfer, f".path must lead over nodes from 0 to {last}, not {excerpt(node)}"
            )
        if via is not None and len(via) != len(path) - 1:
            raise self._transfer_error(
                transfer, f".via must list the {len(path) - 1} out-ports of the path"
            )
        for hop, (here, there) in enumerate(pairwise(path)):
            ways = zip(
                topology.neighbours[here].tolist(), topology.linked[here].tolist(), strict=True
            )
            able = [port for port, way in enumerate(ways) if way == (there, True)]
            if not able:
                raise self._transfer_error(
                    transfer,
                    f".path must go from node {here} to one of its neighbours, not {there}",
                )
            if via is None and len(able) > 1:
                names = " and ".join(topology.port_names[p] for p in able)
                raise self._transfer_error(
                    transfer, f".via must say which of {names} leads from node {here} to {there}"
                )
            ports.append(able[0] if via is None else self._parse_port(transfer, via[hop]))
            if ports[-1] not in able:
                name = topology.port_names[ports[-1]]
                raise self._transfer_error(
                    transfer, f".via must lead from node {here} to {there}, not {name}"
                )
        return ports

    def _parse_port(self, transfer: int, name: str | int, key: str = "via") -> int:
        """Return the number of a port, given by name or number under key `key` of a transfer."""
        try:
            port: int = self.topology.port(name)
        except InputError as error:
            raise self._transfer_error(transfer, f".{key}: {error}") from None
        return port

    def _parse_sums(self, blocks: Blocks) -> KeptSums:
        """Return the sums that transfers carry, in a schedule whose nodes keep their sums.

        `blocks` are the blocks of the collective. They give the number of chunks, for the check of
        the entries.
        """
        chunk, passed = np.full((2, len(self.entries)), -1)
        for transfer, entry in enumerate(self.entries):
            given = entry.get("sum", 0)
            if given >= blocks.chunks:
                last = blocks.chunks - 1
                raise self._transfer_error(
                    transfer, f".sum must be a chunk from 0 to {last}, not {excerpt(given)}"
                )
            chunk[transfer] = given
            if "passes" in entry:
                passed[transfer] = self._parse_port(transfer, entry["passes"], "passes")
        return KeptSums(chunk, passed)

    def _parse_block_ids(self, blocks: Blocks, lists: list[list[list[Any]]]) -> Ints:
        """Return the numbers of all blocks in `lists`, as one array in the same order.

        ``lists[k]`` has the blocks of transfer k as they are written in a file, such as ``[3, 0]``
        for origin 3 and chunk 0. All blocks are checked at once, with numpy. If one is invalid, a
        loop finds it and raises the error.
        """
        names, limit = blocks.entry_limits
        size = len(names)
        given = list(chain.from_iterable(lists))
        every = np.array([block[0] == EVERY_ORIGIN for block in given], np.bool_)
        able = blocks.collective.reducing or not every.any()
        entries = given
        if able and every.any():
            entries = [[0, *block[1:]] if block[0] == EVERY_ORIGIN else block for block in given]
        columns = np.zeros((0, size), np.int64)
        if able and {size}.issuperset(map(len, entries)):
            try:
                columns = np.array(entries, np.int64).reshape(-1, size)
            except OverflowError:
                columns = np.array(entries, object).reshape(-1, size)
            rooted = not blocks.single_origin or (columns[:, 0] == blocks.collective.root).all()
            if rooted and (columns < np.array(limit)).all():
                ids: Ints = blocks.encode(**dict(zip(names, columns.T, strict=True)))
                return np.where(every, whole_sum_id(ids), ids)
        parsed = iter(entries)
        for transfer, payload in enumerate(lists):
            for place in range(len(payload)):
                try:
                    blocks.parse_entry(next(parsed))
                except InputError as error:
                    raise self._transfer_error(transfer, f".blocks[{place}]: {error}") from None
        raise AssertionError("a list of blocks was refused without a reason")


def _is_well_formed(entries: Any) -> bool:
    """Return True if `entries`, the JSON value of a round, obeys the schema."""
    if type(entries) is not list:
        return False
    for entry in entries:
        if type(entry) is not dict:
            return False
        kept = "sum" in entry
        if not NEEDED_KEYS[kept] <= entry.keys() <= KNOWN_KEYS[kept]:
            return False
        path, payload = entry["path"], entry.get("blocks", "all")
        if type(path) is not list or len(path) < 2:
            return False
        if payload != "all" and (type(payload) is not list or not payload):
            return False
        if "via" in entry and not _is_via(entry["via"]):
            return False
        if kept and not (
            _are_non_negative(iter([entry["sum"]])) and _is_via([entry.get("passes", 0)])
        ):
            return False
    lists = [e["blocks"] for e in entries if e.get("blocks", "all") != "all"]
    named = list(chain.from_iterable(lists))
    if not {list}.issuperset(map(type, named)) or not {2, 3, 4}.issuperset(map(len, named)):
        return False
    origins = (block[0] for block in named if block[0] != EVERY_ORIGIN)
    others = chain.from_iterable(block[1:] for block in named)
    numbers = [chain.from_iterable(entry["path"] for entry in entries), origins, others]
    return all(map(_are_non_negative, numbers))


def _is_via(via: Any) -> bool:
    """Return True if `via` is a list of at least one port, each a number or a name."""
    return type(via) is list and bool(via) and {int, str}.issuperset(map(type, via))


def _are_non_negative(values: Iterator[Any]) -> bool:
    """Return True if all values are integers of at least 0."""
    found = list(values)
    return {int}.issuperset(map(type, found)) and min(found, default=0) >= 0
