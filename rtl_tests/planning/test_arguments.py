"""Public functions accept the notations of commands, and refuse values as commands do."""

import re
from pathlib import Path

import numpy as np
import pytest
from helpers import few

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.schedule import Duplex

HALF = Duplex.HALF


def plan(**options):
    """Return a plan of a broadcast on 4x4, unless the options name another selection."""
    given = {"topology": "4x4", "collective": "broadcast"} | options
    return tf.plan(given.pop("topology"), given.pop("collective"), **given)


SAME = [
    ({"broken_links": "0:+0"}, {"broken_links": ((0, 0),)}),
    ({"broken_links": ["0:+0"]}, {"broken_links": ((0, 0),)}),
    ({"broken_links": [(0, "+0")]}, {"broken_links": ((0, 0),)}),
    ({"broken_links": (0, "+0")}, {"broken_links": ((0, 0),)}),
    ({"broken_links": (0, 0)}, {"broken_links": ((0, 0),)}),
    ({"broken_links": [[0, 0], ["5", "-1"]]}, {"broken_links": ((0, 0), (5, 3))}),
    ({"broken_links": "0:+0,5:-1"}, {"broken_links": ((0, 0), (5, 3))}),
    ({"broken_links": [(np.int64(0), np.int8(0))]}, {"broken_links": ((0, 0),)}),
    ({"broken_links": {"0:0": None}.keys()}, {"broken_links": ((0, 0),)}),
    ({"topology": tf.Torus(4, 4)}, {}),
    ({"collective": tf.parse_collective("one-to-all")}, {"root": 0}),
    ({"collective": "broadcast:max-flow"}, {"algorithm": "max-flow"}),
    ({"root": "3"}, {"root": 3}),
    ({"root": np.int16(3)}, {"root": 3}),
    ({"ports": "2"}, {"ports": 2}),
    ({"collective": "allgather", "chunks": "2"}, {"collective": "allgather", "chunks": 2}),
    ({"algorithm": "max-flow", "seed": "7"}, {"algorithm": "max-flow", "seed": 7}),
    ({"topology": "arrowhead:2", "duplex": "half"}, {"topology": "arrowhead:2", "duplex": HALF}),
    ({"collective": "broadcast@1"}, {"axes": [1]}),
    ({"axes": "1"}, {"axes": (1,)}),
    ({"axes": 1}, {"axes": [1]}),
    ({"topology": "2x3x2", "axes": "2+0"}, {"topology": "2x3x2", "axes": np.array([0, 2])}),
    (
        {"topology": "arrowhead:2", "times": ("1", "2", 64), "trees": "2"},
        {"topology": "arrowhead:2", "times": (1.0, 2.0, 64.0), "trees": 2},
    ),
    (
        {"collective": "allreduce", "algorithm": "matching", "latency": "2"},
        {"collective": "allreduce", "algorithm": "matching", "latency": 2},
    ),
]


@pytest.mark.parametrize(("given", "plain"), few(12, [*SAME]), ids=lambda value: str(value)[:60])
def test_forms_that_mean_the_same(given, plain):
    """Text and values, one item and a list of items, give the same plan."""
    assert plan(**given).digest == plan(**plain).digest


def test_links_from_a_file(tmp_path):
    """A file of broken links gives the same plan as a list of these links."""
    path = tmp_path / "links"
    path.write_text("0:+0  # loose\n\n5:-1\n")
    same = plan(broken_links=[(0, 0), (5, 3)]).digest
    assert plan(broken_links=path).digest == plan(broken_links=[Path(path)]).digest == same


def fabric(**others):
    """Return a fabric of an all-reduce for up to four flits."""
    program = tf.compile(tf.plan("2x2", "allreduce"), max_flits=4, operators="add,max")
    return tf.Fabric(program, **{"width": 8} | others)


def compiled(**options):
    """Return a program of an all-reduce."""
    return tf.compile(tf.plan("2x2", "allreduce"), **options)


