"""The cycles of a run as a function of its length, piece by piece, as the manifest has it."""

import pytest

import torusfabric as tf

CASES = [
    ("4x4", "allgather", "hamiltonian", {}, 9),
    ("3x4", "alltoall", "matching", {}, 5),
    ("4x4", "broadcast", "max-flow", {}, 11),
    ("2x3", "reduce-scatter", "matching", {}, 8),
    ("4x4", "allreduce", "matching", {}, 256),
    ("5", "reduce-scatter", "matching", {"latency": 3}, 8),
    # Nothing moves in some steps.
    ("4", "reduce", "necklace", {"latency": 3}, 9),
    ("3x3", "broadcast", "necklace", {"latency": 4}, 9),
]


@pytest.mark.parametrize(("topology", "collective", "algorithm", "options", "most"), CASES)
def test_pieces_are_the_cycles_of_every_length(topology, collective, algorithm, options, most):
    """In each mode: the last piece that begins at so many flits of a block, or fewer."""
    schedule = tf.plan(topology, collective, algorithm=algorithm, **options)
    program = tf.compile(schedule, max_flits=most)
    for length in range(1, most + 1):
        flits = -(-length // schedule.chunks)
        timing = program.form.timing_of(length)
        *_, piece = (piece for piece in timing.pieces(1) if piece.first <= flits)
        assert piece.constant + piece.per_flit * flits == program.cycles(length)


@pytest.mark.parametrize(("topology", "collective", "algorithm", "options", "most"), CASES[:6])
def test_messages_that_cannot_be_cut_are_padded(topology, collective, algorithm, options, most):
    """A run takes the cycles of the next length that its chunks divide."""
    schedule = tf.plan(topology, collective, algorithm=algorithm, **options)
    for flits in range(1, 3 * schedule.chunks + 1):
        whole = -(-flits // schedule.chunks) * schedule.chunks
        taken = [tf.compile(schedule, flits=length).cycles() for length in (flits, whole)]
        assert taken[0] == taken[1]
