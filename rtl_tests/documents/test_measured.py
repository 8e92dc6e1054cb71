"""Figures that are kept are those of the code as it is, where a machine's speed is not in them."""

import json
from pathlib import Path

import pytest
from hardware_targets import CASES
from hardware_targets import rows as measure

MEASURED = Path(__file__).parents[2] / "sim" / "measured"


def rows(name):
    """The rows of a file of measurements."""
    return json.loads((MEASURED / f"{name}.json").read_text(encoding="utf-8"))["rows"]


def test_each_case_is_measured():
    """Its tables and its clock."""
    found = {(row["router"], row["what"]) for row in rows("routers")}
    assert found == {(case.name, what) for case in CASES for what in ("LUT4", "MHz")}


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_routers_are_as_large_as_was_measured(case):
    """`python sim/hardware_targets.py --routers` measures them anew."""
    (row,) = (row for row in rows("routers") if (row["router"], row["what"]) == (case.name, "LUT4"))
    assert next(measure(case, placements=1, progress=None)) == row


@pytest.mark.parametrize("engine", ["amaranth", "icarus", "compiled", "verilator"])
def test_each_engine_is_measured(engine):
    """On more than one size, so that a line can be drawn."""
    assert len([row for row in rows("engine_speed") if row["engine"] == engine]) > 1
