"""Pools: memories of streams that share block RAMs, because a run uses one flit of a row."""

from dataclasses import replace

import pytest

import torusfabric as tf
from torusfabric.adapters.streams.drive.simulate import draw_jobs, simulate_streams
from torusfabric.proof import prove
from torusfabric.rtl.netlist import Role
from torusfabric.simulation.engines import AmaranthEngine, CompiledEngine


def make_fabric(command):
    return tf.FabricSpec.parse(f"{command} --top stream").make().fabric


def count_columns(fabric):
    """The number of memories of single flits at a node; all other memories have whole rows."""
    netlist = fabric.netlist
    leaf = netlist.modules[next(netlist.instances_with_role(Role.ENDPOINT)).module]()
    return sum(shape.width == fabric.width for shape in leaf.memory_shapes())


@pytest.mark.parametrize(
    ("command", "columns"),
    [
        # Four memories of sent words, and four of received ones, in rows of four flits.
        ("2x2 alltoall --width 32 --flits 64", 4 + 4),
        # Three memories of received words.
        ("2x3 alltoall --width 32 --max-flits 32", 4 + 4),
        # Six of either kind: a pool has at most as many memories as a row has flits.
        ("2x2x2 alltoall --width 32 --max-flits 64", 4 * 4),
        # Two collectives, whose runs pass all rows of the program for each flit.
        ("4x4 allgather,alltoall --width 32 --max-flits 16", 4 + 4),
        # Two memories of received words, in rows of two flits. One message is sent.
        ("5 allgather --width 32 --flits 64", 2),
        ("4 scatter --root any --width 32 --beat 2 --max-flits 64", 2 + 2),
    ],
)
def test_words_in_pools_are_right(command, columns):
    """All words arrive in the predicted cycles, with stalls and faults, of runs of any length."""
    fabric = make_fabric(command)
    assert count_columns(fabric) == columns
    report = simulate_streams(fabric, jobs=draw_jobs(fabric, 12), stall=0.3, faults=0.2)
    assert report.passed


@pytest.mark.parametrize(
    ("command", "columns", "turns"),
    [
        # Full rows arrive rotated by the number of their reader.
        ("2x2 alltoall --width 32 --flits 64", 4 + 4, 4),
        ("2x2 alltoall --width 32 --beat 4 --max-flits 64 --chunks 2", 4 + 4, 4),
        ("2x2x2 alltoall --width 32 --beat 4 --flits 64", 4 * 4, 4),
        ("2x3 alltoall --width 32 --beat 4 --flits 64 --link-latency 2", 4 + 4, 4),
        # The last row of a block is not full, so rows are rotated when a node loads them.
        ("2x3 alltoall --width 32 --max-flits 32", 4 + 4, 1),
        # Sums need words in order. The other memories of words hold one flit in a row.
        ("2x3 reduce-scatter --width 32 --beat 4 --flits 64", 4 + 7, 1),
        # Received words are in no pool.
        ("2x3 scatter --width 32 --beat 4 --flits 64", 0, 1),
        # Readers of several collectives choose among the memories of a pool.
        ("2x3 allgather,alltoall --width 32 --max-flits 32", 4 + 4, 1),
        ("4 scatter,alltoall --width 32 --beat 2 --max-flits 64", 2 + 2, 2),
        ("3 allgather,alltoall --width 32 --max-flits 64", 2 + 2, 1),
        # Six readers, and a form with one chunk.
        ("2x2x2 alltoall --width 32 --beat 4 --max-flits 64", 4 * 4, 1),
    ],
)
def test_rows_are_rotated_once(command, columns, turns):
    """Words are right, whether readers rotate the rows of blocks or the nodes that load them."""
    fabric = make_fabric(command)
    assert count_columns(fabric) == columns
    netlist = fabric.netlist
    stores = (netlist.modules[each.module]() for each in netlist.instances_with_role(Role.ENDPOINT))
    assert {store.shape.turns for store in stores} == {turns}
    jobs = draw_jobs(fabric, 12)
    report = simulate_streams(
        fabric, jobs=jobs, stall=0.3, faults=0.2, engine=CompiledEngine(fabric)
    )
    assert report.passed


@pytest.mark.parametrize(
    ("command", "apart"),
    [
        # A reader selects a column, whichever memory it reads.
        ("2x3 allgather,alltoall --width 32 --max-flits 32", False),
        # Readers read several memories of two pools: each memory has one selector of columns.
        ("2x2x2 allgather,alltoall --width 32 --beat 4 --max-flits 64", True),
    ],
)
def test_readers_select_columns_or_memories(command, apart):
    """The selectors of a pool are those that take fewer LUTs."""
    fabric = make_fabric(command)
    endpoint = next(fabric.netlist.instances_with_role(Role.ENDPOINT)).module
    readers = fabric.netlist.modules[endpoint]().shape.readers
    assert any(len(reader.inputs) > 1 for reader in readers) == apart
    assert simulate_streams(fabric, jobs=draw_jobs(fabric, 8), engine=CompiledEngine(fabric)).passed


def test_no_block_rams_are_used_twice():
    """A pool of sent words also serves readers that need copies of one memory."""
    fabric = make_fabric("4 scatter,alltoall --width 32 --beat 2 --max-flits 64")
    assert tf.synthesize(tf.emit(fabric, ram="block"), "ecp5-85k").fabric["brams"] == 4 * 6


@pytest.mark.parametrize(
    "command",
    [
        # A row of four flits is no wider than a block RAM, so that columns would save none.
        "2x2 alltoall --width 8 --flits 64",
        # Each memory fills its block RAMs.
        "2x2 alltoall --width 32 --flits 4096",
        # Memories of few rows are better made of LUTs.
        "2x2 alltoall --width 32 --flits 16",
    ],
)
def test_memories_are_single_where_columns_save_no_block_ram(command):
    """A pool is made only if it takes at most half the block RAMs of single memories."""
    assert count_columns(make_fabric(command)) == 0


def test_engines_agree_on_pools():
    """Amaranth's simulator delivers the same words in the same cycles as the compiled model."""
    fabric = make_fabric("2x3 alltoall --width 32 --max-flits 32")
    jobs = [tf.Job(length=length) for length in (32, 5, 1)]
    first, second = (
        replace(simulate_streams(fabric, jobs=jobs, engine=engine(fabric)), seconds=0, engine="")
        for engine in (AmaranthEngine, CompiledEngine)
    )
    assert first.passed
    assert first == second


def test_pools_are_proved():
    """A proof of the emitted Verilog covers every word, for all data."""
    assert prove(make_fabric("2x2 alltoall --width 32 --flits 64")).proved


def test_a_pool_saves_block_rams():
    """A node needs 12 block RAMs: four for each pool, and four for words that it keeps."""
    fabric = make_fabric("2x3 alltoall --width 32 --max-flits 32")
    report = tf.synthesize(tf.emit(fabric, ram="block"), "ecp5-85k")
    assert report.fabric["brams"] == 6 * 12
