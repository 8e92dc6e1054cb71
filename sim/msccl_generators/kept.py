"""All-reduces whose ranks keep a sum that they have sent: swaps, folds, and overwritten sums.

Each function adds the steps for some ranks and chunks to a program, or returns the text of a file.
"""

from itertools import pairwise

from .program import Program

__all__ = ["folded_allreduce", "leaders_allreduce", "paired_allreduce", "random_allreduce"]


def swap(program, ranks, at, count=1):
    """Let each of some ranks send its sum to all others, and add theirs."""
    every = [(a, b) for a in ranks for b in ranks if a != b]
    for source, target in every:
        program.add(source, (target, -1), "s", ("i", at), ("i", at), count)
    for source, target in every:
        program.add(target, (-1, source), "rrc", ("i", at), ("i", at), count)


def double(program, ranks, at, count=1):
    """Let ranks swap with partners at doubled distance; their number is a power of two."""
    size = 1
    while size < len(ranks):
        for index, rank in enumerate(ranks):
            if not index & size:
                swap(program, (rank, ranks[index ^ size]), at, count)
        size *= 2


def fold(program, ranks, at, count=1):
    """Reduce and distribute among any number of ranks.

    A power of two of the ranks double. Each other rank first gives its sum to one of them, and at
    the end receives the result.
    """
    power = 1 << (len(ranks).bit_length() - 1)
    pairs = list(zip(ranks[power:], ranks, strict=False))
    for other, rank in pairs:
        program.move(other, rank, at, count, add=True, buffer="i")
    double(program, ranks[:power], at, count)
    for other, rank in pairs:
        program.move(rank, other, at, count, buffer="i")


def folded_allreduce(ranks, chunks=1):
    """Return an all-reduce by `fold` of all ranks."""
    program = Program("allreduce_fold", "allreduce", ranks, chunks, guarded=True)
    fold(program, list(range(ranks)), 0, chunks)
    return program.text()


def leaders_allreduce(ranks, group, chunks=1):
    """Return an all-reduce by the leaders of groups.

    The first rank of each group, its leader, adds up the messages of the group. The leaders fold.
    Each leader overwrites the sums of its group with the result.
    """
    program = Program("allreduce_leaders", "allreduce", ranks, chunks, guarded=True)
    leaders = list(range(0, ranks, group))
    members = [(leader, other) for leader in leaders
               for other in range(leader + 1, min(leader + group, ranks))]  # fmt: skip
    for leader, other in members:
        program.move(other, leader, 0, chunks, add=True, buffer="i")
    fold(program, leaders, 0, chunks)
    for leader, other in members:
        program.move(leader, other, 0, chunks, buffer="i")
    return program.text()


def paired_allreduce(ranks):
    """Return an all-reduce by pairs of ranks.

    Each pair reduce-scatters the two halves of a message, each half is folded across all pairs, and
    each pair all-gathers.
    """
    program = Program("allreduce_pairs", "allreduce", ranks, 2, guarded=True)
    for rank in range(ranks):
        program.move(rank, rank ^ 1, 1 - rank % 2, add=True, buffer="i")
    for half in range(2):
        fold(program, list(range(half, ranks, 2)), half)
    for rank in range(ranks):
        program.move(rank, rank ^ 1, rank % 2, buffer="i")
    return program.text()


def random_allreduce(ranks, random, chunks=1):
    """Return an all-reduce of each chunk by nested groups, by random methods in random orders."""
    program = Program("allreduce_random", "allreduce", ranks, chunks, guarded=True)
    for chunk in range(chunks):
        _reduce_all(program, random.sample(range(ranks), ranks), chunk, random)
    return program.text()


def _reduce_all(program, ranks, at, random):
    """Add up the sums of some ranks by a random method, and give all of them the result."""
    if len(ranks) == 1:
        return
    way = random.choice(["swap", "fold", "leaders", "leaders", "chain", "groups"])
    if way == "swap" and len(ranks) < 6:
        swap(program, ranks, at)
    elif way == "fold":
        fold(program, ranks, at)
    elif way == "chain":
        for source, target in pairwise(ranks):
            program.move(source, target, at, add=True, buffer="i")
        for target, source in reversed([*pairwise(ranks)]):
            program.move(source, target, at, buffer="i")
    else:
        size = random.randint(1, len(ranks) - 1)
        groups = [ranks[k : k + size] for k in range(0, len(ranks), size)]
        if way == "groups":
            # All ranks of a group hold its sum before the first rank goes on. The result overwrites
            # it.
            for group in groups:
                _reduce_all(program, group, at, random)
        else:
            for first, *others in groups:
                for other in others:
                    program.move(other, first, at, add=True, buffer="i")
        _reduce_all(program, [group[0] for group in groups], at, random)
        for first, *others in groups:
            for other in others:
                program.move(first, other, at, buffer="i")
