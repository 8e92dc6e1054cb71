"""Limits of memory: work that cannot fit is refused in one line before it starts."""

import json
import logging
import time
from pathlib import Path

import pytest

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.planning import limits, make_selection, require_hardware_memory
from torusfabric.planning.limits import memory_arguments, require_memory
from torusfabric.toolchain import resources
from torusfabric.toolchain.notices import LOGGER

GB = 10**9

#: Command lines beyond any memory, and words of the message: the number to change, or its limit.
BEYOND = (
    ("plan 3x3 allgather --chunks 99999999999999999999", "at most --chunks"),
    ("plan 3x3 allgather --algorithm matching --chunks 1000000000", "at most --chunks"),
    ("plan 3x3 broadcast --chunks 1000000000", "at most --chunks"),
    ("plan 1000000000 allgather", " nodes"),
    ("plan 1000000000 broadcast", " nodes"),
    ("plan 3x3 allgather --algorithm matching --latency 999999999", "must be at most 65536 steps"),
    ("plan 3x3 allreduce --latency 999999999", "must be at most 65536 steps"),
    ("plan arrowhead:3 broadcast --packets 1000000000", "at most --packets"),
    ("plan arrowhead:3 broadcast --times 1 1 1e30", "at most 65536 packets"),
    ("simulate 3x3 allgather --flits 1000000000", "at most --flits"),
    ("simulate 3x3 allgather --flits 10000000000000000000000", "at most --flits"),
    ("verilog 3x3 allgather --flits 10000000000000000000000 -o never", "at most --flits"),
    ("simulate 2x2 allgather --repeat 1000000000", "at most --repeat"),
    ("simulate 1000x1000 allgather", " nodes"),
    ("synth 2x2 allgather --target ecp5-25k --pnr --seeds 1000000000", "at most --seeds"),
    ("compare 100000x100000 broadcast", "nodes"),
    ("plan 4096x4096~1 allgather", "at most 4194304 nodes"),
    ("plan 2048x2048~1!0:+0 allgather", "at most 65536 nodes"),
    ("plan 2048x2048~1!0:+0=4 allgather", "at most 65536 nodes"),
    (f"plan circulant:1048576:{','.join(map(str, range(1, 200)))} allgather", "at most 16777216"),
    ("verilog 3x3 allgather --tables ram --max-flits 4 --rows 100000000 -o never", "most 65536"),
    ("verilog 3x3 allgather --tables ram --max-flits 4 --depth 100000000 -o never", "most 4096"),
)


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with 16 GB of available memory."""
    monkeypatch.setattr(limits, "available_memory", lambda: 16 * GB)


@pytest.mark.parametrize(("line", "advice"), BEYOND)
def test_beyond_memory(line: str, advice: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Work beyond memory is refused within seconds, in one line that names a number that fits."""
    began = time.process_time()
    assert main(line.split()) == 1
    assert time.process_time() - began < 4
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert advice in error
    assert not Path("never").exists()


def test_long_work_is_announced(caplog: pytest.LogCaptureFixture) -> None:
    """Work of minutes is announced before it starts; work of seconds is not."""
    caplog.set_level(logging.INFO, LOGGER.name)
    limits.log_duration("Simulating", 204)
    limits.log_long_plan("Planning", make_selection("256x256", "allgather"))
    limits.log_long_plan("Planning", make_selection("4x4", "allgather", chunks=10**6))
    said = ["Simulating may take some 3.4 min", "Planning, of 65536 nodes, may take minutes",
            "Planning, of 16 nodes and 1000000 chunks, may take minutes"]  # fmt: skip
    assert caplog.messages == said
    limits.log_duration("Simulating", 10)
    limits.log_long_plan("Planning", make_selection("16x16x16", "allgather", chunks=1000))
    assert caplog.messages == said


def test_more_blocks_than_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A small file that claims more chunks than memory can hold is refused."""
    path = tmp_path / "plan.json"
    tf.plan("3", "broadcast").save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"chunks": 10**10}))
    assert main(["check", str(path)]) == 1
    assert "chunks must be a number from 1 to " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("topology", "collective"),
    [("343x343x343", "allgather"), ("32x32x32", "allgather"), ("64x64", "alltoall"),
     ("arrowhead:12", "broadcast"), ("1000x1000", "broadcast"), ("4096x64", "gather@0")],
)  # fmt: skip
def test_large_plans_fit(topology: str, collective: str) -> None:
    """Large plans that fit in memory are accepted."""
    numbers, size = memory_arguments(make_selection(topology, collective))
    assert size(*numbers.values()) < 4 * GB


@pytest.mark.parametrize(
    ("topology", "runs"), [("16x16x16", 1), ("64x64", 1), ("64x64", 0), ("2x2", 10**6)]
)
def test_large_fabrics_fit(topology: str, runs: int) -> None:
    """Large fabrics and simulations that fit in memory are accepted."""
    selection = make_selection(topology, "allgather")
    require_hardware_memory(selection.topology, selection.collective, runs=runs)


def test_memory_of_a_power() -> None:
    """If memory grows with the square of a number, the message names the largest that fits."""
    with pytest.raises(tf.InputError, match=r"at least 1.6 TB .*; choose at most 990 nodes$"):
        require_memory("Work", {"nodes": 10_000}, lambda nodes: 16_000 * nodes**2)


def test_available_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The memory limit of a container counts, if there is one."""
    most, used = tmp_path / "most", tmp_path / "used"
    most.write_text("3000000\n")
    used.write_text("1000000\n")
    monkeypatch.setattr(resources, "CONTAINERS", ((str(most), str(used)),))
    assert resources.available_memory() == 2_000_000
    most.write_text("max\n")
    assert resources.available_memory() > 2_000_000
