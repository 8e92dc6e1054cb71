"""The text of a fabric behind AXI4-Lite, driven at random by cocotbext-axi in Icarus."""

import pytest
from make_bench import have_bench, run_bench

import torusfabric as tf

pytest.importorskip("cocotbext.axi")
pytestmark = pytest.mark.skipif(not have_bench(), reason="cocotb, make or Icarus is not installed")


def check(folder, topology, width, seed, **lengths):
    """Export an all-gather, and drive it."""
    fabric = tf.Fabric(
        tf.compile(tf.plan(topology, "allgather"), **lengths), width=width, bus="axi-lite"
    )
    tf.emit(fabric).write(folder)
    passed, text = run_bench(folder, COCOTB_TEST_MODULES="bus_bench", SEED=seed)
    assert passed, text[-3000:]


def test_random_accesses(tmp_path):
    check(tmp_path, "4", 9, 1, max_flits=20)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.parametrize("topology", ["2x2", "2x3"])
@pytest.mark.parametrize("width", [1, 32, 65])
def test_more_random_accesses(tmp_path, topology, width, seed):
    check(tmp_path, topology, width, seed, max_flits=60)
