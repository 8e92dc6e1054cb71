# amaranth: UnusedElaboratable=no
"""The self-test of fabrics whose runs leave a choice: jobs, forecasts, faults, and the host."""

import json
import re
from collections import Counter

import numpy as np
import pytest
from amaranth.hdl import Module
from helpers import few
from selftest_bench import run
from serial_bench import compiled, on_terminal

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.collective import expected_words, random_messages
from torusfabric.errors import InputError, WorkFailed
from torusfabric.fpga.selftest.client import BoardClient
from torusfabric.fpga.selftest.data import data_length, expected_data, send_data
from torusfabric.fpga.selftest.facts import facts_of
from torusfabric.fpga.selftest.image import template_of
from torusfabric.fpga.selftest.job_draw import JobDraw
from torusfabric.fpga.selftest.job_facts import asked_job, choices_in, job_facts
from torusfabric.fpga.selftest.jobs import choices_of, drawn_job
from torusfabric.fpga.selftest.line_sender import MOST_BYTES
from torusfabric.fpga.selftest.serial_line import open_port
from torusfabric.fpga.selftest.tester import Result
from torusfabric.fpga.selftest.tester import Tester as FabricTester
from torusfabric.fpga.selftest.verdict import Verdict
from torusfabric.rtl.assembly import Assembly

#: Every kind of words: of all, of one, for one, and sums; on all nodes, and in rows.
NAMES = ("allgather", "alltoall", "scatter", "reduce", "allreduce", "gather@1")

#: Choices that a fabric ignores, and what it takes in their place.
IGNORED = [("root", 0), ("length", 1), ("length", 5), ("mode", 0)]


def engine(topology, *names, max_flits=5, width=8, **options):
    """A fabric of several collectives, or of one of any length."""
    chosen = [name.partition(":") for name in names]
    schedules = [tf.plan(topology, name, algorithm=by or None) for name, _, by in chosen]
    whole = schedules if len(schedules) > 1 else schedules[0]
    return tf.Fabric(tf.compile(whole, max_flits=max_flits, **options), width=width)


def tried(fabric, runs, *, tested=None, **ignored):
    """Run the tester of a fabric, or of another one; returns what each run gave.

    Choices that the fabric is to ignore are given with what it takes in their place.
    """
    m, tested = Module(), tested or fabric
    m.submodules.tester = tester = FabricTester(tested)
    m.submodules.fabric = design = Assembly(fabric.netlist)
    for name in fabric.netlist.inputs:
        m.d.comb += getattr(design, name).eq(ignored.get(name, getattr(tester.host, name)))
    for name in fabric.netlist.outputs:
        m.d.comb += getattr(tester.host, name).eq(getattr(design, name))
    found = []

    async def testbench(ctx):
        for number in runs:
            ctx.set(tester.run, number)
            ctx.set(tester.start, 1)
            await ctx.tick()
            ctx.set(tester.start, 0)
            await ctx.tick().until(~tester.busy)
            job = {name: ctx.get(getattr(tester, name)) for name in choices_of(tested)}
            found.append((ctx.get(tester.result), job, ctx.get(tester.predicted)))

    run(m, testbench)
    return found


def first_runs(fabric, **wanted):
    """The first run of each mode, or the first that chooses what is wanted."""
    choices, found = choices_of(fabric), {}
    for number in range(1, 1000):
        job = drawn_job(choices, number)
        if all(job[name] in values for name, values in wanted.items()):
            found.setdefault(job.get("mode", 0), number)
    return list(found.values())


@pytest.mark.parametrize(
    ("topology", "names", "options"),
    [
        ("2x2", ["alltoall", "allreduce"], {"operators": ["add", "max"], "max_flits": 3}),
        ("2x2", ["broadcast", "allgather@1"], {"root": "any"}),
        pytest.param("3", ["allreduce"], {}, marks=pytest.mark.long),
        pytest.param("2x2", NAMES, {"max_flits": 3}, marks=pytest.mark.long),
        pytest.param("2x3", NAMES, {"operators": ["xor", "min:signed"]}, marks=pytest.mark.long),
        pytest.param("3x3", ["gather", "reduce"], {"root": "any"}, marks=pytest.mark.long),
    ],
)
def test_tester_passes(topology, names, options):
    """A run of each mode is found right, with the job that Python draws and the cycles it says."""
    fabric = engine(topology, *names, **options)
    runs = first_runs(fabric)
    assert len(runs) == len(names)
    for number, (result, job, predicted) in zip(runs, tried(fabric, runs), strict=True):
        assert result == Result.PASS
        assert job == drawn_job(choices_of(fabric), number)
        assert predicted == fabric.program.cycles(job["length"], mode=job.get("mode"))


