"""The choice of an algorithm by default: the fewest cycles, or the least time in the cost model."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from helpers import few

import torusfabric as tf
from torusfabric.analysis.cost import schedule_cost
from torusfabric.analysis.volume import cycle_limit
from torusfabric.cli import main
from torusfabric.errors import InputError
from torusfabric.planning import choice, estimates, make_selection, resolve
from torusfabric.planning.selection_schedule import schedule_of_selection as planned_one
from torusfabric.program.counts import estimate_luts

KINDS = ("broadcast", "reduce", "scatter", "gather", "allgather", "reduce-scatter", "allreduce")


@pytest.mark.parametrize("flits", [1, 7, 64])
@pytest.mark.parametrize("collective", KINDS)
@pytest.mark.parametrize("topology", few(2, ["3x3", "2x4", "4x4"]))
def test_nothing_takes_fewer_cycles(topology, collective, flits):
    """The chosen schedule takes at most 3 % more cycles than the fastest candidate."""
    schedule = tf.plan(topology, collective, flits=flits)
    cycles = tf.compile(schedule, flits=flits).cycles()
    rows = tf.compare(topology, collective, flits=flits)
    assert rows[0].cycles <= cycles <= 1.03 * rows[0].cycles
    assert [row.cycles for row in rows] == sorted(row.cycles for row in rows)
    for row in rows:
        assert row.cycles >= row.limit
        assert row.limit == cycle_limit(schedule.topology, schedule.collective, flits)
        assert tf.compile(row.schedule, flits=flits).cycles() == row.cycles


@pytest.mark.parametrize("topology", ["2", "4x4", "8x8", "5x7", "6x4", "4x4x4", "7x7x7"])
@pytest.mark.parametrize(("collective", "factor"), [("broadcast", 1.5), ("reduce", 4)])
def test_long_and_short_messages_are_near_the_limit(topology, collective, factor):
    """A message of L flits takes at most 1.05 L / ports + `factor` * diameter + 12 cycles."""
    for flits in (1, 4, 16, 64, 256):
        schedule = tf.plan(topology, collective, flits=flits, check=False)
        torus = schedule.topology
        most = 1.05 * flits / torus.ports + factor * torus.diameter + 12
        assert tf.compile(schedule, flits=flits).cycles() <= most


def chosen_and_faster(collective):
    """Return the programs of the chosen schedule, and of one that saves 4 of 261 cycles."""
    chosen = tf.plan("8x8", collective, flits=16)
    faster = tf.plan("8x8", collective, algorithm="farthest-first", chunks=4)
    return [tf.compile(schedule, flits=16) for schedule in (chosen, faster)]


@pytest.mark.parametrize("collective", ["scatter", "gather"])
def test_of_nearly_as_fast_ones_the_smaller_is_taken(collective):
    """The smaller of two nearly equally fast schedules is chosen.

    The estimate of LUTs is a mean over all nodes, because a root has other memories than other
    nodes.
    """
    chosen, faster = chosen_and_faster(collective)
    assert (chosen.cycles(), faster.cycles()) == (261, 257)
    assert estimate_luts(chosen) * 1.5 < estimate_luts(faster)


@pytest.mark.long
@pytest.mark.parametrize("collective", ["scatter", "gather"])
def test_what_is_estimated_to_be_smaller_is(collective):
    """Synthesis confirms the estimate: the chosen fabric has less than half of the LUTs."""
    designs = [tf.emit(tf.Fabric(program, width=4)) for program in chosen_and_faster(collective)]
    chosen, faster = (tf.synthesize(each, "ecp5-85k").fabric["luts"] for each in designs)
    assert chosen * 2 < faster


def test_what_an_operator_does_not_allow_is_not_taken():
    """A schedule that an operator does not allow is never chosen.

    Nodes that exchange partial sums combine words in different orders, so such schedules need an
    associative operator.
    """
    unlike = replace(tf.Operator.parse("add"), name="unlike", associative=False)
    free, bound = (
        tf.plan("3x3", "allreduce", flits=1, operators=given) for given in ("add,max", unlike)
    )
    assert free.algorithm == "ring-exchange" != bound.algorithm
    with pytest.raises(tf.InputError, match="needs an associative operator"):
        tf.compile(free, flits=1, operators=[unlike])
    forms = tf.plan_forms("3x3", "allreduce", max_flits=64, operators=[unlike])
    assert tf.compile([forms], max_flits=64, operators=[unlike]).operators == (unlike,)


def test_without_a_length():
    """Without a number of flits, the best schedule for long messages is chosen."""
    assert tf.plan("7x7x7", "allgather").algorithm == "hamiltonian"
    assert tf.plan("7x7x7", "allgather", flits=64).algorithm == "matching"
    assert tf.plan("4x4", "allgather").algorithm == "hamiltonian"
    chosen = resolve(make_selection("8x8", "broadcast"), flits=64)
    assert chosen.why.startswith("29 cycles for 64 flits")
    assert tf.plan("8x8", "allreduce").algorithm == "spanning-tree"
    assert tf.plan("4~4x8", "alltoall").steps == 21


def test_no_more_chunks_are_planned_than_are_of_use(monkeypatch):
    """Short messages lead to no plan with more chunks than they can use.

    Why: schedules for long messages take long to plan, and are never chosen for a few flits.
    """
    planned = []
    monkeypatch.setattr(
        choice, "schedule_of_selection", lambda one: planned.append(one) or planned_one(one)
    )
    tf.plan("mesh:3x3", "allreduce", flits=4)
    assert [one.options.chunks for one in planned] == [None, 3]
    assert planned[0].options.trees == 1


@pytest.mark.parametrize("flits", [0, -1, "x", 2**40])
def test_lengths_that_are_none(flits):
    """Invalid numbers of flits are refused in one line."""
    with pytest.raises(tf.InputError, match="Flits must be"):
        tf.plan("3x3", "allgather", flits=flits)


def test_reasons_name_the_chunks_of_short_messages():
    """The reason of a choice gives every candidate a name of its own."""
    why = choice.choose_by_cycles(make_selection("3x3", "reduce-scatter"), 2).why
    names = [one.rsplit(" ", 1)[0] for one in why.split("; ", 1)[1].split(", ")]
    assert len(names) == len({*names}) > 1


def test_time_is_that_of_the_model():
    """Model time adds start, hop and unit for circuits, step and unit for steps."""
    circuits = tf.plan("5x5", "broadcast", algorithm="lee-code")
    cost = schedule_cost(circuits)
    found = tf.time(circuits, alpha=7, beta=1000, delta=Fraction(1, 3), tau=2, length=5)
    assert found == cost.rounds * 7 + Fraction(cost.delta, 3) + cost.tau * 10
    steps = tf.plan("5x5", "allgather", algorithm="matching")
    assert tf.time(steps, alpha=1000, beta=3, delta=1000, tau=1) == 6 * 3 + 6


def test_time_of_a_file(tmp_path):
    """A file and its schedule have the same model time."""
    schedule = tf.plan("3x3", "scatter")
    schedule.save(tmp_path / "plan.json")
    assert tf.time(tmp_path / "plan.json", beta=1, tau=1) == tf.time(schedule, beta=1, tau=1)


@pytest.mark.parametrize(
    "kind", few(2, ["broadcast", "allgather", "gather", "allreduce"], tuples=True)
)
@pytest.mark.parametrize("start", [0, 1, 50, 2000])
def test_the_least_time_is_taken(kind, start):
    """No algorithm takes less time than the chosen one; `compare` sorts its candidates by time."""
    costs = {"alpha": start, "beta": start, "tau": 1}
    best = tf.plan("4x4", kind, flits=16, objective="time", costs=costs)
    rows = tf.compare("4x4", kind, flits=16, objective="time", costs=costs)
    times = [row.time for row in rows]
    assert times == sorted(times)
    assert tf.time(best, **costs, length=16) <= times[0]
    assert {row.schedule.algorithm for row in rows} == {
        row.schedule.algorithm for row in tf.compare("4x4", kind, flits=16)
    }


def test_starts_decide_for_few_rounds():
    """High start-up costs favour a few rounds of circuits; without start-up costs, trees win."""
    for start, algorithm in ((1000, "max-flow"), (0, "spanning-tree")):
        costs = {"alpha": start, "beta": start, "tau": 1}
        chosen = tf.plan("8x8", "broadcast", flits=64, objective="time", costs=costs)
        assert chosen.algorithm == algorithm


def test_time_decides_for_any_length():
    """With the objective `time` an engine has one form, the best for its longest messages."""
    wishes = {"objective": "time", "costs": {"alpha": 1000, "beta": 1000, "tau": 1}}
    (form,) = tf.plan_forms("4x4", "broadcast", max_flits=16, **wishes)
    assert form.algorithm == tf.plan("4x4", "broadcast", flits=16, **wishes).algorithm
    assert form.algorithm not in {
        each.algorithm for each in tf.plan_forms("4x4", "broadcast", max_flits=16)
    }


def test_length_comes_before_flits():
    """The cost `length` replaces the number of flits in the model time."""
    costs = {"beta": 10, "tau": 1, "length": 1}
    (first, *_) = tf.compare("4x4", "allgather", flits=64, objective="time", costs=costs)
    assert first.time == tf.time(first.schedule, beta=10, tau=1, length=1)
    assert all(row.time is None for row in tf.compare("4x4", "allgather"))


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"objective": "area"}, "Objective must be cycles or time, not 'area'"),
        ({"objective": "time"}, "Costs must name any of alpha, beta, delta, tau, length, not None"),
        ({"objective": "time", "costs": {}}, "Costs must name any of .*, not {}"),
        ({"costs": {"tau": 1}}, "Costs .* have no effect on cycles"),
        ({"objective": "time", "costs": {"gamma": 1}}, "Cost .*gamma"),
        ({"objective": "time", "costs": {"tau": -1}}, "Tau must be finite and at least 0, not -1"),
        ({"objective": "time", "costs": {"tau": float("nan")}}, "Tau must be finite"),
        ({"objective": "time", "costs": {"tau": "much"}}, "Tau must be a number, not 'much'"),
    ],
)
def test_refused(wishes, message):
    """`plan` and `compare` refuse wrong objectives and costs in one clear line."""
    for refusing in (tf.plan, tf.compare):
        with pytest.raises(InputError, match=message):
            refusing("4x4", "broadcast", **wishes)


def test_commands_take_it(capsys):
    """The options of commands choose as in Python, and are refused beside a plan file."""
    asked = ["--flits", "64", "--objective", "time", "--costs", "alpha=1000,beta=1000,tau=1"]
    assert main(["plan", "8x8", "broadcast", *asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["algorithm"] == "max-flow"
    for wrong in (["--costs", "alpha"], ["--objective", "area"], ["--objective", "time"]):
        assert main(["plan", "4x4", "broadcast", *wrong]) == 1
    assert main(["simulate", "--plan", "missing.json", "--objective", "time"]) == 1
    assert "--objective and --plan exclude each other" in capsys.readouterr().err


@pytest.mark.parametrize("topology", ["12x12", "5x5x5"])
@pytest.mark.parametrize("collective", [
    "broadcast", "reduce", "allgather", "scatter", "gather", "reduce-scatter", "allreduce",
    "alltoall", "halo",
])  # fmt: skip
def test_estimates_choose_as_cycles_do(topology, collective):
    """The choice on large networks, by estimates, takes at most a few cycles more than the best."""
    selection = make_selection(topology, collective)
    for flits in (2, 64):
        chosen = estimates.choose_by_estimate(selection, flits)
        assert chosen.planned is not None
        cycles = tf.compile(chosen.planned, flits=flits).cycles()
        best = tf.compare(topology, collective, flits=flits)[0]
        assert cycles <= 1.03 * best.cycles + 9, (chosen.why, best)
        assert chosen.why.startswith("about ")


@pytest.mark.parametrize(
    ("topology", "collective", "flits", "algorithm", "why"),
    [
        ("128x128", "broadcast", 2, "spanning-tree", "about 129 cycles for 2 flits; spanning-tree"),
        (
            "128x128",
            "reduce-scatter",
            2,
            "matching",
            "about 8192 cycles for 2 flits; at least 8192",
        ),
        ("128x128", "allgather", None, "hamiltonian", "4096 message times for long messages"),
        ("256x256", "alltoall@0", 2, "matching", "16517 cycles for 2 flits; necklace 16389"),
        ("256x256", "allreduce", 2, "ring-exchange", "about 518 cycles for 2 flits; spanning-tree"),
    ],
)
def test_large_networks(topology, collective, flits, algorithm, why):
    """On networks of any size the best algorithm is chosen, and the reason is said."""
    chosen = resolve(make_selection(topology, collective), flits=flits)
    assert chosen.resolve_algorithm().name == algorithm
    assert chosen.why.startswith(why)


@pytest.mark.parametrize("flits", [None, 4])
def test_a_seed_is_a_reason(flits):
    """With a seed the first suitable algorithm is chosen, and the reason says so."""
    chosen = resolve(make_selection("5x5", "alltoall", seed=3), flits=flits)
    assert chosen.why == "the first of the catalogue that fits, because a seed was given"


def test_slow_searches_are_the_last_resort():
    """On 2^14 arcs and more max-flow is tried only where nothing else fits, or if it is named."""
    names = lambda *given: {
        one.resolve_algorithm().name for one in choice.suitable_selections(make_selection(*given))
    }
    assert "max-flow" in names("64x64", "broadcast")
    assert "max-flow" not in names("128x128", "broadcast")
    assert names("circulant:5000:1,70", "broadcast") == {"max-flow"}
    assert names("128x128", "broadcast:max-flow") == {"max-flow"}
