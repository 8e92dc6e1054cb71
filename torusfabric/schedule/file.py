"""Schedules as files: JSON, compressed where the name ends in ``.gz``.

A file lists the transfers of each round with their paths as nodes and, where two links join the
same nodes, as out-ports too. Writing streams round by round and puts the file in place only once it
is whole; reading believes nothing, and says which transfer of which round is at fault.
"""

import contextlib
import gzip
import io
import json
import zlib
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

from ..collective import parse_collective
from ..errors import InputError
from ..toolchain.files import writing
from ..topology import topology_from_json
from .contents import Holdings
from .forms import ALL, Everything, Grouped, Listed, Pattern, Rounds, Table, Transfers
from .model import Duplex, Switching
from .recognise import recognise

__all__ = ["load", "save"]

FORMAT, VERSION = "torusfabric-schedule", 1

#: More arcs, or more bits to tell which node holds which block, are not worth a try.
MOST_ARCS, MOST_BITS = 2**27, 2**40

REQUIRED = ("format", "version", "topology", "collective", "algorithm", "switching", "ports",
            "chunks", "rounds")  # fmt: skip


def save(schedule, path):
    """Write a schedule to a file.

    The same schedule gives the same bytes. Nothing is left behind if it cannot be written.

    Parameters
    ----------
    schedule : Schedule
        Of any form.
    path : str or Path
        Compressed if it ends in ``.gz``.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    with writing(path) as raw, _text_writer(raw, Path(path)) as file:
        file.writelines(_pieces(schedule))


def load(path):
    """Read a schedule from a file.

    Parameters
    ----------
    path : str or Path
        Compressed if it ends in ``.gz``.

    Returns
    -------
    Schedule
        A pattern or a table where `recognise` finds one, else rounds.

    Raises
    ------
    InputError
        If there is no such file or it is not a valid schedule file; names the place. Whether the
        schedule is right is for `torusfabric.analysis.check.check` to say.
    """
    data = _read_json(Path(path))
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(f'Schedule file {path} must have the format "{FORMAT}"')
    if data.get("version") != VERSION or isinstance(data["version"], bool):
        version = _short(data.get("version"))
        raise InputError(f"Schedule file {path} must have version {VERSION}, not {version}")
    try:
        return recognise(_schedule(data))
    except InputError as error:
        raise InputError(f"Schedule file {path}: {error}") from error
    except RecursionError:
        raise InputError(f"Schedule file {path} must not be nested deeply") from None


# Writing.


@contextlib.contextmanager
def _text_writer(raw, path):
    """A text file over a binary one, compressed by suffix and without a time stamp."""
    with contextlib.ExitStack() as stack:
        if path.suffix == ".gz":
            raw = stack.enter_context(
                gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0)
            )
        yield stack.enter_context(io.TextIOWrapper(raw, encoding="utf-8", newline="\n"))


def _pieces(schedule):
    """The text of a schedule file, a line a round."""
    head = {
        "format": FORMAT,
        "version": VERSION,
        "topology": schedule.topology.to_json(),
        "collective": schedule.collective.to_json(),
        "algorithm": schedule.algorithm,
        "switching": schedule.switching,
        "ports": int(schedule.ports),
        "chunks": int(schedule.chunks),
    }
    if schedule.duplex != "full":
        head["duplex"] = schedule.duplex
    yield json.dumps(head)[:-1] + ', "rounds": ['
    holdings = _holdings_to_save(schedule)
    for number, transfers in enumerate(schedule.rounds()):
        if holdings is not None:
            listed = holdings.play(transfers)
            if isinstance(transfers.payload, Grouped):
                transfers = listed
        yield ",\n" if number else "\n"
        yield json.dumps(_entries(schedule, transfers))
    yield "\n]}\n"


def _holdings_to_save(schedule):
    """What nodes hold, where it takes that to list the blocks of groups; else None."""
    if isinstance(schedule, Pattern | Table):
        return None
    if any(isinstance(transfers.payload, Grouped) for transfers in schedule.rounds()):
        return Holdings(schedule.topology, schedule.blocks)
    return None


def _entries(schedule, transfers):
    """The transfers of a round as in a file."""
    topology = schedule.topology
    paths, hops = transfers.walk(topology).tolist(), np.asarray(transfers.hops).tolist()
    _, same, many = np.unique(topology.generators, return_inverse=True, return_counts=True)
    ambiguous = set(np.flatnonzero(many[same] > 1).tolist())
    entries = []
    for path, ports, length, blocks in zip(
        paths, hops, transfers.lengths.tolist(), _block_entries(schedule, transfers), strict=True
    ):
        entry = {"path": path[: length + 1]}
        if ambiguous and not ambiguous.isdisjoint(ports[:length]):
            entry["via"] = [topology.port_names[port] for port in ports[:length]]
        entry["blocks"] = blocks
        entries.append(entry)
    return entries


def _block_entries(schedule, transfers):
    """The blocks of each transfer as in a file."""
    payload, blocks = transfers.payload, schedule.blocks
    if isinstance(payload, Everything):
        return ["all"] * len(transfers)
    columns = [blocks.origin(payload.ids), blocks.chunk(payload.ids)]
    if blocks.collective.personal:
        columns.insert(1, blocks.destination(payload.ids))
    names, cuts = np.stack(columns, axis=1).tolist(), np.asarray(payload.indptr).tolist()
    return [names[low:high] for low, high in pairwise(cuts)]


# Reading.


def _short(value):
    """A value from a file, cut to a length that fits a message."""
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _read_json(path):
    """The content of a file, before anything is known of it."""
    try:
        raw = path.read_bytes()
        if path.suffix == ".gz":
            raw = gzip.decompress(raw)
        return json.loads(raw.decode("utf-8"))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"Schedule file {path} must be whole and compressed: {error}") from error
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"Schedule file {path} could not be read: {reason}") from error
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"Schedule file {path} must be JSON: {reason}") from error


def _schedule(data):
    """The schedule that a file's content describes."""
    missing = [key for key in REQUIRED if key not in data]
    if missing:
        raise InputError(f"Keys must include {', '.join(missing)}")
    for key in data:
        if key not in (*REQUIRED, "duplex"):
            raise InputError(f"Keys must be those of the format, not {_short(key)}")
    topology = _topology(data["topology"])
    collective = _collective(data["collective"], topology)
    _one_of("Switching", data["switching"], tuple(Switching))
    _one_of("Duplex", data.get("duplex", "full"), tuple(Duplex))
    _number("Ports", data["ports"], topology.ports)
    _number("Chunks", data["chunks"], MOST_BITS // topology.nodes)
    blocks = collective.blocks(topology, data["chunks"])
    if blocks.count > MOST_BITS // topology.nodes:
        raise InputError(
            f"Blocks must be at most {MOST_BITS // topology.nodes}, not {blocks.count}"
        )
    if not isinstance(data["algorithm"], str):
        raise InputError(f"Algorithm must be a name, not {_short(data['algorithm'])}")
    return Rounds(
        topology=topology,
        collective=collective,
        algorithm=data["algorithm"],
        switching=data["switching"],
        ports=data["ports"],
        chunks=data["chunks"],
        duplex=data.get("duplex", "full"),
        transfers=_all_transfers(topology, blocks, data["rounds"]),
    )


def _topology(entry):
    """The topology of a file."""
    sides = entry.get("sides") if isinstance(entry, dict) else None
    if isinstance(sides, list) and (
        len(sides) > MOST_ARCS.bit_length() or any(type(s) is int and s > MOST_ARCS for s in sides)
    ):
        raise InputError(f"Topology must have at most {MOST_ARCS} arcs, not sides {_short(sides)}")
    topology = topology_from_json(entry)
    if topology.nodes * topology.ports > MOST_ARCS:
        raise InputError(f"Topology must have at most {MOST_ARCS} arcs, not {topology}")
    return topology


def _collective(entry, topology):
    """The collective of a file."""
    match entry:
        case {"kind": str(kind), **rest} if set(rest) <= {"root", "axes"}:
            root, axes = entry.get("root"), entry.get("axes")
            return parse_collective(
                kind, root=root, nodes=topology.nodes, axes=axes, dimensions=topology.dimensions
            )
    raise InputError(
        f'Collective must be {{"kind": .., "root": .., "axes": ..}}, not {_short(entry)}'
    )


def _one_of(thing, value, choices):
    """Check a word of a file."""
    if value not in choices:
        raise InputError(f"{thing} must be {' or '.join(choices)}, not {_short(value)}")


def _number(thing, value, most):
    """Check a count of a file."""
    if type(value) is not int or not 1 <= value <= most:
        raise InputError(f"{thing} must be a number from 1 to {most}, not {_short(value)}")


def _all_transfers(topology, blocks, rounds):
    """The transfers of all rounds of a file."""
    if not isinstance(rounds, list):
        raise InputError(f"Rounds must be a list, not {_short(rounds)}")
    parsed = [_round(topology, blocks, number, entries) for number, entries in enumerate(rounds, 1)]
    if all(whole is None for _, whole in parsed):
        return tuple(transfers for transfers, _ in parsed)
    holdings, result = Holdings(topology, blocks), []
    for transfers, whole in parsed:
        listed = holdings.play(transfers, whole)
        result.append(transfers if whole is None else listed)
    return tuple(result)


def _round(topology, blocks, number, entries):
    """One round: its transfers and, where lists and "all" are mixed, which of them carry all."""
    if not isinstance(entries, list):
        raise InputError(f"Round {number} must be a list, not {_short(entries)}")
    for place, entry in enumerate(entries, 1):
        with _at(number, place):
            _check_entry(topology, entry)
    source, hops = _hops(topology, number, entries)
    whole = np.array([entry["blocks"] == "all" for entry in entries], bool)
    if whole.all():
        return Transfers(source, hops, ALL), None
    lists = [[] if entry["blocks"] == "all" else entry["blocks"] for entry in entries]
    indptr = np.cumsum([0, *map(len, lists)])
    listed = Listed(indptr, _block_ids(blocks, number, lists))
    return Transfers(source, hops, listed), whole if whole.any() else None


@contextlib.contextmanager
def _at(number, place):
    """Put the place before the message of what is wrong there."""
    try:
        yield
    except InputError as error:
        raise InputError(f"Round {number} transfer {place}: {error}") from None


def _check_entry(topology, entry):
    """Check the form of a transfer."""
    if not isinstance(entry, dict) or not {"path", "blocks"} <= set(entry) <= {
        "path", "blocks", "via"
    }:  # fmt: skip
        raise InputError(f'Transfer must be {{"path": .., "blocks": ..}}, not {_short(entry)}')
    path, blocks, most = entry["path"], entry["blocks"], topology.nodes * topology.ports
    if not isinstance(path, list) or not 2 <= len(path) <= most + 1:
        raise InputError(f"Path must list at least two nodes, not {_short(path)}")
    for node in path:
        if type(node) is not int or not 0 <= node < topology.nodes:
            raise InputError(
                f"Path must lead over nodes from 0 to {topology.nodes - 1}, not {_short(node)}"
            )
    if blocks != "all" and not (isinstance(blocks, list) and blocks):
        raise InputError(f'Blocks must be "all" or a list of blocks, not {_short(blocks)}')


def _hops(topology, number, entries):
    """Sources and out-ports of the paths of a round."""
    lengths = np.array([len(entry["path"]) - 1 for entry in entries], np.int64)
    flat = np.fromiter(chain.from_iterable(entry["path"] for entry in entries), np.int64)
    ends = np.cumsum(lengths + 1)
    inner = np.ones(len(flat), bool)
    inner[ends - 1] = False
    here, there = flat[inner], flat[np.flatnonzero(inner) + 1]
    leads = topology.neighbours[here] == there[:, None]
    owner = np.repeat(np.arange(len(entries)), lengths)
    column = np.arange(len(here)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    hops = np.full((len(entries), int(lengths.max(initial=1))), -1, np.int8)
    hops[owner, column] = leads.argmax(axis=1) if len(here) else []
    doubtful = leads.sum(axis=1) != 1
    chosen = np.array(["via" in entry for entry in entries], bool)
    for place in np.unique(owner[doubtful | chosen[owner]]):
        with _at(number, place + 1):
            ports = _ports(topology, entries[place])
        hops[place, : len(ports)] = ports
    return flat[ends - lengths - 1], hops


def _ports(topology, entry):
    """Out-ports of one path, with the help of its ``via``."""
    path, via, ports = entry["path"], entry.get("via"), []
    if via is not None and (not isinstance(via, list) or len(via) != len(path) - 1):
        raise InputError(f"Via must list the {len(path) - 1} out-ports of the path")
    for hop, (here, there) in enumerate(pairwise(path)):
        able = np.flatnonzero(topology.neighbours[here] == there).tolist()
        if not able:
            raise InputError(f"Path must go from node {here} to one of its neighbours, not {there}")
        port = able[0] if via is None else topology.port(via[hop])
        if via is None and len(able) > 1:
            names = " and ".join(topology.port_names[p] for p in able)
            raise InputError(f"Via must say which of {names} leads from node {here} to {there}")
        if port not in able:
            name = topology.port_names[port]
            raise InputError(f"Via must lead from node {here} to {there}, not {name}")
        ports.append(port)
    return ports


def _block_ids(blocks, number, lists):
    """Block numbers of the lists of a round."""
    size = 3 if blocks.collective.personal else 2
    entries = list(chain.from_iterable(lists))
    formed = all(type(entry) is list and len(entry) == size for entry in entries)
    if formed and set(map(type, chain.from_iterable(entries))) <= {int}:
        with contextlib.suppress(OverflowError):
            columns = np.array(entries, np.int64).reshape(-1, size).T
            limit = np.array([blocks.nodes] * (size - 1) + [blocks.chunks])[:, None]
            origin, chunk = columns[0], columns[-1]
            rooted = not blocks.single_origin or (origin == blocks.collective.root).all()
            if rooted and ((columns >= 0) & (columns < limit)).all():
                return blocks.encode(origin, chunk, columns[1])
    for place, entry in enumerate(lists, 1):
        with _at(number, place):
            for block in entry:
                blocks.parse(block)
    raise AssertionError("a list of blocks was refused without a reason")
