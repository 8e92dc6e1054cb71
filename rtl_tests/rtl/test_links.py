"""Links of several cycles in hardware: their modules, and fabrics with them."""

import pytest
from helpers import simulated

from torusfabric.rtl.links import MOST_REGISTERS, Link


@pytest.mark.parametrize("cycles", [2, 3, MOST_REGISTERS + 1, MOST_REGISTERS + 2, 9, 64])
def test_a_word_comes_out_as_late_as_it_should(cycles):
    link, shown = Link(cycles, 8), []
    assert bool(link.memories()) == (cycles - 1 > MOST_REGISTERS)

    async def bench(context):
        for word in range(1, 150):
            context.set(link.sent, word)
            await context.tick()
            shown.append(context.get(link.arrived))

    simulated(link, bench)
    # After the edge that takes word w there is what was taken so many edges before.
    assert shown[cycles - 2 :] == list(range(1, 150 - (cycles - 2)))
