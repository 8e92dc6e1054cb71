"""Modes of several forms: which form serves each length, and the cycles of each."""

from functools import cache

import numpy as np
import pytest
from helpers import few

import torusfabric as tf
from torusfabric.program.mode import block_flits
from torusfabric.program.serving import (
    SLACK_CYCLES,
    TIE_CYCLES,
    TIE_SHARE,
    choose_forms,
    dispensable_versions,
    sample_lengths,
)
from torusfabric.verilog import manifest


@cache
def program_of(most=24, root=None):
    """Compile an engine: broadcast on one or two trees, all-gather, two forms of all-reduce."""
    plans = [
        [tf.plan("9", "broadcast", trees=trees) for trees in (2, 1)],
        tf.plan("9", "allgather", algorithm="matching"),
        [tf.plan("9", "allreduce", flits=flits) for flits in (1, 256)],
    ]
    return tf.compile(plans, max_flits=most, root=root)


def test_the_quickest_form_serves_each_length():
    program = program_of()
    for number, mode in enumerate(program.modes):
        for length in range(1, 25):
            alone = [
                form.timing_of(block_flits(form.schedule, length)).cycles for form in mode.forms
            ]
            served = mode.form_of(length) - mode.first
            assert alone[served] <= min(alone) + SLACK_CYCLES, (number, length)


def test_forms_are_numbered_through_all_modes():
    program = program_of()
    assert [(mode.first, len(mode.forms)) for mode in program.modes] == [(0, 2), (2, 1), (3, 2)]
    assert [mode.range_starts[0] for mode in program.modes] == [1, 1, 1]
    assert [program.form_of(2, length) for length in (1, 24)] == [3, 4]
    with pytest.raises(tf.InputError, match="Mode must be from 0 to 2, not 3"):
        program.form_of(3)


@pytest.mark.parametrize("root", [None, "any"])
def test_every_length_is_carried_out_in_its_form(root):
    program, random = program_of(root=root), np.random.default_rng(1)
    for number, mode in enumerate(program.modes):
        starts = {n for start in mode.range_starts[1:] for n in (start - 1, start)}
        for length in sorted({1, 7, 24, *starts}):
            layout = program.part(program.form_of(number, length)).layout
            shape = 9, layout.send_words(length)
            words = random.integers(0, 1 << 30, shape).astype(np.uint64)
            chosen = {"mode": number, "length": length}
            if mode.any_root:
                chosen["root"] = int(random.integers(9))
            got, (expected, receives) = (
                program.execute(words, **chosen),
                program.delivered(words, **chosen),
            )
            assert (got == expected)[receives].all(), chosen


