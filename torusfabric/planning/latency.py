"""The latency with which hardware for sums is quickest.

Sums take a cycle to add and one to leave, and words for the same sum are added one after another.
A schedule that lets sums leave a few steps after they came keeps that pipeline full at the price of
some steps; which latency is best depends on the table and on the length of the messages.
"""

from dataclasses import replace

from ..errors import InputError
from ..program import compile_program
from ..schedule import Table

__all__ = ["quickest"]

#: What is tried; more steps of waiting have never been of use.
LATENCIES = (1, 2, 3, 4)


def quickest(algorithm, topology, collective, options, flits=None):
    """Plan a collective; a table of sums with the latency that needs the fewest cycles.

    Parameters
    ----------
    algorithm : Algorithm
    topology : Topology
    collective : Collective
    options : Options
        Their latency is not used for a table of sums.
    flits : int, optional
        Flits of a message; by default one for each chunk.

    Returns
    -------
    schedule : Schedule
    latency : int

    Raises
    ------
    InputError
        If the algorithm does not fit.
    """
    schedule = algorithm(topology, collective, options)
    if not (collective.reducing and isinstance(schedule, Table)):
        return schedule, options.latency
    found = [(schedule, options.latency)]
    for latency in LATENCIES:
        if latency != options.latency:
            try:
                other = algorithm(topology, collective, replace(options, latency=latency))
            except InputError:
                continue  # the algorithm knows no latency
            found.append((other, latency))
    return min(
        found,
        key=lambda entry: (
            compile_program(entry[0]).cycles(flits or entry[0].chunks),
            entry[1],
        ),
    )
