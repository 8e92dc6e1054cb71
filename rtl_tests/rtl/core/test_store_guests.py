"""Guests: memories of messages that are stored behind the words of larger ones."""

from functools import cache

import numpy as np
import pytest
from helpers import check_jobs

import torusfabric as tf
from torusfabric.adapters.host.drive import words
from torusfabric.program.host_words import word_addresses
from torusfabric.rtl.netlist import Role
from torusfabric.simulation.engines import CompiledEngine
from torusfabric.toolchain import cxx

#: Engines with guests: topology, collectives, and flits of the longest message.
ENGINES = [
    ("4x4", ("allgather", "alltoall", "allreduce"), 16),
    ("3x5", ("allreduce", "alltoall"), 12),
    ("2x4", ("alltoall", "broadcast", "allreduce", "allgather"), 40),
    ("4x4", ("gather", "alltoall", "allreduce@0"), 16),
]


@cache
def fabric_of(topology, names, most):
    """A fabric of several collectives behind a host port."""
    plans = [tf.plan_forms(topology, name, max_flits=most) for name in names]
    return tf.Fabric(tf.compile(plans, max_flits=most), width=8)


def find_guests(fabric):
    """Yield each guest with its node and the bank of its host."""
    for instance in fabric.netlist.instances_with_role(Role.ENDPOINT):
        for bank in fabric.netlist.modules[instance.module]().shape.banks:
            for guest in bank.guests:
                yield instance.node, bank, guest


@pytest.mark.skipif(not cxx.has_compiler(), reason="no C++ compiler")
@pytest.mark.parametrize(("topology", "names", "most"), ENGINES)
def test_words_of_guests_and_hosts_arrive(topology, names, most, monkeypatch):
    """Messages of all modes arrive, whether the port writes them or a simulator does."""
    monkeypatch.setattr(words, "PORT_SAMPLE_WORDS", 20)
    fabric, count = fabric_of(topology, names, most), len(names)
    jobs = [tf.Job(mode=k % count, length=1 + k * 5 % most) for k in range(3 * count)]
    check_jobs(fabric, jobs, engine=CompiledEngine)
    check_jobs(fabric, jobs[::-1], engine=CompiledEngine, through_port=True)
    check_jobs(fabric, [tf.Job(mode=k, length=5) for k in range(count)])


@pytest.mark.parametrize(("topology", "names", "most"), ENGINES)
def test_a_guest_has_no_written_word_in_common_with_its_host(topology, names, most):
    """No host address stores a word in a guest and in its host, and both have words apart."""
    fabric = fabric_of(topology, names, most)
    program, layouts = fabric.program, [form.layout for form in fabric.program.forms]
    places = [
        word_addresses(program, received=False, form=layouts.index(layout), length=most)
        for layout in range(1 + max(layouts))
    ]
    found = [*find_guests(fabric)]
    assert found
    for node, bank, guest in found:
        (host,) = bank.members
        limits, stored = {host: guest.base, guest.memory: bank.depth - guest.base}, []
        for number, limit in limits.items():
            memory, address = places[program.memories[number].layout]
            here = np.flatnonzero((memory[node] == number) & (address[node] >= 0))
            assert address[node, here].max() < limit
            stored.append({*here.tolist()})
        assert all(stored)
        assert stored[0].isdisjoint(stored[1])


def test_most_small_messages_of_an_engine_are_guests():
    """On 8x8, all messages of three collectives take four memories at most nodes, not seven."""
    plans = [
        tf.plan_forms("8x8", name, max_flits=16, check=False)
        for name in ("allgather", "alltoall", "allreduce")
    ]
    fabric = tf.Fabric(tf.compile(plans, max_flits=16), width=32)
    modules = [each.module for each in fabric.netlist.instances_with_role(Role.ENDPOINT)]
    shapes = {name: fabric.netlist.modules[name]().shape for name in {*modules}}
    counts = [sum(len(bank.members) for bank in shapes[name].banks if bank.own) for name in modules]
    assert np.mean(counts) < 4.2
