"""Start skew of two boards with drifting clocks, against the bounds of the link plan."""

import pytest
from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Module
from amaranth.sim import Simulator

from torusfabric.adapters.boards.hardware import LinkPlan
from torusfabric.adapters.boards.hardware.link_plan import CABLE_CYCLES, START_SKEW_CYCLES
from torusfabric.adapters.boards.hardware.links import ElasticBuffer, Receiver, Transmitter
from torusfabric.topology import Torus
from torusfabric.topology.boards import Boards


def later(plan, faster, cycles):
    """Return the cycles by which a receiving board hears each message later than planned.

    Parameters
    ----------
    faster : float
        Relative excess of the receiver's clock rate over the sender's.
    """
    m, latency = Module(), plan.latencies[0]
    sender, buffer, receiver = (
        Transmitter(plan),
        ElasticBuffer(plan, latency),
        Receiver(plan, latency),
    )
    for domain, part in (("tx", sender), ("rx", buffer), ("rx", receiver)):
        m.submodules += DomainRenamer(domain)(part)
    m.domains += [ClockDomain("tx"), ClockDomain("rx")]
    m.d.comb += [
        buffer.rx_clk.eq(ClockSignal("tx")),
        buffer.rx_word.eq(sender.tx_word),
        buffer.rx_frame.eq(sender.tx_frame),
        buffer.at.eq(receiver.at),
        receiver.head.eq(buffer.head),
        receiver.count.eq(buffer.count),
    ]
    sent, heard = [], []

    async def send(ctx):
        for cycle in range(cycles):
            slot = cycle % plan.message_period
            ctx.set(sender.begins, slot == 0)
            ctx.set(sender.checking, slot >= plan.message_words)
            if slot == 0:
                sent.append(cycle - 1)
            await ctx.tick("tx")

    async def hear(ctx):
        for cycle in range(int(cycles * (1 + faster))):
            if ctx.get(receiver.heard):
                heard.append((cycle - 1) / (1 + faster))
            await ctx.tick("rx")

    simulator = Simulator(m)
    simulator.add_clock(1e-6, phase=0, domain="tx")
    simulator.add_clock(1e-6 / (1 + faster), phase=0, domain="rx")
    simulator.add_testbench(send)
    simulator.add_testbench(hear)
    simulator.run()
    return [
        now + 1 - max(at for at in sent if at <= now - plan.message_delay + 3) - plan.message_delay
        for now in heard
    ]


@pytest.mark.parametrize(("faster", "least", "most"), [(0.002, -0.5, 0.5), (-0.002, 0.0, 1.5)])
def test_boards_start_as_far_apart_as_is_said(faster, least, most):
    """The skew reaches its bounds and stays within them while the clocks pass each other."""
    boards = Boards.parse("2", Torus(2, link_latency=12))
    plan = LinkPlan(boards, 16, {}, longest=100, ppm=100, retries=1)
    found = later(plan, faster, 1200)
    assert least - 0.1 < min(found) < least + 0.1
    assert most - 0.1 < max(found) < most + 0.1
    assert max(-least, most) <= START_SKEW_CYCLES - CABLE_CYCLES
