"""A project of Tiny Tapeout: its test passes at the pins, linters are silent, and its tiles fit."""

import json
import logging
import re

import pytest
from helpers import check_refused
from make_bench import have_bench, run_bench
from verilog_bench import check_silent

import torusfabric as tf
from torusfabric.cli import main

#: A fabric with one byte of inputs, with several; with an error number; with words of 17 bits.
SPECS = {
    "one byte": "2x2 reduce --width 1 --flits 1",
    "two bytes": "2x2 allgather --width 8 --flits 2",
    "engine": "2x2 broadcast,allreduce --width 4 --max-flits 2 --root any --op add,max "
    "--prefix my_",
    "wide": "3 alltoall --width 17 --flits 3",
    "beats": "2x2 allgather --width 8 --max-flits 4 --beat 2",
}


def written(folder, name):
    """Write the project of a fabric; return its folder."""
    words = ["verilog", *SPECS[name].split(), "--flow", "tinytapeout", "-o", str(folder)]
    assert main([*words, "--quiet"]) == 0
    return folder / "tinytapeout"


def settings(project):
    """Return the lines of ``info.yaml``: key -> value."""
    lines = [line.strip() for line in (project / "info.yaml").read_text().splitlines()]
    pairs = [re.fullmatch(r'("[^"]+"|\w+): *(.*)', line) for line in lines]
    return {pair[1].strip('"'): json.loads(pair[2]) for pair in pairs if pair and pair[2]}


@pytest.mark.skipif(not have_bench(), reason="cocotb, make or Icarus is not installed")
@pytest.mark.parametrize("name", SPECS)
def test_the_project_delivers_every_word_through_its_pins(tmp_path, name):
    """The test of the project writes, runs and reads by pins alone, and finds a swapped bit."""
    project = written(tmp_path, name)
    passed, text = run_bench(project, name="test", RUNS=2)
    assert passed, text
    verilog = project / "src/project.v"
    right = verilog.read_text()
    for old, new in FAULTS.items():
        changed = re.sub(old, new, right, count=1)
        if changed != right:
            verilog.write_text(changed)
            passed, text = run_bench(project, name="test", RUNS=2)
            assert not passed, old


#: Faults of the wrapper: text -> other text. The test of each project finds all that it has.
FAULTS = {
    r"code == 4'd1\)": "code == 4'd3)",
    r"strobe && code == 4'd0": "code == 4'd0",
    r"assign uio_out = {done, busy": "assign uio_out = {busy, done",
    r"\.host_addr\(inputs\[": ".host_addr(~inputs[",
    r"inputs = {taken, ui_in}": "inputs = {taken, ~ui_in}",
    r"4'd1: shown = host_rdata\[15:8\]": "4'd1: shown = host_rdata[16:9]",
    r"\{7'd0, host_rdata": "{7'd0, ~host_rdata",
}


@pytest.mark.parametrize("name", SPECS)
def test_linters_are_silent(tmp_path, name):
    """The wrapper and the fabric are silent in all linters, as one file."""
    project = written(tmp_path, name)
    text = (project / "src/project.v").read_text() + (tmp_path / "fabric.v").read_text()
    # Files of the template are not called like their modules.
    (tmp_path / "fabric.v").write_text(f"// verilator lint_off DECLFILENAME\n{text}")
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    facts = {"top": settings(project)["top_module"], "files": ["fabric.v"]}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | facts))
    check_silent(tmp_path)


def test_the_project_has_the_pins_and_files_of_the_template(tmp_path):
    """The module has the eight ports of the template, and ``info.yaml`` names files and all pins.

    The module is called by the prefix of the fabric, which makes it unique.
    """
    project = written(tmp_path, "engine")
    text, known = (project / "src/project.v").read_text(), settings(project)
    ports = re.search(r"module (\w+) \((.*?)\);", text, re.DOTALL)
    assert ports[1] == known["top_module"] == "tt_um_my_fabric"
    assert re.findall(r"(\w+)(?=,|\n)", ports[2]) == [
        *("ui_in", "uo_out", "uio_in", "uio_out", "uio_oe", "ena", "clk", "rst_n")
    ]
    pins = {f"{name}[{k}]" for name in ("ui", "uo", "uio") for k in range(8)}
    assert pins == {key for key in known if "[" in key}
    assert known["source_files"] == ["project.v", "fabric.v"]
    assert (known["clock_hz"], known["yaml_version"]) == (50_000_000, 6)
    assert json.loads((project / "src/config.json").read_text())["CLOCK_PERIOD"] == 20
    assert all((project / "src" / each).exists() for each in known["source_files"])
    fields = re.findall(r"^\| (\d+) \| (\d+) \| `(\w+)`", (project / "docs/info.md").read_text(),
                        re.MULTILINE)  # fmt: skip
    assert [name for _, _, name in fields] == [
        *("mode", "length", "root", "operation", "host_node", "host_addr", "host_wdata")
    ]
    end = 0
    for low, width, name in reversed(fields):
        assert int(low) == end, name
        end += int(width)


def test_tiles_follow_the_area(caplog):
    """A tile of 161 x 111.52 um holds half of its area in gates of 3.7536 um2: 2,391 of them."""
    caplog.set_level(logging.INFO, logger="torusfabric")
    for width, flits in ((1, 1), (8, 1), (8, 2), (16, 2)):
        fabric = tf.Fabric(tf.compile(tf.plan("2x2", "allgather", flits=flits), flits=flits),
                           width=width)  # fmt: skip
        tf.emit(fabric, flow="tinytapeout")
        gates, tiles = re.search(
            r"about ([\d,]+) gate.*, (\w+) tiles", caplog.messages[-1]
        ).groups()
        sizes = {"1x1": 2_391, "1x2": 4_841, "2x2": 10_070, "3x2": 15_299, "4x2": 20_528}
        number = int(gates.replace(",", ""))
        assert tiles == next(size for size, most in sizes.items() if number <= most)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("2x2 allgather --top core", "needs a host port behind its pins, not core"),
        ("2x2 allgather --bus wishbone", "needs a host port behind its pins, not wishbone"),
        ("2x2 allgather --tables ram --max-flits 2", "tables of a chip are empty at first"),
        ("2x2 allgather --width 129 --flits 1", "words of at most 128 bits, not 129"),
        ("2x2 reduce --width 128 --max-flits 2", "words of at most 120 bits, not 128"),
        (
            "4x4 allgather --width 32 --flits 8",
            "at most 93,875 gate equivalents, which fill 8x4 tiles",
        ),
    ],
)
def test_refusals(tmp_path, capsys, words, line):
    command = ["verilog", *words.split(), "--flow", "tinytapeout", "-o", str(tmp_path / "out")]
    assert line in check_refused(capsys, *command)
