"""The views of schedules and reports in a notebook."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

import torusfabric as tf
from torusfabric.draw.notebook import schedule_html, schedule_svg
from torusfabric.toolchain.quoting import facts_table


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm"),
    [
        ("4x4", "allgather", "hamiltonian"),
        ("3x3", "alltoall", "matching"),
        ("arrowhead:2", "broadcast", "wormhole-forest"),
        ("3x4", "allreduce@1", "matching"),
    ],
)
def test_schedule(topology, collective, algorithm):
    """A schedule has a picture and a table of its properties."""
    schedule = tf.plan(topology, collective, algorithm=algorithm)
    assert ElementTree.fromstring(schedule_svg(schedule)).tag.endswith("svg")
    shown = schedule_html(schedule)
    assert f"{schedule.topology} {schedule.collective}, {algorithm}" in shown
    _, _, table = shown.rpartition("<table>")
    rows = {row[0].text: row[1].text for row in ElementTree.fromstring("<table>" + table)[1:]}
    assert rows[f"{schedule.switching.unit}s"].startswith(f"{schedule.steps} of ")
    assert rows["checked"].startswith("every block reaches every node")


def test_notebooks_know_how():
    """A notebook finds the views of a schedule once the package is imported."""
    pytest.importorskip("IPython")
    script = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "import torusfabric as tf\n"
        "shown, _ = shell.display_formatter.format(tf.plan('3x3', 'allgather'))\n"
        "print(*shown)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert {"text/html", "image/svg+xml"} <= set(done.stdout.split())


def test_large_schedule_is_a_table():
    """A schedule of many nodes has no picture."""
    schedule = tf.plan("33x33", "allgather", algorithm="matching", check=False)
    assert schedule_svg(schedule) is None


def test_schedule_with_a_fault():
    """The view of a faulty schedule has the fault in its table, and still a picture."""
    schedule = tf.plan("3x3", "broadcast", algorithm="diagonal")
    shown = schedule_html(replace(schedule, transfers=schedule.transfers[:1]))
    assert "no: " in shown
    assert shown.startswith("<svg")


def test_reports():
    """The view of a simulation says whether the run passed, with measured and predicted cycles."""
    program = tf.compile(tf.plan("2x2", "allgather"), flits=2)
    report = tf.simulate(tf.Fabric(program, width=8))
    shown = report._repr_html_()
    assert "2x2 allgather, " in shown
    assert ": passed" in shown
    assert f"{program.cycles()}, predicted {program.cycles()}" in shown
    wrong = replace(report, first_wrong="node 1 <2>", words_wrong=1)._repr_html_()
    assert ": failed" in wrong
    assert "node 1 &lt;2&gt;" in wrong


def test_synthesis_report():
    """The view of a synthesis report has the tables of the command."""
    fabric = tf.Fabric(tf.compile(tf.plan("2x2", "allgather")), width=8)
    report = tf.synthesize(fabric, "ice40-hx8k")
    shown = report._repr_html_()
    assert "ice40-hx8k, compact mapping" in shown
    assert str(report.fabric["luts"]) in shown


def test_facts_table_is_safe():
    """Names and values in a table of properties are escaped as text."""
    assert "<b>" not in facts_table("<b>", {"<b>": "<b>"})
    assert facts_table("\0", {"\x1b": "\0"}).isprintable()
