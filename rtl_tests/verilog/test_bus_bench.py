"""The text of a fabric behind AXI4-Lite, driven at random by cocotbext-axi in Icarus."""

import pytest
from make_bench import have_bench, run_bench

import torusfabric as tf

pytest.importorskip("cocotbext.axi")
pytestmark = pytest.mark.skipif(not have_bench(), reason="cocotb, make or Icarus is not installed")


@pytest.mark.parametrize(
    ("topology", "width", "seed", "most"),
    [
        ("4", 9, 1, 20),
        *(
            pytest.param(topology, width, seed, 60, marks=pytest.mark.long)
            for topology in ("2x2", "2x3")
            for width in (1, 32, 65)
            for seed in range(2, 6)
        ),
    ],
)
def test_random_accesses(tmp_path, topology, width, seed, most):
    program = tf.compile(tf.plan(topology, "allgather"), max_flits=most)
    tf.emit(tf.Fabric(program, width=width, bus="axi-lite")).write(tmp_path)
    passed, text = run_bench(tmp_path, COCOTB_TEST_MODULES="bus_bench", SEED=seed)
    assert passed, text[-3000:]
