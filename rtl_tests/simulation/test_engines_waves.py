"""Waves: every engine writes the same signals with the same values, and leaves no other files."""

import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from helpers import fabric_of, few, random_messages

from torusfabric.errors import InputError, MissingTool, WorkFailed
from torusfabric.program import Program
from torusfabric.simulation.engines import (
    AmaranthEngine,
    CompiledEngine,
    check_wave_file,
    choose_engine,
)
from torusfabric.toolchain import cxx, tools

needs_compiler = pytest.mark.skipif(not cxx.has_compiler(), reason="no C++ compiler")
needs_gtkwave = pytest.mark.skipif(
    not (shutil.which("vcd2fst") and shutil.which("fst2vcd")), reason="no vcd2fst"
)

ENGINES = [
    pytest.param(AmaranthEngine, {}, id="amaranth"),
    pytest.param(CompiledEngine, {}, id="compiled", marks=needs_compiler),
]

#: Names of signals that the view of every fabric has.
WHOLE = {"start", "host_we", "host_node", "host_addr", "host_rdata", "busy", "done", "cycles"}


def run(engine, options, fabric, wave):
    made = engine(fabric, wave=wave, **options)
    return made.run(random_messages(fabric, 1))


def vcd_text(wave):
    """The content of a wave file as VCD, converted by GTKWave's tools if necessary."""
    if wave.suffix == ".vcd":
        return wave.read_text()
    return subprocess.run(["fst2vcd", "-f", wave], capture_output=True, text=True).stdout


def names_of(header):
    """Map full names of signals, with the bits of vectors, to their codes."""
    found, scopes = {}, []
    for line in header.splitlines():
        words = line.split()
        if words[:1] == ["$scope"]:
            scopes.append(words[2])
        elif words[:1] == ["$upscope"]:
            scopes.pop()
        elif words[:1] == ["$var"]:
            bits = f"[{int(words[2]) - 1}:0]" if words[2] != "1" else ""
            found[".".join([*scopes, words[4]]) + bits] = words[3]
    return found


def viewed(view):
    """Map group and alias of each signal of a view to its name."""
    found, group = {}, None
    for line in view.read_text().splitlines():
        if line.startswith("-"):
            group = line[1:]
        elif line[:1] not in "@[*":
            alias, name = re.fullmatch(r"\+\{(.*)\} (\S+)", line).groups()
            found[group, alias] = name
    return found


def sampled(wave, clock):
    """The values of all signals just before each rising edge of the clock."""
    header, _, body = vcd_text(wave).partition("$enddefinitions $end")
    codes = names_of(header)
    values, changes, samples = {}, {}, []

    def settle():
        if changes.get(codes[clock]) == "1" and values.get(codes[clock]) == "0":
            samples.append({name: values[code] for name, code in codes.items() if code in values})
        values.update(changes)
        changes.clear()

    for line in body.splitlines():
        if line.startswith("#"):
            settle()
        elif line.startswith("b"):
            value, code = line[1:].split()
            changes[code] = value.lstrip("0") or "0"
        elif line[:1] in ("0", "1"):
            changes[line[1:]] = line[0]
    settle()
    return samples


def shown_values(wave):
    """The values of a view at each edge, by group and alias."""
    names = viewed(wave.with_suffix(".gtkw"))
    return [
        {key: sample[name] for key, name in names.items() if key[1] != "clk"}
        for sample in sampled(wave, names[None, "clk"])
    ]


@pytest.mark.parametrize("suffix", [".vcd", pytest.param(".fst", marks=needs_gtkwave)])
@pytest.mark.parametrize(("engine", "options"), ENGINES)
def test_views_name_signals_that_exist(engine, options, suffix, tmp_path):
    fabric, wave = fabric_of("3x3", "allgather"), tmp_path / f"fabric{suffix}"
    run(engine, options, fabric, wave)
    assert {path.name for path in tmp_path.iterdir()} == {wave.name, "fabric.gtkw"}
    names = viewed(tmp_path / "fabric.gtkw")
    missing = set(names.values()) - set(names_of(vcd_text(wave)))
    assert not missing
    topology = fabric.program.topology
    for node in range(fabric.nodes):
        group = f"node {node} {topology.node_name(node)}"
        for port in topology.port_names:
            assert names[group, f"out {port}"].endswith(f".node_{node}.out_{port}[7:0]")
            assert names[group, f"in {port}"].endswith(f".node_{node}.in_{port}[7:0]")
    assert {alias for group, alias in names if group == "fabric"} >= WHOLE


@needs_gtkwave
def test_view_names_the_waves(tmp_path):
    wave = tmp_path / "fabric.fst"
    run(AmaranthEngine, {}, fabric_of("2x2", "allgather"), wave)
    view = (tmp_path / "fabric.gtkw").read_text()
    assert f'[dumpfile] "{wave}"' in view
    assert view.count("@c00200") == view.count("@1401200") == 4


