"""The reference of signals: one page for each port type, with all signals and correct diagrams."""

import json
import re
import shlex
from pathlib import Path

import pytest
from helpers import few, misrouted, simulated
from pages import ShownFile

import torusfabric as tf
from torusfabric.contract.ports import Protocol
from torusfabric.rtl.assembly import Assembly

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in sorted(REFERENCE.glob("*.md"))}
TEXT = "\n".join(PAGES.values())

#: Page and selection of each port type.
TYPES = {
    "host": ("host", "2x2 broadcast"),
    "core": ("core", "2x2 allgather:hamiltonian --top core"),
    "core with memories": ("core", "2x2 broadcast --top core"),
    "streams": ("streams", "2 broadcast --top stream"),
    "axi-lite": ("bus", "2x2 broadcast --bus axi-lite"),
    "axi4": ("bus", "2x2 allgather --bus axi4"),
    "wishbone": ("bus", "2x2 allgather --bus wishbone"),
    "load port": ("loaded-tables", "3x3 allgather --tables ram"),
    "link ports": ("several-boards", "4x2 allgather --boards 2x1"),
}

DECIMAL = ("cycle", "cycles")


def example(folder, fault=None):
    """Return the fabric of a command with a folder, and the values in its diagrams by cycle."""
    (command,) = re.findall(rf"torusfabric verilog (.*) -o {folder}/", TEXT)
    topology, collective, *options = shlex.split(command)
    given = dict(zip(options[::2], options[1::2], strict=True))
    program = tf.compile(tf.plan(topology, collective), flits=int(given.pop("--flits")))
    width, top, bus = int(given["--width"]), given.get("--top", "host"), given.get("--bus")
    fabric = tf.Fabric(fault(program) if fault else program, width=width, top=top, bus=bus)
    diagrams = re.findall(rf"<!-- waves: {folder} -->\n```text\n(.*?)```", TEXT, re.S)
    return fabric, [cycles_shown(each) for each in diagrams]


def cycles_shown(diagram):
    """Return the values of signals in each cycle of a diagram."""
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
    """Return the first output that differs from its diagram, or None.

    An input keeps its last value until a diagram shows another one.
    """
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


def lists_of_signals(page):
    """Return options and folder of the command before each list of signals on a page."""
    return re.findall(r"torusfabric verilog ([^\n]*) -o (\w+)/\n(?:[^\n]*\n)?```\n\n"
                      r"<!-- signals: \2/manifest.json ", PAGES[page])  # fmt: skip


def options_of(command):
    """Return the options of a command that decide its port type."""
    named = re.findall(r"--(top|bus|tables|boards)(?: ([a-z0-9-]+))?", command)
    return {(name, value if name in ("top", "bus") else "") for name, value in named}


@pytest.mark.parametrize("kind", TYPES)
def test_a_port_type_has_one_page_with_its_signals(kind):
    """Each port type has one page that lists its signals."""
    page, selection = TYPES[kind]
    found = {
        name
        for name in PAGES
        for command, _ in lists_of_signals(name)
        if options_of(command) == options_of(selection)
    }
    assert found == {page}
    assert re.search(rf"\]\({page}\.md[#)]", PAGES["signals"])


def test_every_list_of_signals_is_of_a_known_type():
    """Each list of signals belongs to a known port type."""
    known = [options_of(selection) for _, selection in TYPES.values()]
    for name in PAGES:
        commands = lists_of_signals(name)
        assert len(commands) == PAGES[name].count("<!-- signals:")
        assert all(options_of(command) in known for command, _ in commands)


def test_every_protocol_is_explained():
    """The page on signals explains every protocol."""
    named = re.findall(r"^\| ((?:`[\w-]+`(?:, )?)+) \|", PAGES["signals"], re.M)
    assert {*re.findall(r"`([\w-]+)`", " ".join(named))} == {each.value for each in Protocol}


def test_a_list_has_each_signal_once(tmp_path):
    """A list has the signals of node 0 in place of those of all nodes.

    An unknown pattern is an error.
    """
    shown = pytest.importorskip("shown", reason="no Sphinx: extra docs")
    path, ports = tmp_path / "manifest.json", {}
    for node in (None, 0, 1):
        for name in ("go", "data|_") if node is None else ("word",):
            signal = name if node is None else f"{name}_{node}"
            ports[signal] = {"direction": "input", "width": 3, "protocol": "level",
                             "meaning": "a *word*", "node": node}  # fmt: skip
    path.write_text(json.dumps({"ports": ports}))
    table = lambda patterns: shown.render_shown(
        ShownFile("signals", path.name, patterns), "page", tmp_path, tmp_path
    ).splitlines()[2:]
    assert table("") == [
        rf"| `{name}` | input | 3 | level | a \*word\* |" for name in ("go", r"data\|_", "word_0")
    ]
    assert table("g* word*") == table("")[::2]
    with pytest.raises(shown.ExtensionError, match="no signal of the manifest matches nothing"):
        table("nothing")


@pytest.mark.parametrize("folder", ["host", "stream", "axi"])
def test_diagrams_show_what_the_hardware_does(folder):
    """The diagrams show the values that the hardware has."""
    assert first_difference(*example(folder)) is None


def test_a_planted_fault_is_found():
    """A router that selects a wrong word is found by its diagram."""
    fabric, diagrams = example("host", fault=misrouted)
    assert first_difference(fabric, diagrams) == "host_rdata"


@pytest.mark.parametrize("folder", few(2, ["host", "stream", "axi"]))
def test_a_planted_change_of_a_diagram_is_found(folder):
    """A changed output in a diagram is found."""
    fabric, diagrams = example(folder)
    for diagram in diagrams:
        last = diagram[max(diagram)]
        for port in last.keys() & fabric.netlist.outputs.keys():
            last[port] ^= 1
            assert first_difference(fabric, diagrams) == port
            last[port] ^= 1
