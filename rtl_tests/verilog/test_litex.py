"""A SoC of LiteX with a fabric on its bus: what is generated, and how it answers in Icarus."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from make_bench import have_bench

import torusfabric as tf

pytest.importorskip("litex")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def soc(tmp_path_factory):
    """The example, built: a folder with ``fabric`` and ``build``."""
    folder = tmp_path_factory.mktemp("soc")
    program = tf.compile(tf.plan("4", "allgather"), max_flits=20)
    tf.emit(tf.Fabric(program, width=33, bus="wishbone")).write(folder / "fabric")
    built = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "litex" / "soc.py"), "fabric", "build"],
        cwd=folder, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return folder


def test_registers_are_csrs(soc):
    """Each has the address of its own, in ``csr.csv`` and in ``csr.h``."""
    bus = json.loads((soc / "fabric" / "manifest.json").read_text())["bus"]
    with (soc / "build" / "csr.csv").open() as lines:
        rows = [row for row in csv.reader(lines) if row and not row[0].startswith("#")]
    addresses = {row[1]: int(row[2], 0) for row in rows if row[0] == "csr_register"}
    (origin, size), = ((int(row[2], 0), int(row[3])) for row in rows
                       if row[:2] == ["memory_region", "fabric"])  # fmt: skip
    header = (soc / "build" / "software" / "include" / "generated" / "csr.h").read_text()
    assert size == bus["size"]
    for name, register in bus["registers"].items():
        assert addresses[f"fabric_{name}"] == origin + register["offset"]
        assert f"fabric_{name}_read(void)" in header
        assert (f"fabric_{name}_write(uint32_t v)" in header) == (register["access"] != "read")


@pytest.mark.skipif(not have_bench(), reason="cocotb or Icarus is not installed")
def test_the_fabric_answers_on_the_bus(soc):
    from cocotb_tools.check_results import get_results
    from cocotb_tools.runner import get_runner

    runner = get_runner("icarus")
    sources = [soc / "build" / "gateware" / "soc.v", soc / "fabric" / "fabric.v"]
    runner.build(
        sources=sources, hdl_toplevel="soc", build_dir=soc / "sim", timescale=("1ns", "1ps"),
        log_file=soc / "build.log",
    )  # fmt: skip
    results = runner.test(
        hdl_toplevel="soc", test_module="wishbone_bench", log_file=soc / "test.log",
        extra_env={
            "MANIFEST": str(soc / "fabric" / "manifest.json"),
            "ORIGIN": "0x30000000",
            "PYTHONPATH": str(ROOT / "rtl_tests" / "support"),
        },
    )  # fmt: skip
    assert get_results(results) == (1, 0), (soc / "test.log").read_text()[-3000:]


def test_other_folders_are_refused(tmp_path):
    from torusfabric.verilog.litex import LiteXFabric

    with pytest.raises(tf.InputError, match=r"^Manifest must be that of a fabric, not .*No such"):
        LiteXFabric(None, tmp_path)
    tf.emit(tf.Fabric(tf.compile(tf.plan("2", "allgather")))).write(tmp_path)
    with pytest.raises(tf.InputError, match=r"^Fabric for LiteX must be behind wishbone, not host"):
        LiteXFabric(None, tmp_path)


def test_without_litex_there_is_a_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "litex", None)
    monkeypatch.setitem(sys.modules, "litex.gen", None)
    monkeypatch.delitem(sys.modules, "torusfabric.verilog.litex", raising=False)
    with pytest.raises(tf.MissingTool, match=re.escape("was not found: pip install litex")):
        import torusfabric.verilog.litex  # noqa: F401
