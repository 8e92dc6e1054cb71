"""The run port of streams: it turns a start into a command, and reports the status of the run."""

from helpers import simulated

from torusfabric.adapters.streams.run_port import CommandPort


def test_a_start_while_a_command_is_under_way_sends_none():
    """A start during a command sends no other command, and changes no word of the current one."""
    port, words = CommandPort({"mode": 2, "length": 4}), []

    async def bench(ctx):
        for cycle in range(40):
            # The choices of the first start are sent; the port accepts a word in every third cycle.
            ctx.set(port.start, cycle % 4 == 1)
            ctx.set(port.mode, 1 + (cycle > 1))
            ctx.set(port.length, 9 - (cycle > 1))
            ctx.set(port.tready, cycle % 3 == 0)
            if cycle % 3 == 0 and ctx.get(port.tvalid):
                words.append((ctx.get(port.tdata), ctx.get(port.tlast)))
            await ctx.tick()
        assert ctx.get(port.busy) == 1

    simulated(port, bench)
    assert words == [(1, 0), (9, 0), (0, 0), (0, 0), (0, 1)]


def test_each_status_says_how_its_run_ended():
    """Each run reports its own error and cycles, also after earlier runs."""
    port = CommandPort({})

    async def bench(ctx):
        ctx.set(port.tready, 1)
        for run in range(1, 6):
            ctx.set(port.start, 1)
            await ctx.tick()
            ctx.set(port.start, 0)
            await ctx.tick().repeat(10)
            assert (ctx.get(port.busy), ctx.get(port.done)) == (1, 0)
            ctx.set(port.status_tvalid, 1)
            for word, last in ((run + 3, 0), (run, 0), (run + 6, 1)):
                ctx.set(port.status_tdata, word)
                ctx.set(port.status_tlast, last)
                await ctx.tick()
            ctx.set(port.status_tvalid, 0)
            assert (ctx.get(port.busy), ctx.get(port.done)) == (0, 1)
            assert (ctx.get(port.error), ctx.get(port.cycles)) == (run, run + 6)

    simulated(port, bench)
