"""A model of store-and-forward all-gather for tests, which notes every block of every node."""

import numpy as np


def steps_until_complete(schedule):
    """Return the number of rounds after which every node has every block.

    Raises
    ------
    AssertionError
        If an arc carries two messages in a round, if a node sends a block that it does not have, or
        if a block is missing after the last round.
    """
    torus, blocks = schedule.topology, schedule.blocks
    held = np.zeros((torus.nodes, blocks.n_blocks), bool)
    held[blocks.origin(np.arange(blocks.n_blocks)), np.arange(blocks.n_blocks)] = True
    complete = None
    for number, transfers in enumerate(schedule.rounds(), 1):
        source, port = transfers.source, transfers.hops[:, 0]
        assert len(set(zip(source.tolist(), port.tolist(), strict=True))) == len(source)
        counts = np.diff(transfers.payload.indptr)
        ids = transfers.payload.ids
        assert held[np.repeat(source, counts), ids].all(), f"not held in round {number}"
        held[np.repeat(torus.neighbours[source, port], counts), ids] = True
        if complete is None and held.all():
            complete = number
    assert complete is not None, f"{(~held).sum()} blocks missing"
    return complete
