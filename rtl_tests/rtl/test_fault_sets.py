"""Engines whose modes run the same collective for several sets of broken links and nodes."""

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.collective import split_names
from torusfabric.planning import make_selection, plan_selection
from torusfabric.simulation.jobs import Job
from torusfabric.topology import shared_network
from torusfabric.verilog.manifest import manifest

NAMES = "allgather:matching,allgather!0:+0,allreduce!0:+0,4:-1,allgather!0:+1,4"


@pytest.fixture(scope="module")
def engine():
    """An engine on 3x3 for messages of up to three flits."""
    plans = [plan_selection(make_selection("3x3", name)) for name in split_names(NAMES)]
    return tf.Fabric(tf.compile(plans, max_flits=3), width=8)


def test_every_mode_is_right(engine):
    """Every mode delivers its words in the predicted cycles."""
    jobs = [
        Job(mode=mode, length=length) for mode, length in ((0, 2), (1, 3), (3, 2), (2, 1), (1, 1))
    ]
    report = tf.simulate(engine, jobs=jobs)
    assert report.passed
    assert [job.collective for job in report.jobs] == [
        "allgather",
        "allgather!0:+0",
        "allgather!0:+1,4",
        "allreduce!0:+0,3:+1",
        "allgather!0:+0",
    ]


def test_modes_leave_their_broken_links_alone(engine):
    """No mode uses its broken links and nodes, and the manifest lists them by mode."""
    program = engine.program
    assert str(program.topology) == "3x3"
    for mode in program.modes[1:]:
        topology = mode.schedule.topology
        for transfers in mode.schedule.rounds():
            assert not np.isin(mode.schedule.collective.without, transfers.walk(topology)).any()
            assert topology.linked[transfers.source, transfers.hops[:, 0]].all()
    facts = manifest(engine, command="", files=[])
    assert facts["topology"] == tf.Torus(3, 3).to_json()
    own = [mode.get("topology", {}).get("broken_links") for mode in facts["modes"]]
    assert own == [None, ["0:+0"], ["0:+0", "3:+1"], ["0:+1"]]
    assert [mode.get("without") for mode in facts["modes"]] == [None, None, None, [4]]
    assert program.modes[3].schedule.layout.receiving_nodes.tolist() == [0, 1, 2, 3, 5, 6, 7, 8]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["3x3", "3x3!0:+0=2"], "3x3 but for broken links and nodes, not 3x3"),
        (["3x3!0:+0", "3x4"], "3x3!0:[+]0 but for broken links and nodes, not 3x4"),
    ],
)
def test_networks_must_be_the_same(names, message):
    with pytest.raises(tf.InputError, match=message):
        shared_network(map(tf.parse_topology, names))
