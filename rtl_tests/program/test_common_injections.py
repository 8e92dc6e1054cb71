"""Modes share injection ports, so that out-ports have few inputs to choose from."""

import numpy as np
import pytest

import torusfabric as tf


def injections(loops, port):
    """The injection ports that an out-port chooses from in some loops."""
    sources = {source for loop in loops for source in np.unique(loop.select[..., port]).tolist()}
    return {source for source in sources if source >= loops[0].sources.first_injection}


@pytest.mark.parametrize("names", [("alltoall", "exchange"), ("allreduce", "alltoall")])
def test_out_ports_have_no_more_than_in_one_mode(names):
    """As many as in the mode that has most, for those of the others have the same numbers."""
    schedules = [tf.plan("3x3", name) for name in names]
    together = [form.loop for form in tf.compile(schedules, max_flits=4).forms]
    alone = [tf.compile(schedule, max_flits=4).loop for schedule in schedules]
    for port in range(schedules[0].topology.ports):
        most = max(len(injections([loop], port)) for loop in alone)
        assert len(injections(together, port)) == most
