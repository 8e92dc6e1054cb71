"""Beats of several flits at the host port, the bus and the ports of a core."""

import numpy as np
import pytest
from fabrics import build_fabric

import torusfabric as tf
from torusfabric.adapters.boards.drive import simulate_boards
from torusfabric.adapters.boards.hardware import BoardSystem
from torusfabric.adapters.boards.hardware.block import Block
from torusfabric.errors import InputError
from torusfabric.rtl.core.places import SequencerSignals
from torusfabric.rtl.core.router import plan_all_crossbars
from torusfabric.rtl.core.rows import NodeKinds, Rows
from torusfabric.rtl.flit_rows import FlitRows
from torusfabric.rtl.multiplexer import branched_lut_count, lut_count
from torusfabric.topology.boards import Boards
from torusfabric.verilog.manifest import interface_facts


def jobs_of(fabric):
    return [tf.Job(length=length) for length in (fabric.flits, 1, 5)]


def test_words_are_put_into_rows_beside_the_port():
    """The compiled engine writes some words directly into rows, even with 40-bit flits."""
    fabric = build_fabric("4x4", "alltoall", beat=2, width=40, max_flits=8)
    report = tf.simulate(fabric, engine="compiled", jobs=jobs_of(fabric))
    assert report.passed
    assert report.direct_words > 0


def test_addresses_count_beats():
    fabric = build_fabric("3x3", "alltoall", beat=4, max_flits=10)
    facts = interface_facts(fabric)
    assert (facts["beat"], facts["stride"], facts["recv_base"]) == (4, 3, 32)
    assert facts["send_words"] == 27
    assert build_fabric("3x3", "alltoall", beat="auto", max_flits=10).beat == 1


def test_a_bus_takes_a_beat_of_flits_at_a_time():
    fabric = build_fabric("3x3", "allgather", beat=4, width=16, bus="axi4", max_flits=8)
    facts = interface_facts(fabric)
    assert (facts["bus"]["beat_width"], facts["beat"], facts["stride"]) == (64, 4, 2)


def test_memories_of_a_core_take_beats():
    fabric = build_fabric("3x3", "alltoall", beat=4, top="core", flits=8)
    assert fabric.netlist.inputs["write_data_0"] == fabric.netlist.outputs["read_data_0"] == 32
    assert interface_facts(fabric)["beat"] == 4


def test_a_port_costs_less_on_narrow_links():
    """Narrow links with beats of four flits need a quarter of the router LUTs at the same rate."""
    wide = tf.compile(tf.plan("4x4", "allgather", algorithm="bufferless"), max_flits=16)
    schedule = tf.plan("4x4", "allgather", algorithm="matching", chunks=4)
    narrow = tf.compile(schedule, max_flits=64).by_beats(4)
    assert max(wide.cycles(), narrow.cycles()) <= 16 * 16
    assert 16 * router_luts(narrow) <= 64 * router_luts(wide) / 4


def router_luts(program):
    """The LUTs per bit of the only router of a program."""
    rows = Rows(program)
    (router,), _ = plan_all_crossbars(rows, NodeKinds(rows), SequencerSignals(), idles=True)
    return sum(
        (branched_lut_count if choice.branched else lut_count)(len(choice.words))
        for choice in router.choices
    )


def test_several_boards_take_beats():
    torus = tf.Torus(2, 2, link_latency=(8, 1))
    fabric = build_fabric(torus, "alltoall", beat=4, width=24, max_flits=5)
    system = BoardSystem(fabric, Boards.parse("2x1", torus))
    assert simulate_boards(system, jobs=jobs_of(fabric)).passed
    for netlist in (system.netlists[0], Block(system, 0).netlist):
        assert netlist.inputs["host_wdata"] == netlist.outputs["host_rdata"] == 96


def test_what_has_no_beats_is_refused():
    with pytest.raises(InputError, match="Beat must be 1 for a core without memories, whose words"):
        build_fabric("3x3", "allgather", beat=2, top="core", flits=8)
    with pytest.raises(InputError, match="Beat must be at most 1 for 7-flit blocks, not 2"):
        build_fabric("3x3", "alltoall", beat=2, flits=7)


def test_rows_hold_what_addresses_say():
    for rows in (FlitRows(2), FlitRows(4, 4), FlitRows(2, 8)):
        row, flit = rows.split_address(np.arange(64))
        assert len({*zip(row.tolist(), flit.tolist(), strict=True)}) == 64
        assert int(row.max()) + 1 == rows.n_rows(64) == 64 // rows.beat
