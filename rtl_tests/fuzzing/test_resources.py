"""Excessive input is refused in one line, within ten seconds and two gigabytes."""

import gzip
import json
import re
import string
from itertools import pairwise

import pytest
from helpers import few
from limited import run_limited

import torusfabric as tf

GATHER = tf.plan("4", "allgather")
MANY, DIGITS = 10**9, "9" * 5000


def schedule(**changes):
    """Return the text of a schedule file with changed values."""
    values = {
        "format": "torusfabric-schedule",
        "version": 1,
        "topology": {"kind": "torus", "sides": [3]},
        "collective": {"kind": "allgather"},
        "algorithm": "x",
        "switching": "store-and-forward",
        "ports": 2,
        "chunks": 1,
        "rounds": [[{"path": [0, 1], "blocks": "all"}]],
    }
    return json.dumps(values | changes)


def torus(*sides):
    """Return the entry of a torus in a schedule file."""
    return {"kind": "torus", "sides": sides}


def spoiled(text, old, new):
    """Return a text with the first occurrence of `old` replaced."""
    assert old in text
    return text.replace(old, new, 1)


def packed(part, times, before="", after=""):
    """Return a small compressed file whose text is large."""
    once = gzip.compress(part.encode())
    return gzip.compress(before.encode()) + once * times + gzip.compress(after.encode())


START, END = schedule(rounds=[]).rsplit("]", 1)

#: Schedule files and words of their messages.
SCHEDULES = {
    "a side of 10^9": (schedule(topology=torus(MANY)), "Topology must have at most"),
    "two sides of 10^9": (schedule(topology=torus(MANY, MANY)), "Topology must have at most"),
    "sixty sides": (schedule(topology=torus(*[2] * 60)), "at most 31 side lengths"),
    "10^5 sides": (schedule(topology=torus(*[2] * 10**5)), "at most 31 side lengths"),
    "order 10^9": (
        schedule(topology={"kind": "arrowhead", "order": MANY}),
        "Order of an arrowhead must be",
    ),
    "a torus whose tables do not fit": (
        schedule(topology=torus(2**26)),
        "Topology must fit in memory, at most",
    ),
    **{
        f"{topology['kind']} of 10^12": (schedule(topology=topology), message)
        for topology, message in (
            ({"kind": "graph", "nodes": 10**12, "arcs": []}, "Nodes of a graph must be from 1 to"),
            (
                {"kind": "mesh", "sides": [10**6] * 2, "wraps": [False] * 2},
                "Torus must have at most",
            ),
            ({"kind": "circulant", "nodes": 10**12, "offsets": [1]}, "Nodes of a circulant must"),
            ({"kind": "complete", "nodes": 10**12}, "Nodes of a complete graph must be from"),
            ({"kind": "cube", "axes": 10**12}, "Axes of a cube must be from 1 to"),
            ({"kind": "twisted-torus", "sides": [10**6] * 2, "twists": [0, 1]}, "Twisted torus mu"),
            (
                {
                    "kind": "faulty",
                    "whole": {"kind": "graph", "nodes": 10**12, "arcs": []},
                    "broken_links": [],
                    "broken_nodes": [1],
                },
                "Nodes of a graph must be from 1 to",
            ),
        )
    },
    "too many blocks": (schedule(topology=torus(3000, 3000)), "Blocks must be at most"),
    "nodes that are never served": (schedule(topology=torus(10**6)), "ends without block"),
    "10^9 chunks": (schedule(chunks=MANY), "chunks must be a number from 1 to"),
    "10^30 ports": (schedule(ports=10**30), "ports must be a number from 1 to 2"),
    "a version of 4000 digits": (schedule(version=10**4000), "version must be"),
    "a root of 10^30": (
        schedule(collective={"kind": "broadcast", "root": 10**30}),
        "Root must be",
    ),
    "an axis of 10^30": (schedule(collective={"kind": "allgather", "axes": [10**30]}), "axes"),
    "10^6 rounds": (START + "[]," * 10**6 + "[]]" + END, "rounds must be a list of at most"),
    "10^8 rounds, packed": (packed("[]," * 10**6, 100, START, "[]]" + END), "must unpack to"),
    "a long path": (
        spoiled(schedule(), "[0, 1]", "[" + "0, 1, " * 10**5 + "0]"),
        "path must have at most",
    ),
    "deep lists": ("[" * 10**6, "nested too deeply"),
    "deep objects": ('{"a":' * 10**5, "nested too deeply"),
    "a deep path": (spoiled(schedule(), "[0, 1]", "[" * 10**5 + "]" * 10**5), "too deeply"),
    "a number of 10^6 digits": (spoiled(schedule(), "[0, 1]", f"[0, {'9' * 10**6}]"), "be JSON"),
    "a large exponent": (spoiled(schedule(), "[0, 1]", "[0, 1e400000000]"), "a node number"),
    "blanks, packed": (packed(" " * 10**6, 1000), "must unpack to"),
    "zeros, packed": (packed("\0" * 10**6, 1000), "must unpack to"),
    # Large texts are functions, so that only the test that needs one makes it.
    "10^7 rounds": (
        lambda: START + "[]," * 10**7 + "[]]" + END,
        "rounds must be a list of at most",
    ),
    "a name of 10^8 letters": (
        lambda: schedule(algorithm="x" * 10**8),
        "algorithm must be a name",
    ),
    "a path of 10^7 nodes": (
        lambda: spoiled(schedule(), "[0, 1]", f"[{'0, 1, ' * 5 * 10**6}0]"),
        "path must have at most",
    ),
    "10^6 keys": (
        lambda: "{" + ",".join(f'"{k}":0' for k in range(10**6)) + "}",
        "format",
    ),
}


