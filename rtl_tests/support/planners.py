"""Planning by one algorithm, in short calls."""

import numpy as np

from torusfabric.algorithms import Options
from torusfabric.collective import parse_collective
from torusfabric.topology import Arrowhead, Topology, Torus, parse_topology

__all__ = ["as_topology", "node_classes", "planner", "program_count"]


def as_topology(what):
    """Return a topology, given itself, its name, the sides of a torus, or an arrowhead's order."""
    match what:
        case Topology():
            return what
        case str():
            return parse_topology(what)
        case int():
            return Arrowhead(what)
    return Torus(tuple(what))


def node_classes(pattern):
    """Return the number of different nodes of a pattern."""
    return len(np.unique(pattern.feed, axis=0))


def planner(algorithm, default=None):
    """Return a function that plans a collective by an algorithm.

    Its arguments are a topology, the name of a collective, a root and options.
    """

    def plan(what, kind=default, root=None, **options):
        topology = as_topology(what)
        collective = parse_collective(kind, root=root, topology=topology)
        return algorithm(topology, collective, Options(**options))

    return plan


def program_count(schedule):
    """Return the number of different nodes of a schedule.

    Two nodes are alike if in each round the same in-ports feed the same out-ports and the same
    in-ports deliver.
    """
    topology, local = schedule.topology, schedule.topology.ports
    shape = (topology.nodes, schedule.round_count, 2, local + 1)
    program = np.full(shape, -1)
    for number, transfers in enumerate(schedule.rounds()):
        here, came_by = transfers.source, np.full(len(transfers), local)
        for port in transfers.hops.T.astype(int):
            on = port >= 0
            program[here[on], number, 0, port[on]] = came_by[on]
            here = np.where(on, topology.neighbours[here, port], here)
            came_by = np.where(on, topology.opposite[port], came_by)
        program[here, number, 1, came_by] = 1
    return len(np.unique(program.reshape(topology.nodes, -1), axis=0))
