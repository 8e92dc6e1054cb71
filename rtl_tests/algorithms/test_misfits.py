"""Selections that an algorithm does not serve are refused in one line that names a requirement."""

from typing import Any

import pytest

from torusfabric.algorithms import Options, find_algorithm
from torusfabric.collective import parse_collective
from torusfabric.errors import InputError
from torusfabric.topology import parse_topology

DECOMPOSABLE = "a torus other than 2 x odd, 2 x 2 x odd and 2 x 2 x 2"
THREE = "two sides that are multiples of 3 and a third of at least 3"
FOUR = "two sides that are multiples of 4, an even one and a fourth of at least 4, on which"
ODD_SIDE = "a torus of two axes with one even and one odd side"

#: Topology, collective, options and beginning of the requirement, by algorithm.
REFUSED: dict[str, list[tuple[str, str, dict[str, Any], str]]] = {
    "any-network": [
        ("8x8", "allgather", {}, "a network that is no torus, of few nodes if they are alike"),
        ("mesh:3x3", "broadcast", {"trees": 3}, "--trees 1 to 2, by the least cut, not 3"),
        ("mesh:3x3", "allreduce", {"chunks": 2}, "--chunks divisible by the trees, 3"),
        ("mesh:3x3", "alltoall", {"trees": 2}, "--trees left out, not 2"),
        ("mesh:3x3", "alltoall", {"ports": 2}, "--ports 4"),
    ],
    "bufferless": [
        ("4x4", "allgather", {"ports": 2}, "--ports 4 (all of them), not 2"),
        ("4x4", "allgather", {"latency": 2}, "no option --latency"),
    ],
    "diagonal": [
        ("arrowhead:2", "broadcast", {}, "a torus, not arrowhead:2 broadcast"),
        ("5x5", "broadcast", {"ports": 5}, "--ports 1 to 4, not 5"),
        ("5x5", "broadcast", {"chunks": 2}, "--chunks 1, not 2"),
        ("5x5", "broadcast", {"seed": 1}, "no option --seed"),
    ],
    "farthest-first": [
        ("4x4", "scatter", {"chunks": 3}, "--chunks 1, 2 or 4, not 3"),
        ("4x4", "scatter", {"ports": 1}, "--ports 4 (all of them), not 1"),
    ],
    "hamiltonian": [
        ("2x3", "allgather", {}, f"{DECOMPOSABLE}, not 2x3 allgather"),
        ("7x2", "allgather", {}, DECOMPOSABLE),
        ("2x2x2", "allgather", {}, DECOMPOSABLE),
        ("2x5x2", "allgather", {}, DECOMPOSABLE),
        ("4x4", "allgather", {"ports": 2}, "--ports 4 (all of them), not 2"),
    ],
    "lee-code": [
        ("7x7", "allgather", {}, "a torus of 7x7x7, 49x49x49 or 343x343x343"),
        ("7x7x49", "allgather", {}, "a torus of 7x7x7"),
        ("6x6", "broadcast", {}, "a torus of 5^p x 5^p"),
        ("5x25", "broadcast", {}, "a torus of 5^p x 5^p"),
        ("14x14x14", "broadcast", {}, "a torus of 5^p x 5^p"),
        ("7x7x7", "allgather", {"ports": 5}, "--ports 6 (all of them)"),
        ("5x5", "broadcast", {"large": True}, "--large left out"),
        ("5x5", "broadcast", {"chunks": 2}, "--chunks 1"),
    ],
    "matching": [
        ("4x4", "allgather", {"ports": 3}, "--ports 4 (all of them), not 3"),
        ("4x4", "allreduce", {"chunks": 8}, "--chunks divisible by the number of nodes, 16, not"),
    ],
    "max-flow": [
        ("5x5", "broadcast", {"ports": 5}, "--ports 1 to 4, not 5"),
        ("5x5", "broadcast", {"chunks": 2}, "--chunks 1, not 2"),
        ("150x150", "broadcast", {}, "at most 20000 nodes, not 150x150 broadcast"),
        ("5x5", "broadcast", {"large": True}, "no option --large"),
    ],
    "necklace": [
        ("3x4", "allgather", {}, "a torus with equal sides, not 3x4 allgather"),
        ("arrowhead:2", "allgather", {}, "a torus with equal sides, not arrowhead:2 allgather"),
        ("4x4", "scatter", {"ports": 2}, "--ports 4 (all of them), not 2"),
        ("2x2", "scatter", {"ports": 1}, "--ports 2 (all of them), not 1"),
        ("4x4", "allreduce", {"chunks": 8}, "--chunks divisible by the number of nodes, 16, not 8"),
    ],
    "one-packet": [
        ("8", "allgather", {}, "a torus of two, three or four axes"),
        ("3x3x3x3x3", "allgather", {}, "a torus of two, three or four axes"),
        ("3x4x5", "allgather", {}, THREE),
        ("3x6x2", "allgather", {}, THREE),
        ("3x3x3x3", "allgather", {}, FOUR),
        ("8x8x2x3", "allgather", {}, FOUR),
        ("2x8x8x8", "allgather", {}, FOUR),
        ("4x4", "allgather", {"ports": 1}, "--ports 4 (all of them), not 1"),
    ],
    "redistribute": [
        ("4x4", "allgather", {}, f"{ODD_SIDE}, not 4x4 allgather"),
        ("3x5", "allgather", {}, ODD_SIDE),
        ("3x4x5", "allgather", {}, ODD_SIDE),
        ("9", "allgather", {}, ODD_SIDE),
        ("30x31", "allgather", {}, "at most 600 nodes, not 30x31 allgather"),
    ],
    "ring-exchange": [
        ("8x8", "allreduce", {"chunks": 3}, "--chunks 1 or a multiple of 2 up to 32, not 3"),
        ("8x8", "allreduce", {"chunks": 34}, "--chunks 1 or a multiple of 2 up to 32, not 34"),
        ("8x8", "allreduce", {"ports": 1}, "--ports 4"),
        ("arrowhead:1", "allreduce", {}, "a torus, not"),
    ],
    "spanning-tree": [
        ("arrowhead:2", "broadcast", {"ports": 4}, "--ports 3 or 6, not 4"),
        ("arrowhead:2", "broadcast", {"trees": 3}, "--trees 1 or 2, not 3"),
        ("arrowhead:2", "broadcast", {"ports": 3, "trees": 2}, "--ports 6 for --trees 2, not 3"),
        ("arrowhead:2", "broadcast", {"chunks": 3}, "--chunks 2, 1 for each of 2 trees, not 3"),
        (
            "arrowhead:2",
            "broadcast",
            {"chunks": 4, "packets": 3},
            "--chunks 6, 3 for each of 2 trees, not 4",
        ),
        (
            "arrowhead:2",
            "broadcast",
            {"packets": 3, "times": (1, 1, 100)},
            "either --times or a number of packets",
        ),
        ("arrowhead:2", "broadcast", {"seed": 1}, "no option --seed"),
        ("4x4", "broadcast", {"trees": 2}, "--trees 1 or 4, not 2"),
        ("4x4", "broadcast", {"chunks": 3}, "--chunks 4, one for each tree, not 3"),
        ("4x4", "broadcast", {"ports": 2}, "--ports 4, not 2"),
        ("4x4", "broadcast", {"packets": 2}, "--packets left out on a torus, where messages strea"),
        ("4x4", "allreduce", {"trees": 1}, "--trees 2, not 1"),
        ("4x4", "allreduce", {"chunks": 4}, "--chunks 2, one for each tree, not 4"),
    ],
    "wormhole-forest": [
        ("arrowhead:2", "broadcast", {"ports": 4}, "--ports 3 or 6, not 4"),
        ("arrowhead:2", "broadcast", {"chunks": 3}, "--chunks 2 at 6 ports, not 3"),
        ("arrowhead:2", "broadcast", {"ports": 3, "chunks": 2}, "--chunks 1 at 3 ports, not 2"),
        ("arrowhead:2", "broadcast", {"packets": 2}, "no option --packets"),
        ("4x4", "broadcast", {}, "an arrowhead torus, not 4x4 broadcast"),
        ("arrowhead:2", "allgather", {}, "one of the collectives broadcast, not "),
    ],
}


@pytest.mark.parametrize(
    ("name", "topology", "kind", "options", "needs"),
    [(name, *case) for name, cases in REFUSED.items() for case in cases],
)
def test_misfits(name, topology, kind, options, needs):
    """Each selection is refused in one line that names the algorithm and its requirement."""
    network, collective = parse_topology(topology), parse_collective(kind)
    with pytest.raises(InputError) as error:
        find_algorithm(name)(network, collective, Options(**options))
    verb = "has" if needs.startswith("no option") else "needs"
    assert str(error.value).startswith(f"Algorithm {name} {verb} {needs}")
    assert "\n" not in str(error.value)
