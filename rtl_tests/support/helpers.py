"""What several tests need: fabrics by name, and their messages."""

import numpy as np

from torusfabric import collective as collectives
from torusfabric.algorithms import Options, find
from torusfabric.collective import parse_collective
from torusfabric.program import compile_program
from torusfabric.rtl import build_fabric
from torusfabric.simulation.engines import AmaranthEngine
from torusfabric.topology import parse_topology

__all__ = [
    "as_executed",
    "check_run",
    "expected_words",
    "fabric_of",
    "plan",
    "program_of",
    "random_messages",
]


def plan(topology, collective, algorithm, *, root=None, **options):
    """A schedule, by names."""
    topology = parse_topology(topology)
    collective = parse_collective(collective, root=root, nodes=topology.nodes)
    return find(algorithm)(topology, collective, Options(**options))


def program_of(topology, collective, algorithm, *, operator=None, **options):
    """A switch program, by names."""
    return compile_program(plan(topology, collective, algorithm, **options), operator)


def fabric_of(topology, collective, algorithm, *, width=8, flits=None, top="host", operator=None,
              **options):  # fmt: skip
    """A fabric, by names."""
    program = program_of(topology, collective, algorithm, operator=operator, **options)
    return build_fabric(program, width=width, flits=flits, top=top)


def random_messages(fabric, seed):
    """Random words for every node's send memory."""
    return collectives.random_messages(
        fabric.program.layout, fabric.layout.block_flits, width=fabric.width, seed=seed
    )


def expected_words(program, messages, root=None, width=64):
    """The words that a program must deliver at every node, and the nodes that receive any."""
    return collectives.expected_words(
        program.layout,
        messages,
        operator=program.operator if program.blocks.collective.reducing else None,
        width=width,
        root=root,
    )


def as_executed(fabric, seed=1):
    """Random messages, and what the executed program says the host reads.

    Returns
    -------
    messages : list of (list of int)
    words : ndarray of Python int, shape (nodes, receive words)
    """
    messages, program = random_messages(fabric, seed), fabric.program
    width = {"width": fabric.width} if program.blocks.collective.reducing else {}
    return messages.tolist(), program.execute(np.array(messages), **width)


def check_run(fabric, engine=AmaranthEngine, **settings):
    """Run a fabric; compare with the executed program and with what must be delivered."""
    messages, executed = as_executed(fabric)
    dtype = np.uint64 if fabric.width <= 64 else object
    words, receives = expected_words(fabric.program, np.array(messages, dtype), width=fabric.width)
    assert (executed[receives] == words[receives]).all()
    run = engine(fabric, **settings).run(messages)
    assert (np.array(run.words, dtype)[receives] == executed[receives]).all()
    assert run.cycles == run.edges == fabric.cycles