#: Wrong calls: the call, the command with the same mistake or None, and the message.
WRONG = [
    (lambda: plan(topology=4), None, "Topology must be .*, not 4"),
    (lambda: plan(topology=None), None, "Topology must be .*, not None"),
    (lambda: plan(topology="4x"), "plan 4x broadcast", "Topology must be .*, not '4x'"),
    (lambda: plan(collective=4), None, "Collective must be a name or a Collective, not 4"),
    (lambda: plan(collective="gosip"), "plan 4x4 gosip", "Collective must be one of .*gossip|allg"),
    *[
        (lambda: plan(collective="barrier"), f"{command} 4x4 {names}",
         "A barrier moves no data, so it comes beside a collective: verilog 4x4 ")
        for command, names in (("plan", "barrier"), ("compare", "allgather,barrier"))
    ],
    (lambda: plan(algorithm=["x"]), None, r"Algorithm must be one of .*, not \['x'\]"),
    (lambda: plan(algorithm="x"), "plan 4x4 broadcast --algorithm x", "Algorithm must be one of"),
    (lambda: plan(root="x"), "plan 4x4 broadcast --root x",
     r"Root must be a node from 0 to 15 or a name such as \(0,0\), not 'x'"),
    (lambda: plan(root=True), None, "Root must be a node number, not True"),
    (lambda: plan(root=4.0), None, "Root must be a node number, not 4.0"),
    (lambda: plan(root=99), "plan 4x4 broadcast --root 99", "Root must be a node from 0 to 15"),
    (lambda: plan(root=-1), None, "Root must be a node from 0 to 15, not -1"),
    (lambda: plan(root="99"), "plan 4x4 broadcast --root 99", "Root must be a node from 0 to 15"),
    (lambda: plan(axes="x"), "plan 4x4 broadcast@x", "Axes must be numbers joined by +"),
    (lambda: plan(axes=[7]), "plan 4x4 broadcast@7", "Axes must be some of the axes 0, 1"),
    (lambda: plan(axes=1.5), None, "Axes must be a list of axis numbers, not 1.5"),
    (lambda: plan(axes=["0"]), None, r"Axes must be a list of axis numbers, not \['0'\]"),
    *[
        (lambda name=name, value=value: plan(**{name: value}), None, f"{name.capitalize()} must be")
        for name in ("ports", "chunks", "trees", "packets", "latency")
        for value in (0, -1, True, 4.0, "x", "4.0", [1], 1j, "")
    ],
    *[
        (lambda value=value: plan(seed=value), None, "Seed must be a non-negative integer, not")
        for value in (-1, True, 4.0, None, "x", [1])
    ],
    (lambda: plan(chunks=0), "plan 4x4 broadcast --chunks 0", "chunks must be a positive integer"),
    (lambda: plan(ports="9"), "plan 4x4 broadcast --ports 9", "Ports must be from 1 to 4 on 4x4"),
    (lambda: plan(seed="x"), "plan 4x4 broadcast --seed x", "seed must be a non-negative int 'x'"),
    (lambda: plan(seed="-1"), "plan 4x4 broadcast --seed=-1", "seed must be a non-negative int"),
    (lambda: plan(latency="x"), "plan 4x4 broadcast --latency x", "latency must be a positive"),
    (lambda: plan(large="yes"), None, "Large must be True or False, not 'yes'"),
    (lambda: plan(duplex="x"), "plan 4x4 broadcast --duplex x", "duplex must be full or half, not"),
    (lambda: plan(duplex=4), None, "Duplex must be full or half, not 4"),
    (lambda: plan(times=(1, 2)), None, "Times must be three numbers, BETA TAU LENGTH, not"),
    (lambda: plan(times="abc"), None, "Times must be three numbers, BETA TAU LENGTH, not 'abc'"),
    (lambda: plan(times=("x", "1", "2")), "plan 4x4 broadcast --times x 1 2",
     "times must be a number, not 'x'"),
    (lambda: plan(chunk=4), None, r"Option must be one of .*, not 'chunk' \(did you mean chunks"),
    *[
        (lambda value=value: plan(broken_links=value), f"plan 4x4 broadcast --broken-link={value}",
         "Broken link must be NODE:PORT with a node below 16, not")
        for value in ("x", "16:+0", ":+0", "0:", "-1:+0")
    ],
    *[
        (lambda value=value: plan(broken_links=value), None,
         "Broken link must be NODE:PORT with a node below 16, not")
        for value in (4, None, [4], [(1, 2, 3)], [(True, "+0")], [(1.0, 0)], [None], 4.5)
    ],
    (lambda: plan(broken_links="0:9"), "plan 4x4 broadcast --broken-link 0:9",
     r"Port must be one of \+0, -0, \+1, -1, not '9'"),
    (lambda: plan(broken_links=[(0, True)]), None, "Port must be one of .*, not True"),
    (lambda: plan(broken_nodes=16), "plan 4x4 broadcast --broken-node 16",
     "Broken node must be a node from 0 to 15, not 16"),
    (lambda: plan(broken_nodes=["x"]), "plan 4x4 broadcast --broken-node x",
     r"Broken node must be a node from 0 to 15 or a name such as \(0,0\), not 'x'"),
    (lambda: plan(broken_links="0:+0,0:-0,0:+1,0:-1"),
     "plan 4x4 broadcast --broken-link 0:+0,0:-0,0:+1,0:-1",
     "These broken links and nodes cut off node 0"),
    (lambda: tf.Collective("bogus"), None, "Collective must be one of .*, not 'bogus'"),
    (lambda: tf.Collective(4), None, "Collective must be one of .*, not 4"),
    (lambda: tf.parse_collective(4), None, "Collective must be one of .*, not '4'"),
    (lambda: tf.Arrowhead("x"), None, "Order of an arrowhead must be an integer"),
    (lambda: tf.Torus(True, 4), None, "Sides of a torus must be integers"),
    *[
        (lambda call=call: call(4), None, "Schedule must be a schedule, as tf.plan and")
        for call in (tf.check, tf.bound, lambda given: tf.export_schedule(given, "/none"),
                     lambda given: tf.save(given, "/none"))
    ],
    (lambda: tf.save("plan.json", "/none"), None, "Schedule must be a schedule, as tf.plan and"),
    (lambda: tf.check("none.json"), "check none.json", "Schedule file none.json could not be read"),
    (lambda: tf.check(Path("none.json")), "check none.json", "Schedule file none.json could not"),
    (lambda: tf.bound("none.json"), "check none.json", "Schedule file none.json could not be read"),
    (lambda: tf.export_schedule("none.json", "none.xml"), "export none.json -o none.xml",
     "Schedule file none.json could not be read"),
    *[
        (lambda value=value: tf.compile(value), None, "Schedules must be at least one schedule")
        for value in (4, None, "plan.json", [], [4])
    ],
    (lambda: compiled(operators="x"), "simulate 2x2 allreduce --op x", "Operator must be one of"),
    (lambda: compiled(operators=["add", "x"], max_flits=4),
     "simulate 2x2 allreduce --op add,x --max-flits 4", "Operator must be one of .*, not 'x'"),
    (lambda: compiled(operators=4), None, "Operators must be names, such as add,max, not 4"),
    (lambda: compiled(operators=[4]), None, "Operator must be one of .*, not 4"),
    *[
        (lambda value=value: compiled(flits=value), None, "Flits must be a non-negative int")
        for value in (-1, True, 4.0, "x", [1], 1e300)
    ],
    (lambda: compiled(flits="x"),
     "simulate 2x2 allreduce --flits x", "flits must be a non-negative integer"),
    (lambda: compiled(flits=0),
     "simulate 2x2 allreduce --flits 0", "Flits must be at least 1, not"),
    (lambda: compiled(max_flits=4.0), None, "Max flits must be a non-negative integer, not 4.0"),
    (lambda: tf.compile([tf.plan("2x2", "allreduce")], flits=3, max_flits=4),
     "simulate 2x2 allreduce --flits 3 --max-flits 4",
     "flits and max_flits .* exclude each other"),
    (lambda: compiled(root=4), None, "Root must be any or left out, not 4"),
    (lambda: compiled(barrier="yes"), None, "Barrier must be True or False, not 'yes'"),
    (lambda: compiled().cycles("x"), None, "Length must be a non-negative integer, not 'x'"),
    (lambda: compiled().cycles(mode=1.5), None, "Mode must be a non-negative integer, not 1.5"),
    (lambda: compiled().execute([1, 2]), None, "Words must be integers of shape"),
    (lambda: compiled().execute(np.ones((4, 4))), None, "Words must be integers of shape"),
    (lambda: compiled().execute(np.ones((4, 4), int), root=99), None, "Root must be from 0 to 3"),
    (lambda: compiled().cycles(root=4), None, "Root must be from 0 to 3, not 4"),
    (lambda: tf.Fabric("x"), None, "Program must be a Program, as tf.compile returns it, not 'x'"),
    *[
        (lambda value=value: fabric(width=value), None, "Width must be a non-negative integer, not")
        for value in (-1, True, 8.0, None, "x", [8])
    ],
    (lambda: fabric(width="0"), "simulate 2x2 allreduce --width 0", "Width must be from 1 to 1024"),
    (lambda: fabric(width=0), "build --board icestick 2x2 allgather --width 0", "Width must be"),
    (lambda: fabric(width="x"), "simulate 2x2 allreduce --width x", "width must be a non-negative"),
    (lambda: fabric(top="x"), "verilog 2x2 allreduce --top x -o none", "top must be one of host"),
    (lambda: fabric(top=4), None, "Top must be one of host, core, stream, not 4"),
    (lambda: fabric(bus=["x"]), None, r"Bus must be one of wishbone, axi-lite, axi4, not \['x'\]"),
    (lambda: fabric(prefix=4), None, "Prefix must be a letter or _"),
    (lambda: tf.emit("x"), None, "Fabric must be a Fabric, as tf.Fabric makes it, not 'x'"),
    (lambda: tf.simulate("x"), None, "Fabric must be a Fabric, as tf.Fabric makes it, not 'x'"),
    (lambda: tf.simulate(fabric(), engine="x"), "simulate 2x2 allreduce --engine x",
     "engine must be one of auto, amaranth, compiled, not 'x'"),
    (lambda: tf.simulate(fabric(top="stream"), engine="x"),
     None, "Engine must be one of auto, amaranth"),
    (lambda: tf.simulate(fabric(), engine=4), None, "Engine must be a name or an Engine, not 4"),
    (lambda: tf.simulate(fabric(top="stream"), engine=4),
     None, "Engine must be a name or an Engine"),
    (lambda: tf.simulate(fabric(), repeat=0), "simulate 2x2 allreduce --repeat 0",
     "repeat must be a positive integer, not"),
    (lambda: tf.simulate(fabric(), seed="x"), "simulate 2x2 allreduce --data-seed x",
     "seed must be a non-negative integer, not 'x'"),
    (lambda: tf.simulate(fabric(), jobs="x"), "simulate 2x2 allreduce --max-flits 4 --jobs x",
     "jobs must be a non-negative integer, not 'x'"),
    (lambda: tf.simulate(fabric(), jobs=[4]),
     None, "Jobs must be a list of Job, or how many, not 4"),
    (lambda: tf.simulate(fabric(), jobs=tf.Job()), None, "Jobs must be a list of Job, or how many"),
    (lambda: tf.simulate(fabric(), jobs=[tf.Job(length="x")]),
     None, "Length must be a non-negative integer"),
    (lambda: tf.simulate(fabric(), jobs=[tf.Job(root=2)]), None, "This fabric has one root, "),
    (lambda: tf.simulate(fabric(top="stream"), stall="x"),
     "simulate 2x2 allreduce --top stream --stall x", "stall must be a number, not 'x'"),
    (lambda: tf.simulate(fabric(top="stream"), stall=2),
     "simulate 2x2 allreduce --top stream --stall 2", "Stall must be from 0 to 0.95, not 2"),
    (lambda: tf.synthesize(fabric(), "x"),
     "synth 2x2 allreduce --target x", "Target must be one of"),
    (lambda: tf.synthesize(fabric(), ["x"]), None, r"Target must be one of .*, not \['x'\]"),
    (lambda: tf.synthesize(fabric(), "ecp5-25k", seeds=0), "synth 2x2 allreduce --seeds 0",
     "seeds must be a positive integer, not"),
    (lambda: tf.synthesize(fabric(), "ecp5-25k", seeds=["x"]), None, "Seeds must be a positive"),
    (lambda: tf.synthesize("x", "ecp5-25k"), None, "Fabric must be a Fabric"),
    (lambda: tf.synthesize(fabric(), "ecp5-25k", mapping="x"), "synth 2x2 allreduce --mapping x",
     "mapping must be"),
    (lambda: tf.load(4), None, "Schedule file must be a path, not 4"),
    (lambda: tf.load("none.json"), "check none.json", "Schedule file"),
    (lambda: tf.import_schedule(None), None, "MSCCL file must be a path, not None"),
    (lambda: tf.import_schedule("none.xml"), "import none.xml", "MSCCL file"),
    (lambda: tf.export_schedule(plan(), "none.xml", "x"), "export 4x4 broadcast --format x -o none",
     "ormat must be"),
    (lambda: tf.save(plan(), 4), None, "File must be a path, not 4"),
]  # fmt: skip