def read_xml(folder):
    """Return the text of an MSCCL file."""
    tf.export_schedule(GATHER, folder / "seed.xml")
    return (folder / "seed.xml").read_text("utf-8")


def with_attribute(name, value):
    """Return a function that changes all attributes of one name."""
    return lambda xml: re.sub(rf'( {name})="[^"]*"', rf'\1="{value}"', xml)


def entities(count):
    """Return a document in which each entity consists of ten copies of the previous entity."""
    names = string.ascii_lowercase[:count]
    laughs = [f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in pairwise(names)]
    return f'<!DOCTYPE l [<!ENTITY a "ha">{"".join(laughs)}]><algo name="&{names[-1]};"/>'


#: Changes of an MSCCL file and words of their messages.
DOCUMENTS = {
    "entities of entities": (lambda _: entities(20), "EntitiesForbidden|entit"),
    "a long entity, often": (
        lambda _: f'<!DOCTYPE l [<!ENTITY a "{"x" * 10**5}">]><algo name="{"&a;" * 10**5}"/>',
        "entit",
    ),
    "a file as an entity": (
        lambda _: '<!DOCTYPE l [<!ENTITY a SYSTEM "file:///etc/passwd">]><algo name="&a;"/>',
        "entit",
    ),
    "deep elements": (lambda _: "<algo>" * 10**5 + "</algo>" * 10**5, "must"),
    "elements without an end": (lambda _: "<algo>" * 10**5, "must"),
    "10^5 attributes": (
        lambda _: "<algo " + " ".join(f'a{k}="1"' for k in range(10**5)) + "/>",
        "must",
    ),
    **{
        f"{name} of {value:.9}": (with_attribute(name, value), "must")
        for name in ("nchunksperloop", "ngpus", "cnt", "srcoff", "send")
        for value in (str(10**8), DIGITS)
    },
}

#: Sweep files and words of their messages.
SWEEPS = {
    "10^9 seeds": ('topologies = ["2"]\ncollectives = ["allgather"]\nseeds = 1000000000', "fit"),
    "10^10 points": (
        'steps = ["simulate"]\ntopologies = ["2"]\ncollectives = ["allgather"]\n'
        + "".join(f"{name} = {[*range(1, 3001)]}\n" for name in ("widths", "flits", "chunks")),
        "Sweep must have at most",
    ),
    "sides of 10^9": (
        'topologies = ["1000000000x1000000000"]\ncollectives = ["allgather"]',
        "Torus must have at most",
    ),
    "deep lists": ("a = " + "[" * 10**5, "must be TOML"),
    "deep tables": ("a = " + "{a = " * 10**4, "must be TOML"),
    "keys within keys": (".".join("a" * 10**5) + " = 1", "keys of one word"),
    "tables within tables": ("[" + ' . '.join(['"a"'] * 10**5) + "]", "keys of one word"),
    "a number of 10^6 digits": (f"seeds = {'9' * 10**6}", "must be TOML"),
    "a long file": ("#" * 2**21, "must hold at most 1 MiB"),
}  # fmt: skip

