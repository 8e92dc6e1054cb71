"""Runs of fabrics with choices of all kinds: each run delivers the words of the executed program.

Each row of the table is a fabric. A fabric with a defect becomes a new row.
"""

import pytest
from fabrics import build_fabric, check_fabric
from hypothesis import given, settings
from hypothesis import strategies as st

from torusfabric.collective import OPERATORS, SIGNED
from torusfabric.toolchain import cxx

OPERATIONS = [*OPERATORS, *SIGNED]

EVERY = "broadcast,scatter,gather,allgather,alltoall,reduce,reduce-scatter,allreduce"

#: Topology, collectives, options of plans, programs and fabrics, and the engine if one is needed.
RUNS = [
    # Patterns, for messages that fill all chunks, and for shorter messages.
    ("2x2", "allgather:hamiltonian", {"width": 1, "flits": 2}),
    ("2x4", "allgather:hamiltonian", {"width": 5, "flits": 6}),
    ("3x3", "allgather:hamiltonian", {"flits": 3}),
    ("3x4", "allgather:hamiltonian", {"flits": 6}),
    ("4x3", "allgather:one-packet", {"flits": 3}),
    ("3x5", "allgather:one-packet", {"width": 16, "flits": 2}),
    # Tables
    ("2", "allgather:matching", {"width": 4}),
    ("2x4", "allgather:matching", {"width": 33, "flits": 2}),
    ("3x4", "allgather:matching", {"chunks": 4, "flits": 4}),
    ("3x4", "allgather:bufferless", {"chunks": 2, "flits": 6}),
    ("2x2x2", "allgather:bufferless", {"chunks": 2, "flits": 5}),
    ("3x3", "allgather:necklace", {"width": 33, "flits": 3}),
    ("2x3", "alltoall:matching", {"chunks": 3, "flits": 5}),
    ("2x2", "alltoall:necklace", {"flits": 4}),
    # Rounds
    ("arrowhead:1", "broadcast:wormhole-forest", {"flits": 2}),
    ("arrowhead:2", "broadcast:spanning-tree", {"root": 5, "flits": 2}),
    ("4x4", "broadcast:diagonal", {"ports": 1, "flits": 2}),
    ("4x4", "broadcast:max-flow", {"flits": 2, "broken_links": ["9:+0", "12:+1", "15:-1"]}),
    ("4x4", "gather:diagonal", {"root": 5, "flits": 2}),
    ("3x3", "gather:max-flow", {"ports": 1, "flits": 2}),
    # Sums, of words of one bit, and of words wider than 64 bits.
    ("2x2", "reduce:max-flow", {"width": 1, "operators": OPERATIONS}),
    ("3x3", "reduce:max-flow", {"width": 7, "root": 4, "flits": 2, "operators": ["and"]}),
    ("4x4", "reduce:diagonal", {"ports": 1, "flits": 2, "operators": ["or"]}),
    ("4x4", "reduce:necklace", {"chunks": 2, "flits": 4, "operators": ["min:signed"]}),
    ("3x3", "reduce-scatter:matching", {"width": 6, "flits": 2, "operators": ["max"]}),
    ("3x3", "reduce-scatter:necklace", {"operators": ["max:signed"]}),
    # Routers that join words from bytes, in the compiled engine.
    ("2x3", "reduce-scatter:matching", {"width": 16, "engine": "compiled"}),
    ("2x3", "alltoall:matching", {"width": 24, "engine": "compiled"}),
    ("2x3", "allreduce:matching", {"width": 100}),
    ("2x3", "reduce:max-flow", {"width": 100, "operators": ["min:signed"]}),
    ("3x3", "allreduce:necklace", {"operators": ["max:signed"]}),
    # Messages of any length
    ("2x2", "allgather:hamiltonian", {"max_flits": 1}),
    ("2x2", "allgather:hamiltonian", {"max_flits": 5}),
    ("2x3", "allgather:matching", {"max_flits": 5}),
    ("2x2", "alltoall:matching", {"chunks": 3, "max_flits": 5}),
    ("2x3", "reduce-scatter:matching", {"max_flits": 1}),
    ("2x3", "reduce-scatter:matching", {"max_flits": 5}),
    ("2x2", "allreduce:matching", {"max_flits": 5}),
    # Any root
    ("2x3", "scatter:matching", {"flits": 3, "root": "any"}),
    ("2x3", "gather:matching", {"flits": 3, "root": "any"}),
    ("2x3", "reduce:max-flow", {"flits": 3, "root": "any"}),
    ("5", "gather:max-flow", {"max_flits": 4, "root": "any"}),
    ("2x3", "broadcast:max-flow", {"max_flits": 4, "root": "any"}),
    # Several operators, with and without choices of length and root.
    ("3", "allreduce:matching", {"width": 5, "max_flits": 2, "operators": OPERATIONS}),
    ("2x2", "reduce-scatter:matching", {"width": 5, "max_flits": 2, "operators": OPERATIONS}),
    ("3", "allreduce:matching", {"operators": ["and", "add", "max:signed"]}),
    ("2x3", "reduce:max-flow", {"operators": ["and", "add", "max:signed"]}),
    ("3", "reduce:max-flow", {"max_flits": 2, "root": "any", "operators": ["add", "min", "and"]}),
    ("2x2", "allreduce:matching", {"operators": ["add", "min:signed"], "engine": "compiled"}),
    # Several collectives
    ("2x3", "allgather,broadcast", {"max_flits": 4}),
    ("2x2", "allgather:hamiltonian,alltoall,allreduce,broadcast", {"max_flits": 4}),
    ("3", "broadcast,allgather", {"max_flits": 2, "root": "any"}),
    # An all-gather whose injection ports change with the row, and an all-to-all that is alike
    # everywhere.
    ("5x5", "allgather,alltoall", {"max_flits": 2, "engine": "compiled"}),
    # Modes whose selects the sequencer gives late, beside modes with selects in ROMs, which need it
    # at 0.
    ("3x4", "gather,reduce-scatter,allgather:one-packet", {"max_flits": 2, "engine": "compiled"}),
    # Nodes that store words of one in-port late, and nodes that store words of another in-port
    # late.
    ("4", "gather,halo", {"max_flits": 1, "link_latency": "1:+0=6"}),
    ("2x3", EVERY, {"max_flits": 3, "root": "any", "operators": ["add", "min"],
                    "engine": "compiled"}),
    ("2x2", "broadcast,allgather!1", {"max_flits": 2, "top": "stream"}),
    ("2x3", "alltoall,scatter!4", {"max_flits": 2}),
    ("2x3", "broadcast,alltoall", {"max_flits": 4}),
    # Long links
    ("2x3", "allgather:matching", {"flits": 3, "link_latency": "2"}),
    ("3x3", "allgather:hamiltonian", {"flits": 8, "link_latency": "1:3"}),
    ("3x3", "allgather:hamiltonian", {"flits": 8, "link_latency": "9"}),
    ("2x3", "allgather:matching", {"flits": 2, "link_latency": "0:2,1:3", "top": "stream"}),
    # Beats
    ("2x2", "allgather", {"max_flits": 7, "beat": 4}),
    ("3", "alltoall", {"max_flits": 7, "beat": 2}),
    ("3", "gather", {"max_flits": 8, "beat": 4, "top": "stream"}),
    ("2x3", "broadcast", {"max_flits": 8, "beat": 2, "top": "stream"}),
    ("2x2", "scatter", {"max_flits": 10, "root": "any", "beat": 4, "top": "stream"}),
    # Loaded tables
    ("5", "allreduce,allgather", {"max_flits": 6, "tables": "ram", "engine": "compiled"}),
    ("2x3", "scatter", {"max_flits": 24, "root": "any", "tables": "ram", "engine": "compiled"}),
    ("4", "scatter", {"chunks": 3, "max_flits": 2, "root": "any", "tables": "ram"}),
]  # fmt: skip