@pytest.mark.parametrize(
    ("topology", "plans"),
    few(
        2,
        [
            ("9", [("broadcast", {"trees": 1}), ("broadcast", {})]),
            ("4x4", [("allreduce", {"flits": 1}), ("allreduce", {"flits": 64})]),
            (
                "4x4",
                [
                    ("allgather", {"algorithm": "hamiltonian"}),
                    ("allgather", {"algorithm": "necklace"}),
                ],
            ),
        ],
    ),
)
def test_the_manifest_says_the_cycles_of_every_length(topology, plans):
    program = tf.compile([[tf.plan(topology, name, **how) for name, how in plans]], max_flits=70)
    (mode,) = manifest(tf.Fabric(program, width=8), command="", files=[])["modes"]
    assert [form["from"] for form in mode["forms"]] == list(program.modes[0].range_starts)
    for length in range(1, 71):
        *_, form = (form for form in mode["forms"] if form["from"] <= length)
        for of in (mode, form):
            flits = -(-length // of["chunks"])
            *_, piece = (piece for piece in of["cycles"] if piece["from"] <= flits)
            assert piece["constant"] + piece["per_flit"] * flits == program.cycles(length)


def test_a_form_that_is_never_the_quickest_is_left_out():
    tree, trees = (tf.plan("9", "broadcast", trees=k) for k in (1, 2))
    other = tf.plan("9", "broadcast", algorithm="max-flow")
    program = tf.compile([[other, trees, tree]], max_flits=64)
    assert [form.schedule for form in program.forms] == [tree, trees]
    assert tf.compile([[tree, other]], max_flits=2).forms[0].schedule is tree


@pytest.mark.parametrize(("best", "more"), [(100, 3), (257, 6), (4000, 6)])
def test_a_form_that_saves_few_cycles_is_left_out(best, more):
    assert more == min(int(TIE_SHARE * best), TIE_CYCLES)
    short, long = np.array([20, best + more]), np.array([60, best])
    assert choose_forms([short, long], [1, 2]) == [0]
    # A cheaper form that counts as equally fast is the reference, with SLACK_CYCLES allowed.
    assert choose_forms([short, long], [2, 1]) == ([0] if more <= SLACK_CYCLES else [0, 1])
    assert choose_forms([short + np.array([0, 1 + SLACK_CYCLES]), long], [1, 2]) == [0, 1]


def test_short_messages_have_one_form_that_is_worth_its_tables():
    """Short messages get one form; a longest message of 64 flits, or `forms="all"`, gets two."""
    kinds = "reduce-scatter", "broadcast"
    for (kind, most, forms), count in {
        (kinds[0], 16, "auto"): 1, (kinds[0], 16, "all"): 2, (kinds[0], 64, "auto"): 2,
        (kinds[1], 63, "auto"): 1, (kinds[1], 63, "all"): 2,
    }.items():  # fmt: skip
        plans = tf.plan_forms("9" if kind == kinds[1] else "3x3", kind, max_flits=most, forms=forms)
        assert len(tf.compile([plans], max_flits=most).forms) == count, (kind, most, forms)


def test_each_schedule_keeps_a_version_and_no_length_loses_more_than_is_granted():
    long, short = np.array([40, 70]), np.array([14, 149])
    assert dispensable_versions([[0, 1]], [long, short]) == set()
    assert dispensable_versions([[0, 1], [2, 3]], [long, short, long + 3, short + 3]) == {0}
    assert dispensable_versions([[0], [1]], [long, long]) == set()


def test_forms_may_be_of_one_collective_only():
    plans = [tf.plan("3x3", name) for name in ("broadcast", "allgather")]
    with pytest.raises(tf.InputError, match="Forms of a mode must be of one collective, broadcast"):
        tf.compile([plans], max_flits=4)
    with pytest.raises(tf.InputError, match="Schedules must be at least one schedule"):
        tf.compile([[]], max_flits=4)
    with pytest.raises(tf.InputError, match="Schedules must be at least one schedule"):
        tf.compile([["allgather"]], max_flits=4)


def test_lengths_are_compared_where_cycles_may_change():
    assert sample_lengths(5).tolist() == [1, 2, 3, 4, 5]
    many = sample_lengths(1 << 32, 4)
    assert len(many) < 3000
    assert (many % 4 == 1).all()
    assert many[-1] > 0.98 * (1 << 32)


@pytest.mark.parametrize("lengths", [{}, {"flits": 3}, {"max_flits": 3}])
def test_a_list_of_one_is_that_one(lengths):
    schedule = tf.plan("3x3", "allgather")
    listed, alone = tf.compile([schedule], **lengths), tf.compile(schedule, **lengths)
    assert listed.digest == alone.digest
    assert listed.any_length is ("max_flits" in lengths)


def test_several_are_of_any_length():
    plans = [tf.plan("3x3", name) for name in ("allgather", "broadcast")]
    assert tf.compile(plans, flits=3).any_length


@pytest.mark.parametrize("schedules", [[], [None]])
def test_a_list_without_schedules(schedules):
    with pytest.raises(tf.InputError, match="Schedules must be at least one schedule"):
        tf.compile(schedules)
