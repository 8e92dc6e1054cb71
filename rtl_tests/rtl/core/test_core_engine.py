"""The compiled engine runs the netlist of a core, with direct access to its memories."""

from types import SimpleNamespace

import numpy as np
import pytest
from core_runs import CoreDriver, CoreJob

import torusfabric as tf
from torusfabric.rtl.core import Core
from torusfabric.simulation.engines.compiled_cells import CompiledCells
from torusfabric.simulation.engines.edges import EdgeRequest
from torusfabric.simulation.engines.model import build_model
from torusfabric.simulation.engines.session import Session


def carried_out(core, words, job, expected):
    """Return the words that arrive in a run, and its cycles."""
    model = build_model(core.netlist, word=core.width, node_cycles=1)
    fabric = SimpleNamespace(width=core.width, nodes=len(core.nodes), program=core.program,
                             empty=False, beat=1)  # fmt: skip
    driver = CoreDriver(None, core, None)
    node = np.arange(len(core.nodes))[:, None]
    with Session(model, fabric, vcd=None) as session:
        cells = CompiledCells(session, fabric)
        bank, address = driver.places(job, received=False)
        # With a fixed root, the other nodes have no send memory.
        there = (address >= 0) & cells.exists[node, bank]
        nodes = np.broadcast_to(node, there.shape)[there]
        cells.write_words(nodes, bank[there], address[there], words[core.nodes][there])
        session.simulate_edges(EdgeRequest(1, {"start": [1]}))
        run = session.simulate_edges(EdgeRequest(1000, {"start": [0]}, busy="busy"))
        cycles = session.simulate_edges(EdgeRequest(1, {}, ["cycles"])).shown["cycles"][0]
        bank, address = driver.places(job, received=True)
        there, found = address >= 0, np.zeros_like(expected)
        nodes = np.broadcast_to(node, there.shape)[there]
        found[there] = cells.read_words(nodes, bank[there], address[there])
    return found, run.edges, cycles


@pytest.mark.parametrize("collective", ["allgather", "alltoall", "allreduce", "broadcast"])
def test_the_compiled_engine_runs_a_core(collective):
    program = tf.compile(tf.plan("3x3", collective), flits=4)
    core, job = Core(program, 16), CoreJob()
    driver = CoreDriver(None, core, None)
    words = driver.random_words(job, np.random.default_rng(4))
    expected = driver.expected(job, words)
    found, edges, cycles = carried_out(core, words, job, expected)
    assert edges == cycles == program.cycles()
    assert (found == expected).all()
