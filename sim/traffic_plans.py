"""Plans of irregular traffic beside their bounds: patterns, groups, counts, traces of a chip.

Networks are tori, meshes, twisted and faulty tori, cubes, and graphs: small worlds, random regular
graphs, stars, wheels, leaves and spines. Each row has the steps of a plan, beside the least steps
(the bound) and the reason for the bound. "share" is the steps divided by 1.05 times the bound plus
the diameter; it may be 1. "seconds" is the processor time of planning and checking; a network of up
to 64 nodes may take 10 seconds, a larger one 60. Rows that exceed either are printed again at the
end.

The traces are reshards of tensors on a Wormhole chip of Tenstorrent, from the folder
``tt_npe/workload/noc_trace_json`` of github.com/tenstorrent/tt-npe (Apache-2.0). Its 10x12 nodes
are a torus; the two networks of the chip are the two directions of each link. Each read of a trace
is a message, with the reads between the same two nodes together.

    python sim/traffic_plans.py
    python sim/traffic_plans.py --networks 8x8 small-world:200 --patterns sparse tornado
    python sim/traffic_plans.py --traces tt-npe/tt_npe/workload/noc_trace_json
    python sim/traffic_plans.py --json > sim/measured/traffic_plans.json
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

import torusfabric as tf
from torusfabric.analysis.volume import limiting_cut_text
from torusfabric.cli.output import print_json, print_notices, progress_bar

#: The largest steps relative to the bound, and the most seconds up to 64 nodes and up to 256.
FACTOR, SECONDS, SECONDS_LARGE, FEW_NODES = 1.05, 10, 60, 64

#: Networks by name, each with its nodes; graphs are random with a fixed seed.
NETWORKS = (
    *("4x4", "3x9", "8x8", "4x4x4", "3x5x7", "16x16", "mesh:4x4", "mesh:5x9", "mesh:8x8"),
    *("mesh:16x16", "8x4~4", "4x4x8~2:0,1", "circulant:64:1,14", "cube:6"),
    *("8x8!0:+0,9:+1,36:-0", "8x8!9,42", "16x16!0:+0,100:+1"),
    *("star:16", "wheel:16", "leaf-spine:16", "leaf-spine:64", "tree:63"),
    *("regular:32", "regular:64", "regular:128", "small-world:64", "small-world:200"),
)

GRAPHS: dict[str, Callable[[int], Any]] = {
    "star": lambda nodes: nx.star_graph(nodes - 1),
    "wheel": lambda nodes: nx.wheel_graph(nodes),
    "tree": lambda nodes: nx.balanced_tree(2, nodes.bit_length() - 1),
    "regular": lambda nodes: nx.random_regular_graph(4, nodes, seed=1),
    "small-world": lambda nodes: nx.connected_watts_strogatz_graph(nodes, 4, 0.2, seed=1),
    # Four hosts at each leaf, and each leaf linked to each of four spines.
    "leaf-spine": lambda nodes: nx.Graph(
        [(host, nodes + host // 4) for host in range(nodes)]
        + [
            (nodes + leaf, nodes + nodes // 4 + spine)
            for leaf in range(nodes // 4)
            for spine in range(4)
        ]
    ),
}

Rows = list[tuple[int, Any, int]]


class Case(NamedTuple):
    """A network, the name of its traffic, and the arguments of `plan` for it."""

    network: str
    topology: tf.Topology
    pattern: str
    collective: str
    options: dict[str, Any]


def topology_named(name: str) -> tuple[tf.Topology, int]:
    """Return a network, and the number of nodes that send and receive."""
    kind, _, count = name.partition(":")
    if kind not in GRAPHS:
        topology = tf.parse_topology(name)
        return topology, topology.nodes
    topology = tf.Graph(GRAPHS[kind](int(count)), name=name)
    return topology, int(count) if kind == "leaf-spine" else topology.nodes


def shift(nodes: int, by: int) -> Rows:
    """Return messages from each node to the node whose number is larger by `by`."""
    return [(node, (node + by) % nodes, 1) for node in range(nodes)]


def transpose(topology: tf.Topology, nodes: int) -> Rows | None:
    """Return messages in which the coordinates of a node are reversed; None without coordinates."""
    sides = getattr(topology, "sides", getattr(getattr(topology, "whole", None), "sides", ()))
    if len(set(sides)) != 1 or len(sides) == 1 or nodes != np.prod(sides):
        return None
    numbers = np.arange(nodes).reshape(sides)
    return [(int(a), int(b), 1) for a, b in zip(numbers.ravel(), numbers.T.ravel(), strict=True)]


def bit_reversal(topology: tf.Topology, nodes: int) -> Rows | None:
    """Return messages from each node to the node with the bits of its number reversed."""
    bits = nodes.bit_length() - 1
    if nodes != 1 << bits:
        return None
    return [(node, int(f"{node:0{bits}b}"[::-1], 2), 1) for node in range(nodes)]


def tornado(topology: tf.Topology, nodes: int) -> Rows:
    """Return messages that go nearly half of the way round the last axis, or round all nodes."""
    sides = getattr(topology, "sides", None) or (nodes,)
    if nodes != np.prod(sides):
        return shift(nodes, (nodes - 1) // 2)
    numbers = np.arange(nodes).reshape(sides)
    goals = np.roll(numbers, -((sides[-1] - 1) // 2), axis=-1)
    return [(int(a), int(b), 1) for a, b in zip(numbers.ravel(), goals.ravel(), strict=True)]


def random_matrix(
    random: np.random.Generator, nodes: int, share: float, longest: int
) -> np.ndarray:
    """Return lengths of 1 to `longest` flits for a share of all pairs of nodes, else 0."""
    lengths = random.integers(1, longest + 1, (nodes, nodes))
    lengths[random.random((nodes, nodes)) >= share] = 0
    np.fill_diagonal(lengths, 0)
    return lengths


def matrix_rows(lengths: np.ndarray) -> Rows:
    """Return a message for each number of a matrix that is not 0."""
    return [(int(a), int(b), int(lengths[a, b])) for a, b in np.argwhere(lengths)]


def multicast(random: np.random.Generator, nodes: int, longest: int) -> Rows:
    """Return a message from each node to 2 to 5 nodes, of 1 to `longest` flits."""
    found: Rows = []
    for node in range(nodes):
        others = random.permutation([other for other in range(nodes) if other != node])
        goals = others[: random.integers(2, 6)].tolist()
        found.append((node, goals, int(random.integers(1, longest + 1))))
    return found


def patterns(topology: tf.Topology, nodes: int) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the name of each pattern, its collective, and the arguments of `plan`."""
    random = np.random.default_rng(nodes)
    every = list(range(nodes))
    hot = [(node, 0, 1) for node in every[1:]]
    few = max(4 / nodes, 2 / nodes)
    lists: dict[str, Rows | None] = {
        "neighbour": shift(nodes, 1),
        "permutation": [(a, int(b), 1) for a, b in enumerate(random.permutation(nodes))],
        "transpose": transpose(topology, nodes),
        "bit reversal": bit_reversal(topology, nodes),
        "tornado": tornado(topology, nodes),
        "hot spot": hot,
        "two hot spots": [*hot, *((k, nodes // 2, 1) for k in every if k != nodes // 2)],
        "sparse": matrix_rows(random_matrix(random, nodes, few, 1)),
        "sparse, 1-16": matrix_rows(random_matrix(random, nodes, few, 16)),
        "dense": matrix_rows(random_matrix(random, nodes, 0.5, 1)),
        "dense, 1-4": matrix_rows(random_matrix(random, nodes, 0.5, 4)),
        "multicast": multicast(random, nodes, 1),
        "multicast, 1-8": multicast(random, nodes, 8),
    }
    for name, rows in lists.items():
        if rows is not None:
            moved = [row for row in rows if row[0] != row[1]]
            yield name, "pattern", {"traffic": moved}
    some = sorted(random.permutation(nodes)[: max(3, nodes // 3)].tolist())
    half = random.permutation(nodes)[: 2 * (nodes // 4)].reshape(2, -1).tolist()
    quarter = every[: max(3, nodes // 4)]
    for kind in ("allgather", "alltoall", "allreduce", "scatter", "broadcast"):
        yield f"{kind}, a third", kind, {"groups": [some]}
    for kind in ("allgather", "alltoall", "reduce-scatter"):
        yield f"{kind}, 2 groups", kind, {"groups": half}
    yield "alltoall, first quarter", "alltoall", {"groups": [quarter]}
    if nodes == topology.nodes:
        lengths = random.integers(0, 9, nodes).tolist()
        for kind in ("allgather", "gather", "scatter", "reduce-scatter"):
            yield f"{kind}, 0-8", kind, {"counts": lengths}
        if nodes <= FEW_NODES:
            counts = random_matrix(random, nodes, 1, 8)
            yield "alltoall, 1-8", "alltoall", {"counts": counts.tolist()}


def trace_rows(path: Path) -> Rows:
    """Return the messages of a trace of a Wormhole chip: bytes between nodes, in flits of 32 bytes.

    A read brings data from the node (dx, dy) to (sx, sy), and a write does the reverse. The number
    of node (x, y) on the torus of 10x12 nodes is 12 x + y.
    """
    sizes: Counter[tuple[int, int]] = Counter()
    for event in json.loads(path.read_text()):
        if event.get("num_bytes") and event.get("dx", -1) >= 0:
            here, there = 12 * event["sx"] + event["sy"], 12 * event["dx"] + event["dy"]
            pair = (there, here) if event["type"].startswith("READ") else (here, there)
            sizes[pair] += event["num_bytes"]
    return [(a, b, -(-size // 32)) for (a, b), size in sorted(sizes.items()) if a != b]


def cases(arguments: argparse.Namespace) -> Iterator[Case]:
    """Yield the cases to plan."""
    if arguments.traces is not None:
        torus = tf.Torus(10, 12)
        for path in sorted(arguments.traces.glob("*.json")):
            rows = trace_rows(path)
            # Traces that read from the memory controllers are not those of reshards.
            if rows and not path.name.startswith("DRAM"):
                yield Case("10x12", torus, path.stem, "pattern", {"traffic": rows})
        return
    for name in arguments.networks:
        topology, nodes = topology_named(name)
        for pattern, collective, options in patterns(topology, nodes):
            if arguments.patterns is None or any(text in pattern for text in arguments.patterns):
                yield Case(name, topology, pattern, collective, options)


def plan_row(case: Case) -> dict[str, Any]:
    """Return the figures of one plan; its error in place of them if there is none."""
    head = {"network": case.network, "nodes": case.topology.nodes, "pattern": case.pattern}
    began = time.process_time()
    try:
        schedule = tf.plan(case.topology, case.collective, **case.options)
    except tf.TorusfabricError as error:
        return {**head, "error": str(error)}
    seconds = time.process_time() - began
    collective, chunks = schedule.collective, schedule.chunks
    least = tf.bound(schedule)
    allowed = FACTOR * least + case.topology.diameter
    return {
        **head,
        "chunks": chunks,
        "bound": least,
        "steps": schedule.round_count,
        "share": round(schedule.round_count / allowed, 3),
        "seconds": round(seconds, 1),
        "reason": limiting_cut_text(case.topology, collective),
    }


def _is_above(row: dict[str, Any]) -> bool:
    """Return True if a plan has too many steps, took too long, or failed."""
    most = SECONDS if row["nodes"] <= FEW_NODES else SECONDS_LARGE
    return "error" in row or row["share"] > 1 or row["seconds"] > most


def main() -> int:
    """Print the table, or one JSON object; return 2 if a row exceeds its limits."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--networks", nargs="+", default=NETWORKS)
    parser.add_argument("--patterns", nargs="+", help="parts of the names of patterns")
    parser.add_argument("--traces", type=Path, help="plan the traces of a folder instead")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    chosen, rows = [*cases(arguments)], list[dict[str, Any]]()
    with print_notices(), progress_bar("patterns") as progress:
        for case in chosen:
            progress(len(rows), len(chosen), f"{case.network} {case.pattern}")
            rows.append(plan_row(case))
            if not arguments.json:
                print("  ".join(f"{cell!s:>9}" for cell in rows[-1].values()), flush=True)
    above = [row for row in rows if _is_above(row)]
    if arguments.json:
        print_json({"rows": rows, "above": above})
        return 2 * bool(above)
    shares = [row["share"] for row in rows if "share" in row]
    print(f"{len(above)} of {len(rows)} exceed their limits; mean share {mean(shares):.3f}")
    for row in above:
        print(row)
    return 2 * bool(above)


if __name__ == "__main__":
    sys.exit(main())
