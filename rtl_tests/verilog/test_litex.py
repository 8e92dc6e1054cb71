"""A LiteX SoC with a fabric on its bus: its generated files, and its answers in Icarus."""

import csv
import itertools
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
from make_bench import have_bench

import torusfabric as tf

pytestmark = pytest.mark.skipif(find_spec("litex") is None, reason="LiteX is not installed")

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
    """Each register is a CSR, with its address in ``csr.csv`` and functions in ``csr.h``."""
    bus = json.loads((soc / "fabric" / "manifest.json").read_text())["bus"]
    with (soc / "build" / "csr.csv").open() as lines:
        rows = [row for row in csv.reader(lines) if row and not row[0].startswith("#")]
    addresses = {row[1]: int(row[2], 0) for row in rows if row[0] == "csr_register"}
    (origin, size), = ((int(row[2], 0), int(row[3])) for row in rows
                       if row[:2] == ["memory_region", "fabric"])  # fmt: skip
    header = (soc / "build" / "software" / "include" / "generated" / "csr.h").read_text()
    assert size == bus["size"]
    constants = (soc / "build" / "software" / "include" / "generated" / "soc.h").read_text()
    for window, facts in bus["windows"].items():
        assert f"#define FABRIC_{window.upper()}_OFFSET {facts['offset']}" in constants
    for name, register in bus["registers"].items():
        assert addresses[f"fabric_{name}"] == origin + register["offset"]
        assert f"fabric_{name}_read(void)" in header
        assert (f"fabric_{name}_write(uint32_t v)" in header) == (register["access"] != "read")


def answers(sources, manifest, origin, folder):
    """Drive the fabric at an address of a SoC with random accesses, in Icarus."""
    from cocotb_tools.check_results import get_results
    from cocotb_tools.runner import get_runner

    runner = get_runner("icarus")
    runner.build(
        sources=sources, hdl_toplevel="soc", build_dir=folder / "sim", timescale=("1ns", "1ps"),
        log_file=folder / "build.log",
    )  # fmt: skip
    results = runner.test(
        hdl_toplevel="soc", test_module="wishbone_bench", log_file=folder / "test.log",
        extra_env={
            "MANIFEST": str(manifest),
            "ORIGIN": str(origin),
            "PYTHONPATH": str(ROOT / "rtl_tests" / "support"),
        },
    )  # fmt: skip
    assert get_results(results) == (1, 0), (folder / "test.log").read_text()[-3000:]


@pytest.mark.skipif(not have_bench(), reason="cocotb or Icarus is not installed")
def test_the_fabric_answers_on_the_bus(soc):
    sources = [soc / "build" / "gateware" / "soc.v", soc / "fabric" / "fabric.v"]
    answers(sources, soc / "fabric" / "manifest.json", 0x3000_0000, soc)


#: A SoC with several fabrics on its bus, each in a region that LiteX allocates.
SEVERAL = """
import sys

from litex.soc.integration.builder import Builder
from litex.soc.integration.soc_core import SoCMini
from litex.soc.interconnect import wishbone
from migen.genlib.io import CRG
from soc import Pins, Platform
from torusfabric.verilog.litex import add_fabric

platform = Platform("", [(name, 0, Pins(1)) for name in ("clk", "rst", "irq")])
soc = SoCMini(platform, clk_freq=50_000_000, ident="", with_timer=False)
soc.crg = CRG(platform.request("clk"), platform.request("rst"))
soc.add_ram("memory", origin=0x1000_0000, size=1024)
for number, argument in enumerate(sys.argv[1:]):
    folder, _, origin = argument.partition("@")
    fabric = add_fabric(soc, f"fabric{number}", folder, int(origin, 0) if origin else None)
soc.comb += platform.request("irq").eq(fabric.ev.irq)
host = wishbone.Interface()
soc.bus.add_master("host", host)
platform.add_extension(host.get_ios("host"))
soc.comb += host.connect_to_pads(platform.request("host"), mode="slave")
Builder(soc, output_dir="several", csr_csv="several/csr.csv", compile_software=False).build(
    build_name="soc"
)
"""