def test_tester_finds_another_mode():
    """A fabric that carries out the modes in another order fails in each."""
    fabric, other = (engine("2x2", *names) for names in
                     (("allgather", "alltoall"), ("alltoall", "allgather")))  # fmt: skip
    for result, _, _ in tried(fabric, first_runs(other), tested=other):
        assert result != Result.PASS


def test_tester_finds_another_operator():
    """A fabric whose operators are in another order fails with each."""
    fabric, other = (engine("2x2", "allreduce", operators=names) for names in
                     (["add", "xor"], ["xor", "add"]))  # fmt: skip
    runs = [first_runs(other, operation=[k], length=[2, 3])[0] for k in (0, 1)]
    assert [result for result, _, _ in tried(fabric, runs, tested=other)] == [Result.WRONG] * 2


@pytest.mark.parametrize(("name", "value"), few(2, IGNORED))
def test_tester_finds_a_choice_that_is_ignored(name, value):
    """A fabric that takes another choice than is asked for fails."""
    # A message is one chunk, so that every length takes other cycles.
    fabric = engine("2x2", "allgather", "broadcast:max-flow", root="any")
    (number,) = first_runs(fabric, mode=[1], root=[1, 2, 3], length=[2, 3])
    assert tried(fabric, [number], **{name: value})[0][0] != Result.PASS


def test_jobs_in_hardware():
    """The hardware draws the jobs that Python does, and each choice comes about equally often."""
    choices = {"mode": range(3), "length": range(1, 13), "root": range(5), "operation": range(2)}
    dut, jobs = JobDraw(choices), [drawn_job(choices, number) for number in range(1, 301)]

    async def testbench(ctx):
        for number, job in enumerate(jobs[:12], 1):
            ctx.set(dut.run, number)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            await ctx.tick().until(~dut.busy)
            assert {name: ctx.get(getattr(dut, name)) for name in choices} == job

    run(dut, testbench)
    for name, values in choices.items():
        often = Counter(job[name] for job in jobs)
        assert set(often) == set(values)
        assert max(often.values()) < 2 * len(jobs) / len(values)


@pytest.mark.parametrize(("names", "root"), [(NAMES, None), (NAMES[:-1], "any")])
@pytest.mark.parametrize("width", [8, 13])
def test_what_the_host_expects(names, root, width):
    """The host knows from what the board says what every node must receive, in every job."""
    fabric = engine("2x2", *names, width=width, root=root, operators=["add", "max:signed"])
    facts = json.loads(json.dumps(facts_of(fabric)))
    assert choices_in(facts) == [*choices_of(fabric)]
    program = fabric.program
    for number in range(1, 25):
        job = drawn_job(choices_of(fabric), number)
        of_run, part = job_facts(facts, job), program.part(job["mode"])
        mode = program.modes[job["mode"]]
        root = job["root"] if mode.any_root else None
        messages = random_messages(part.layout, job["length"], width=width, seed=number)
        operator = mode.operator_of(job["operation"]) if mode.operators else None
        expected, receiving = expected_words(
            part.layout, messages, operator=operator, width=width, root=root
        )
        words, receives = expected_data(send_data(messages.astype(int), of_run), of_run)
        assert (receives == receiving).all()
        assert (words[receives] == expected[receives]).all()
        assert of_run["predicted_cycles"] == program.cycles(job["length"], mode=job["mode"])


def test_all_collectives_at_once_fit_the_lines():
    """What the image of eight collectives says fits into its ROM, and into a line of the host."""
    names = ("broadcast", "scatter", "gather", "allgather", "alltoall", "reduce", "reduce-scatter")
    fabric = engine("3x4", *names, "allreduce", max_flits=9, operators=["add", "max"], root="any")
    assert len(template_of(fabric).rom) < MOST_BYTES


