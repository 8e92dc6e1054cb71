"""Runs of cores, whose nodes have ports of their own, in Amaranth's simulator."""

import numpy as np
from helpers import expected_words, random_messages, simulated

__all__ = ["check_core", "read_as_early_as_may_be", "run_core", "run_stream_core"]


def check_core(fabric, *, root=None):
    """Run a core; compare all words with the expected words, and the cycles with the prediction."""
    messages = random_messages(fabric, 1)
    words, receives = expected_words(fabric.program, messages, root=root, width=fabric.width)
    if not fabric.streaming:
        got = run_core(fabric, messages, starts=2, root=root)
        assert (got[receives] == words[receives]).all()
        return
    found, groups = run_stream_core(fabric, messages), fabric.program.groups
    words_of_blocks = fabric.layout.block_flits * fabric.program.schedule.chunks
    assert len(found) == fabric.nodes * (groups.group_size - 1) * words_of_blocks
    for node, own in enumerate(groups.position_of_node.tolist()):
        sent = words[node].reshape(groups.group_size, fabric.flits)
        for origin in set(range(groups.group_size)) - {own}:
            arrived = [found[origin, flit, node] for flit in range(fabric.flits)]
            assert arrived == sent[origin].tolist()


def block_and_flit(fabric, word):
    """Return the block in a node's memory, and the flit in the block, of a word in host order."""
    layout = fabric.program.layout
    part, within = divmod(word, layout.part_flits(fabric.flits))
    chunk, flit = divmod(within, fabric.layout.block_flits)
    return part * layout.part_chunks + chunk, flit


async def _write(ctx, fabric, messages, address_map):
    """Write the messages of all nodes, one word of each node a cycle."""
    nodes = range(fabric.nodes)
    for k in range(fabric.layout.send_words):
        for node in nodes:
            number, flit = block_and_flit(fabric, k)
            bank, first = address_map["sent"][node][number]
            # A node with a single bank to write has no port for its number.
            ports = fabric.node[node]
            if bank or hasattr(ports, "write_bank"):
                ctx.set(ports.write_bank, bank)
            ctx.set(ports.write_address, first + flit)
            ctx.set(ports.write_data, int(messages[node][k]))
            ctx.set(ports.write_enable, 1)
        await ctx.tick()
    for node in nodes:
        ctx.set(fabric.node[node].write_enable, 0)


def run_core(fabric, messages, *, starts=1, root=None):
    """Write all send memories at once, run, and read all blocks; return the words."""
    address_map = fabric.address_map()
    nodes = range(fabric.nodes)
    found: list[list] = [[] for _ in nodes]

    async def read(ctx):
        for k in range(fabric.layout.recv_words):
            number, flit = block_and_flit(fabric, k)
            for node in nodes:
                entry = address_map["received"][node][number]
                if entry is not None:
                    ctx.set(fabric.node[node].read_bank, entry[0])
                    ctx.set(fabric.node[node].read_address, entry[1] + flit)
            await ctx.tick().repeat(fabric.read_latency)
            for node in nodes:
                found[node].append(ctx.get(fabric.node[node].read_data))

    async def testbench(ctx):
        await _write(ctx, fabric, messages, address_map)
        if root is not None:
            ctx.set(fabric.root, root)
        for _ in range(starts):
            ctx.set(fabric.start, 1)
            await ctx.tick()
            ctx.set(fabric.start, 0)
            edges = 0
            while not ctx.get(fabric.done):
                await ctx.tick()
                edges += 1
                assert edges <= fabric.predicted_cycles
            assert edges == ctx.get(fabric.cycles) == fabric.predicted_cycles
        await read(ctx)

    simulated(fabric, testbench)
    return np.array(found, np.uint64)


def read_as_early_as_may_be(fabric, messages):
    """Run once for each word; read it in the cycle of `done` and in that of the next start.

    Returns
    -------
    at_done, at_start : ndarray, shape (nodes, words)
        Words that were read in either cycle.
    """
    address_map, nodes = fabric.address_map(), range(fabric.nodes)
    words = fabric.layout.recv_words
    found = np.zeros((2, fabric.nodes, words), np.uint64)

    def ask(ctx, word):
        number, flit = block_and_flit(fabric, word)
        for node in nodes:
            entry = address_map["received"][node][number]
            if entry is not None:
                ctx.set(fabric.node[node].read_bank, entry[0])
                ctx.set(fabric.node[node].read_address, entry[1] + flit)

    async def answer(ctx, edges, of_words):
        await ctx.tick().repeat(edges)
        of_words[:] = [ctx.get(fabric.node[node].read_data) for node in nodes]

    async def testbench(ctx):
        await _write(ctx, fabric, messages, address_map)
        for word in range(words):
            ctx.set(fabric.start, 1)
            await ctx.tick()
            ctx.set(fabric.start, 0)
            while not ctx.get(fabric.done):
                await ctx.tick()
            ask(ctx, word)
            await answer(ctx, fabric.read_latency, found[0, :, word])
            # Another address is read before and after the start: only one cycle has the right word.
            ask(ctx, (word + 1) % words)
            await ctx.tick().repeat(fabric.read_latency)
            ask(ctx, word)
            ctx.set(fabric.start, 1)
            await ctx.tick()
            ctx.set(fabric.start, 0)
            ask(ctx, (word + 1) % words)
            await answer(ctx, fabric.read_latency - 1, found[1, :, word])
            while not ctx.get(fabric.done):
                await ctx.tick()

    simulated(fabric, testbench)
    return found


def run_stream_core(fabric, messages):
    """Feed the nodes of an oblivious core, and record the words that arrive.

    Returns
    -------
    dict
        The word by (origin, flit of the message, node), from its first arrival.
    """
    block = fabric.layout.block_flits
    loop, width = fabric.program.loop, fabric.width
    injections = len(loop.sources.injections)
    arrivals, found = fabric.address_map()["arrivals"], {}

    def feed(ctx, flit):
        for node, words in enumerate(messages.tolist()):
            # The padding of the last chunks, beyond the end of the message, may be anything.
            padded = [*words, *[0] * (block * injections - len(words))]
            injected = [
                padded[number * block + flit] << number * width for number in range(injections)
            ]
            ctx.set(fabric.node[node].inject, sum(injected))

    def record(ctx):
        wave, step = divmod(ctx.get(fabric.rx_address), loop.n_rows)
        for node, ports in enumerate(arrivals):
            words = ctx.get(fabric.node[node].receive)
            for port, names in enumerate(ports):
                if names[step] is not None:
                    origin, chunk = names[step]
                    word = words >> port * width & (1 << width) - 1
                    found[origin, chunk * block + wave, node] = word

    async def testbench(ctx):
        ctx.set(fabric.start, 1)
        await ctx.tick()
        ctx.set(fabric.start, 0)
        edges, flit = 0, None
        while not ctx.get(fabric.done):
            if flit is not None:
                feed(ctx, flit)
            flit = ctx.get(fabric.tx_address)
            if ctx.get(fabric.rx_enable):
                record(ctx)
            await ctx.tick()
            edges += 1
            assert edges <= fabric.predicted_cycles
        assert edges == ctx.get(fabric.cycles) == fabric.predicted_cycles

    simulated(fabric, testbench)
    return found
