"""The proof says that slow links keep their rates; a program that sends too often is refuted."""

from dataclasses import replace

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.proof.prove import prove
from torusfabric.proof.report import Refuted
from torusfabric.proof.slow_links import check_slow_links


def compile_plan(collective, rate="1:1/2", **lengths):
    schedule = tf.plan("3x3", collective, rate=rate, flits=lengths.get("flits"), chunks=2)
    return tf.compile(schedule, **lengths)


@pytest.mark.parametrize("lengths", [{"flits": 2}, {"flits": 6}, {"max_flits": 6}])
@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "alltoall"])
def test_programs_keep_the_rates(collective, lengths):
    """Rows of one-flit blocks, rows repeated for each flit, and runs of any length."""
    program = compile_plan(collective, **lengths)
    assert check_slow_links(program) >= np.count_nonzero(program.topology.spacing_of_arc > 1)


@pytest.mark.parametrize("lengths", [{"flits": 2}, {"flits": 6}])
def test_a_program_for_faster_links_is_refuted(lengths):
    """The same rows would send too often over links of a third of the rate."""
    program = compile_plan("alltoall", **lengths)
    slower = replace(program, topology=tf.parse_topology("3x3%1:1/3"))
    with pytest.raises(Refuted) as refuted:
        check_slow_links(slower)
    assert "must be 3 cycles before the next, not 2" in str(refuted.value.counterexample)


def test_blocks_in_one_go_are_refuted():
    """Without rates, hardware sends the flits of a block one after another."""
    plain = tf.compile(tf.plan("mesh:3x3", "allgather", algorithm="any-network"), flits=8)
    slow = replace(plain, topology=tf.parse_topology("mesh:3x3%0:+0=1/2"))
    with pytest.raises(Refuted):
        check_slow_links(slow)


def test_the_proof_reports_the_claim():
    fabric = tf.Fabric(compile_plan("scatter", flits=2), width=2)
    found = prove(fabric)
    assert found.proved
    assert [each.properties > 0 for each in found.modules if each.name == "slow links"] == [True]
    plain = prove(tf.Fabric(tf.compile(tf.plan("3", "allgather")), width=2))
    assert all(each.name != "slow links" for each in plain.modules)
