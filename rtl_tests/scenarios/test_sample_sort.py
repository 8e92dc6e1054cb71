"""The example that sorts keys on a torus of elements."""

import numpy as np
import pytest
from amaranth.sim import Simulator
from applications import change_job, check_files, check_refusal, page_has_output, report_of
from sample_sort import forecast, run
from sample_sort.element import Sizes, SortElement
from sample_sort.sorter import MergeStage, Sorter

SMALL = ("--torus", "2x2", "--keys", "16")


@pytest.mark.parametrize(
    "words",
    [
        (*SMALL,),
        (*SMALL, "--input", "equal"),
        ("--torus", "2x4", "--keys", "16", "--packet", "2", "--samples", "4"),
        ("--torus", "2x2x2", "--keys", "16", "--input", "few", "--deal"),
        *[pytest.param(("--torus", "4x4", "--input", name), marks=pytest.mark.long)
          for name in run.INPUTS],
        *[pytest.param(("--torus", "8x8", *words), marks=pytest.mark.long)
          for words in ((), ("--input", "sorted", "--deal"), ("--input", "equal"))],
    ],
)  # fmt: skip
def test_order_and_cycles(capsys, words):
    """The keys are in order, and the job takes the forecast cycles."""
    found = report_of(capsys, run, *words)
    assert found["cycles"] == found["forecast"]
    assert found["largest_share"] < found["capacity"]


def test_both_simulators_agree(capsys):
    """The compiled model and Amaranth's simulator print the same report."""
    words = ("--torus", "2", "--keys", "4", "--packet", "4")
    assert report_of(capsys, run, *words) == report_of(capsys, run, *words, "--engine", "amaranth")


@pytest.mark.long
def test_the_page_shows_the_output(capsys):
    """The command of the page prints what the page shows."""
    page_has_output(capsys, run, "sample-sort.md", "--torus", "4x4", "--keys", "256")


@pytest.mark.parametrize("deal", [False, True])
@pytest.mark.parametrize("samples", [8, 16, 64])
def test_no_share_exceeds_the_capacity(samples, deal):
    """Shares of random, ordered, equal, few and skewed keys have room in an element."""
    sizes, random = Sizes((4, 4), 64, samples, 16, deal), np.random.default_rng(2)
    for name, make in run.INPUTS.items():
        for _ in range(20):
            keys = make(random, sizes.nodes * sizes.keys).astype(np.int64)
            order = [slice(None), random.permutation(sizes.nodes)][int(random.integers(2))]
            shares = forecast.divide_keys(keys.reshape(sizes.nodes, -1)[order], sizes)
            assert shares.totals.sum() == keys.size
            assert shares.totals.max() < sizes.capacity, name


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13, 16])
def test_a_sorter_sorts_any_number_of_words(count):
    """Words that enter with pauses leave in order, also if runs are incomplete."""
    sorter, random = Sorter(8, 4), np.random.default_rng(count)
    words, found = random.integers(0, 256, count).tolist(), []

    async def testbench(ctx):
        ctx.set(sorter.enable, 1)
        waiting = [*words]
        for _ in range(200):
            enters = bool(waiting) and bool(random.integers(2))
            ctx.set(sorter.in_valid, enters)
            if enters:
                ctx.set(sorter.in_word, waiting.pop())
            elif not waiting:
                ctx.set(sorter.ended, 1)
                ctx.set(sorter.passes, sum(1 << k for k in range(4) if count <= 1 << k))
            *_, valid, word = await ctx.tick().sample(sorter.out_valid, sorter.out_word)
            if valid:
                found.append(word)

    simulator = Simulator(sorter)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    assert found == sorted(words)


def test_a_wrong_key_is_found(capsys, monkeypatch):
    """A key of one element that is off by one makes the command fail."""

    def add_one(job):
        job.words[2, 3] += 1
        return job

    change_job(monkeypatch, run, add_one)
    assert run.main([*SMALL]) == 2
    assert "must be what numpy sorts" in capsys.readouterr().err


def test_a_wrong_cycle_is_found(capsys, monkeypatch):
    """An all-to-all that takes a cycle more makes the command fail."""
    change_job(monkeypatch, run, lambda job: job._replace(runs=[cycles + 1 for cycles in job.runs]))
    assert run.main([*SMALL]) == 2
    assert "must take" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fault", "message"), [("memories", "must end their job"), ("splitters", "numpy divides")]
)
def test_faults_are_found(capsys, monkeypatch, fault, message):
    """Memories of a stage that are too small, and splitters of other samples, are found."""
    if fault == "memories":
        make = MergeStage.__init__
        monkeypatch.setattr(
            MergeStage, "__init__", lambda self, bits, run, depth: make(self, bits, run, 4)
        )
    else:
        phases = SortElement.phases

        def shifted(self):
            found = phases(self)
            register, first = found[-2][1][0]
            found[-2][1][0] = (register, first - 1)
            return found

        monkeypatch.setattr(SortElement, "phases", shifted)
    assert run.main(["--torus", "2x4", "--keys", "32"]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--torus", "3x3"), "sides of --torus must be powers of two"),
        (("--torus", "mesh:4x4"), "must be a torus"),
        (("--keys", "100"), "--keys must be powers of two"),
        (("--samples", "2"), "--samples must be from 4"),
        (("--samples", "512"), "to --keys, 256"),
        (("--packet", "512"), "--packet must be at most --keys, 256"),
        (("--keys", "16", "--deal"), "two keys for each node, --keys 32"),
        (("--packet", "8", "--deal"), "choose a larger --packet"),
    ],
)
def test_sizes_that_do_not_fit(capsys, words, message):
    """A bad size is refused in one line that says what to choose."""
    check_refusal(capsys, run, message, *words)


def test_files(tmp_path, capsys):
    """The design and the picture are written."""
    check_files(capsys, run, tmp_path, *SMALL)
