"""A model of GPUs that execute an MSCCL file, one step at a time in random order.

The model shares no code with the reader under test. A thread block executes its steps in order. A
step waits for the step that it names. A channel holds a few messages. Values are sets of (origin,
destination, chunk), so that a sum shows its contributions.
"""

from collections import defaultdict, deque
from xml.etree import ElementTree

__all__ = ["results", "run_file"]

#: Most messages in a channel.
SLOTS = 2


def run_file(path, random):
    """Execute a file; return the final buffers of each GPU, dicts from location to value.

    Raises
    ------
    AssertionError
        If steps are left of which none can go, or a message is not received.
    """
    algo = ElementTree.parse(path).getroot()
    ranks = int(algo.get("ngpus"))
    memory = [initial(algo, rank) for rank in range(ranks)]
    channels = defaultdict(deque)
    waiting = {
        (int(gpu.get("id")), int(block.get("id"))): (block, deque(block))
        for gpu in algo
        for block in gpu
    }
    done, turns = set(), list(waiting)
    while turns:
        random.shuffle(turns)
        able = [here for here in turns if can_go(here[0], *first_of(waiting[here]), done, channels)]
        assert able, "no step can be done"
        # A random number of the thread blocks that can go do so. One step can block a later one.
        for rank, number in able[: 1 + random.randrange(len(able))]:
            block, steps = waiting[rank, number]
            if can_go(rank, block, steps[0], done, channels):
                step = steps.popleft()
                carry_out(algo, rank, block, step, memory[rank], channels)
                done.add((rank, number, int(step.get("s"))))
        turns = [here for here in turns if waiting[here][1]]
    assert not any(channels.values()), "a message was not received"
    return memory


def first_of(entry):
    """Return a thread block and its next step."""
    block, steps = entry
    return block, steps[0]


def pair_of(rank, block, *, sends):
    """Return source, target and channel of the messages that a thread block sends or receives."""
    peer = int(block.get("send" if sends else "recv"))
    channel = int(block.get("chan"))
    return (rank, peer, channel) if sends else (peer, rank, channel)


def can_go(rank, block, step, done, channels):
    """Return True if a step can go now."""
    depid, deps = int(step.get("depid")), int(step.get("deps"))
    if depid >= 0 and (rank, depid, deps) not in done:
        return False
    if step.get("type") == "s":
        return len(channels[pair_of(rank, block, sends=True)]) < SLOTS
    if step.get("type") in ("r", "rrc"):
        return bool(channels[pair_of(rank, block, sends=False)])
    return True


def carry_out(algo, rank, block, step, memory, channels):
    """Execute a step of one of the types that exports contain."""
    source = home(algo, rank, step.get("srcbuf"), int(step.get("srcoff")))
    target = home(algo, rank, step.get("dstbuf"), int(step.get("dstoff")))
    match step.get("type"):
        case "s":
            channels[pair_of(rank, block, sends=True)].append(memory[source])
        case "r":
            memory[target] = channels[pair_of(rank, block, sends=False)].popleft()
        case "rrc":
            came = channels[pair_of(rank, block, sends=False)].popleft()
            assert not came & memory[source], "a contribution is added twice"
            memory[target] = memory[source] | came
        case "cpy":
            memory[target] = memory[source]
        case "nop":
            pass
        case other:
            raise AssertionError(f"a step of type {other}")


def home(algo, rank, buffer, offset):
    """Return one name for each location: in place, input and output are the same memory."""
    if algo.get("inplace") == "0" or buffer == "s":
        return buffer, offset
    ranks, chunks = int(algo.get("ngpus")), int(algo.get("nchunksperloop"))
    kind = algo.get("coll")
    if kind in ("allgather", "gather") and buffer == "i":
        return "o", rank * chunks // ranks + offset
    if kind in ("reduce_scatter", "scatter") and buffer == "o":
        return "i", rank * chunks // ranks + offset
    if kind in ("broadcast", "reduce", "allreduce"):
        return "o", offset
    return buffer, offset


def initial(algo, rank):
    """Return the initial buffers of a GPU."""
    ranks, chunks = int(algo.get("ngpus")), int(algo.get("nchunksperloop"))
    kind, root = algo.get("coll"), int(algo.get("root", -1))
    personal = kind in ("alltoall", "scatter", "reduce_scatter")
    parts = ranks if personal or kind in ("allgather", "gather") else 1
    chunks //= parts
    if kind in ("broadcast", "scatter") and rank != root:
        return {}
    return {
        home(algo, rank, "i", part * chunks + chunk): frozenset(
            [(rank, part if personal else -1, chunk)]
        )
        for part in range(ranks if personal else 1)
        for chunk in range(chunks)
    }


def results(algo, rank):
    """Yield the expected content of the output buffer of a GPU, as pairs of location and value."""
    ranks, chunks = int(algo.get("ngpus")), int(algo.get("nchunksperloop"))
    kind, root = algo.get("coll"), int(algo.get("root", -1))
    personal = kind in ("alltoall", "scatter", "reduce_scatter")
    several = kind in ("alltoall", "allgather", "gather")
    chunks //= ranks if personal or several else 1
    if kind in ("gather", "reduce") and rank != root:
        return
    for part in range(ranks if several else 1):
        for chunk in range(chunks):
            origins = [part] if several else [root]
            if kind in ("reduce", "reduce_scatter", "allreduce"):
                origins = range(ranks)
            value = frozenset((origin, rank if personal else -1, chunk) for origin in origins)
            yield home(algo, rank, "o", part * chunks + chunk), value
