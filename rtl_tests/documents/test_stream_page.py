"""What the page on streams says: its commands, its Verilog and its Python run as they stand."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from pages import blocks_of
from session import carry_out

import torusfabric as tf
from torusfabric.rtl.streams import stream_ports

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "streams.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus is not installed")
def test_all_of_it_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    printed = "".join(
        said for block in carry_out([block.as_json() for block in blocks_of(TEXT)])
        for _, said in block
    )  # fmt: skip
    lines = re.findall(r"node 0 has a packet from node (\d) that ends with (\w+)", printed)
    assert lines == [("0", "3"), ("1", "103"), ("0", "7"), ("1", "107")]
    assert "limited by" in printed
    assert "node 3 has 1111" in printed


def test_it_names_every_port():
    """Of a node, those that there are."""
    program = tf.compile(tf.plan("2x2", "alltoall"), flits=1)
    ports = {name for beat in (1, 2)
             for name, port in stream_ports(program, 8, beat=beat).items()
             if port.node == 0}  # fmt: skip
    named = {name.replace("_N_", "_0_") for name in re.findall(r"`([sm]_axis_N_\w+)`", TEXT)}
    assert ports == named
