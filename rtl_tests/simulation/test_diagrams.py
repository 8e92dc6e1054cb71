"""Timing diagrams: what they show is what the hardware does, played again line by line."""

import copy
import json
import re
from collections import defaultdict
from dataclasses import replace

import pytest
from helpers import few, misrouted, simulated

import torusfabric as tf
from torusfabric.rtl.assembly import Assembly
from torusfabric.simulation.diagrams import draw_diagrams
from torusfabric.verilog.diagram import can_render

#: A fabric of each interface: topology, collective, lengths, options.
FABRICS = {
    "host": ("2x2", "alltoall", {"flits": 3}, {}),
    "engine": ("2x2", "alltoall,allreduce", {"max_flits": 8}, {}),
    "beats": ("3", "broadcast", {"max_flits": 8}, {"top": "stream", "beat": 2}),
    "memories": ("2x2", "scatter", {"flits": 3}, {"top": "core"}),
    "scheduled": ("3x3", "allgather:hamiltonian", {"flits": 4}, {"top": "core"}),
    "wishbone": ("2x2", "broadcast", {"max_flits": 6}, {"bus": "wishbone"}),
    "stream": ("3", "broadcast", {"flits": 4}, {"top": "stream"}),
    "axi-lite": ("2x2", "reduce", {"flits": 2}, {"bus": "axi-lite"}),
    "axi4": ("2x2", "reduce", {"flits": 2}, {"bus": "axi4"}),
}


def fabric_for(name, *, fault=None, width=40):
    topology, collective, lengths, options = FABRICS[name]
    schedules = [tf.plan(topology, one) for one in collective.split(",")]
    program = tf.compile(schedules if len(schedules) > 1 else schedules[0], **lengths)
    return tf.Fabric(fault(program) if fault else program, width=width, **options)


def columns_of(line):
    """The text of a line in each column, None in gaps."""
    data, shown = iter(line.get("data", ())), None
    for character in line["wave"]:
        if character in "01=":
            shown = character if character in "01" else next(data)
        yield None if character == "|" else shown
    assert next(data, None) is None, f"{line['name']} must have no data left"


def cycles_shown(diagrams):
    """What diagrams show: of each cycle the bits of ports, by (port, low, high)."""
    shown = defaultdict(dict)
    for diagram in diagrams:
        first, clock, *lines = json.loads(diagram.json)["signal"]
        assert (first["name"], clock["name"]) == ("cycle", "clk")
        numbers = [*columns_of(first)]
        assert clock["wave"] == "p" + "".join("|" if n is None else "." for n in numbers[1:])
        for line in lines:
            port, low, high = re.fullmatch(r"(\w+)(?:\[(?:(\d+):)?(\d+)\])?", line["name"]).group(
                1, 3, 2
            )
            bits = (port, low and int(low), int(high or low or 0))
            for number, text in zip(numbers, columns_of(line), strict=True):
                assert (number is None) == (text is None)
                if number is not None:
                    shown[int(number)][bits] = int(text, 0)
    return shown


def difference(fabric, diagrams):
    """The first difference between what diagrams show and what a fabric does, or None.

    All of them together show every change of an input after the reset.
    """
    shown, found, design = cycles_shown(diagrams), [], Assembly(fabric.netlist)

    async def testbench(ctx):
        for cycle in range(min(shown), max(shown) + 1):
            for (port, low, high), value in shown.get(cycle, {}).items():
                signal = getattr(design, port)
                bits = signal if low is None else signal[low : high + 1]
                if port in fabric.netlist.inputs:
                    ctx.set(bits, value)
                elif int(ctx.get(bits)) != value:
                    found.append(f"{port} in cycle {cycle} is {int(ctx.get(bits)):#x}")
            await ctx.tick()

    simulated(design, testbench)
    return found[0] if found else None


@pytest.mark.parametrize("name", few(4, [*FABRICS], tuples=True))
def test_waves_are_what_the_hardware_does(name):
    diagrams = draw_diagrams(fabric_for(name))
    assert difference(fabric_for(name), diagrams) is None


def test_a_planted_fault_is_another_wave():
    """Another router passes on a word, and so another word is read."""
    diagrams = draw_diagrams(fabric_for("host"))
    assert difference(fabric_for("host", fault=misrouted), diagrams).startswith("host_rdata")


def test_a_planted_change_of_a_wave_is_found():
    """Each line of an output, changed in its last column."""
    fabric = fabric_for("host")
    diagrams = draw_diagrams(fabric)
    for number, diagram in enumerate(diagrams):
        for k, line in enumerate(diagram.waves["signal"]):
            if line["name"] in fabric.netlist.outputs:
                waves = copy.deepcopy(diagram.waves)
                waves["signal"][k] = changed_line(line)
                planted = [*diagrams]
                planted[number] = replace(diagram, waves=waves)
                assert difference(fabric_for("host"), planted).startswith(line["name"])


def changed_line(line):
    """A line with another value in its last column."""
    last = [*columns_of(line)][-1]
    if "data" not in line:
        return line | {"wave": line["wave"][:-1] + str(1 - int(last))}
    data = list(line["data"])
    if line["wave"][-1] == "=":
        data.pop()
    return line | {"wave": line["wave"][:-1] + "=", "data": [*data, str(int(last, 0) + 1)]}


def test_the_run_takes_the_predicted_cycles():
    """In the diagram of a run `done` rises in the cycle that is the number of them."""
    fabric = fabric_for("host")
    (run,) = (diagram for diagram in draw_diagrams(fabric) if diagram.name == "run")
    lines = {line["name"]: [*columns_of(line)] for line in run.waves["signal"]}
    done = lines["done"].index("1")
    assert int(lines["cycle"][done]) == int(lines["cycles"][done]) == fabric.predicted_cycles


def test_an_export_with_docs_describes_its_ports(tmp_path):
    fabric = fabric_for("memories", width=8)
    tf.emit(fabric, diagrams=draw_diagrams(fabric)).write(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    docs = {path.name for path in (tmp_path / "docs").iterdir()}
    assert {f"docs/{name}" for name in docs} <= set(manifest["files"])
    assert {"signals.md", "write.json", "run.json", "read.json"} <= docs
    page = (tmp_path / "docs" / "signals.md").read_text()
    for name, port in manifest["ports"].items():
        known = name if port["node"] is None else f"{name.removesuffix(str(port['node']))}N"
        row = re.search(rf"^\| `{known}` \| .*$", page, re.M)[0]
        for word in (port["direction"], port["width"], port["protocol"], port["meaning"]):
            assert f"| {word} |" in row
    if can_render():
        assert "![A run](run.svg)" in page
        assert (tmp_path / "docs" / "run.svg").read_text().startswith("<svg")


def test_docs_without_a_renderer_are_data(tmp_path, monkeypatch):
    monkeypatch.setattr("torusfabric.verilog.pages.can_render", lambda: False)
    fabric = fabric_for("host", width=8)
    tf.emit(fabric, diagrams=draw_diagrams(fabric)).write(tmp_path)
    assert not [*(tmp_path / "docs").glob("*.svg")]
    assert "[run.json](run.json)" in (tmp_path / "docs" / "signals.md").read_text()