def build_several(folder, *arguments):
    """Build a SoC with some fabrics in a folder; return exit status and errors."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "examples" / "litex")])
    done = subprocess.run(
        [sys.executable, "-c", SEVERAL, *map(str, arguments)],
        cwd=folder, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths},
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.fixture(scope="module")
def second(tmp_path_factory):
    """A fabric with a prefix."""
    folder = tmp_path_factory.mktemp("second")
    program = tf.compile(tf.plan("4", "allgather"), max_flits=20)
    tf.emit(tf.Fabric(program, width=32, bus="wishbone", prefix="second_")).write(folder)
    return folder


def test_fabrics_get_regions_of_their_own(soc, second):
    """Fabrics without an origin get separate regions, which do not overlap the CSRs of the SoC."""
    status, said = build_several(soc, "fabric", second, "fabric")
    assert status == 0, said
    with (soc / "several" / "csr.csv").open() as lines:
        rows = [row for row in csv.reader(lines) if row and row[0] == "memory_region"]
    regions = {row[1]: range(int(row[2], 0), int(row[2], 0) + int(row[3])) for row in rows}
    assert set(regions) == {"memory", "csr", "fabric0", "fabric1", "fabric2"}
    ends = sorted((found.start, found.stop) for found in regions.values())
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(ends))


@pytest.mark.skipif(not have_bench(), reason="cocotb or Icarus is not installed")
def test_a_fabric_answers_where_it_was_put(soc, second):
    status, said = build_several(soc, "fabric", second)
    assert status == 0, said
    with (soc / "several" / "csr.csv").open() as lines:
        rows = [row for row in csv.reader(lines) if row[:2] == ["memory_region", "fabric1"]]
    sources = [soc / "several" / "gateware" / "soc.v", soc / "fabric" / "fabric.v"]
    answers([*sources, second / "fabric.v"], second / "manifest.json", rows[0][2], second)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fabric@0x100"], "The region of fabric0 at 0x100 overlaps that of csr (0x0, 0x10"),
        (
            ["fabric@0x30000000", "fabric@0x30000100"],
            "The region of fabric1 at 0x30000100 overlaps that of fabric0 (0x30000000, 0x",
        ),
        (["fabric", "other"], "have the same name, "),
    ],
)
def test_collisions_are_refused(soc, arguments, message):
    """Overlapping regions and equal module names are refused."""
    if "other" in arguments and not (soc / "other").exists():
        program = tf.compile(tf.plan("2", "allgather"), flits=1)
        tf.emit(tf.Fabric(program, bus="wishbone")).write(soc / "other")
    status, said = build_several(soc, *arguments)
    assert status == 1
    assert f"InputError: {'Modules of' if 'same name' in message else 'The region'}" in said
    assert message in said


def test_other_folders_are_refused(tmp_path):
    from torusfabric.verilog.litex import LiteXFabric

    with pytest.raises(tf.InputError, match=r"^File .* is not the manifest of a fabric .*No such"):
        LiteXFabric(None, tmp_path)
    tf.emit(tf.Fabric(tf.compile(tf.plan("2", "allgather")))).write(tmp_path)
    with pytest.raises(tf.InputError, match=r"^Fabric for LiteX must be behind wishbone, not host"):
        LiteXFabric(None, tmp_path)


@pytest.mark.parametrize("bus", [None, "wishbone"])
def test_streams_are_endpoints(tmp_path, bus):
    """Streams are LiteX endpoints: two nodes joined to a ring elaborate in Icarus."""
    from litex.soc.interconnect import stream
    from migen import Module
    from migen.fhdl.verilog import convert

    from torusfabric.verilog.litex import LiteXFabric

    platform = SimpleNamespace(sources=[], add_source=list)
    program = tf.compile([tf.plan("2", name) for name in ("allgather", "alltoall")], max_flits=4)
    tf.emit(tf.Fabric(program, width=8, top="stream", bus=bus)).write(tmp_path)
    soc = Module()
    soc.submodules.fabric = fabric = LiteXFabric(platform, tmp_path)
    assert len(fabric.sink) == len(fabric.source) == 2
    ends = [*fabric.sink, *fabric.source] + ([] if bus else [fabric.command, fabric.status])
    assert all(isinstance(end, stream.Endpoint) for end in ends)
    for node in range(2):
        soc.comb += fabric.source[node].connect(
            fabric.sink[1 - node], keep={"valid", "ready", "data"}
        )
    pins = {*fabric.bus.flatten()} if bus else {fabric.busy, *fabric.command.flatten()}
    (tmp_path / "soc.v").write_text(str(convert(soc, ios=pins, name="soc")))
    done = subprocess.run(
        ["iverilog", "-s", "soc", "-o", tmp_path / "soc", *tmp_path.glob("*.v")],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert ".s_axis_1_tdest" in (tmp_path / "soc.v").read_text()


def test_without_litex_there_is_a_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "litex", None)
    monkeypatch.setitem(sys.modules, "litex.gen", None)
    monkeypatch.delitem(sys.modules, "torusfabric.verilog.litex", raising=False)
    with pytest.raises(tf.MissingTool, match=re.escape("was not found: pip install litex")):
        import torusfabric.verilog.litex  # noqa: F401
