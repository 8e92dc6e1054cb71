"""All-reduces of other systems in which ranks continue with sums that they have sent."""

from collections import Counter
from dataclasses import replace
from random import Random
from xml.etree import ElementTree

import msccl_generators as generators
import numpy as np
import pytest
from check_model import sums_are_right
from helpers import few
from msccl_generators.kept import swap

import torusfabric as tf
from torusfabric.collective import Operator
from torusfabric.schedule import KeptSums

#: The ranks of each file.
RANKS = range(2, 17)


def imported(tmp_path, text, topology, **options):
    path = tmp_path / "file.xml"
    path.write_text(text)
    return tf.import_schedule(path, topology, **options)


def complete(ranks):
    """A network in which all ranks are neighbours."""
    return f"complete:{ranks}" if ranks > 2 else "2"


def passes_check(schedule):
    try:
        tf.check(schedule)
    except tf.ScheduleError:
        return False
    return True


@pytest.mark.parametrize("ranks", RANKS)
def test_folds_at_any_number_of_ranks(tmp_path, ranks):
    for chunks in (1, 3):
        schedule = imported(tmp_path, generators.folded_allreduce(ranks, chunks), complete(ranks))
        tf.check(schedule)
        assert schedule.keeps_sums
        doubling = ranks.bit_length() - 1
        assert schedule.steps <= chunks - 1 + doubling + 2 * (ranks > 1 << doubling)


@pytest.mark.parametrize("group", [2, 3, 4])
@pytest.mark.parametrize("ranks", few(4, [4, 8, 9, 13, 5, 6, 7, 10, 11, 12, 14, 15, 16]))
def test_leaders_give_their_groups_the_result(tmp_path, ranks, group):
    tf.check(imported(tmp_path, generators.leaders_allreduce(ranks, group), complete(ranks)))


@pytest.mark.parametrize("ranks", [2, 4, 6, 8, 10, 16])
def test_pairs_swap_halves(tmp_path, ranks):
    tf.check(imported(tmp_path, generators.paired_allreduce(ranks), complete(ranks)))


@pytest.mark.parametrize(
    ("seed", "count"), [(1, 60), pytest.param(2, 3000, marks=pytest.mark.long)]
)
def test_groups_of_groups_at_random(tmp_path, seed, count):
    """Random files of nested groups are imported, and pass the check and a model of sums."""
    random = Random(seed)
    for _ in range(count):
        ranks, chunks = random.randint(2, 12), random.randint(1, 3)
        text = generators.random_allreduce(ranks, random, chunks)
        schedule = imported(tmp_path, text, complete(ranks))
        tf.check(schedule)
        assert not schedule.keeps_sums or sums_are_right(schedule, replaces=True)


#: Files that become hardware, and their ranks.
BUILT = {
    "fold": (generators.folded_allreduce(5, 2), 5),
    "leaders": (generators.leaders_allreduce(6, 2), 6),
    "pairs": (generators.paired_allreduce(8), 8),
    "random": (generators.random_allreduce(7, Random(5), 3), 7),
}


@pytest.mark.parametrize("name", BUILT)
def test_nodes_that_differ_become_hardware(tmp_path, name):
    """Schedules in which nodes differ run on hardware, for a fixed length by the host port and for
    any length by streams.
    """
    text, ranks = BUILT[name]
    schedule = imported(tmp_path, text, complete(ranks))
    fixed = tf.compile(schedule, flits=2 * schedule.chunks, operators=["add", "max"])
    assert tf.simulate(tf.Fabric(fixed, width=8)).passed
    program = tf.compile(schedule, max_flits=3 * schedule.chunks)
    assert tf.simulate(tf.Fabric(program, width=8, top="stream")).passed


@pytest.mark.parametrize("seed", few(20, [*range(400)]))
def test_programs_of_groups_at_random(tmp_path, seed):
    random = Random(seed)
    ranks, chunks = random.randint(2, 10), random.randint(1, 3)
    text = generators.random_allreduce(ranks, random, chunks)
    schedule = imported(tmp_path, text, complete(ranks))
    for flits, longest in ((chunks, None), (20 * chunks, None), (None, 5 * chunks)):
        program = tf.compile(schedule, flits=flits, max_flits=longest)
        words = np.random.default_rng(seed).integers(
            0, 1 << 40, (ranks, program.send_words), np.uint64
        )
        expected, receives = program.delivered(words)
        assert (program.execute(words)[receives] == expected[receives]).all()


def test_ranks_that_swap_may_combine_in_different_orders(tmp_path):
    """Ranks that swap sums add in different orders, so an operator that is not associative is
    refused with the name of a suitable algorithm.
    """
    add = Operator.parse("add")
    unlike = replace(add, name="unlike", associative=False)
    program = generators.Program("three", "allreduce", 3, 1, guarded=True)
    swap(program, range(3), 0)
    arcs = [(a, b) for a in range(3) for b in range(3) if a != b]
    for network, other in (("complete:3", "matching"), (tf.Graph(arcs), "any-network")):
        schedule = imported(tmp_path, program.text(), network)
        with pytest.raises(tf.InputError, match=f"an associative operator, .*--algorithm {other},"):
            tf.compile(schedule, operators=unlike)
        tf.compile(tf.plan(network, "allreduce", algorithm=other), operators=unlike)


def test_two_ranks_that_swap_take_one_step(tmp_path):
    schedule = imported(tmp_path, generators.folded_allreduce(2), "2")
    assert (schedule.form, schedule.steps) == ("table", 1)
    program = tf.compile(schedule, flits=4, operators=["add", "max"])
    assert tf.simulate(tf.Fabric(program, width=8)).passed


