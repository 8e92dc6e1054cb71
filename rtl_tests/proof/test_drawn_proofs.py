"""Random selections are proved, or refused with one line before any work."""

import json
import random

import pytest

from torusfabric.algorithms import find_algorithm
from torusfabric.cli import main
from torusfabric.toolchain import tools

pytestmark = pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")

TOPOLOGIES = ("2", "3", "5", "8", "2x2", "2x3", "3x2", "4x2", "3x3", "2x5", "3x4", "4x4", "5x3",
              "5x5", "2x2x2", "2x3x2", "arrowhead:1", "arrowhead:2")  # fmt: skip
COLLECTIVES = ("broadcast", "allgather", "scatter", "gather", "alltoall", "reduce",
               "reduce-scatter", "allreduce")  # fmt: skip
ALGORITHMS = ("", "", "", "matching", "hamiltonian", "max-flow", "lee-code", "one-packet",
              "necklace", "redistribute", "spanning-tree", "wormhole-forest")  # fmt: skip
OPERATORS = ("add", "max", "add,min", "max:signed,add", "xor,and")


def mode(chance, kind, topology):
    """Choose an entry of an engine: a collective, perhaps with an algorithm or along an axis."""
    fitting = [a for a in ALGORITHMS if a and kind in find_algorithm(a).collectives]
    means = chance.choice(("", "", ":", "@" if "x" in topology else ":"))
    return kind + {"": "", ":": f":{chance.choice(fitting)}", "@": "@1"}[means]


def drawn(seed):
    """Choose a random `prove` command from a seed; return its words."""
    chance = random.Random(seed)
    several = chance.random() < 0.5
    topology = chance.choice(TOPOLOGIES)
    kinds = chance.sample(COLLECTIVES, chance.choice((2, 3)) if several else 1)
    names = [mode(chance, kind, topology) for kind in kinds] if several else kinds
    words = ["prove", topology, ",".join(names), "--json"]
    words += ["--width", str(chance.choice((1, 2, 3, 5)))]
    if several or chance.random() < 0.3:
        words += ["--max-flits", str(chance.randint(1, 4))]
    else:
        words += ["--flits", str(chance.randint(1, 9))]
        algorithm = chance.choice(ALGORITHMS)
        words += ["--algorithm", algorithm] if algorithm else []
    if chance.random() < 0.4:
        words += ["--root", "any"]
    if any(kind.startswith(("reduce", "allr")) for kind in kinds):
        words += ["--op", chance.choice(OPERATORS)]
        words += ["--latency", chance.choice(("2", "3", "auto"))] if chance.random() < 0.3 else []
    words += ["--top", chance.choice(("host", "stream") if several else ("host", "core", "stream"))]
    if chance.random() < 0.3:
        words += ["--width", "8", "--beat", chance.choice(("2", "4", "auto"))]
    return words


@pytest.mark.long
@pytest.mark.parametrize("seed", range(120))
def test_what_is_drawn_is_proved_or_refused(seed, capsys, tmp_path):
    status = main([*drawn(seed), "--wave", str(tmp_path / "wrong.vcd")])
    out, err = capsys.readouterr()
    if status:
        assert status == 1
        lines = [line for line in err.splitlines() if not line.endswith(" so far")]
        assert len(lines) == 1
        assert not out
    else:
        assert json.loads(out)["proved"]
