"""Hand-written schedules of each form, and the content of a file."""

import json
from typing import Any

import numpy as np

from torusfabric.collective import Collective
from torusfabric.schedule import (
    ALL,
    Grouped,
    Listed,
    Pattern,
    Rounds,
    Switching,
    Table,
    Transfers,
)
from torusfabric.topology import Torus


def ring(nodes=6):
    """Return an all-gather on a ring in both directions."""
    return Pattern(
        topology=Torus([nodes]), collective=Collective("allgather"), algorithm="ring", ports=2,
        switching=Switching.STORE_AND_FORWARD, steps=nodes // 2, feed=np.tile([1, 0], (nodes, 1)),
        inject=np.zeros((nodes, 2), int),
    )  # fmt: skip


def exchange():
    """Return an all-to-all on three nodes."""
    return Table(
        topology=Torus([3]), collective=Collective("alltoall"), algorithm="table", ports=2,
        switching=Switching.STORE_AND_FORWARD, offset=np.array([[1, 2]]),
        chunk=np.zeros((1, 2), int), destination=np.array([[1, 2]]),
    )  # fmt: skip


def explicit(sides, collective, *rounds, **fields):
    """Return rounds with circuit switching and all ports."""
    topology = Torus(sides)
    known: dict[str, Any] = {"ports": topology.ports, "algorithm": "by hand"}
    known |= {"switching": Switching.CIRCUIT} | fields
    return Rounds(topology=topology, collective=collective, transfers=tuple(rounds), **known)


def moves(sources, hops, payload=ALL):
    """Return the transfers of one round."""
    return Transfers(np.array(sources), np.array(hops, np.int8), payload)


def parallel():
    """Return a half-duplex broadcast with both links of two nodes, then an empty round."""
    both = moves([0, 0], [[0], [1]], Listed(np.array([0, 2, 3]), np.array([0, 1, 0])))
    empty = Transfers(np.empty(0, int), np.empty((0, 1), np.int8))
    return explicit((2, 3), Collective("broadcast", 0), both, empty, chunks=2, duplex="half")


def pieces():
    """Return a gather in which a node sends one group of its blocks, on paths of unequal length."""
    fill = moves([1, 3], [[0, -1], [1, 1]])
    groups = Grouped(np.array([0, 1, 1, 1]), np.array([1, 1]))
    return explicit((4,), Collective("gather", 0), fill, moves([2, 1], [[0, 0], [1, -1]], groups))


def folding():
    """Return an all-reduce on a ring of four: fold, then spread the complete sum by groups."""
    whole = Grouped(np.zeros(4, int), np.zeros(2, int))
    return explicit(
        (4,), Collective("allreduce"), moves([2], [[1]]), moves([1, 3], [[1], [0]]),
        moves([0, 0], [[0], [1]], whole), moves([1], [[0]]),
    )  # fmt: skip


def scattering():
    """Return a scatter, whose blocks have destinations."""
    lists = Listed(np.array([0, 2, 3]), np.array([1, 2, 3]))
    last = moves([1], [[0]], Listed.single(np.array([2])))
    return explicit((4,), Collective("scatter", 0), moves([0, 0], [[0], [1]], lists), last)


SCHEDULES = [ring(), exchange(), parallel(), pieces(), folding(), scattering()]


def content(**changes):
    """Return the content of a valid file, with changes."""
    data = {
        "format": "torusfabric-schedule", "version": 1,
        "topology": {"kind": "torus", "sides": [2, 3]},
        "collective": {"kind": "broadcast", "root": 0}, "algorithm": "x", "switching": "circuit",
        "ports": 4, "chunks": 1, "rounds": [[{"path": [0, 1], "blocks": "all"}]],
    }  # fmt: skip
    return {key: value for key, value in (data | changes).items() if value is not None}


def written(tmp_path, data):
    """Write a file with some content, and return its path."""
    path = tmp_path / "file.json"
    path.write_text(json.dumps(data))
    return path
