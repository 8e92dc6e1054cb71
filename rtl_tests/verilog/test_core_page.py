"""The page about a core: what the manifest says, for people."""

import re

import pytest
from helpers import fabric_of

from torusfabric import verilog
from torusfabric.verilog.pages import core_page


@pytest.mark.parametrize("collective", ["allgather", "alltoall"])
def test_page_has_all_ports_in_their_order(collective):
    """Ports that the top has once, and those of node 0 for all, with their widths."""
    fabric = fabric_of("3x4", collective, top="core", width=9)
    manifest = verilog.manifest(fabric, command="torusfabric verilog ..", files=[])
    page = core_page(manifest)
    ports = {
        (name if port["node"] is None else name[:-1] + "N"): (port["direction"], port["width"])
        for name, port in manifest["ports"].items()
        if not port["node"]
    }
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (\d+) \|", page, re.M)
    assert [(name, (way, int(bits))) for name, way, bits in rows] == [*ports.items()]
    assert "N = 0 to 11" in page


def test_cycles_of_streams():
    """The first cycle of what streams do, and how many cycles later each further flit comes."""
    fabric = fabric_of("3x3", "allgather", "hamiltonian", flits=6, top="core")
    page = core_page(verilog.manifest(fabric, command="", files=[]))
    assert "| 4 + 4 f | `inject_N` must be flit f of each chunk |" in page
    assert "| 5 + 4 f + s - 1 | `receive_N` shows" in page
    assert "chunks 0, 1, `receive_N` those of in-ports +0, -0, +1, -1;" in page
    assert "f = 0 to 2, the steps s = 1 to 4" in page
    assert f"| {fabric.predicted_cycles} | `done` is high" in page


def test_cycles_of_memories():
    """Reads come after the run; a bank with its address, a word `read_latency` cycles after it."""
    fabric = fabric_of("3x3", "alltoall", flits=2, top="core")
    page, done = core_page(verilog.manifest(fabric, command="", files=[])), fabric.predicted_cycles
    assert f"| {done} + k + 0 | `read_bank_N` is its bank |" in page
    assert f"| {done} + k + {fabric.read_latency} | `read_data_N` shows its word |" in page
    assert f"| 0 to {done} - 1 | `busy` is high |" in page
