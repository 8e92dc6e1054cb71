"""Schedules whose pictures tests check, and the words of a picture."""

from xml.etree import ElementTree

import numpy as np

from torusfabric.algorithms import Options
from torusfabric.algorithms.arrowhead.spanning_tree import SPANNING_TREE
from torusfabric.algorithms.arrowhead.wormhole_forest import WORMHOLE_FOREST
from torusfabric.collective import Collective
from torusfabric.schedule import Pattern, Rounds, Switching, Transfers
from torusfabric.topology import Arrowhead, Torus

SPACE = "{http://www.w3.org/2000/svg}"


def words(text):
    """Return all words in a picture, as an XML parser reads them."""
    return [element.text for element in ElementTree.fromstring(text).iter(f"{SPACE}text")]


def pattern(torus, feed, inject, steps):
    """Return an all-gather pattern on all four ports."""
    return Pattern(
        topology=torus,
        collective=Collective("allgather"),
        algorithm="test",
        switching=Switching.STORE_AND_FORWARD,
        ports=4,
        steps=steps,
        feed=feed,
        inject=inject,
    )


def rows_pattern(rows, columns):
    """Return a pattern with one cycle a row, both ways round."""
    torus = Torus((rows, columns))
    feed = np.full((torus.nodes, 4), -1, np.int8)
    feed[:, 2], feed[:, 3] = 3, 2
    return pattern(torus, feed, np.where(feed >= 0, 0, -1), columns // 2)


def rods_pattern(columns, rows):
    """Return a one-packet pattern on two cycles, with copies to the sides of all rows but two."""
    torus = Torus((rows, columns))
    down, up, right, left = range(4)
    feed = np.empty((torus.nodes, 4), np.int8)
    head = np.arange(torus.nodes) < 2 * columns
    feed[:, right] = feed[:, down] = up
    feed[:, left] = feed[:, up] = down
    feed[~head, right], feed[~head, left] = down, up
    feed[head, up], feed[head, down] = right, left
    return pattern(torus, feed, np.zeros_like(feed, int), 9)


def circuits(torus, rounds, *, kind="broadcast"):
    """Return a schedule of paths, given as (sender, ports) for each round."""
    transfers = []
    for paths in rounds:
        hops = np.full((len(paths), max(len(ports) for _, ports in paths)), -1, np.int8)
        for k, (_, ports) in enumerate(paths):
            hops[k, : len(ports)] = ports
        transfers.append(Transfers(np.array([node for node, _ in paths]), hops))
    return Rounds(
        topology=torus,
        collective=Collective(kind, 0 if kind == "broadcast" else None),
        algorithm="paths",
        switching=Switching.CIRCUIT,
        ports=4,
        transfers=tuple(transfers),
    )


def forest(order, **options):
    """Return the circuit-switched broadcast on an arrowhead."""
    return WORMHOLE_FOREST(Arrowhead(order), Collective("broadcast", 0), Options(**options))


def trees(order, **options):
    """Return the store-and-forward broadcast on an arrowhead."""
    return SPANNING_TREE(Arrowhead(order), Collective("broadcast", 0), Options(**options))
