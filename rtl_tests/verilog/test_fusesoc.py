"""The example in plain Verilog, and the FuseSoC generator that makes its fabric."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import torusfabric as tf

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "counters"
GENERATOR = ROOT / "fusesoc" / "torusfabric_generator.py"

needs_icarus = pytest.mark.skipif(not shutil.which("iverilog"), reason="Icarus is not installed")


@pytest.fixture(scope="module")
def fabric():
    """The Verilog of the fabric."""
    schedule = tf.plan("4x4", "allgather")
    return tf.emit(tf.Fabric(tf.compile(schedule, flits=1), width=32)).text


def simulate(folder, fabric, *, fault=("", "")):
    """Run the example in Icarus with an edit of its text; return exit status and output."""
    (folder / "fabric.v").write_text(fabric)
    text = (EXAMPLE / "counters.v").read_text()
    assert fault[0] in text
    (folder / "counters.v").write_text(text.replace(*fault, 1))
    sources = ["fabric.v", "counters.v", str(EXAMPLE / "counters_tb.v")]
    command = ["iverilog", "-g2005", "-Wall", "-s", "counters_tb", "-o", "bench", *sources]
    compiled = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert not compiled.stderr
    done = subprocess.run(["vvp", "-n", "bench"], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout


@needs_icarus
def test_every_node_gets_every_counter(tmp_path, fabric):
    assert simulate(tmp_path, fabric) == (0, "PASSED: 320 words\n")


@needs_icarus
@pytest.mark.parametrize(
    "fault",
    [
        ("READ_LATENCY = 15", "READ_LATENCY = 14"),
        ("taken <= taken >> 32", "taken <= taken >> 31"),
        ("count == 15) state", "count == 14) state"),
        ("RECV_BASE = 16", "RECV_BASE = 17"),
    ],
)
def test_faults_of_the_example_are_seen(tmp_path, fabric, fault):
    status, output = simulate(tmp_path, fabric, fault=fault)
    assert status
    assert "FAILED" in output


@needs_icarus
def test_fusesoc_generates_and_simulates(tmp_path):
    pytest.importorskip("fusesoc")
    command = [sys.executable, "-m", "fusesoc.main", "--cores-root", str(ROOT / "fusesoc")]
    command += ["--cores-root", str(EXAMPLE), "run", "--target=sim"]
    scripts = str(Path(sys.executable).parent)
    environ = os.environ | {
        "PATH": os.pathsep.join([scripts, os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        "XDG_CONFIG_HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path),
    }
    done = subprocess.run(
        [*command, "torusfabric:examples:counters"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, env=environ,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASSED: 320 words" in done.stdout


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("{topology: 4x4}", "Parameter 'collective' must be given"),
        ("{topology: 4by4, collective: allgather}", "Topology must be"),
    ],
)
def test_wrong_parameters_are_named(tmp_path, parameters, message):
    pytest.importorskip("yaml")
    (tmp_path / "in.yml").write_text(f"{{gapi: '1.0', vlnv: 'a:b:c:0', parameters: {parameters}}}")
    command = [sys.executable, str(GENERATOR), "in.yml"]
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environ)
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
