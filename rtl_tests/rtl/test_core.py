"""Cores: every node has a port of its own, and `places` tells where what it gets lies."""

import numpy as np
import pytest
from amaranth.sim import Simulator
from helpers import expected_words, fabric_of, plan

from torusfabric.collective import Operator
from torusfabric.program import compile_rooted
from torusfabric.rtl import build_fabric
from torusfabric.rtl.assembly import Assembly

CASES = [
    ("3x3", "allgather", "matching", 1, {}),
    ("3x4", "allgather", "matching", 4, {"chunks": 2}),
    ("3x3", "alltoall", "matching", 3, {}),
    ("5x5", "allgather", "bufferless", 2, {}),
    ("3x3", "broadcast", "max-flow", 2, {"root": 4}),
    ("3x3", "scatter", "matching", 2, {}),
    ("3x3", "gather", "matching", 1, {}),
    ("4x4", "reduce", "max-flow", 3, {}),
    ("3x3", "reduce-scatter", "matching", 1, {}),
    ("3x3", "reduce-scatter", "matching", 5, {}),
    ("2x3", "allreduce", "matching", 12, {}),
]


def run_core(fabric, messages, *, starts=1, root=None):
    """Write all send memories at once, run, and read all blocks; returns words and cycles."""
    design, places = Assembly(fabric.netlist), fabric.places()
    block, nodes = fabric.layout.block_flits, range(fabric.nodes)
    found: list[list] = [[] for _ in nodes]

    async def write(ctx):
        for k in range(fabric.layout.send_words):
            for node in nodes:
                number, flit = divmod(k, block)
                address = k
                if "sent" in places:
                    chunk, first = places["sent"][node][number]
                    ctx.set(getattr(design, f"write_chunk_{node}"), chunk)
                    address = first + flit
                elif root is not None:
                    ctx.set(getattr(design, f"write_chunk_{node}"), number)
                    address = flit
                ctx.set(getattr(design, f"write_address_{node}"), address)
                ctx.set(getattr(design, f"write_data_{node}"), int(messages[node][k]))
                ctx.set(getattr(design, f"write_enable_{node}"), 1)
            await ctx.tick()
        for node in nodes:
            ctx.set(getattr(design, f"write_enable_{node}"), 0)

    async def read(ctx):
        for k in range(fabric.layout.recv_words):
            number, flit = divmod(k, block)
            for node in nodes:
                place = places["places"][node][number]
                if place is not None:
                    ctx.set(getattr(design, f"read_bank_{node}"), place[0])
                    ctx.set(getattr(design, f"read_address_{node}"), place[1] + flit)
            await ctx.tick().repeat(2)
            for node in nodes:
                found[node].append(ctx.get(getattr(design, f"read_data_{node}")))

    async def testbench(ctx):
        await write(ctx)
        if root is not None:
            ctx.set(design.root, root)
        for _ in range(starts):
            ctx.set(design.start, 1)
            await ctx.tick()
            ctx.set(design.start, 0)
            edges = 0
            while not ctx.get(design.done):
                await ctx.tick()
                edges += 1
                assert edges <= fabric.cycles
            assert edges == ctx.get(design.cycles) == fabric.cycles
        await read(ctx)

    simulator = Simulator(design)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    return np.array(found, np.uint64)


def random_words(fabric):
    size = fabric.nodes, fabric.layout.send_words
    return np.random.default_rng(1).integers(0, 1 << fabric.width, size, np.uint64)


@pytest.mark.parametrize(("topology", "collective", "algorithm", "flits", "options"), CASES)
def test_core(topology, collective, algorithm, flits, options):
    """What is written at the places told comes out at the places told, run after run."""
    sums = {"operator": Operator("min")} if collective.startswith(("reduce", "allreduce")) else {}
    fabric = fabric_of(topology, collective, algorithm, width=7, flits=flits, top="core",
                       **sums, **options)  # fmt: skip
    messages = random_words(fabric)
    words, owed = expected_words(fabric.program, messages, width=7)
    got = run_core(fabric, messages, starts=2)
    assert (got[owed] == words[owed]).all()


@pytest.mark.parametrize("root", [0, 5])
def test_core_of_any_root(root):
    """The root is told at the start, and reads nothing else."""
    program = compile_rooted(plan("3x3", "broadcast", "max-flow"))
    fabric = build_fabric(program, width=7, flits=2, top="core")
    messages = random_words(fabric)
    words, _ = expected_words(program, messages, root)
    assert (run_core(fabric, messages, root=root) == words).all()
