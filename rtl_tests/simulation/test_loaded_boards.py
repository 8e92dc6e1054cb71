"""Fabrics on several boards with loaded tables: each board takes the image of all."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from amaranth.sim import Simulator
from board_systems import board_system
from helpers import few
from make_bench import have_bench, run_bench

import torusfabric as tf
from torusfabric.adapters.boards.claims import prove_boards
from torusfabric.adapters.boards.drive import simulate_boards
from torusfabric.adapters.boards.drive.compiled import CompiledBoards
from torusfabric.adapters.boards.files import emit_boards
from torusfabric.adapters.boards.hardware import BoardSystem
from torusfabric.cli import main
from torusfabric.errors import InputError, WorkFailed
from torusfabric.rtl.netlist import Constant
from torusfabric.rtl.run_choices import RunError
from torusfabric.simulation.jobs import complete_job, random_job_messages
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache

#: Sides, boards, latencies, collectives, and options of compiler and fabric.
BUILT = [
    ((4,), "2", 9, ("allgather", "allreduce"), {"max_flits": 5, "beat": 2}),
    ((4, 4), "2x1", 10, ("alltoall", "broadcast"), {"max_flits": 4}),
    ((4, 4), "2x2", 13, ("reduce-scatter",), {"max_flits": 9, "beat": 4}),
    ((6,), "3", 12, ("gather", "scatter"), {"max_flits": 6, "root": "any"}),
    ((2, 2, 3), "1x2x1", "1:9,0:1,2:1", ("broadcast",), {"max_flits": 8}),
]


def built(sides, counts, latency, names, options):
    """Return boards with loaded tables."""
    return board_system(sides, counts, latency, *names, tables="ram", **options)


@pytest.fixture(scope="module")
def pair():
    """Two boards of two nodes that hold a loaded image, and a second image."""
    system = built((4,), "2", 12, ("allgather", "alltoall"), {"max_flits": 4})
    one, other = (tf.image(system.fabric, name) for name in ("alltoall", "allgather"))
    fabric = tf.Fabric.holding(one, empty=True)
    return replace(system, fabric=fabric), other


@pytest.mark.parametrize("case", few(2, BUILT, tuples=True))
def test_runs(case):
    """Fabrics with loaded tables on several boards pass their simulation."""
    system = built(*case)
    report = simulate_boards(system, jobs=6)
    assert report.passed
    assert report.words_checked


def test_images(pair):
    """Both boards have one netlist and take the same image, each for its own nodes."""
    system, _ = pair
    assert system.kinds_of_boards == (0, 0)
    assert simulate_boards(system, jobs=4, link_errors=1e-3).passed


@pytest.mark.parametrize("torn", [False, True])
def test_boards_that_hold_other_images_refuse_runs(pair, torn):
    """Boards with different images refuse a run, and so do boards one of which has none. With equal
    images they run again.
    """
    system, other = pair
    fabric = system.fabric
    job = complete_job(fabric, tf.Job(length=3))
    sent = random_job_messages(fabric, job, seed=1)
    words = SimpleNamespace(words=other.words[:-1], settle_cycles=other.settle_cycles)
    with CompiledBoards(system, seed=1, link_errors=0) as boards:
        assert not any(boards.execute(sent, job).errors)
        if torn:
            with pytest.raises(WorkFailed, match="The fabric in simulation refused its image"):
                boards.load_board(1, words)
        else:
            boards.load_board(1, other)
        assert boards.execute(sent, job).errors == [RunError.UNEQUAL_CHOICES] * 2
        boards.load_board(1)
        assert not any(boards.execute(sent, job).errors)


@pytest.mark.parametrize("busy", [False, True])
def test_no_image_comes_while_a_board_waits_or_runs(pair, busy):
    """A board that waits or runs refuses an image."""
    system, other = pair
    loader, known = system.netlists[0].modules["loader"](), []

    async def bench(ctx):
        ctx.set(loader.busy, busy)
        for k, word in enumerate(other.words):
            ctx.set(loader.load_we, 1)
            ctx.set(loader.load_first, k == 0)
            ctx.set(loader.load_data, word)
            await ctx.tick()
        ctx.set(loader.load_we, 0)
        await ctx.tick().repeat(other.settle_cycles)
        known.append((ctx.get(loader.loaded), ctx.get(loader.image)))

    simulator = Simulator(loader)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert known == [(0, 0) if busy else (1, other.words[-1] & 0xFFFF)]


def test_runs_that_take_too_long_are_refused(pair, monkeypatch):
    """A fabric whose longest run exceeds the room is refused, because elastic buffers are sized for
    the longest run.
    """
    system, _ = pair
    limit = system.fabric.front.longest_run
    assert system.link_plan.longest == limit >= system.fabric.predicted_cycles
    monkeypatch.setattr(type(system.fabric.room), "longest_run", 9)
    with pytest.raises(InputError, match="at most 9 cycles"):
        BoardSystem(system.fabric, system.boards)


def test_commands(tmp_path, capsys):
    """An image is made and simulated by the manifest of boards; `--engine` is refused."""
    names = ["4x2", "allgather,alltoall", "--boards", "2x1", "--tables", "ram", "--max-flits", "3"]
    out, file = tmp_path / "out", tmp_path / "a.img"
    assert not main(["verilog", *names, "--inputs", "all", "-o", str(out)])
    manifest = ["--fabric", str(out / "manifest.json")]
    assert not main(["image", *manifest, "4x2", "scatter", "-o", str(file)])
    capsys.readouterr()
    assert not main(["simulate", *manifest, "--image", str(file), "--jobs", "2", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (found["boards"], found["collective"], found["words_wrong"]) == ("2x1", "scatter", 0)
    assert main(["simulate", *manifest, "--image", str(file), "--engine", "compiled"]) == 1
    assert "--engine is not available for several boards" in capsys.readouterr().err


@pytest.mark.skipif(not have_bench(), reason="cocotb, make or Icarus is not installed")
def test_bench(tmp_path):
    """Boards with their built-in tables run in Icarus."""
    emit_boards(built(*BUILT[0])).write(tmp_path)
    passed, text = run_bench(tmp_path, RUNS=2)
    assert passed, text[-3000:]


def unwired(netlist):
    """Return a board whose control has a constant as the number of its image."""
    arrays = []
    for array in netlist.arrays:
        if array.module == "board_control":
            array = replace(array, inputs={**array.inputs, "image": (Constant(0, 16),)})
        arrays.append(array)
    return replace(netlist, arrays=tuple(arrays))


@pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")
@pytest.mark.parametrize("wrong", [False, True])
def test_proof(wrong):
    """Boards are proved; a control without the number of the image is refuted."""
    system = built((2,), "2", 9, ("allgather",), {"max_flits": 2})
    if wrong:
        changed = {netlist: unwired(netlist) for netlist in system.netlists}
        system.__dict__["netlists"] = tuple(changed[each] for each in system.netlists)
    found = prove_boards(system, cache=Cache())
    assert found.proved is not wrong
    if wrong:
        assert found.counterexample.signal == "the_board_control.image"
