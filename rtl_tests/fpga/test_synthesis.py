"""Synthesis of small modules written by hand, whose costs are known by construction."""

import dataclasses
import io
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from helpers import fabric_of
from rich.console import Console

from torusfabric import verilog
from torusfabric.errors import InputError, MissingTool, WorkFailed
from torusfabric.fpga.synthesis import TARGETS, Workplace, flow, synthesize
from torusfabric.fpga.synthesis.cones import fewest_tables
from torusfabric.fpga.synthesis.flow import Flow
from torusfabric.fpga.synthesis.full_crossbar import full_crossbar, select_bits
from torusfabric.fpga.synthesis.harness import HARNESS, harness
from torusfabric.fpga.synthesis.report import per_bit
from torusfabric.fpga.synthesis.slowest_path import slowest_path
from torusfabric.fpga.synthesis.target import Cost, find_target, measure
from torusfabric.rtl.netlist import ROM, Netlist, Role
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache
from torusfabric.verilog.design import Design, RomContents, RouterShape

PORTS = 4


def router(width, *, extra=""):
    """A router of the plainest kind: each out-port forwards an in-port or injects, in one wave."""
    ports = range(PORTS)
    lines = [
        "module router(input clk, input inject",
        f"  , input [{width - 1}:0] own",
        *(f"  , input [{width - 1}:0] in_{p}" for p in ports),
        *(f"  , output reg [{width - 1}:0] out_{p}" for p in ports),
        ");",
        "  always @(posedge clk) begin",
        *(f"    out_{p} <= inject ? own : in_{(p + 1) % PORTS};" for p in ports),
        "  end",
        extra,
        "endmodule",
    ]
    return "\n".join(lines) + "\n"


def ring(width, nodes):
    """A ring of nodes on every port, with all of the last node visible."""
    bits = PORTS * width
    lines = [f"module fabric(input clk, input [{nodes - 1}:0] inject, input [{width - 1}:0] own"]
    lines += [f"  , output [{bits - 1}:0] seen);"]
    lines += [f"  wire [{bits - 1}:0] tx_{n};" for n in range(nodes)]
    for n in range(nodes):
        wires = [f".clk(clk), .inject(inject[{n}]), .own(own)"]
        for p in range(PORTS):
            part = f"[{p * width + width - 1}:{p * width}]"
            wires += [f".in_{p}(tx_{(n - 1) % nodes}{part}), .out_{p}(tx_{n}{part})"]
        lines += [f"  router node_{n} ({', '.join(wires)});"]
    return "\n".join([*lines, f"  assign seen = tx_{nodes - 1};", "endmodule"]) + "\n"


def design(width=8, nodes=4, *, extra=""):
    """A fabric of one class of routers."""
    return Design(
        modules={"router": router(width, extra=extra), "fabric": ring(width, nodes)},
        top="fabric",
        instances={"fabric": {"router": nodes}},
        classes=[("router", nodes)],
        outports={"router": tuple(f"out_{p}" for p in range(PORTS))},
    )


#: A block RAM of 256 x 16 bits, an adder of 8, and a few registers.
STORE = """
module store(input clk, input we, input [7:0] wa, input [7:0] ra, input [15:0] d,
             output reg [15:0] q, output reg [7:0] sum);
  (* no_rw_check *) reg [15:0] memory [0:255];
  always @(posedge clk) begin
    if (we) memory[wa] <= d;
    q <= memory[ra];
    sum <= wa + ra;
  end
endmodule
"""

#: A memory of 16 x 8 bits, read at once.
SMALL_STORE = """
module small_store(input clk, input we, input [3:0] wa, input [3:0] ra, input [7:0] d,
                   output [7:0] q);
  (* ram_style = "distributed" *) reg [7:0] memory [0:15];
  always @(posedge clk) if (we) memory[wa] <= d;
  assign q = memory[ra];
endmodule
"""

