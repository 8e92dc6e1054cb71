"""The benchmark script: it reports every figure that became worse, and no other."""

import json
import sys

import benchmark_counts
import benchmark_times
import benchmarks
import pytest
from benchmark_times import Comparison, Timed

import torusfabric as tf
from torusfabric.analysis.volume import cycle_limit
from torusfabric.collective import COLLECTIVES
from torusfabric.errors import InputError


def test_verdicts():
    """Counts have no noise, clocks have a tenth, and a figure that is missing is a failure."""
    measured = {"a": 10, "b": 10, "c": 10, "d": 10}
    kept = {"a": 10, "b": 9, "c": 11, "e": 4}
    found = benchmarks.figures("cycles", measured, kept)
    verdicts = {each.name: each.verdict for each in found}
    assert verdicts == {"a": "same", "b": "worse", "c": "better", "d": "new", "e": "gone"}
    assert benchmarks.failed(found, [])
    assert benchmarks.failed(found[-1:], [])
    assert not benchmarks.failed([found[0], found[2], found[3]], [])
    tenth = benchmarks.Allowance(0.1)
    kept = dict.fromkeys("abc", 200)
    slower = benchmarks.figures("clocks", {"a": 180, "b": 230, "c": 170}, kept, tenth)
    assert [each.verdict for each in slower] == ["worse", "better", "worse"]
    near = benchmarks.figures("clocks", {"a": 185, "b": 215}, {"a": 200, "b": 200}, tenth)
    assert [each.verdict for each in near] == ["same", "same"]


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("wires, LUTs", 100),
        ("wires with streams, LUTs", 100),
        ("tables, LUTs", 115),
        ("all fabrics, LUTs", 105),
        ("tables, block RAMs", 100),
        ("tables, FFs", 1000),
        ("tables, cycles", 100),
        ("any root, cycles", 102),
    ],
)
def test_what_may_be_worse_against_another_commit(name, most):
    """Each hardware figure may be worse by its allowance; one more is worse."""
    allowance = benchmarks.hardware_allowance(name)
    one, beyond = (benchmarks.Figure("hardware", name, most + more, 100, allowance)
                   for more in (0, 1))  # fmt: skip
    assert one.verdict == "same"
    assert beyond.verdict == ("same" if allowance == benchmarks.ANY else "worse")


def test_counts_beside_those_of_another_commit(monkeypatch, capsys):
    """Cycles are compared with the kept file of the other commit. Each commit measures hardware
    with its own command.
    """
    monkeypatch.setattr(benchmark_counts, "TORI", ("4x4",))
    monkeypatch.setattr(benchmark_counts, "COLLECTIVES", ("broadcast",))
    tiny = benchmark_counts.Hardware("tiny", "2x2 allgather --width 2")
    monkeypatch.setattr(benchmark_counts, "HARDWARE", (tiny,))
    monkeypatch.setattr(benchmark_times, "installed", lambda commit: benchmark_counts.HERE)
    monkeypatch.setattr(sys, "argv", ["b", "--only", "hardware", "--against", "HEAD", "--json"])
    assert benchmarks.main() == 0
    found = {each["name"]: each for each in json.loads(capsys.readouterr().out)["counts"]}
    assert {name.rpartition(", ")[2] for name in found} == {
        "LUTs", "FFs", "block RAMs", "LUTs of a router", "cycles"}  # fmt: skip
    assert found["tiny, LUTs"]["value"] == found["tiny, LUTs"]["kept"] > 0
    assert found["tiny, LUTs"]["value"] == found["all fabrics, LUTs"]["value"]
    cycles = benchmarks.figures_against("cycles", "HEAD", lambda *_: None)
    assert {each.name for each in cycles if each.value} == {
        f"4x4 broadcast {length}" for length in benchmark_counts.LENGTHS}  # fmt: skip
    assert all(each.value <= each.kept for each in cycles if each.value)


def test_a_fault_in_what_is_kept_is_reported(tmp_path, monkeypatch, capsys):
    """One cycle more than kept gives status 2, and the kept file stays unless `--keep` is given."""
    monkeypatch.setattr(benchmark_counts, "TORI", ("4x4",))
    monkeypatch.setattr(benchmark_counts, "COLLECTIVES", ("allgather", "reduce"))
    kept = tmp_path / "counts.json"
    monkeypatch.setattr(benchmarks, "KEPT", kept)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", "cycles", "--keep"])
    assert benchmarks.main() == 0
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", "cycles"])
    assert benchmarks.main() == 0
    assert "10 figures, 0 worse, 0 better, 0 new, 0 gone" in capsys.readouterr().out
    read = json.loads(kept.read_text())
    read["cycles"]["4x4 reduce 16"] -= 1
    kept.write_text(json.dumps(read))
    assert benchmarks.main() == 2
    out = capsys.readouterr().out
    assert f"not {read['cycles']['4x4 reduce 16']}" in out
    assert "1 worse" in out
    assert json.loads(kept.read_text()) == read


