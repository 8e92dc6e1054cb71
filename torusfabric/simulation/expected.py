"""What is sent and what is owed: random messages, the words a collective delivers, and how fast.

Nothing here knows how a collective is carried out; engines and boards are compared with it.
"""

import numpy as np

from ..analysis.bounds import bound

__all__ = ["expected_words", "random_messages", "throughput", "throughput_bound"]


def random_messages(fabric, seed):
    """Random words for every node's send memory.

    Returns
    -------
    ndarray, shape (nodes, send words)
        Of uint64, or of Python integers if words are wider.
    """
    generator = np.random.default_rng(seed)
    if fabric.width <= 64:
        shape = fabric.nodes, fabric.layout.send_words
        return generator.integers(0, (1 << fabric.width) - 1, shape, np.uint64, endpoint=True)
    size = -(-fabric.width // 8)
    raw = generator.bytes(fabric.nodes * fabric.layout.send_words * size)
    mask = (1 << fabric.width) - 1
    words = [int.from_bytes(raw[k : k + size], "little") & mask for k in range(0, len(raw), size)]
    return np.array(words, object).reshape(fabric.nodes, fabric.layout.send_words)


def expected_words(program, messages, root=None, width=64):
    """What the collective owes every node, however it is carried out.

    Parameters
    ----------
    program : SwitchProgram
        Only its collective, its operator and the order of the host's addresses are used.
    messages : ndarray, shape (nodes, send words)
    root : int, optional
        Another root than the program's.
    width : int
        Bits of a word.

    Returns
    -------
    words : ndarray, shape (nodes, receive words)
    owed : ndarray of bool, shape (nodes,)
        The nodes to which anything is owed.
    """
    nodes, blocks = np.arange(program.topology.nodes), program.blocks
    only_root = blocks.collective.kind in ("gather", "reduce")
    owed = (nodes == blocks.collective.root) | (not only_root)
    if blocks.collective.reducing:
        sums = program.operator.reduce(messages, width)
        if blocks.collective.personal:
            return sums.reshape(len(nodes), -1), owed
        return np.broadcast_to(sums, (len(nodes), len(sums))), owed
    wanted = program.view(nodes[:, None], np.arange(program.view_blocks)[None, :])
    place = blocks.chunk(wanted)
    if blocks.collective.personal:
        place = place + blocks.destination(wanted) * blocks.chunks
    sent = messages.reshape(len(nodes), program.sent_blocks, -1)
    origin = blocks.origin(wanted) if root is None else root
    return sent[origin, place].reshape(len(nodes), -1), owed


def throughput(fabric, cycles):
    """Words from elsewhere that a node receives in a cycle, over all nodes and so many cycles.

    Of a reduction, the results.
    """
    program, nodes = fabric.program, np.arange(fabric.nodes)
    blocks, kind = program.blocks, program.blocks.collective.kind
    if blocks.collective.reducing:
        share = 1 / fabric.nodes if blocks.collective.rooted else 1
        return round(share * fabric.layout.recv_words / max(cycles, 1), 4)
    owed = nodes if kind != "gather" else np.array([blocks.collective.root])
    wanted = program.view(owed[:, None], np.arange(program.view_blocks)[None, :])
    foreign = int((blocks.origin(wanted) != owed[:, None]).sum()) * fabric.layout.block_flits
    return round(foreign / (fabric.nodes * max(cycles, 1)), 4)


def throughput_bound(fabric):
    """The most that any schedule in its model could reach: in fewest steps, without other cycles.

    Of circuits, the ports a node may receive at.
    """
    schedule = fabric.program.schedule
    if schedule.switching == "circuit":
        return float(schedule.ports)
    return throughput(fabric, bound(schedule) * fabric.layout.block_flits)