@pytest.mark.parametrize("number", few(35, [*range(len(WRONG))], tuples=True))
def test_what_is_wrong(number, capsys, monkeypatch, tmp_path):
    """A wrong argument raises an InputError of one line.

    The command with this mistake prints the line.
    """
    call, command, message = WRONG[number]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(tf.InputError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 600
    pattern = message if message[0].isupper() else f"(?i:{message[0]}){message[1:]}"
    assert re.search(pattern, text), text
    if command is None:
        return
    assert main(command.split()) == 1
    printed = capsys.readouterr().err.strip().removeprefix("torusfabric: ")
    assert _plain(printed) == _plain(text)


def _plain(line):
    """Return a message without the parts in which options and parameters differ, such as dashes."""
    line = re.sub(r" \(see torusfabric \w+ --help.*\)$", "", line.splitlines()[-1])
    line = re.sub(r"not '(-?\d+)'$", r"not \1", line).replace("--data-seed", "--seed")
    line = re.sub(r"^--(\w)", lambda found: found[1].upper(), line)
    return re.sub(r"^Broken link (.*)", r"\1", line)


def test_engines_by_name():
    """Engines can be chosen by name; `jobs="3"` runs three random jobs beside the usual ones."""
    made = fabric()
    usual = len(tf.simulate(made).jobs)
    report = tf.simulate(made, engine="amaranth", jobs="3", repeat="1", seed="1")
    assert (report.engine, len(report.jobs), report.passed) == ("amaranth", usual + 3, True)
    assert tf.simulate(fabric(top="stream"), engine="auto", jobs=1, stall="0.1").passed


def test_numbers_as_text():
    """Programs and fabrics accept numbers as text."""
    program = compiled(max_flits="4", operators="add,max")
    assert program.digest == compiled(max_flits=4, operators=["add", "max"]).digest
    assert program.cycles("3") == program.cycles(3)
    assert fabric(width="8").width == 8


@pytest.mark.parametrize(
    ("make", "thing"),
    [
        (lambda: tf.TwistedTorus(4, 2), "Sides of a twisted torus"),
        (lambda: tf.TwistedTorus((4, 2), None), "Twists of 4x2"),
        (lambda: tf.Circulant(8, None), "Offsets of a circulant"),
        (lambda: tf.compare("3", "allgather", flits=[None]), "Flits"),
        (lambda: tf.compare("3", "allgather", flits=1.5), "Flits"),
        (lambda: plan(collective="allreduce", operators=[[1]]), "Operator"),
    ],
)
def test_one_value_where_several_are_asked_for(make, thing):
    """A single value where a list is expected is refused in one line."""
    with pytest.raises(tf.InputError, match=f"^{thing} .*must be [^\n]*$"):
        make()


SEVERAL = [
    *[
        (lambda given, name=name: plan(**{name: given}), name.replace("_", " ").capitalize())
        for name in ("root", "ports", "chunks", "seed", "latency", "trees", "packets", "objective",
                     "duplex", "check", "large", "beat")
    ],
    (lambda given: plan(algorithm=given), "Algorithm"),
    (lambda given: plan(flits=given), "Flits"),
    (lambda given: tf.plan_forms("3", "broadcast", max_flits=4, root=given), "Root"),
    (lambda given: tf.plan_forms("3", "broadcast", max_flits=4, forms=given), ".*"),
    (lambda given: tf.plan_forms("3", "broadcast", max_flits=4, check=given), "Check"),
    (lambda given: compiled(root=given), "Root"),
    (lambda given: compiled(flits=given), "Flits"),
    (lambda given: tf.check(tf.plan("3", "allreduce"), operators=given), "Operator"),
]  # fmt: skip


@pytest.mark.parametrize("given", [np.array([1, 2]), np.zeros((2, 2)), np.array([])])
def test_arrays_where_one_value_is_asked_for(given):
    """An array where one value is expected is refused in one line."""
    for call, thing in SEVERAL[: None if given.size else -1]:
        with pytest.raises(tf.InputError, match=f"(?i)^{thing} must be [^\n]*$"):
            call(given)


@pytest.mark.parametrize("name", ["flits", "broken_links", "broken_nodes", "operators"])
def test_arrays_without_axes_are_one_value(name):
    """An array without axes counts as one value, and is refused where a list is expected."""
    with pytest.raises(tf.InputError, match=f"^{name.capitalize()[:6]}.* must be [^\n]*$"):
        tf.compare("3", "allreduce", **{name: np.array(3)})


def test_numbers_of_numpy():
    """Integers of NumPy give the same results as integers of Python."""
    row = tf.compare("3", "allgather", flits=np.int64(2))[0]
    assert (row.algorithm, row.flits) == ("hamiltonian", 2)
    given = {"collective": "allreduce", "algorithm": "matching"}
    assert plan(**given, latency=np.int64(2)).digest == plan(**given, latency=2).digest
