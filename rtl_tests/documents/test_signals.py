"""The timing diagrams of `docs/reference/signals.md`: fabrics of its commands do as they show."""

import re
import shlex
from pathlib import Path

import pytest
from helpers import few, misrouted, simulated

import torusfabric as tf
from torusfabric.rtl.assembly import Assembly

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "signals.md").read_text(encoding="utf-8")

DECIMAL = ("cycle", "cycles")


def example(folder, fault=None):
    """The fabric that a command writes into a folder, and what its diagrams show by cycle."""
    (command,) = re.findall(rf"torusfabric verilog (.*) -o {folder}/", TEXT)
    topology, collective, *options = shlex.split(command)
    given = dict(zip(options[::2], options[1::2], strict=True))
    program = tf.compile(tf.plan(topology, collective), flits=int(given.pop("--flits")))
    width, top, bus = int(given["--width"]), given.get("--top", "host"), given.get("--bus")
    fabric = tf.Fabric(fault(program) if fault else program, width=width, top=top, bus=bus)
    diagrams = re.findall(rf"<!-- waves: {folder} -->\n```text\n(.*?)```", TEXT, re.S)
    return fabric, [cycles_shown(each) for each in diagrams]


def cycles_shown(diagram):
    """The values of ports in each cycle that a diagram shows."""
    numbers, *lines = (line.split() for line in diagram.splitlines())
    return {
        int(number): {
            name: int(values[k], 10 if name in DECIMAL else 16)
            for name, *values in lines
            if values[k] != "-"
        }
        for k, number in enumerate(numbers[1:])
        if number != ":"
    }


def first_difference(fabric, diagrams):
    """The first output that is not as shown, or None; inputs stay as they were last shown."""
    shown = {cycle: ports for each in diagrams for cycle, ports in each.items()}
    assert sum(map(len, diagrams)) == len(shown), "each cycle is shown once"
    found, design = [], Assembly(fabric.netlist)

    async def testbench(ctx):
        for cycle in range(min(shown), max(shown) + 1):
            for port, value in shown.get(cycle, {}).items():
                if port in fabric.netlist.inputs:
                    ctx.set(getattr(design, port), value)
            for port, value in shown.get(cycle, {}).items():
                if port in fabric.netlist.outputs and ctx.get(getattr(design, port)) != value:
                    found.append(port)
            await ctx.tick()

    simulated(design, testbench)
    return found[0] if found else None


@pytest.mark.parametrize("folder", ["host", "stream", "axi"])
def test_diagrams_show_what_the_hardware_does(folder):
    assert first_difference(*example(folder)) is None


def test_a_planted_fault_is_found():
    """Another router passes on a word, and so another word is read."""
    fabric, diagrams = example("host", fault=misrouted)
    assert first_difference(fabric, diagrams) == "host_rdata"


@pytest.mark.parametrize("folder", few(2, ["host", "stream", "axi"]))
def test_a_planted_change_of_a_diagram_is_found(folder):
    """Each output, with another value in the last cycle that shows it."""
    fabric, diagrams = example(folder)
    for diagram in diagrams:
        last = diagram[max(diagram)]
        for port in last.keys() & fabric.netlist.outputs.keys():
            last[port] ^= 1
            assert first_difference(fabric, diagrams) == port
            last[port] ^= 1
