"""Published algorithms as MSCCL XML, in the form that the tools of MSCCL write.

Ring, recursive doubling and halving, rows and columns (hierarchical), all pairs. Each function
returns the text of a file. Ranks have no coordinates: an import needs a map to nodes of a torus.
"""

from .program import Program

__all__ = [
    "all_pairs_allreduce",
    "all_pairs_alltoall",
    "halving_doubling_allreduce",
    "halving_reduce_scatter",
    "hierarchical_allgather",
    "recursive_doubling_allgather",
    "ring_allgather",
    "ring_allreduce",
    "ring_reduce_scatter",
]


def ring_allgather(ranks, chunks=1):
    """Return an all-gather of one turn of every block around a ring, by one thread block a rank."""
    program = Program("allgather_ring", "allgather", ranks, ranks * chunks)
    for step in range(ranks):
        for rank in range(ranks):
            peers = (rank + 1) % ranks, (rank - 1) % ranks
            at = "o", (rank - step) % ranks * chunks
            type_ = "s" if step == 0 else "r" if step == ranks - 1 else "rcs"
            program.add(rank, peers, type_, at, at, chunks)
    return program.text()


def ring_allreduce(ranks):
    """Return an all-reduce along a ring: one turn adds up shares, another turn copies sums."""
    program = Program("allreduce_ring", "allreduce", ranks, ranks)
    for step in range(2 * ranks - 1):
        for rank in range(ranks):
            peers = (rank + 1) % ranks, (rank - 1) % ranks
            at = "i", (rank - step) % ranks
            if step == 0:
                type_ = "s"
            elif step < ranks - 1:
                type_ = "rrs"
            elif step == ranks - 1:
                type_ = "rrcs"
            else:
                type_ = "r" if step == 2 * ranks - 2 else "rcs"
            program.add(rank, peers, type_, at, at)
    return program.text()


def ring_reduce_scatter(ranks):
    """Return the reduce-scatter that is the first half of the all-reduce along a ring."""
    program = Program("reduce_scatter_ring", "reduce_scatter", ranks, ranks)
    for step in range(ranks):
        for rank in range(ranks):
            peers = (rank + 1) % ranks, (rank - 1) % ranks
            at = "i", (rank - step - 1) % ranks
            type_ = "s" if step == 0 else "rrc" if step == ranks - 1 else "rrs"
            program.add(rank, peers, type_, at, at)
    return program.text()


def recursive_doubling_allgather(ranks):
    """Return an all-gather of phases: partners at doubled distance exchange all their blocks."""
    program = Program("allgather_recursive_doubling", "allgather", ranks, ranks)
    size = 1
    while size < ranks:
        for rank in range(ranks):
            program.move(rank, rank ^ size, rank // size * size, size)
        size *= 2
    return program.text()


def halving_reduce_scatter(ranks, *, collective="reduce_scatter"):
    """Return a reduce-scatter of phases: partners exchange and add the halves they do not keep."""
    program = Program(f"{collective}_recursive_halving", collective, ranks, ranks)
    _halve(program)
    return program.text()


def halving_doubling_allreduce(ranks):
    """Return an all-reduce by recursive halving, then recursive doubling of the sums."""
    program = Program("allreduce_halving_doubling", "allreduce", ranks, ranks)
    _halve(program)
    size = 1
    while size < ranks:
        for rank in range(ranks):
            program.move(rank, rank ^ size, rank // size * size, size, buffer="i")
        size *= 2
    return program.text()


def doubling_exchange(ranks, chunks=1, *, collective="allreduce"):
    """Return an all-reduce of phases: partners at doubled distance exchange and keep their sums."""
    program, size = Program(f"{collective}_doubling", collective, ranks, chunks), 1
    while size < ranks:
        for rank in range(ranks):
            at = "i", 0
            program.add(rank, (rank ^ size, -1), "s", at, at, chunks, channel=size)
        for rank in range(ranks):
            program.add(rank, (-1, rank ^ size), "rrc", at, at, chunks, channel=size)
        size *= 2
    return program.text()


def _halve(program):
    """Add the phases of recursive halving to a program."""
    size = program.ranks // 2
    while size:
        for rank in range(program.ranks):
            partner = rank ^ size
            program.move(rank, partner, partner // size * size, size, add=True, buffer="i")
        size //= 2


def hierarchical_allgather(rows, columns):
    """Return an all-gather along the ring of each row, then of whole rows along each column."""
    ranks = rows * columns
    program = Program("allgather_hierarchical", "allgather", ranks, ranks)
    for step in range(columns - 1):
        for rank in range(ranks):
            row, column = divmod(rank, columns)
            target = row * columns + (column + 1) % columns
            program.move(rank, target, row * columns + (column - step) % columns)
    for step in range(rows - 1):
        for rank in range(ranks):
            row, column = divmod(rank, columns)
            target = (row + 1) % rows * columns + column
            program.move(rank, target, (row - step) % rows * columns, columns)
    return program.text()


def all_pairs_alltoall(ranks):
    """Return an all-to-all in which every rank sends to every other rank directly."""
    program = Program("alltoall_allpairs", "alltoall", ranks, ranks, in_place=False)
    for rank in range(ranks):
        program.add(rank, (-1, -1), "cpy", ("i", rank), ("o", rank))
    for apart in range(1, ranks):
        for rank in range(ranks):
            target = (rank + apart) % ranks
            program.add(rank, (target, -1), "s", ("i", target), ("o", rank))
            program.add(target, (-1, rank), "r", ("i", target), ("o", rank))
    return program.text()


def all_pairs_allreduce(ranks, chunks=1):
    """Return an all-reduce in which every rank adds up one share and sends the sum to all.

    A rank receives its share of the messages of other ranks in its scratch buffer.
    """
    program = Program("allreduce_allpairs", "allreduce", ranks, ranks * chunks)
    pairs = [(rank, (rank + apart) % ranks) for apart in range(1, ranks) for rank in range(ranks)]
    for rank, target in pairs:
        scratch = "s", ((target - rank) % ranks - 1) * chunks
        program.add(rank, (target, target), "s", ("i", target * chunks), scratch, chunks)
        program.add(target, (rank, rank), "r", ("i", target * chunks), scratch, chunks)
    for rank in range(ranks):
        for part in range((ranks - 1) * chunks):
            chunk = part % chunks
            sums = "i", rank * chunks + chunk
            program.add(rank, (-1, -1), "re", ("s", part), sums, channel=chunk)
    for rank, target in pairs:
        at = "i", rank * chunks
        program.add(rank, (target, target), "s", at, at, chunks)
        program.add(target, (rank, rank), "r", at, at, chunks)
    return program.text()