#: Command lines and words of their messages.
LINES = {
    "a side of 10^9": (["plan", str(MANY), "allgather"], "must fit in memory"),
    "two sides of 10^9": (["plan", f"{MANY}x{MANY}", "allgather"], "Torus must have at mos"),
    "a side of 5000 digits": (["plan", DIGITS, "allgather"], "must"),
    "an order of 5000 digits": (["plan", f"arrowhead:{DIGITS}", "allgather"], "must"),
    "10^4 sides": (["plan", "x".join(["2"] * 10**4), "allgather"], "must"),
    "order 10^9": (["plan", f"arrowhead:{MANY}", "allgather"], "Order of an arrowhead"),
    "10^9 chunks": (["plan", "4x4", "allgather", "--chunks", str(MANY)], "must"),
    "chunks of 5000 digits": (["plan", "4x4", "allgather", "--chunks", DIGITS], "must"),
    "10^30 ports": (["plan", "4x4", "allgather", "--ports", str(10**30)], "must"),
    "root 10^30": (["plan", "4x4", "broadcast", "--root", str(10**30)], "must"),
    "10^4 collectives": (
        ["verilog", "2x2", ",".join(["allgather"] * 10**4), "--max-flits", "4", "-o", "out"],
        "must",
    ),
    "30000 axes": (["plan", "4x4", "allgather@" + "+".join(["0"] * 30_000)], "must"),
    "10^4 commas": (["verilog", "2x2", "," * 10**4, "-o", "out"], "must"),
    "10^5 words": (["plan", *["x"] * 10**5], "Unrecognized"),
    "10^4 plans": (["verilog", "--plan", ",".join(["a.json"] * 10**4), "-o", "out"], "must"),
    **{
        f"{command} {option} 10^9": (
            [command, "2x2", "allgather", option, str(MANY), *others],
            "must",
        )
        for command, others in (
            ("verilog", ["-o", "out"]), ("simulate", []), ("synth", ["--target", "ecp5-25k"]),
        )
        for option in ("--width", "--flits", "--max-flits")
    },
    "10^9 jobs": (["simulate", "2x2", "allgather", "--max-flits", "4", "--jobs", str(MANY)], "m"),
    "10^9 jobs of streams": (
        ["simulate", "2x2", "allgather", "--top", "stream", "--jobs", str(MANY)], "must fit in m",
    ),
    "10^9 jobs watched": (
        ["monitor", "2x2", "allgather", "--port", "sim", "--jobs", str(MANY)], "must fit in memory",
    ),
    "an endless plan": (["check", "/dev/zero"], "must"),
    "an endless list of links": (["plan", "4x4", "allgather", "--broken-links", "/dev/zero"], "m"),
    "an endless document": (["import", "/dev/zero", "--topology", "4"], "must"),
    "an endless sweep": (["sweep", "/dev/zero"], "must"),
}  # fmt: skip


def check_refused(words, folder, message):
    """Check that a command ends with one line that gives the reason, and leaves nothing behind."""
    before = sorted(folder.iterdir())
    answer = run_limited(words, folder)
    assert answer.status in (1, 2), answer
    (line,) = answer.lines
    assert re.match(rf"torusfabric: .*({message})", line), line
    assert len(line) < 1200
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("name", few(9, [*SCHEDULES], tuples=True))
def test_schedule_files(name, tmp_path):
    """Excessive schedule files are refused."""
    content, message = SCHEDULES[name]
    content = content() if callable(content) else content
    file = "plan.json" if isinstance(content, str) else "plan.json.gz"
    (tmp_path / file).write_bytes(content.encode() if isinstance(content, str) else content)
    check_refused(["check", file], tmp_path, message)


@pytest.mark.parametrize(
    ("topology", "collective", "at"),
    few(2, [
        ("3", "allgather", 1), ("4", "allreduce", 0), ("3", "allgather", 0), ("4", "allreduce", 1),
        ("5", "broadcast", 0), ("5", "broadcast", 1), ("2x3", "alltoall", 0),
        ("2x3", "alltoall", 1), ("mesh:3", "reduce-scatter", 0), ("mesh:3", "reduce-scatter", 1),
    ]),
)  # fmt: skip
def test_idle_rounds_take_seconds(topology, collective, at, tmp_path):
    """A schedule file with 100,000 idle rounds, at any place, is checked in time."""
    tf.plan(topology, collective).save(tmp_path / "plan.json")
    data = json.loads((tmp_path / "plan.json").read_text("utf-8"))
    data["rounds"][at:at] = [[]] * 10**5
    (tmp_path / "plan.json").write_text(json.dumps(data), "utf-8")
    assert run_limited(["check", "plan.json"], tmp_path).status in (0, 2)


@pytest.mark.parametrize("name", few(7, [*DOCUMENTS], tuples=True))
def test_documents(name, tmp_path):
    """Excessive MSCCL files are refused."""
    change, message = DOCUMENTS[name]
    (tmp_path / "file.xml").write_text(change(read_xml(tmp_path)), "utf-8")
    check_refused(["import", "file.xml", "--topology", "4"], tmp_path, message)


@pytest.mark.parametrize("name", few(5, [*SWEEPS], tuples=True))
def test_sweep_files(name, tmp_path):
    """Excessive sweep files are refused."""
    content, message = SWEEPS[name]
    (tmp_path / "sweep.toml").write_text(content, "utf-8")
    check_refused(["sweep", "sweep.toml", "-o", "results.jsonl"], tmp_path, message)


@pytest.mark.parametrize("name", few(12, [*LINES], tuples=True))
def test_lines(name, tmp_path):
    """Excessive command lines are refused."""
    words, message = LINES[name]
    check_refused(words, tmp_path, message)