OUTER = """
module outer(input clk, input we, input [15:0] d, output [15:0] q);
  wire [15:0] a, b;
  store s0 (.clk(clk), .we(we), .wa(d[7:0]), .ra(d[15:8]), .d(d), .q(a), .sum());
  store s1 (.clk(clk), .we(we), .wa(d[7:0]), .ra(d[15:8]), .d(a), .q(b), .sum());
  assign q = b;
endmodule
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A cache that is empty before the first test of this file."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, shared, tmp_path):
    """Share what is synthesized among tests, but nothing with the outside."""
    monkeypatch.setenv("TORUSFABRIC_CACHE", str(shared))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def cache(tmp_path):
    """An empty cache."""
    return Cache(tmp_path / "cache")


@pytest.fixture
def runs(monkeypatch):
    """What tools run, as (tool, module)."""
    calls = []
    real = tools.run

    def run(name, args, **options):
        calls.append((name, options["what"]))
        return real(name, args, **options)

    monkeypatch.setattr(tools, "run", run)
    return calls


@pytest.fixture
def no_runs(monkeypatch):
    """A function after whose call tools may not run."""

    def run(name, args, **options):
        raise AssertionError(f"{name} ran on {options['what']}")

    return lambda: monkeypatch.setattr(tools, "run", run)


@pytest.mark.parametrize("target", ["ice40-hx8k", pytest.param("ecp5-25k", marks=pytest.mark.long)])
def test_wave_router_costs_one_lut_and_one_flip_flop_a_bit(target):
    width, nodes = 8, 4
    report = synthesize(design(width, nodes), target)
    bits = PORTS * width
    (row,) = report.classes
    assert (row["name"], row["nodes"]) == ("router", nodes)
    assert (row["luts"], row["ffs"], row["brams"]) == (bits, bits, 0)
    assert (row["outport_bits"], row["luts_per_bit"], row["ffs_per_bit"]) == (bits, 1, 1)
    assert row["why"] is None
    assert row["fmax_mhz"] is None
    fabric = report.fabric
    assert (fabric["luts"], fabric["ffs"], fabric["brams"]) == (nodes * bits, nodes * bits, 0)
    assert fabric["fits"] is True
    assert fabric["fmax_mhz"] is None
    assert [(m["name"], m["instances"], m["luts"]) for m in report.modules] == [
        ("router", nodes, bits),
        ("fabric", 1, 0),
    ]


@pytest.mark.long
def test_memories_adders_and_hierarchy_on_ice40():
    nested = Design(
        {"store": STORE, "outer": OUTER}, "outer", {"outer": {"store": 2}}, [("store", 2)]
    )
    report = synthesize(nested, "ice40-up5k")
    row = report.classes[0]
    assert (row["brams"], row["ffs"]) == (1, 8)
    assert row["luts"] in (8, 9)  # the first bit of a chain may take a table more
    assert row["carries"] == 7
    assert "luts_per_bit" not in row
    assert report.fabric["brams"] == 2
    assert report.fabric["luts"] == 2 * row["luts"]


@pytest.mark.long
def test_memories_and_adders_on_ecp5():
    modules = {"store": STORE, "small_store": SMALL_STORE}
    report = synthesize(Design(modules, "store", {}), "ecp5-85k")
    store, small = report.modules
    assert (store["brams"], store["luts"], store["carries"], store["ffs"]) == (1, 8, 8, 8)
    assert (small["brams"], small["lutrams"], small["luts"]) == (0, 2, 12)
    assert report.fabric["luts"] == 8  # the small one is not in it
    assert small["instances"] == 0


@pytest.mark.long
def test_wide_multiplexers_are_only_used_for_speed():
    text = "module wide(input [63:0] d, input [5:0] s, output q); assign q = d[s]; endmodule\n"
    wide = Design({"wide": text}, "wide", {})
    compact = synthesize(wide, "ecp5-25k")
    fast = synthesize(wide, "ecp5-25k", mapping="fast")
    assert compact.fabric["muxes"] == 0
    assert fast.fabric["muxes"] > 0
    assert (compact.mapping, fast.mapping) == ("compact", "fast")


def test_second_time_runs_no_tool(no_runs):
    first = synthesize(design(1), "ice40-hx8k")
    no_runs()
    assert synthesize(design(1), "ice40-hx8k") == first
    smaller = synthesize(design(1), "ice40-up5k")  # the same cells, another device
    assert smaller.classes == first.classes
    assert smaller.fabric["capacity"] != first.fabric["capacity"]
    with pytest.raises(AssertionError, match="yosys ran"):
        synthesize(design(1), "ecp5-25k")


def test_only_changed_text_runs_again(runs):
    synthesize(design(1), "ice40-hx8k")
    runs.clear()
    more = dataclasses.replace(design(1), modules={**design(1).modules, "small_store": SMALL_STORE})
    with pytest.raises(WorkFailed, match="small_store"):  # which ice40 cannot have
        synthesize(more, "ice40-hx8k")
    assert runs == [("yosys", "small_store")]
    runs.clear()
    synthesize(design(1, extra="  // changed"), "ice40-hx8k")
    assert sorted(runs) == [("yosys", "fabric"), ("yosys", "router")]


def test_other_tool_version_runs_again(no_runs, monkeypatch):
    synthesize(design(1), "ice40-hx8k")
    no_runs()
    synthesize(design(1), "ice40-hx8k")
    monkeypatch.setattr(tools, "version", lambda name: f"{name} 99")
    with pytest.raises(AssertionError, match="yosys ran"):
        synthesize(design(1), "ice40-hx8k")


@pytest.mark.long
def test_cost_of_control_is_explained():
    counter = "  reg [19:0] count; always @(posedge clk) count <= inject ? 0 : count + 1;"
    counter += "\n  assign busy = count[19];"
    text = router(4, extra=counter).replace("input inject", "input inject, output busy", 1)
    plain = design(4)
    busy = dataclasses.replace(plain, modules={**plain.modules, "router": text})
    row = synthesize(busy, "ice40-hx8k").classes[0]
    assert row["ffs"] == 16 + 20
    assert row["luts"] >= 16 + 20
    assert row["why"] == (
        f"{row['luts'] / 16:.2f} LUTs and 2.25 flip-flops an out-port bit (16 bits): "
        f"16 LUTs and 16 flip-flops drive out-ports; {row['luts'] - 16} LUTs and 20 flip-flops are "
        "control, selection before the last LUT, and the node's own ports, shared by all bits"
    )


def test_cost_a_bit_is_explained_above_a_tenth():
    drivers = {"bits": 100, "luts": 100, "ffs": 100}
    assert per_bit(Cost(luts=110, ffs=110), drivers)["why"] is None
    assert per_bit(Cost(luts=111, ffs=100), drivers)["why"].startswith("1.11 LUTs and 1.00 flip")
    assert per_bit(Cost(luts=100, ffs=111), drivers)["why"].startswith("1.00 LUTs and 1.11 flip")
    assert per_bit(Cost(luts=5), {**drivers, "bits": 0})["luts_per_bit"] is None


def test_place_and_route_gives_clock_rates(runs, no_runs, cache):
    steps = []
    report = synthesize(
        design(2, 3),
        "ice40-hx8k",
        pnr=True,
        progress=lambda *step: steps.append(step),
        workplace=Workplace(cache=cache),
    )
    assert sorted(runs) == sorted(
        [("yosys", "router"), ("yosys", "fabric")] * 2
        + [("nextpnr-ice40", "router"), ("nextpnr-ice40", "fabric")]
    )
    row = report.classes[0]
    for part in (row, report.fabric):
        assert 50 < part["fmax_mhz"] < 1000
        assert part["fmax_by_seed"] == [part["fmax_mhz"]]
    # The harness adds a register for each input and output, and one for three outputs.
    inputs, outputs = 1 + 2 + 4 * 2, 4 * 2
    assert row["placed"]["ICESTORM_LC"] >= row["cells"] + inputs + outputs + 3
    assert report.fabric["placed"]["ICESTORM_LC"] >= 3 * 8 + 8
    assert [step[:2] for step in steps] == [(n, 6) for n in range(1, 7)]
    assert report.seeds == [1]
    assert report.tools.keys() == {"yosys", "nextpnr-ice40"}
    no_runs()
    assert (
        synthesize(design(2, 3), "ice40-hx8k", pnr=True, workplace=Workplace(cache=cache)) == report
    )


def test_clock_rate_is_the_median_of_the_seeds(monkeypatch):
    rates = {1: 100.0, 2: 300.0, 3: 120.0, 4: None}
    monkeypatch.setattr(Flow, "harnessed", lambda self, name, ports, seeds: {"seconds": 1.0})
    monkeypatch.setattr(
        Flow,
        "place",
        lambda self, name, ports, seed: {
            "mhz": rates[seed],
            "why": None if rates[seed] else "does not fit: no room",
            "placed": {},
            "logic_mhz": 400.0,
            "seconds": 1.0,
        },
    )
    report = synthesize(design(1), "ice40-hx8k", pnr=True, seeds=range(1, 4))
    assert (report.fabric["fmax_mhz"], report.fabric["why"]) == (120.0, None)
    assert (report.fabric["fmax_min_mhz"], report.fabric["fmax_max_mhz"]) == (100.0, 300.0)
    assert "100-300" in _text(report)
    assert [run.get("seed") for run in report.runs if run["tool"] != "yosys"] == [1, 2, 3] * 2
    assert all(run["seconds"] > 0 for run in report.runs)
    report = synthesize(design(1), "ice40-hx8k", pnr=True, seeds=[4])
    assert (report.fabric["fmax_mhz"], report.fabric["why"]) == (None, "does not fit: no room")


def test_slowest_path_is_that_of_the_median(monkeypatch):
    """Its ends are parts of the fabric and what cells there are called after."""
    monkeypatch.setattr(Flow, "harnessed", lambda self, name, ports, seeds: {"seconds": 1.0})

    def place(self, name, ports, seed):
        step = lambda kind, delay: {
            "type": kind,
            "delay": delay,
            "from": {"cell": "dut.r0.word_TRELLIS_FF_Q_7"},
            "to": {"cell": f"dut.r{seed}.tx_TRELLIS_FF_Q"},
        }
        steps = [step("clk-to-q", 0.5), step("routing", 2.0), step("logic", 0.25)]
        paths = [{"from": "posedge clk", "to": "posedge clk", "path": steps}]
        known = {"mhz": 100.0 * seed, "why": None, "placed": {}, "logic_mhz": 400.0, "seconds": 1.0}
        return known | {"path": slowest_path({"critical_paths": paths})}

    monkeypatch.setattr(Flow, "place", place)
    parts = {"r0": "router of node 0", "r2": "router of node 2"}
    named = dataclasses.replace(design(1), instance_parts=parts)
    report = synthesize(named, "ice40-hx8k", pnr=True, seeds=[3, 1, 2])
    path = report.fabric["slowest_path"]
    assert path["from"] == "word of the router of node 0"
    assert path["to"] == "tx of the router of node 2"
    assert (path["logic_ns"], path["wire_ns"], path["tables"]) == (0.75, 2.0, 1)
    assert "slowest path from word of the router of node 0" in " ".join(_text(report).split())
    assert slowest_path({}) is None


@pytest.mark.long
def test_fabric_too_large_for_the_device_is_not_placed(monkeypatch):
    small = dataclasses.replace(TARGETS["ice40-hx8k"], capacity={"luts": 20, "cells": 7680})
    monkeypatch.setitem(TARGETS, "ice40-hx8k", small)
    asked = []

    def harnessed(self, name, ports, seeds):
        asked.append(name)
        return {"seconds": 1.0}

    placed = {"mhz": 99.0, "why": None, "placed": {}, "logic_mhz": 200.0, "seconds": 1.0}
    monkeypatch.setattr(Flow, "harnessed", harnessed)
    monkeypatch.setattr(Flow, "place", lambda *_: placed)
    report = synthesize(design(2, 3), "ice40-hx8k", pnr=True)
    assert report.fabric["fits"] is False
    assert report.fabric["fmax_mhz"] is None
    assert report.fabric["why"] == "does not fit: 24 LUTs of 20"
    assert report.classes[0]["fmax_mhz"] == 99.0
    assert asked == ["router"]
    assert "does not fit: 24 LUTs of 20" in _text(report)


def _pnr_that_fails(monkeypatch, last):
    monkeypatch.setattr(Flow, "harnessed", lambda self, name, ports, seeds: {"seconds": 1.0})
    real = tools.run
    said = f"Info: \t ICESTORM_LC:    8472/   7680   110%\nInfo: SB_IO: 3/ 256 1%\nERROR: {last}\n"

    def run(name, args, *, folder, log, what, makes):
        if name == "yosys":
            return real(name, args, folder=folder, log=log, what=what, makes=makes)
        (Path(folder) / log).write_text(said)
        raise WorkFailed(f"{name} failed on {what}: ERROR: {last} (log: {log})")

    monkeypatch.setattr(tools, "run", run)


def test_no_room_found_when_placing_is_a_result(monkeypatch):
    _pnr_that_fails(monkeypatch, "Unable to place cell 'x', no BELs remaining to implement")
    report = synthesize(design(1), "ice40-hx8k", pnr=True, seeds=[8])
    assert report.fabric["fmax_mhz"] is None
    assert report.fabric["why"] == "does not fit: 8472 ICESTORM_LC of 7680"
    assert report.fabric["fits"] is True  # by count


def test_other_failure_of_place_and_route_is_an_error(monkeypatch):
    _pnr_that_fails(monkeypatch, "Unsupported package 'x'")
    with pytest.raises(WorkFailed, match=r"^nextpnr-ice40 failed on router: ERROR: Unsupported"):
        synthesize(design(1), "ice40-hx8k", pnr=True, seeds=[9])


def test_missing_tool_is_one_line(monkeypatch, no_runs):
    no_runs()
    monkeypatch.setenv("YOSYS", "no-such-yosys")
    with pytest.raises(
        MissingTool, match=r"^Tool yosys was not found as 'no-such-yosys' .*: pip install \S+$"
    ):
        synthesize(design(1), "ice40-hx8k")


def test_missing_place_and_route_is_found_out_first(monkeypatch, no_runs):
    no_runs()
    monkeypatch.setenv("NEXTPNR_ICE40", "no-such-nextpnr")
    with pytest.raises(MissingTool, match=r"^Tool nextpnr-ice40 was not found"):
        synthesize(design(1), "ice40-hx8k", pnr=True)


def test_error_in_verilog_is_quoted_and_its_log_kept(tmp_path):
    broken = Design({"m": "module m(input a, output b);\n  assign b = = a;\nendmodule\n"}, "m", {})
    with pytest.raises(
        WorkFailed,
        match=r"^yosys failed on m: 0-m\.v:2: ERROR: syntax error, unexpected '=' "
        r"\(log: .*0-m\.log\)$",
    ):
        synthesize(broken, "ice40-hx8k", workplace=Workplace(folder=tmp_path / "work"))
    assert "syntax error" in (tmp_path / "work" / "0-m.log").read_text()


def test_only_failures_leave_a_folder(tmp_path):
    synthesize(design(1), "ice40-hx8k")
    assert list(tmp_path.glob("torusfabric-synth-*")) == []
    with pytest.raises(WorkFailed) as caught:
        synthesize(Design({"m": "module m(;"}, "m", {}), "ice40-hx8k")
    (log,) = tmp_path.glob("torusfabric-synth-*/0-m.log")
    assert f"(log: {log})" in str(caught.value)


def test_unknown_child_is_an_error():
    orphan = Design({"m": "module m(input a);\n  nobody x (.a(a));\nendmodule\n"}, "m", {})
    with pytest.raises(WorkFailed, match=r"^yosys failed on m: ERROR: .*nobody"):
        synthesize(orphan, "ice40-hx8k")


def test_cell_of_another_family_is_an_error():
    cell = {"type": "TRELLIS_FF", "port_directions": {}, "connections": {}}
    module = {"cells": {"x": cell}, "ports": {}}
    with pytest.raises(WorkFailed, match=r"^Cells must be those of ice40, not TRELLIS_FF$"):
        measure(find_target("ice40-hx8k"), module, ())
    assert measure(find_target("ecp5-25k"), module, ()) == Cost(ffs=1)
    assert measure(find_target("ice40-hx8k"), module, {"TRELLIS_FF"}) == Cost()


def test_child_after_its_parent_is_refused():
    modules = dict(reversed(design(1).modules.items()))
    with pytest.raises(ValueError, match=r"^Module router must come before fabric, which has it$"):
        synthesize(dataclasses.replace(design(1), modules=modules), "ice40-hx8k")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"target": "ice40"},
            r"^Target must be one of ice40-hx8k, .*gowin-gw1nr-9, not 'ice40' \(did you mean ",
        ),
        ({"mapping": "best"}, r"^Mapping must be compact or fast, not 'best'$"),
        ({"seeds": []}, r"^Seeds must be one or more positive integers, not \[\]$"),
        ({"seeds": [1, 0]}, r"^Seeds must be one or more positive integers, not \[1, 0\]$"),
    ],
)
def test_misfit_options(options, message):
    with pytest.raises(InputError, match=message):
        synthesize(design(1), **{"target": "ice40-hx8k", **options})


def test_all_targets_know_what_fits():
    assert {"ice40-hx8k", "ice40-up5k", "ecp5-25k", "ecp5-85k"} <= TARGETS.keys()
    for target in TARGETS.values():
        for name, most in target.capacity.items():
            assert target.over(Cost(**{name: most})) is None
            assert target.over(Cost(**{name: most + 1})).startswith(f"does not fit: {most + 1} ")


def test_logic_cells_of_ice40_are_shared_where_they_can_be():
    def cell(kind, **ports):
        return {
            "type": kind,
            "port_directions": {p: "output" if p in "OQ" else "input" for p in ports},
            "connections": {p: [bit] for p, bit in ports.items()},
        }

    cells = {
        "lut": cell("SB_LUT4", I0=2, I1=3, I2=4, I3="0", O=10),
        "its register": cell("SB_DFF", C=1, D=10, Q=11),
        "lut read twice": cell("SB_LUT4", I0=11, I1=5, I2="0", I3="0", O=12),
        "a register of its own": cell("SB_DFFE", C=1, E=2, D=12, Q=13),
        "carry beside the first lut": cell("SB_CARRY", I0=3, I1=4, CI=6, CO=14),
        "carry of its own": cell("SB_CARRY", I0=3, I1=5, CI=14, CO=15),
    }
    module = {"cells": cells, "ports": {"q": {"direction": "output", "bits": [12, 13, 15]}}}
    cost = measure(find_target("ice40-hx8k"), module, ())
    assert cost == Cost(luts=2, ffs=2, carries=2, cells=4)


def test_report_has_the_keys_others_read():
    report = synthesize(design(1), "ice40-hx8k")
    value = json.loads(json.dumps(report.to_json()))
    assert value["target"] == "ice40-hx8k"
    assert {"name", "nodes", "luts", "ffs", "brams", "fmax_mhz"} <= value["classes"][0].keys()
    assert {"luts", "ffs", "brams", "fmax_mhz", "fits"} <= value["fabric"].keys()


def _text(report):
    console = Console(file=io.StringIO(), width=100)
    console.print(report.render())
    return console.file.getvalue()


def test_report_prints_as_a_table():
    text = _text(synthesize(design(8, 4), "ice40-hx8k"))
    rows = [[part.strip() for part in line.split("│")] for line in text.splitlines()]
    assert ["", "router", "4", "32", "32", "0", "", "1.00", "1.00", ""] in rows
    assert ["", "fabric", "4", "128", "128", "0", "", "", "", ""] in rows
    assert ["", "of the device", "", "1.7 %", "1.7 %", "0.0 %", "", "", "", ""] in rows


SHAPE = RouterShape(ports=PORTS, injection_ports=1, width=8, settings=4)


def described(width=8):
    """The same fabric with all that the report can use."""
    return dataclasses.replace(
        design(width, 4),
        inports={"router": {f"in_{p}": "crossbar" for p in range(PORTS)} | {"own": "injection"}},
        shapes={"router": SHAPE},
        parts={"fabric": "other"},
    )


@pytest.mark.long
def test_report_shows_where_the_luts_go():
    report = synthesize(described(), "ecp5-25k")
    # Forwarding is by wire: all tables are there for injection.
    row = report.classes[0]
    assert row["parts"] == {"crossbar": 0, "injection": PORTS * 8, "settings": 0}
    assert row["least_luts"] == PORTS * 8
    assert report.parts == {"injection": 4 * PORTS * 8, "crossbar": 0, "settings": 0, "other": 0}
    assert sum(report.parts.values()) == report.fabric["luts"]
    assert "where the LUTs go" in _text(report)


@pytest.mark.long
def test_luts_saved_against_a_full_crossbar(runs):
    report = synthesize(described(), "ecp5-25k")
    row, fabric = report.classes[0], report.fabric
    # Five inputs take three tables a bit; the ROM of four settings takes some more.
    full = row["full_crossbar_luts"]
    assert PORTS * 8 * 3 <= full <= PORTS * 8 * 3 + 20
    assert row["saved_luts"] == full - row["luts"]
    assert fabric["full_crossbar_luts"] == 4 * full
    assert fabric["saved_share"] == row["saved_share"] == round(row["saved_luts"] / full, 4)
    assert "routers against full crossbars" in _text(report)
    fast = synthesize(described(), "ecp5-25k", mapping="fast")
    assert fast.classes[0]["full_crossbar_luts"] == full  # the cheapest there is, in any case


@pytest.mark.long
@pytest.mark.parametrize("inputs", [3, 10])
def test_full_crossbar_is_a_cascade_of_tables(inputs, cache):
    shape = RouterShape(ports=inputs - 1, injection_ports=1, width=1, settings=0)
    full = full_crossbar(shape)
    luts = synthesize(full, "ice40-hx8k", workplace=Workplace(cache=cache)).fabric["luts"]
    assert luts == (inputs - 1) * -(-inputs // 2)


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="needs Icarus Verilog")
@pytest.mark.parametrize("inputs", [2, 3, 4, 5, 8])
def test_full_crossbar_passes_every_input(inputs, tmp_path):
    full = full_crossbar(RouterShape(ports=1, injection_ports=inputs - 1, width=1, settings=0))
    rows = [select_bits(inputs, source) for source in range(inputs)]
    values = ["".join(map(str, reversed(row))) for row in rows]
    checks = "".join(
        f"    s = 'b{value}; d = {1 << k}; #1 clk = 1; #1 clk = 0; if (q !== 1) bad = 1;\n"
        f"    d = ~{1 << k}; #1 clk = 1; #1 clk = 0; if (q !== 0) bad = 1;\n"
        for k, value in enumerate(values)
    )
    bench = f"""
    module bench;
      reg clk = 0, bad = 0; reg [{inputs - 1}:0] d; reg [{len(rows[0]) - 1}:0] s; wire q;
      full x (clk, 1'b1, s, d[0], d[{inputs - 1}:1], q);
      initial begin
    {checks}    $display("%0d", bad);
      end
    endmodule
    """
    (tmp_path / "x.v").write_text(full.text + bench)
    subprocess.run(["iverilog", "-g2005", "-o", "x", "x.v"], cwd=tmp_path, check=True)
    said = subprocess.run(["vvp", "x"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert said.stdout.split() == ["0"]


def test_fewest_tables():
    # Two or three words take one table if their selects are not more than its other inputs.
    assert [fewest_tables(n) for n in range(9)] == [0, 0, 1, 2, 2, 3, 3, 3, 4]


@pytest.mark.long
def test_registers_before_the_last_count_as_words():
    text = """
    module router(input clk, input [1:0] s, input [3:0] in, input [3:0] own, output reg [3:0] tx);
      reg [3:0] later; reg [1:0] select;
      always @(posedge clk) begin
        select <= ~s; later <= in; tx <= select[1] ? own : select[0] ? later : in;
      end
    endmodule
    """
    one = Design(
        {"router": text},
        "router",
        {},
        [("router", 1)],
        outports={"router": ("tx",)},
        inports={"router": {"in": "crossbar", "own": "injection"}},
    )
    row = synthesize(one, "ice40-hx8k").classes[0]
    assert row["least_luts"] == 4 * 2
    assert sum(row["parts"].values()) == row["luts"]
    assert row["parts"]["settings"] == 2


SWITCH = """
module router(input clk, input select, input [7:0] own, input [7:0] in, output reg [7:0] out);
  always @(posedge clk) out <= select ? own : in;
endmodule
"""


def with_roms():
    """Three routers that read their selects from ROMs of two different contents."""
    rom = verilog.module_texts(rom_netlist())[ROM].text
    dear = RomContents(tuple(k * k % 7 % 2 for k in range(40)), 1)
    contents = {"dear": dear, "cheap": RomContents((0,) * 40, 1)}
    top = f"""
    module fabric(input clk, input [5:0] row, input [7:0] own, output [7:0] out);
      wire [7:0] a, b;
      wire x, y, z;
      rom #({dear.parameters()}) rom_0 (.clk(clk), .address(row), .data(x));
      rom #({contents["cheap"].parameters()}) rom_1 (.clk(clk), .address(row), .data(y));
      rom #({contents["cheap"].parameters()}) rom_2 (.clk(clk), .address(row), .data(z));
      router r_0 (.clk(clk), .select(x), .own(own), .in(out), .out(a));
      router r_1 (.clk(clk), .select(y), .own(own), .in(a), .out(b));
      router r_2 (.clk(clk), .select(z), .own(own), .in(b), .out(out));
    endmodule
    """
    return Design(
        modules={ROM: rom, "router": SWITCH, "fabric": top},
        top="fabric",
        instances={"fabric": {"router": 3, "dear": 1, "cheap": 2}},
        classes=[("router", 3)],
        outports={"router": ("out",)},
        inports={"router": {"in": "crossbar", "own": "injection"}},
        parts={"dear": "settings", "cheap": "settings"},
        contents=contents,
        settings={"router": {"select": {"dear": 1, "cheap": 2}}},
    )


def rom_netlist():
    netlist = Netlist()
    netlist.add_rom("rom", rows=[0], width=1, address=netlist.add_input("a"), output="q")
    return netlist


@pytest.mark.long
def test_routers_have_the_dearest_of_their_roms(runs):
    """A class costs what its routers cost with the dearest contents, which the report names."""
    report = synthesize(with_roms(), "ice40-hx8k")
    costs = {row["name"]: row for row in report.modules}
    assert costs["dear"]["luts"] > costs["cheap"]["luts"] == 0
    row = report.classes[0]
    assert row["roms"] == ["dear"]
    assert row["luts"] == costs["router"]["luts"] + costs["dear"]["luts"]
    assert row["ffs"] == 8 + 1
    assert row["parts"]["settings"] == costs["dear"]["luts"]
    assert report.fabric["luts"] == 3 * costs["router"]["luts"] + costs["dear"]["luts"]
    assert report.parts["settings"] == costs["dear"]["luts"]
    assert runs.count(("yosys", "the ROMs")) == 1
    assert "router: with the contents of dear, the dearest" in _text(report)


@pytest.mark.long
def test_routers_are_placed_with_their_roms():
    report = synthesize(with_roms(), "ice40-hx8k", pnr=True)
    assert report.classes[0]["fmax_mhz"] > 50
    assert report.fabric["fmax_mhz"] > 50


@pytest.mark.long
def test_routers_that_inject_nothing():
    """A node that only receives, or passes on, has a router without words of its own."""
    fabric = fabric_of("3", "broadcast", "max-flow", width=2)
    assert any("inject" not in i.inputs for i in fabric.netlist.having(Role.ROUTER))
    report = synthesize(verilog.emit(fabric).routers(), "ice40-hx8k")
    assert sum(row["nodes"] for row in report.classes) == 3


@pytest.mark.long
def test_gowin(runs):
    report = synthesize(described(), "gowin-gw1nr-9")
    assert report.classes[0]["luts"] == report.classes[0]["ffs"] == PORTS * 8
    store = Design({"store": STORE}, "store", {})
    row = synthesize(store, "gowin-gw1nr-9").fabric
    assert (row["brams"], row["luts"], row["carries"], row["ffs"]) == (1, 8, 8, 8)
    small = Design({"small_store": SMALL_STORE}, "small_store", {})
    row = synthesize(small, "gowin-gw1nr-9").fabric
    assert (row["brams"], row["lutrams"], row["luts"]) == (0, 2, 16)


@pytest.mark.long
@pytest.mark.skipif(tools.find("nextpnr-himbaechel-gowin") is None, reason="needs Gowin's tools")
def test_gowin_clock_rate():
    text = router(2).replace("(posedge clk) begin", "(posedge clk) if (enable) begin")
    text = text.replace("input inject", "input inject, input enable", 1)
    alone = Design({"router": text}, "router", {}, [("router", 1)])
    row = synthesize(alone, "gowin-gw1nr-9", pnr=True, mapping="fast").classes[0]
    assert 20 < row["fmax_mhz"] <= row["logic_mhz"]
    # The router's own, and one for each of its inputs and outputs.
    assert row["placed"]["DFF"] >= 3 * PORTS * 2


@pytest.mark.long
def test_no_path_between_registers_is_reported(monkeypatch):
    real = flow.load_json

    def load(path, tool, what):
        value = real(path, tool, what)
        return value | {"fmax": {}, "critical_paths": []} if "fmax" in value else value

    monkeypatch.setattr(flow, "load_json", load)
    report = synthesize(design(1), "ice40-hx8k", pnr=True, seeds=[7])
    assert report.fabric["fmax_mhz"] is report.fabric["logic_mhz"] is None
    assert report.fabric["why"] == "nextpnr-ice40 found no path from register to register"


@pytest.mark.parametrize("outputs", [0, 1, 4, 5, 17])
@pytest.mark.skipif(shutil.which("iverilog") is None, reason="needs Icarus Verilog")
def test_harness_drives_every_input_and_sees_every_output(outputs, tmp_path):
    width = max(outputs, 1)
    ports = {"clk": ("input", 1), "a": ("input", width)}
    text = f"module m(input clk, input [{width - 1}:0] a"
    if outputs:
        ports["q"] = ("output", outputs)
        text += f", output [{outputs - 1}:0] q"
    text += ");\n" + ("  assign q = a;\n" if outputs else "") + "endmodule\n"
    bench = f"""
    module bench;
      reg clk = 0, scan = 0; wire pin; integer n, ones = 0;
      {HARNESS} h (clk, scan, pin);
      initial begin
        for (n = 0; n < {4 * width + 40}; n = n + 1) begin
          scan = n == {2 * width + 10};  // one bit, which passes each input once
          #1 clk = 1; #1 clk = 0;
          if (n >= {2 * width + 10}) ones = ones + pin;
        end
        $display("%0d", ones);
      end
    endmodule
    """
    (tmp_path / "x.v").write_text(text + harness("m", ports) + bench)
    subprocess.run(["iverilog", "-g2005", "-o", "x", "x.v"], cwd=tmp_path, check=True)
    said = subprocess.run(["vvp", "x"], cwd=tmp_path, check=True, capture_output=True, text=True)
    # Registers start unknown; by then the scan chain has cleared all of them.
    assert said.stdout.split() == [str(width)]


def test_harness_refuses_other_ports():
    with pytest.raises(WorkFailed, match=r"^Port pad of m must be an input or output, not inout$"):
        harness("m", {"pad": ("inout", 1)})


@pytest.mark.long
def test_router_at_two_widths_on_all_targets():
    for target in TARGETS:
        for width in (8, 32):
            report = synthesize(design(width, 4), target, pnr=True, seeds=(1, 2))
            assert report.classes[0]["luts"] == report.classes[0]["ffs"] == PORTS * width
            # Without clock enables, Gowin's tool times no path after routing.
            assert target.startswith("gowin") or report.fabric["fmax_mhz"] > 20
