"""The report of hardware targets: what it says where one is missed, and how sure that is."""

import hardware_targets as targets
from rich.console import Console

from torusfabric.verilog import Design


def row(**others):
    """A row of clock rates: 399.5 MHz, where 400 are wanted."""
    known = {"router": "r", "program": "p", "what": "MHz", "measured": 399.5, "target": 400}
    noise = {"spread": [347.0, 433.0], "interval": [390.0, 396.0], "worst_class": 391.0}
    return known | noise | {"limit": 1314.06, "met": False} | others


def text(*rows):
    """The table, a line a row."""
    console = Console(width=200)
    with console.capture() as captured:
        console.print(targets.render(rows))
    return [line for line in captured.get().splitlines() if " r " in line]


def test_limit_is_shown_where_a_target_is_missed():
    """A missed target has the limit of the netlist beside it, a target that is met does not."""
    missed, met = text(row(), row(met=True, measured=410.0))
    assert "399.5 (347-433, median within 390-396, worst class 391)" in missed
    assert "missed │" in missed
    assert "<= 1314" in missed
    assert "<=" not in met.replace(">=", "")
    (unknown,) = text(row(measured=None, limit=None))
    assert "no path" in unknown


def test_doubt_is_shown():
    """A target between the bounds of the median is called so, met or missed."""
    near, far = text(row(interval=[391.0, 404.0]), row())
    assert "missed, within noise" in near
    assert "within noise" not in far


def test_tables_are_whole():
    """Tables are counted, and their limit is the fewest."""
    cost = {"what": "LUT4", "measured": 310, "target": 300, "limit": 250, "met": False}
    cost |= {"share": 0.5, "full_crossbar": 620}
    (line,) = text({"router": "r", "program": "p"} | cost)
    assert "310 (50.0 % of 620)" in line
    assert ">= 250" in line


def test_interval_of_a_median():
    """The bounds are placements; few give all of them, many a few around the middle."""
    assert targets.interval([]) == [None, None]
    assert targets.interval([7.0]) == [7.0, 7.0]
    assert targets.interval(list(range(15, -1, -1))) == [3, 12]
    assert targets.interval(list(range(100))) == [39, 60]


def test_whole_fabrics_name_their_slowest_path(monkeypatch):
    """What a fabric costs, how fast it is, and what it waits for."""
    fabric = dict.fromkeys(("fmax_mhz", "fmax_min_mhz", "fmax_max_mhz"), 231.0)
    fabric |= {"luts": 7000, "ffs": 7400, "logic_mhz": 700.0, "why": None}
    fabric["slowest_path"] = {"words": "from a of the host to b of endpoint of node 3"}
    report = type("Report", (), {"fabric": fabric})
    monkeypatch.setattr(targets.tf, "synthesize", lambda *_, **__: report)
    monkeypatch.setattr(targets.tf, "emit", lambda fabric: Design({}, "fabric", {}))
    found = targets.fabric_row(targets.FABRICS[0], None)
    assert (found["met"], found["measured"], found["luts"]) == (True, 231.0, 7000)
    console = Console(width=300)
    with console.capture() as captured:
        console.print(targets.render([found]))
    assert "slowest from a of the host to b of endpoint of node 3" in captured.get()
