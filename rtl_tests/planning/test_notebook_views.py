"""What values look like in a notebook."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

import torusfabric as tf
from torusfabric.toolchain.html import facts_table


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
    """A picture, and a table of what is known."""
    schedule = tf.plan(topology, collective, algorithm=algorithm)
    assert ElementTree.fromstring(schedule._repr_svg_()).tag.endswith("svg")
    shown = schedule._repr_html_()
    assert f"{schedule.topology} {schedule.collective}, {algorithm}" in shown
    _, _, table = shown.rpartition("<table>")
    rows = {row[0].text: row[1].text for row in ElementTree.fromstring("<table>" + table)[1:]}
    assert rows[f"{schedule.switching.unit}s"].startswith(f"{schedule.steps} of ")
    assert rows["checked"] == "True"


def test_large_schedule_is_a_table():
    """Nobody waits for a picture of thousands of nodes."""
    schedule = tf.plan("33x33", "allgather", algorithm="matching", check=False)
    assert schedule._repr_svg_() is None


def test_schedule_with_a_fault():
    """The table says where it is; the picture shows it."""
    schedule = tf.plan("3x3", "broadcast", algorithm="diagonal")
    shown = replace(schedule, transfers=schedule.transfers[:1])._repr_html_()
    assert "no: " in shown
    assert shown.startswith("<svg")


def test_reports():
    """Those of simulations say whether they passed, those of synthesis what it costs."""
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
    """The tables of the command."""
    fabric = tf.Fabric(tf.compile(tf.plan("2x2", "allgather")), width=8)
    report = tf.synthesize(fabric, "ice40-hx8k")
    shown = report._repr_html_()
    assert "ice40-hx8k, compact mapping" in shown
    assert str(report.fabric["luts"]) in shown


def test_facts_table_is_safe():
    """Names and values are text."""
    assert "<b>" not in facts_table("<b>", {"<b>": "<b>"})
    assert facts_table("\0", {"\x1b": "\0"}).isprintable()