def test_sums_that_are_replaced_are_no_table(tmp_path):
    """Replaced sums make rounds: nodes of a table would add a swapped result twice."""
    program = generators.Program("again", "allreduce", 2, 1, guarded=True)
    for type_ in ("rrc", "r"):
        for rank in range(2):
            program.add(rank, (1 - rank, -1), "s", ("i", 0), ("i", 0))
        for rank in range(2):
            program.add(rank, (-1, 1 - rank), type_, ("i", 0), ("i", 0))
    schedule = imported(tmp_path, program.text(), "2")
    assert schedule.form == "rounds"
    tf.check(schedule)
    schedule.save(tmp_path / "plan.json")
    assert tf.load(tmp_path / "plan.json").form == "rounds"


def test_nodes_of_a_graph_are_no_table(tmp_path):
    """A graph of two nodes makes rounds, because a graph has no translations."""
    graph = tf.Graph([(0, 1), (1, 0)])
    schedule = imported(tmp_path, generators.folded_allreduce(2), graph)
    assert schedule.form == "rounds"
    tf.check(schedule)


def damaged(schedule, random):
    """Return a schedule with a lost transfer, a wrong chunk or passed word, or a moved round."""
    number = random.choice([k for k, t in enumerate(schedule.transfers) if len(t)])
    transfers = schedule.transfers[number]
    payload, at = transfers.payload, random.randrange(len(transfers))
    match random.choice(["drop", "chunk", "pass", "round"]):
        case "drop":
            transfers = transfers.of(np.arange(len(transfers)) != at)
        case "chunk":
            chunk = payload.chunk.copy()
            chunk[at] = random.randrange(schedule.chunks)
            transfers = replace(transfers, payload=KeptSums(chunk, payload.passed))
        case "pass":
            passed = payload.passed.copy()
            passed[at] = random.randrange(-1, schedule.topology.ports)
            transfers = replace(transfers, payload=KeptSums(payload.chunk, passed))
        case "round":
            rounds = list(schedule.transfers)
            rounds.insert(random.randrange(len(rounds)), rounds.pop(number))
            return replace(schedule, transfers=tuple(rounds))
    every = (*schedule.transfers[:number], transfers, *schedule.transfers[number + 1 :])
    return replace(schedule, transfers=every)


@pytest.mark.parametrize(
    ("seed", "count"), [(1, 200), pytest.param(2, 4000, marks=pytest.mark.long)]
)
def test_damaged_schedules(tmp_path, seed, count):
    """The check accepts a damaged schedule exactly if the model of sums does."""
    random, verdicts = Random(seed), Counter[bool]()
    texts = [generators.folded_allreduce(6, 2), generators.leaders_allreduce(8, 2),
             generators.paired_allreduce(8), generators.folded_allreduce(7)]  # fmt: skip
    plans = [
        imported(tmp_path, text, complete(n)) for text, n in zip(texts, (6, 8, 8, 7), strict=True)
    ]
    for _ in range(count):
        schedule = damaged(random.choice(plans), random)
        verdict = sums_are_right(schedule, replaces=True)
        assert passes_check(schedule) == verdict
        verdicts[verdict] += 1
    assert verdicts[False] > count / 3


@pytest.mark.parametrize("fault", ["copied", "lost", "added"])
@pytest.mark.parametrize("name", ["fold", "leaders", "pairs"])
def test_damaged_files_are_refused_by_step(tmp_path, name, fault):
    """A copied sum, a lost message and a result that is added are each refused with the step."""
    text = {
        "fold": generators.folded_allreduce(6),
        "leaders": generators.leaders_allreduce(8, 2),
        "pairs": generators.paired_allreduce(8),
    }[name]
    root = ElementTree.fromstring(text)
    steps = [*root.iter("step")]
    wanted = {"copied": "rrc", "lost": "rrc", "added": "r"}[fault]
    for step in [step for step in steps if step.get("type") == wanted]:
        kind = {"copied": "r", "lost": "nop", "added": "rrc"}[fault]
        step.set("type", kind)
        with pytest.raises(tf.InputError, match=r"gpu \d+, thread block \d+, step \d+"):
            imported(tmp_path, ElementTree.tostring(root, encoding="unicode"), complete(8)
                     if name != "fold" else complete(6))  # fmt: skip
        step.set("type", wanted)


def test_what_no_sum_of_a_rank_can_be_is_refused_by_step(tmp_path):
    """A rank that sends a sum without its own contribution is refused with the step."""
    program = generators.Program("beside", "allreduce", 3, 1, guarded=True)
    for rank in (1, 2):
        program.add(rank, (0, -1), "s", ("i", 0), ("s", 0))
        program.add(0, (-1, rank), "r", ("i", 0), ("s", rank - 1))
    program.add(0, (-1, -1), "re", ("s", 0), ("s", 1))
    program.add(0, (1, -1), "s", ("s", 1), ("s", 0))
    program.add(1, (-1, 0), "r", ("s", 1), ("s", 0))
    program.add(0, (-1, -1), "re", ("s", 1), ("i", 0))
    for rank in (1, 2):
        program.move(0, rank, 0, buffer="i")
    text = program.text().replace('s_chunks="1"', 's_chunks="2"')
    message = (r"gpu 0, thread block \d, step 0 must send the sum of chunk 0 that gpu 0 has, or "
               r"what came last by a link, not one of gpus 1, 2: in a fabric a gpu")  # fmt: skip
    with pytest.raises(tf.InputError, match=message):
        imported(tmp_path, text, "complete:3")


def test_a_file_that_is_not_in_place_says_so(tmp_path):
    text = generators.folded_allreduce(2).replace('inplace="1"', "")
    with pytest.raises(
        tf.InputError, match=r"ever wrote \(input and output are one memory with in"
    ):
        imported(tmp_path, text, "2")
