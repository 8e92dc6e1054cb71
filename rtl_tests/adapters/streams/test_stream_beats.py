"""Streams whose words are beats of several flits."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from helpers import few
from stream_bench import streams
from vectors import needs_icarus, run_vectors

import torusfabric as tf
from torusfabric.adapters.streams.drive.beats import Beat
from torusfabric.adapters.streams.drive.simulate import simulate_streams
from torusfabric.adapters.streams.sections import least_beat, packet_counts
from torusfabric.analysis import volume
from torusfabric.collective import parse_collective
from torusfabric.errors import InputError
from torusfabric.rtl.flit_rows import FlitRows


def test_what_is_no_good_is_dropped_by_beats():
    """With beats of four flits, faulty packets are dropped and all other words are right."""
    fabric = streams("2", "allgather", beat=4, flits=6)
    assert simulate_streams(fabric, jobs=[tf.Job()] * 6, faults=0.5).passed


@pytest.mark.parametrize(("topology", "collective"), [("4x4", "allgather"), ("4x4", "scatter")])
@pytest.mark.parametrize("beat", [2, 4])
def test_messages_go_to_chunks_by_beats(topology, collective, beat):
    """A program in beats delivers every word, in the cycles that it predicts for each length."""
    program = tf.compile(tf.plan(topology, collective, flits=64), max_flits=64).by_beats(beat)
    assert program.schedule.chunks > 1
    mode = program.modes[0]
    for length in (2, 17, 64):
        words = np.arange(program.topology.nodes * program.layout.send_words(length))
        words = words.reshape(program.topology.nodes, -1).astype(np.uint64)
        got = program.execute(words, length=length)
        right, receives = program.delivered(words, length=length)
        assert (got[receives] == right[receives]).all()
        n = -(-length // mode.common_grain_flits)
        piece = [piece for piece in mode.cycle_pieces(64) if piece.first <= n][-1]
        assert piece.constant + piece.per_flit * n == program.cycles(length)


def test_ranges_begin_where_cycles_change():
    """A range of lengths in beats begins where the number of cycles changes."""
    sums = [tf.plan("4x4", "allreduce", algorithm=name) for name in ("spanning-tree", "necklace")]
    program = tf.compile([sums], max_flits=256).by_beats(2)
    mode = program.modes[0]
    for length in range(1, 257, 3):
        n = -(-length // mode.common_grain_flits)
        piece = [piece for piece in mode.cycle_pieces(256) if piece.first <= n][-1]
        assert piece.constant + piece.per_flit * n == program.cycles(length)


@pytest.mark.parametrize(
    ("collective", "flits", "beat"),
    few(2, [("allgather", 64, 4), ("alltoall", 64, 2), ("alltoall", 16, 2), ("scatter", 64, 4)]),
)
def test_the_least_beat_that_does_not_limit_runs(collective, flits, beat):
    """`beat="auto"` chooses the smallest beat at which ports do not limit the rate of runs."""
    program = tf.compile(tf.plan("4x4", collective, flits=flits), max_flits=flits)
    assert tf.Fabric(program, width=16, top="stream", beat="auto").beat == beat


@pytest.mark.parametrize(
    ("topology", "collective", "flits"),
    [
        ("2x2", "allreduce", 16),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in product(
                ("4x4", "8x8"),
                ("allgather", "alltoall", "reduce-scatter", "allreduce", "scatter"),
                (16, 64),
            )
        ),
    ],
)
def test_ports_do_not_limit_what_is_planned_for_beats(topology, collective, flits):
    """With a plan for beats, ports need at most 1.05 N / (N - 1) times the cycles of a run."""
    torus = tf.parse_topology(topology)
    beat = volume.least_beat(torus, parse_collective(collective), flits)
    forms = tf.plan_forms(torus, collective, max_flits=flits, beat=beat)
    beat, program = least_beat(tf.compile([forms], max_flits=flits), 16)
    form = program.form_of(0)
    packets = max(packet_counts(program, form))
    allowed = 1.05 * torus.nodes / (torus.nodes - 1) * program.cycles()
    assert -(-flits // beat) * packets <= allowed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beat": 3}, "Beat must be auto or a power of two, not 3"),
        ({"beat": 2, "width": 12}, "Beat must be 1 for flits of 12 bits"),
        ({"beat": 16}, "Beat must be at most the 8 flits of a message, not 16"),
    ],
)
def test_a_beat_that_does_not_fit_is_refused(options, message):
    """A beat that does not fit the width or the message is refused."""
    program = tf.compile(tf.plan("2x2", "allgather"), max_flits=8)
    with pytest.raises(InputError, match=message):
        tf.Fabric(program, **{"width": 8, "top": "stream", **options})


def test_blocks_have_room_for_whole_beats():
    """Blocks have room for whole beats."""
    program = tf.compile(tf.plan("4x4", "allgather", flits=64), max_flits=10)
    assert (program.block_flits, program.by_beats(4).block_flits) == (3, 4)
    assert [program.by_beats(4).form.block_of(n) for n in (1, 4, 5, 10)] == [4, 4, 4, 4]
    with pytest.raises(InputError, match=r"need a program that tf.compile returns"):
        replace(program, of_beats=None).by_beats(2)


def test_ports_have_the_bytes_of_a_beat():
    """Data signals have the width of a beat, and `tkeep` has one bit for each byte."""
    ports = streams("2", "allgather", beat=4, max_flits=8).netlist
    assert ports.outputs["m_axis_1_tdata"] == 32
    assert ports.inputs["s_axis_1_tkeep"] == 4


def test_words_of_a_beat_lie_in_a_row():
    """Flits of one beat lie in the same row of memory."""
    rows = FlitRows(4, 4)
    assert len({*rows.split_address(np.array([6, 10, 14, 18]))[0].tolist()}) == 2
    assert len({*rows.split_address(np.array([2, 6, 10, 14]))[0].tolist()}) == 1


@pytest.mark.parametrize(
    ("keep", "last", "count", "origin"),
    [(0b11, False, 2, 5), (0b01, True, 1, 5), (0b01, False, 1, -1), (0b10, True, 2, -1)],
)
def test_torn_beats_are_of_no_origin(keep, last, count, origin):
    """A beat with wrong `tkeep` bits is split into flits of unknown origin."""
    flits = list(Beat(0x0201, last, 5, 9, keep).split_flits(2, 8))
    assert [flit.number for flit in flits] == [origin] * count
    assert [flit.word for flit in flits] == [1, 2][:count]


@needs_icarus
@pytest.mark.parametrize("beat", [2, 4])
@pytest.mark.parametrize("collective", ["allgather", "allreduce", "alltoall"])
def test_free_bytes_of_a_word_show_nothing_of_messages_before(collective, beat, tmp_path):
    """Bytes behind the end of a message are 0, even after longer messages of ones and a reset."""
    program = tf.compile(tf.plan("2", collective), max_flits=2 * beat)
    fabric = tf.Fabric(program, width=8, top="stream", beat=beat)
    tf.emit(fabric).write(tmp_path / "out")
    steps = []

    def send(flits):
        for packet in range(2 if collective == "alltoall" else 1):
            for first in range(0, flits, beat):
                keep = (1 << min(beat, flits - first)) - 1
                beats = {"tdata": -1, "tkeep": keep, "tvalid": 1, "tlast": first + beat >= flits}
                if collective == "alltoall":
                    beats["tdest"] = packet
                words = {f"s_axis_{n}_{name}": v for n in range(2) for name, v in beats.items()}
                steps.append(words | takes)
        steps.extend([takes] * 40)

    takes = {f"m_axis_{node}_tready": 1 for node in range(2)}
    for _ in range(4):
        steps += [{"rst": 1}] * 17 + [{}] * 8
        for _ in range(4):
            send(2 * beat)
        steps += [{"rst": 1}] * 17 + [{}] * 8
        for flits in range(1, 2 * beat):
            send(flits)
    shown, seen = run_vectors(tmp_path / "out", tmp_path / "work", steps), set()
    for each in shown:
        for node in range(2):
            if each[f"m_axis_{node}_tvalid"]:
                keep = each[f"m_axis_{node}_tkeep"]
                bits = sum(255 << 8 * k for k in range(beat) if keep >> k & 1)
                assert each[f"m_axis_{node}_tdata"] & ~bits == 0
                seen.add(keep)
    assert seen == {(1 << k) - 1 for k in range(1, beat + 1)}
