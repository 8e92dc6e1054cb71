"""Limits and measurements on pages agree with the code."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hardware_targets import CASES
from hardware_targets import rows as measure

import torusfabric as tf
from torusfabric.adapters.boards.hardware.link_plan import (
    CABLE_CYCLES,
    CROSSING_CYCLES,
    START_SKEW_CYCLES,
    LinkPlan,
)
from torusfabric.cli import main
from torusfabric.topology.boards import Boards

DOCS = Path(__file__).parents[2] / "docs"


def rows_of_beats():
    """Return requirement, accepted selection and refused selection of each row on beats."""
    text = (DOCS / "reference" / "streams.md").read_text()
    table = text.partition("| requirement | accepted | refused |\n|---|---|---|\n")[2]
    table = table.partition("\n\n")[0]
    return [[cell.strip(" `") for cell in row.strip("|").split("|")] for row in table.splitlines()]


@pytest.mark.parametrize("row", rows_of_beats(), ids=lambda row: row[0][:30])
def test_a_beat_is_taken_and_refused_as_the_page_says(row, tmp_path, capsys):
    """Each selection with a beat is accepted or refused as the page says."""
    _, taken, refused = row
    for k, selection in enumerate((taken, refused)):
        command = ["verilog", *selection.split(), "-o", str(tmp_path / str(k))]
        if "--width" not in selection:
            command += ["--width", "16"]
        assert main(command) == k, selection
        assert not k or re.search(r"Beat must be|--beat", capsys.readouterr().err)


def test_every_limit_of_beats_is_on_the_page():
    """The page lists all six limits of beats."""
    assert len(rows_of_beats()) == 6


def test_the_words_of_an_image_end_where_the_page_finds_them(tmp_path):
    """The code on the page reads the words of an image."""
    text = (DOCS / "how-to" / "load-a-schedule.md").read_text()
    (code,) = re.findall(r"```python\n(import zlib\n.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code.partition("\n\n\nprint")[0], names)
    program = tf.compile(tf.plan("3x3", "allgather"), max_flits=4)
    for fabric in (tf.Fabric(program, tables="ram"), tf.Fabric(program, tables="ram", width=7)):
        path = tmp_path / "image.bin"
        fabric.image.save(path)
        assert names["image_words"](path.read_bytes()) == fabric.image.words


@pytest.mark.parametrize("boards", ["2", "4", "8"])
def test_a_latency_serves_the_flight_that_the_page_says(boards):
    """The flight time that a latency allows follows the formula on the page."""
    text = (DOCS / "reference" / "several-boards.md").read_text()
    formula = re.search(r"F = \(L - ([\d.]+) - ([\d.]+) D - d\) / \(1 \+ D\) cycles", text)
    assert formula
    crossing, start = map(float, formula.groups())
    assert (crossing, start) == (CROSSING_CYCLES - CABLE_CYCLES, START_SKEW_CYCLES - CABLE_CYCLES)
    ring = tf.Torus(16, link_latency=40)
    plan = LinkPlan(Boards.parse(boards, ring), 32, {}, longest=100, ppm=100, retries=1)
    flight = lambda latency: (
        (latency - crossing - start * plan.tree_depth - plan.drift_words) / (1 + plan.tree_depth)
    )
    # The least latency allows for the cable, and one cycle less does not.
    assert flight(plan.least_latency - 1) < CABLE_CYCLES <= flight(plan.least_latency)
    assert math.isclose(flight(20) - flight(19), 1 / (1 + plan.tree_depth))


MEASURED = Path(__file__).parents[2] / "sim" / "measured"


def rows(name):
    """Return the rows of a file of measurements."""
    return json.loads((MEASURED / f"{name}.json").read_text(encoding="utf-8"))["rows"]


def test_each_case_is_measured():
    """Each router has measurements of its LUTs and its clock."""
    found = {(row["router"], row["what"]) for row in rows("routers")}
    assert found == {(case.name, what) for case in CASES for what in ("LUT4", "MHz")}


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_routers_are_as_large_as_was_measured(case):
    """Measured LUTs are reproduced.

    `python sim/hardware_targets.py --routers` measures them anew.
    """
    (row,) = (row for row in rows("routers") if (row["router"], row["what"]) == (case.name, "LUT4"))
    assert next(measure(case, placements=1, progress=None)) == row


@pytest.mark.parametrize("engine", ["amaranth", "icarus", "compiled", "verilator"])
def test_each_engine_is_measured(engine):
    """Each engine is measured at more than one size, so that a line can be drawn."""
    assert len([row for row in rows("engine_speed") if row["engine"] == engine]) > 1
