"""Latency constants of `timing.py` agree with the hardware, for control and for addresses."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import fabric_of, few

import torusfabric
import torusfabric as tf
from torusfabric.program import address_map
from torusfabric.rtl.distribution import Distribution
from torusfabric.rtl.netlist import Part, Role

PACKAGE = Path(torusfabric.__file__).parent

#: A script that simulates fabrics of all kinds, and prints wrong words and cycles of each.
CHECK = """
import torusfabric as tf
for topology, name, options in (
    ("2x3", "allgather", {}), ("2x3", "allreduce", {}), ("3x3", "reduce", {}),
    ("2x3", "scatter", {"max_flits": 4, "root": "any"}), ("2x3", "broadcast", {"max_flits": 3}),
):
    program = tf.compile(tf.plan(topology, name), **options)
    report = tf.simulate(tf.Fabric(program, width=8), engine="amaranth")
    print(report.words_wrong, report.cycles - report.predicted_cycles)
stream = tf.Fabric(tf.compile(tf.plan("2x3", "broadcast"), max_flits=3), width=8, top="stream")
print(tf.simulate(stream).words_wrong, program.timing.drain_cycles)
"""


def outcome(folder, **constants):
    """Run the check with other constants; return its output and the last line of its errors."""
    shutil.copytree(PACKAGE, folder / "torusfabric", ignore=shutil.ignore_patterns("__pycache__"))
    timing = folder / "torusfabric/program/timing.py"
    text = timing.read_text(encoding="utf-8")
    for name, value in constants.items():
        text, count = re.subn(rf"^{name} = .*$", f"{name} = {value}", text, flags=re.M)
        assert count == 1
    timing.write_text(text, encoding="utf-8")
    command = [sys.executable, "-W", "ignore", "-c", CHECK]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    return run.stdout.splitlines(), run.stderr.splitlines()[-1:]


@pytest.mark.parametrize(
    "registers", [*(pytest.param(k, marks=pytest.mark.long) for k in (2, 4)), 3]
)
def test_registers_on_the_way_to_nodes(tmp_path, registers):
    """With any number of distribution registers, words are right and cycles as predicted."""
    found, _ = outcome(tmp_path, DISTRIBUTION=registers)
    assert found == ["0 0"] * 5 + [f"0 {registers + 1}"]


@pytest.mark.parametrize(
    ("constants", "why"),
    few(3, [
        ({"DISTRIBUTION": 1}, "groups of nodes have a register, and nodes have one"),
        ({"LINK": "SETTING + 2"}, "a router has one register"),
        ({"SETTING": "ADDRESS + 2"}, "a word is there a cycle after its address"),
        ({"COMBINE": 2}, "a result has one register"),
        ({"WRITE": "3 + DISTRIBUTION"}, "a write is in a memory when a run may read it"),
        ({"RUN_SETUP": 2}, "a register holds what a run follows"),
    ]),
)  # fmt: skip
def test_what_is_not_built_is_not_predicted(tmp_path, constants, why):
    """A constant that differs from the latency of its component is refused."""
    found, error = outcome(tmp_path, **constants)
    assert set(found) <= {"0 0"}  # fabrics without the component are right
    assert error[0].startswith("AssertionError: " + why)


CASES = [
    ("4x4", "allgather", "hamiltonian", {"flits": 2}),
    ("3x3", "reduce-scatter", "matching", {}),
    ("4x4", "broadcast", "diagonal", {"root": "any"}),
]


@pytest.mark.parametrize(("topology", "collective", "algorithm", "options"), CASES)
def test_no_node_is_given_anything_from_afar(topology, collective, algorithm, options):
    """Instances at a node read only from nodes, and the control stage of their group."""
    fabric = fabric_of(topology, collective, algorithm, **options)
    netlist = fabric.netlist
    distribution = Distribution(netlist, fabric.nodes)
    drivers = {net: each for each in netlist.instances for net in each.outputs.values()}
    for instance in netlist.instances:
        if instance.node is None:
            continue
        for part in (p for parts in instance.inputs.values() for p in parts if isinstance(p, Part)):
            driver = drivers[part.net]
            group = distribution.groups.group_of(instance.node)
            near = driver.role is Role.CONTROL and driver.name == f"control_stage_{group}"
            assert driver.node is not None or near


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm"),
    [("2x3", "allgather", "redistribute"), ("3", "gather", "matching")],
)
def test_tables_of_nodes(topology, collective, algorithm, monkeypatch):
    """Large tables have a row for each variant and offset, and cost two more cycles to subtract."""
    latencies = []
    for most in (4096, 0):
        monkeypatch.setattr(address_map, "MOST_DIRECT_ENTRIES", most)
        program = tf.compile(tf.plan(topology, collective, algorithm=algorithm), max_flits=2)
        fabric = tf.Fabric(program, width=8)
        assert tf.simulate(fabric, jobs=[tf.Job(length=2)]).passed
        latencies.append(fabric.read_latency)
    assert latencies[1] == latencies[0] + 2
