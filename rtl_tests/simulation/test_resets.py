"""A reset ends a run, and the memories of nodes keep their words."""

import pytest
from helpers import few

import torusfabric as tf
from torusfabric.adapters.host.drive import HostPortDriver
from torusfabric.adapters.host.drive.words import RunWords
from torusfabric.simulation.comparison import compare_run
from torusfabric.simulation.engines import CompiledEngine
from torusfabric.simulation.engines.edges import EdgeRequest, run_access
from torusfabric.simulation.engines.session import Session
from torusfabric.simulation.jobs import default_jobs, random_job_messages
from torusfabric.toolchain import cxx


class Kept(HostPortDriver):
    """A driver that runs on the words already in the memories."""

    def write_messages(self, words):
        """Write nothing."""
        yield from ()


@pytest.mark.skipif(not cxx.has_compiler(), reason="no C++ compiler")
@pytest.mark.parametrize("cycle", few(3, [1, 2, 4, 8, 12], tuples=True))
@pytest.mark.parametrize("collective", few(2, ["allgather", "allreduce", "alltoall"], tuples=True))
def test_a_reset_ends_a_run_and_memories_keep_their_words(collective, cycle):
    """The run ends at the next edge; the next start delivers every word in its predicted cycles."""
    fabric = tf.Fabric(tf.compile(tf.plan("3x3", collective), max_flits=6), width=16)
    job = default_jobs(fabric.program)[-1]
    messages = random_job_messages(fabric, job, seed=5)
    words = RunWords(fabric, messages, job, through_port=True)
    with Session(CompiledEngine(fabric).model, fabric, vcd=None) as session:
        run_access(HostPortDriver(fabric).write_messages(words), session.simulate_edges)
        session.simulate_edges(EdgeRequest(fabric.write_latency))
        chosen = {name: [value] for name, value in job.inputs.items()}
        session.simulate_edges(EdgeRequest(1 + cycle, {"start": [1, 0], **chosen}))
        seen = session.simulate_edges(EdgeRequest(2, {"rst": [1, 0]}, ["busy"])).shown["busy"]
        assert seen.tolist() == [1, 0]
        run = run_access(Kept(fabric).run(words, job), session.simulate_edges)
    assert compare_run(fabric, job, messages, run).words_wrong == 0
    assert run.cycles == run.edges == fabric.cycles_of(job.length)