@pytest.mark.parametrize(("topology", "kind"), [("3x3", "allgather"), ("arrowhead:1", "scatter")])
def test_in_ports_show_what_the_neighbour_sends(topology, kind, tmp_path):
    fabric, wave = fabric_of(topology, kind), tmp_path / "fabric.vcd"
    result = run(AmaranthEngine, {}, fabric, wave)
    samples = shown_values(wave)
    # The first edge has the reset.
    assert [sample[None, "rst"] for sample in samples] == ["1"] + ["0"] * result.clocks
    torus = fabric.program.topology
    moved = 0
    for sample in samples:
        for node in range(torus.nodes):
            for port, name in enumerate(torus.port_names):
                there = torus.neighbours[node, port]
                sent = torus.port_names[torus.opposite[port]]
                value = sample[f"node {there} {torus.node_name(there)}", f"out {sent}"]
                assert sample[f"node {node} {torus.node_name(node)}", f"in {name}"] == value
                moved += value != "0"
    assert moved > torus.nodes


@pytest.mark.parametrize(("engine", "options"), ENGINES[1:])
@pytest.mark.parametrize(
    ("topology", "kind", "width"),
    few(1, [("2x3", "alltoall", 33), ("3x3", "allgather", 8), ("arrowhead:1", "broadcast", 1)]),
)
def test_engines_show_the_same(engine, options, topology, kind, width, tmp_path):
    fabric = fabric_of(topology, kind, width=width)
    one, other = tmp_path / "one.vcd", tmp_path / "other.vcd"
    expected = run(AmaranthEngine, {}, fabric, one)
    got = run(engine, options, fabric, other)
    assert np.array_equal(np.array(expected.words, object), np.array(got.words, object))
    expected, got = shown_values(one), shown_values(other)
    assert len(expected) == len(got)
    assert expected[0][None, "rst"] == got[0][None, "rst"] == "1"
    # Registers are undefined before the reset.
    for edge, (a, b) in enumerate(zip(expected[1:], got[1:], strict=True)):
        assert a == b, edge


@needs_gtkwave
@pytest.mark.parametrize(("engine", "options"), ENGINES)
def test_both_formats_hold_the_same(engine, options, tmp_path):
    fabric = fabric_of("2x2", "allgather")
    for name in ("one.vcd", "one.fst"):
        run(engine, options, fabric, tmp_path / name)
    assert shown_values(tmp_path / "one.vcd") == shown_values(tmp_path / "one.fst")


@pytest.mark.skipif(sys.platform != "linux", reason="needs names of any bytes")
@pytest.mark.parametrize(("engine", "options"), ENGINES)
def test_folders_of_any_name(engine, options, tmp_path):
    """Waves can be written to a folder whose name is not UTF-8."""
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    run(engine, options, fabric_of("2", "allgather"), folder / "waves.vcd")
    assert "$enddefinitions" in (folder / "waves.vcd").read_text()


def test_names_of_files():
    with pytest.raises(InputError, match=r"^File of waves must end in \.vcd or \.fst, not a\.ghw$"):
        check_wave_file("some/a.ghw")
    check_wave_file(None)
    check_wave_file("some/a.vcd")


def test_fst_needs_a_tool(monkeypatch):
    monkeypatch.setattr(tools, "find", lambda name: None)
    with pytest.raises(MissingTool, match=r"^Tool vcd2fst was not found: install .* gtkwave ") as e:
        choose_engine(fabric_of("2x2", "allgather"), wave="a.fst")
    assert "\n" not in str(e.value)


@needs_gtkwave
def test_failing_tool_leaves_nothing(monkeypatch, tmp_path):
    false = tmp_path / "tools" / "false"
    false.parent.mkdir()
    false.write_text("#!/bin/sh\necho no room >&2\nexit 1\n")
    false.chmod(0o755)
    monkeypatch.setenv("VCD2FST", str(false))
    (tmp_path / "here").mkdir()
    with pytest.raises(WorkFailed, match=r"^vcd2fst failed on the waves: no room"):
        run(AmaranthEngine, {}, fabric_of("2x2", "allgather"), tmp_path / "here" / "a.fst")
    assert not list((tmp_path / "here").iterdir())


@pytest.mark.parametrize(("engine", "options"), ENGINES[:2])
def test_interrupt_leaves_nothing(engine, options, tmp_path):
    fabric = fabric_of("2x2", "allgather")

    def interrupt(done, total):
        raise KeyboardInterrupt

    made = engine(fabric, wave=tmp_path / "a.vcd", **options)
    with pytest.raises(KeyboardInterrupt):
        made.run(random_messages(fabric, 1), progress=interrupt)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("engine", "options"), ENGINES[:2])
def test_waves_of_a_fabric_that_does_not_end_are_kept(engine, options, monkeypatch, tmp_path):
    fabric = fabric_of("3x3", "allgather")
    messages, made = random_messages(fabric, 1), engine(fabric, wave=tmp_path / "a.vcd", **options)
    monkeypatch.setattr(Program, "cycles", lambda program, length=None, mode=None: -14)
    with pytest.raises(WorkFailed, match=r"^The fabric was "):
        made.run(messages)
    samples = shown_values(tmp_path / "a.vcd")
    assert samples[-1]["fabric", "busy"] == "1"
