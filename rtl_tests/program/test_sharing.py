"""Resources that programs share: memories among readers, and injection ports among modes."""

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.program import Action


@pytest.mark.parametrize("topology", ["3x4", "5", "arrowhead:1"])
def test_a_scatter_from_any_root_keeps_no_copies(topology):
    """Each send memory of a node has one reader, and together they hold each word once."""
    program = tf.compile(tf.plan(topology, "scatter"), flits=4, root="any")
    own = [number for number, memory in enumerate(program.memories) if memory.own]
    readers = [
        f for f in program.loop.fields_of_action(Action.MEMORY) if np.isin(f.values, own).any()
    ]
    assert len(own) == len(readers) > 1
    assert int(program.depth[0, own].sum()) == program.send_words


def injections(loops, port):
    """The set of injection ports from which an out-port selects in some loops."""
    sources = {
        source for loop in loops for source in np.unique(loop.selected_sources[..., port]).tolist()
    }
    return {source for source in sources if source >= loops[0].sources.first_injection}


@pytest.mark.parametrize("names", [("alltoall", "exchange"), ("allreduce", "alltoall")])
def test_out_ports_have_no_more_than_in_one_mode(names):
    """An out-port of an engine has as many injection ports as in the mode that needs most."""
    schedules = [tf.plan("3x3", name) for name in names]
    together = [form.loop for form in tf.compile(schedules, max_flits=4).forms]
    alone = [tf.compile(schedule, max_flits=4).loop for schedule in schedules]
    for port in range(schedules[0].topology.ports):
        most = max(len(injections([loop], port)) for loop in alone)
        assert len(injections(together, port)) == most