@pytest.fixture(scope="module")
def facts():
    """What a board says that leaves every choice."""
    fabric = engine("2x2", "allgather", "allreduce", "broadcast", root="any",
                    operators=["add", "max:signed"])  # fmt: skip
    return json.loads(json.dumps(facts_of(fabric)))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, r"Mode must be one of allgather:\S+, allreduce:\S+, broadcast:\S+, not left out"),
        ({"mode": "scatter"}, r"Mode must be one of .*, not scatter"),
        ({"mode": "0", "length": 6}, "Length must be from 1 to 5, not 6"),
        ({"mode": "0", "root": 1}, "Root must be left out for allgather, not 1"),
        ({"mode": "broadcast", "root": 4}, "Root must be from 0 to 3, not 4"),
        ({"mode": "0", "operation": "add"}, "Operation must be left out for allgather, not add"),
        ({"mode": "1", "operation": "or"},
         "Operation must be one of add, max:signed for allreduce, not or"),
    ],
)  # fmt: skip
def test_jobs_that_a_board_does_not_do(facts, asked, message):
    """What the board leaves no choice of, or does not have, is refused in one line."""
    with pytest.raises(InputError, match=f"^{message}$"):
        asked_job(facts, **asked)


def test_jobs_by_name(facts):
    """Modes and operators are named, or numbered."""
    job = {"mode": 1, "length": 2, "operation": 1}
    assert asked_job(facts, mode="allreduce", length=2, operation="max:signed") == job
    assert asked_job(facts, mode="1", length=2, operation="1") == job
    of_run = job_facts(facts, job)
    assert (of_run["operator"], of_run["signed"], of_run["send_words"]) == ("max", True, 2)
    assert data_length(np.zeros((4, 3)), job_facts(facts, {"mode": 0})) == 3
    message = r"Data must be of shape \(4, flits\), flits from 1 to 5; not \(4, 6\)$"
    with pytest.raises(InputError, match=message):
        data_length(np.zeros((4, 6)), job_facts(facts, {"mode": 0}))


def test_verdict_of_a_job(facts):
    """A verdict says what the run did."""
    job = "mode=1 length=3 root=2 operation=1"
    passed = Verdict.parse(f"pass run=0002 {job} cycles=14 predicted=14")
    assert passed is not None
    said = "run 2 (allreduce by signed max, 3 flits): pass, 20 cycles as predicted"
    assert passed.describe(facts) == said
    address = facts["recv_base"] + 11
    where = f"node=3 address={address:x} expected=a5 got=a4"
    job = "mode=0 length=2 root=0 operation=0"
    failed = Verdict.parse(f"fail run=0003 {job} cycles=14 predicted=14 {where}")
    assert failed is not None
    assert failed.describe(facts) == (
        "run 3 (allgather, 2 flits): node 3 holds 0xa4 for flit 1 of node 2 "
        f"(address {address}), not 0xa5"
    )


@pytest.mark.long
def test_engine_on_a_board(tmp_path, capsys):
    """A board tests itself with job after job, and carries out the job of a user."""
    fabric = engine("2x2", "allgather", "allreduce", "scatter", width=12, root="any",
                    operators=["add", "max"])  # fmt: skip
    data = np.random.default_rng(1).integers(0, 4096, (4, 3), np.uint16)
    np.save(tmp_path / "data.npy", data)
    files = [str(tmp_path / "data.npy"), "-o", str(tmp_path / "received.npy"), "--json"]
    with on_terminal(compiled(fabric, tmp_path)) as port:
        assert main(["monitor", port, "-c", "info", "-c", "test 30", "-c", "start mode=scatter "
                     "length=2 root=3"]) == 0  # fmt: skip
        said = capsys.readouterr().out
        assert re.search(r"^mode 1 +allreduce by add, max: ", said, re.MULTILINE)
        assert re.search(r"^run \d+ \(\w+.*\): pass, \d+ cycles as predicted$", said, re.MULTILINE)
        assert "scatter, root 3, 2 flits: done in " in said
        assert main(["run", port, *files, "--mode", "allreduce", "--operation", "max"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert (result["job"], result["words_wrong"]) == (
            {"mode": 1, "length": 3, "root": 0, "operation": 1}, 0)  # fmt: skip
        assert result["cycles"] == fabric.program.cycles(3, mode=1)
        assert (np.load(tmp_path / "received.npy") == data.max(0)).all()
        with open_port(port) as line:
            client = BoardClient(line)
            sent = np.arange(8).reshape(4, 2)
            words, _ = client.run(sent.repeat(4, axis=1), {"mode": 2, "length": 2, "root": 3})
            assert (words == np.array([[6, 6], [6, 6], [7, 7], [7, 7]])).all()
            client.facts["max_flits"] = 7
            with pytest.raises(WorkFailed, match="Board must carry out a run, not answer 'refused"):
                client.start({"length": 6})