#: Fabrics that take longer, or that differ less from a row above.
LONG = [
    *((sides, f"allgather:{algorithm}", {"flits": 6})
      for sides in ("4x6", "6x7", "7x6", "9x5", "3x3x3", "3x4x5", "6x6x3", "3x3x4")
      for algorithm in ("hamiltonian", "one-packet")),
    ("4x4x4x4", "allgather:hamiltonian", {"flits": 4, "engine": "compiled"}),
    ("4x4x4x4", "allgather:one-packet", {"engine": "compiled"}),
    *((sides, "allgather:redistribute", {}) for sides in ("4x5", "6x7", "7x6")),
    *((sides, f"{kind}:matching", {"flits": 3, "width": 32, "engine": "compiled"})
      for sides in ("5x5", "4x6", "8x8", "3x3x3", "4x4x4", "3x4x5", "2x2x2x2")
      for kind in ("scatter", "gather", "allgather", "alltoall", "reduce-scatter", "allreduce")),
    *((sides, f"broadcast:{algorithm}", {"ports": ports, "root": 3 * ports, "flits": 2})
      for sides in ("5x5", "5x7", "6x8", "8x8", "5x25")
      for algorithm in ("diagonal", "max-flow") for ports in (1, 2, 3, 4)),
    *((sides, f"broadcast:{algorithm}", {"ports": ports, "root": 9 * ports, "flits": 2})
      for sides in ("4x4x4", "3x5x7", "7x7x7")
      for algorithm in ("diagonal", "max-flow") for ports in (1, 4, 5, 6)),
    ("10x10", "broadcast:lee-code", {"root": 47, "flits": 2}),
    ("7x7x7", "broadcast:lee-code", {"root": 342, "flits": 2}),
    ("3x3x3x3", "broadcast:diagonal", {"flits": 2}),
    ("arrowhead:3", "broadcast:wormhole-forest", {"root": 21, "flits": 2}),
    ("7x7x7", "allgather:lee-code", {"flits": 2, "large": True, "engine": "compiled"}),
    *((sides, f"gather:{algorithm}", {"root": 20, "flits": 2})
      for sides in ("8x8", "5x25", "5x5x5") for algorithm in ("diagonal", "max-flow")),
    *(("2x2", kind, {"width": 9, "operators": [name]})
      for kind in ("reduce:max-flow", "reduce-scatter:matching", "allreduce:matching")
      for name in OPERATIONS),
    ("5x5", "reduce:necklace", {"chunks": 5, "root": 12, "flits": 10}),
    ("3x4x5", "reduce:max-flow", {"root": 59, "flits": 2}),
    ("2x3", "scatter:matching", {"chunks": 3, "root": 1, "max_flits": 5}),
    ("2x2", "gather:matching", {"chunks": 2, "max_flits": 5}),
    ("3x3", "broadcast:diagonal", {"max_flits": 5}),
    ("2x3", "gather:max-flow", {"root": 4, "max_flits": 5}),
    ("3x3", "reduce:necklace", {"chunks": 3, "max_flits": 5}),
    ("2x3", "allgather:redistribute", {"max_flits": 5}),
    ("arrowhead:1", "broadcast:spanning-tree", {"packets": 2, "max_flits": 5}),
    ("4", "reduce:necklace", {"latency": 3, "max_flits": 5}),
    *((topology, names, {"max_flits": 4, "root": "any"} | options)
      for topology, names, options in (
          ("2x3", "scatter@1", {"chunks": 2}), ("2x2", "reduce:necklace", {"chunks": 2}),
          ("3x3", "broadcast:diagonal", {}), ("arrowhead:1", "broadcast:spanning-tree", {}),
          ("3x3", "gather:diagonal", {}), ("arrowhead:1", "scatter", {}),
          ("3x3", "scatter:necklace", {}), ("3x3", "reduce:diagonal", {}),
          ("2x3x2", "gather@0+2:matching", {"chunks": 3}), ("4x4", "reduce@0:max-flow", {}))),
    *((topology, names, {"width": 5, "max_flits": 2, "operators": OPERATIONS})
      for topology, names in (("2x3", "allreduce:matching"), ("3x3", "reduce:diagonal"),
                              ("3", "reduce:necklace"), ("2x3", "allreduce@1:matching"))),
    ("3", "reduce,broadcast,allgather", {"max_flits": 4, "root": "any"}),
    ("2x3", "allgather@0,allgather@1,allreduce", {"max_flits": 4}),
    ("arrowhead:1", "allgather,broadcast", {"max_flits": 4}),
    ("2x2", "reduce-scatter,gather:matching,alltoall:necklace", {"max_flits": 4}),
    *((sides, EVERY, {"max_flits": 7, "root": root, "operators": ["add", "max:signed"],
                      "engine": "compiled"})
      for sides in ("4x4", "3x5", "7") for root in ("any", 0)),
    ("2x3", "allreduce,reduce!1", {"max_flits": 2, "top": "stream"}),
    ("2x3", "halo,exchange!4", {"max_flits": 2}),
    ("2x3", "allreduce:spanning-tree", {"flits": 4, "link_latency": "3"}),
    ("2x3", "reduce-scatter:matching", {"max_flits": 4, "link_latency": "0:2,1:3"}),
    ("2x3", "broadcast:max-flow", {"flits": 4, "link_latency": "0:7"}),
    ("2x3", "scatter:farthest-first", {"flits": 2, "root": "any", "link_latency": "2"}),
    *((topology, name, {"max_flits": 7, "beat": beat, "engine": engine})
      for topology, name, beat in (("3x3", "allgather", 4), ("2x3", "broadcast", 4),
                                   ("3x3", "reduce-scatter", 2), ("4x4", "allreduce", 4),
                                   ("2x3", "gather", 2), ("4x4", "halo", 2))
      for engine in ("amaranth", "compiled")),
    *((topology, name, {"max_flits": 8, "beat": beat, "top": "stream"})
      for topology, name, beat in (("2", "alltoall", 2), ("2x2", "reduce", 2), ("3", "scatter", 4),
                                   ("2", "reduce-scatter", 4))),
    *(("2x3", name, {"max_flits": 24, "root": "any", "tables": "ram", "engine": "compiled"})
      for name in ("gather", "reduce", "broadcast")),
]  # fmt: skip


