"""Emitted Verilog with its manifest alone: linters are silent, and Icarus reads the right words.

Each run takes the cycles of the manifest, twice. The inputs for choices of a run have wrong values
except at the start.
"""

import pytest
from fabrics import build_fabric
from helpers import few
from verilog_bench import check_in_icarus

#: Topology, collectives, options, and the choices of the run.
RUNS = [
    ("2x2", "allgather:hamiltonian", {"width": 1, "flits": 2}, {}),
    ("3x3", "allgather:hamiltonian", {"width": 32, "flits": 4}, {}),
    ("arrowhead:1", "broadcast:wormhole-forest", {"width": 65, "flits": 2}, {}),
    ("4x4", "allgather:matching", {"chunks": 2, "flits": 4}, {}),
    ("3x3", "reduce-scatter:matching", {"width": 9, "flits": 3, "operators": ["min:signed"]}, {}),
    ("3x3", "allreduce:matching", {"width": 16, "flits": 9}, {}),
    ("4x4", "broadcast:max-flow", {"width": 9, "flits": 3, "root": "any"}, {"root": 6}),
    ("2x3", "scatter", {"width": 9, "flits": 3, "root": "any"}, {"root": 4}),
    ("2x3", "reduce-scatter:matching", {"width": 9, "max_flits": 6}, {"length": 4}),
    ("2x3", "gather:max-flow", {"width": 9, "max_flits": 6}, {"length": 1}),
    ("2x2", "reduce-scatter", {"width": 9, "operators": ["add", "max", "xor"]}, {"operation": 2}),
    ("2x3", "reduce:max-flow", {"width": 9, "operators": ["add", "max:signed"]}, {"operation": 1}),
    ("2x2", "allgather,alltoall,reduce", {"max_flits": 3}, {"mode": 0, "length": 2}),
    ("2x2", "allgather,alltoall,reduce", {"max_flits": 3}, {"mode": 1, "length": 3}),
    ("2x2", "allgather,alltoall,reduce", {"max_flits": 3}, {"mode": 2, "length": 1}),
    ("2x3", "gather", {"width": 9, "flits": 3, "root": "any"}, {"root": 4}),
    ("2x3", "reduce", {"width": 9, "flits": 3, "root": "any"}, {"root": 4}),
    ("3x3", "allgather:matching", {"width": 33}, {}),
    ("5x5", "allgather:bufferless", {"width": 16, "flits": 2}, {}),
    ("3x3", "alltoall:matching", {"flits": 3}, {}),
    ("2x2x2x2", "alltoall:necklace", {"width": 1, "flits": 4}, {}),
    ("2x3", "allreduce:matching", {"flits": 42, "operators": ["xor"]}, {}),
    ("4x4", "reduce:max-flow", {"flits": 2, "operators": ["max:signed"]}, {}),
    ("5x5", "reduce:necklace", {"width": 5, "chunks": 5, "flits": 5}, {}),
    ("3x3x3", "allgather:hamiltonian", {"flits": 3}, {}),
    ("5x5", "allgather:one-packet", {"flits": 3}, {}),
    ("arrowhead:2", "broadcast:spanning-tree", {"flits": 6}, {}),
    ("3x4", "broadcast:max-flow", {"width": 9, "flits": 2}, {}),
    ("2x3", "alltoall@1:matching", {"flits": 2}, {}),
]


@pytest.mark.parametrize(("topology", "collectives", "options", "chosen"), few(14, RUNS))
def test_runs_in_icarus(tmp_path, topology, collectives, options, chosen):
    fabric = build_fabric(topology, collectives, **options)
    manifest = check_in_icarus(tmp_path, fabric, **chosen)
    assert {*chosen} <= {*manifest["ports"]}
    if "operators" in options:
        assert manifest["modes"][0]["operators"] == options["operators"]


@pytest.mark.parametrize("count", [5, 8, 13])
def test_nodes_with_other_kinds_of_ram_run_alike(tmp_path, count):
    """Nodes with block RAM and nodes with LUT memories behave alike, in one fabric."""
    fabric = build_fabric("3x3", "alltoall", width=9, max_flits=3)
    check_in_icarus(tmp_path, fabric, ram=f"block:8@{count},distributed", length=2)
    text = (tmp_path / "fabric.v").read_text()
    assert 'ram_style = "block"' in text
    assert 'ram_style = "distributed"' in text