def test_what_is_kept_is_of_these_cases():
    """The kept file has 240 cycle counts and all fabrics, and no count is below its limit."""
    kept, limits = benchmarks.read_kept(benchmarks.KEPT), benchmark_counts.limits()
    assert kept["cycles"].keys() == limits.keys()
    assert len(limits) == 240
    assert all(kept["cycles"][name] >= least for name, least in limits.items())
    names = {name.partition(",")[0] for name in kept["hardware"]}
    assert names == {case.name for case in benchmark_counts.HARDWARE}


def test_kept_costs_are_of_all_collectives(monkeypatch):
    """The page "What it costs" has every cost of every collective on both tori, with cycles of the
    same plans as the kept cycles. The costs of a torus come from one command.
    """
    kept = benchmarks.read_kept(benchmarks.KEPT)
    costs = kept["costs"]
    named = {tuple(name.rpartition(", ")[::2]) for name in costs}
    each = {f"{torus} {name}" for torus in benchmark_counts.COST_TORI
            for name in COLLECTIVES.keys() - {"pattern"}}  # fmt: skip
    assert {(fabric.partition(" from ")[0], key) for fabric, key in named} == {
        (fabric, key) for fabric in each for key in benchmark_counts.COST_KEYS}  # fmt: skip
    assert costs["8x8 allgather, cycles"] == kept["cycles"]["8x8 allgather 4"]
    assert {name.rpartition(",")[0] for name in kept["clocks"]} & each
    monkeypatch.setattr(benchmark_counts, "COST_TORI", ("2", "no torus"))
    monkeypatch.setattr(benchmark_counts, "COST_OPTIONS", "--width 2 --flits 1")
    found = benchmark_counts.count_costs(lambda *_: None)
    assert len(found) == len(named) // 2
    assert found["2 allgather, GE"] > found["2 allgather, LUTs"] > 0


@pytest.mark.parametrize(
    ("here", "there", "worse"),
    [
        ([1.3, 1.25, 1.4, 1.2], [1, 1, 1, 1], True),
        ([1.05, 1.04, 1.06, 1.05], [1, 1, 1, 1], False),
        ([1.3, 0.9, 0.9, 1.4], [1, 1, 1, 1], False),
        ([0.5, 0.6, 0.5, 0.4], [1, 1, 1, 1], False),
        ([], [1, 1], True),
        ([1, 1], [], False),
    ],
)
def test_seconds_are_compared_pair_by_pair(here, there, worse):
    """A command is worse if it is slower in most pairs, or fails only in this commit."""
    found = benchmark_times.compared(Timed("commands", "--help"), here, there)
    assert found.worse == worse
    assert benchmarks.failed([], [found]) == worse


def test_engines_may_be_slower_by_a_fifth():
    """Engines may be slower by a fifth, commands by a tenth."""
    timed = Timed("runs", "simulate", "speed"), Timed("commands", "--help")
    found = [Comparison(each, None, None, [1.2] * 4).worse for each in timed]
    assert found == [False, True]


def test_more_node_cycles_are_better():
    found = benchmark_times.compared(Timed("runs", "simulate", "speed"), [2, 2], [1, 1])
    assert found == Comparison(found.timed, 2, 1, [0.5, 0.5])
    assert not found.worse


def test_a_command_is_measured_and_a_failing_one_is_none():
    program = benchmark_counts.HERE
    assert benchmark_times.measure(program, Timed("commands", "--help")) > 0
    assert benchmark_times.measure(program, Timed("commands", "plan 4x4 no-such")) is None
    speed = Timed("planning", "plan 3x3 allgather --json", "rounds")
    assert benchmark_times.measure(program, speed) == tf.plan("3x3", "allgather").steps


def test_wrong_arguments(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", "speed"])
    with pytest.raises(InputError, match="must be one of cycles, hardware, costs, clocks, "):
        benchmarks.main()
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", "commands"])
    with pytest.raises(InputError, match="must come with --against"):
        benchmarks.main()
    with pytest.raises(InputError, match="Commit must be one of this repository, not 'nowhere'"):
        benchmark_times.installed("nowhere")


@pytest.mark.parametrize(
    ("topology", "collective", "flits", "least"),
    [
        ("8x8", "broadcast", 1, 8),
        ("8x8", "broadcast", 256, 64),
        ("4x4x4", "broadcast", 64, 11),
        ("8x8", "reduce", 256, 64),
        ("8x8", "allreduce", 1, 8),
        ("8x8", "allreduce", 256, 126),
        ("4x4x4", "allreduce", 256, 84),
        ("8x8", "scatter", 1, 16),
        ("8x8", "scatter", 16, 252),
        ("8x8", "allgather", 4, 63),
        ("8x8@1", "allgather", 4, 14),
        ("7x7x7", "allgather", 256, 14592),
        ("4", "alltoall", 3, 6),
    ],
)
def test_limit(topology, collective, flits, least):
    """The cycle limit is the load of the busiest link or the diameter, whichever is larger."""
    torus, _, axes = topology.partition("@")
    torus = tf.parse_topology(torus)
    chosen = tf.parse_collective(f"{collective}@{axes}" if axes else collective, topology=torus)
    assert cycle_limit(torus, chosen, flits) == least
