"""A node for which others have waited too long is named."""

import pytest
from helpers import simulated

import torusfabric as tf
from torusfabric.verilog.manifest import interface


def watched(**options):
    program = tf.compile(tf.plan("3", "allgather"), flits=2)
    return tf.Fabric(program, width=8, top="stream", beat=1, timeout=20, **options)


async def ticks(ctx, fabric, cycles):
    """What is shown some cycles later: whether a node rests, which, and whether it sends."""
    await ctx.tick().repeat(cycles)
    return tuple(ctx.get(getattr(fabric, f"stalled{what}")) for what in ("", "_node", "_sends"))


async def send(ctx, fabric, *nodes):
    """Send a message of each of some nodes."""
    for last in (0, 1):
        for node in nodes:
            port = fabric.node[node].send
            ctx.set(port.payload.last, last)
            ctx.set(port.valid, 1)
        await ctx.tick()
    for node in nodes:
        ctx.set(fabric.node[node].send.valid, 0)


def test_who_rests_is_named():
    fabric = watched()

    async def testbench(ctx):
        await ctx.tick().repeat(20)
        # Where nobody waits, nobody rests.
        assert (await ticks(ctx, fabric, 60))[0] == 0
        await send(ctx, fabric, 0, 1)
        assert (await ticks(ctx, fabric, 15))[0] == 0
        assert (await ticks(ctx, fabric, 30)) == (1, 2, 1)
        # The run begins with the message of the last; then node 0 takes, and 1 and 2 do not.
        ctx.set(fabric.node[0].receive.ready, 1)
        await send(ctx, fabric, 2)
        assert (await ticks(ctx, fabric, 12))[0] == 0
        # Nodes have room for three runs.
        for _ in range(3):
            await send(ctx, fabric, 0, 1, 2)
            shown = await ticks(ctx, fabric, 45)
        assert shown == (1, 1, 0)
        ctx.set(fabric.node[1].receive.ready, 1)
        assert (await ticks(ctx, fabric, 45)) == (1, 2, 0)
        ctx.set(fabric.node[2].receive.ready, 1)
        assert (await ticks(ctx, fabric, 60))[0] == 0

    simulated(fabric, testbench)


def test_nobody_is_named_while_a_run_is_under_way():
    """Though messages wait for longer than that of the last node may take."""
    program = tf.compile(tf.plan(tf.Torus(3, link_latency=40), "allgather"), flits=2)
    fabric = tf.Fabric(program, width=8, top="stream", beat=1, timeout=20)

    async def testbench(ctx):
        await ctx.tick().repeat(20)
        for nodes in ((0, 1), (0, 1), (2,)):
            await send(ctx, fabric, *nodes)
        await ctx.tick().until(fabric.busy)
        seen = 0
        while ctx.get(fabric.busy):
            assert (await ticks(ctx, fabric, 1))[0] == 0
            seen += 1
        assert seen > 40
        assert (await ticks(ctx, fabric, 45)) == (1, 2, 1)

    simulated(fabric, testbench)


def test_who_waits_for_statuses_to_be_taken_names_nobody():
    """All nodes have sent and taken, and no run begins; the search goes round and round."""
    program = tf.compile(tf.plan("3", "allgather"), max_flits=2, barrier=True)
    fabric = tf.Fabric(program, width=8, top="stream", timeout=20)

    async def testbench(ctx):
        for node in fabric.node:
            ctx.set(node.receive.ready, 1)
        ctx.set(fabric.command.payload.last, 1)
        for _ in range(3):
            ctx.set(fabric.command.valid, 1)
            await ctx.tick().until(fabric.command.ready)
            ctx.set(fabric.command.valid, 0)
            await ctx.tick().repeat(10)
            await send(ctx, fabric, 0, 1, 2)
            await ctx.tick().repeat(60)
            assert ctx.get(fabric.stalled) == 0
        assert ctx.get(fabric.status.valid) == 1
        for _ in range(10):
            assert (await ticks(ctx, fabric, 1))[0] == 0

    simulated(fabric, testbench)


def test_without_a_timeout_there_is_no_watch():
    program = tf.compile(tf.plan("2", "allgather"), flits=1)
    assert "stalled" not in tf.Fabric(program, width=8, top="stream").netlist.outputs
    with pytest.raises(tf.InputError, match="Top must be stream for a timeout of nodes, not host"):
        tf.Fabric(program, width=8, timeout=5)


def test_a_register_names_it():
    bus = interface(watched(bus="wishbone"))["bus"]
    assert bus["registers"]["stalled"]["fields"]["node"]["width"] == 2