def row_id(topology, collectives, options):
    """Return the name of a row."""
    return "-".join([topology, collectives, *map(str, options.values())])


@pytest.mark.parametrize(
    ("topology", "collectives", "options"),
    [
        *(pytest.param(*row, id=row_id(*row)) for row in RUNS),
        *(pytest.param(*row, id=row_id(*row), marks=pytest.mark.long) for row in LONG),
    ],
)
def test_runs(topology, collectives, options):
    """Every word is correct, in the predicted cycles, after any previous run."""
    options = dict(options)
    engine = options.pop("engine", "amaranth")
    if engine == "compiled" and not cxx.has_compiler():
        pytest.skip("no C++ compiler")
    check_fabric(build_fabric(topology, collectives, **options), engine)


@settings(derandomize=True, deadline=None, max_examples=6)
@given(st.data())
def test_any_fabric(data):
    """Every word is correct for a random fabric, which may contain a collective twice."""
    topology = data.draw(st.sampled_from(["2", "3", "2x2", "2x3", "3x3", "arrowhead:1"]))
    names = EVERY.split(",") if topology != "arrowhead:1" else ["broadcast", "allgather"]
    several = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))
    rooted = {*several} & {"broadcast", "scatter", "gather", "reduce"}
    summed = {*several} & {"reduce", "reduce-scatter", "allreduce"}
    lengths = ["max_flits"] if len(several) > 1 else ["flits", "max_flits"]
    operators = st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=3, unique=True)
    options = {
        data.draw(st.sampled_from(lengths)): data.draw(st.integers(1, 7)),
        "root": data.draw(st.sampled_from([None, "any"])) if rooted else None,
        "width": data.draw(st.integers(1, 70)),
        "operators": data.draw(operators) if summed else [],
    }
    check_fabric(build_fabric(topology, ",".join(several), **options))
