"""A reset ends a run; the memories of nodes keep their words."""

import numpy as np
import pytest
from helpers import few

import torusfabric as tf
from torusfabric.simulation.comparison import compare_run
from torusfabric.simulation.engines import CompiledEngine
from torusfabric.simulation.engines.host_port import CTask, PortRuns, Step
from torusfabric.simulation.engines.session import Session
from torusfabric.simulation.engines.words import Words
from torusfabric.simulation.jobs import default_jobs, drawn_words
from torusfabric.toolchain import cxx


class Kept(PortRuns):
    """Runs on the words that lie in the memories."""

    def load(self, words):
        """Load nothing."""


def pass_edges(session, count):
    """Let clock edges pass; the port reads address 0 of node 0 meanwhile."""
    zeros, words = np.zeros(count, np.uint32), np.zeros((count, 4), np.uint32)
    at = zeros.ctypes.data
    session.run(CTask(step=Step.READ, count=count, chunks=4, nodes=at, addresses=at,
                      words=words.ctypes.data))  # fmt: skip


@pytest.mark.skipif(not cxx.have_compiler(), reason="no C++ compiler")
@pytest.mark.parametrize("cycle", few(3, [1, 2, 4, 8, 12], tuples=True))
@pytest.mark.parametrize("collective", few(2, ["allgather", "allreduce", "alltoall"], tuples=True))
def test_a_reset_ends_a_run_and_memories_keep_their_words(collective, cycle):
    """The run is over at the next edge; a start that follows delivers every word, in its cycles."""
    fabric = tf.Fabric(tf.compile(tf.plan("3x3", collective), max_flits=6), width=16)
    job = default_jobs(fabric.program)[-1]
    messages = drawn_words(fabric, job, seed=5)
    words = Words(fabric, messages, job, through_port=True)
    with Session(CompiledEngine(fabric).model, fabric, vcd=None) as session:
        busy = session.shown("busy")
        session.choose(job)
        PortRuns(session.run, fabric).load(words)
        pass_edges(session, fabric.write_latency)
        session.inputs["start"][0] = 1
        pass_edges(session, 1)
        session.inputs["start"][0] = 0
        pass_edges(session, cycle)
        assert busy[0]
        session.inputs["rst"][0] = 1
        pass_edges(session, 1)
        session.inputs["rst"][0] = 0
        assert not busy[0]
        run = Kept(session.run, fabric).run(words, job)
    assert compare_run(fabric, job, messages, run).words_wrong == 0
    assert run.cycles == run.edges == fabric.cycles_of(job.length)
