"""Random accesses to the registers and windows of a fabric behind a bus, in simulation."""

import random
from pathlib import Path
from typing import Any, NamedTuple

from amaranth.sim import Simulator
from bus_masters import AxiLiteMaster, WishboneMaster
from bus_scenario import BusScenario

import torusfabric as tf
from torusfabric.verilog import manifest

from .oracle import Fuzzer

__all__ = ["BusFuzzer"]

MASTERS = {"wishbone": WishboneMaster, "axi-lite": AxiLiteMaster}

#: Cycles after which every run of these fabrics has ended.
LONGEST_RUN = 400


class Access(NamedTuple):
    """A write of a word, or a read if the word is None, after `wait` cycles."""

    address: int
    word: int | None
    strobes: int
    wait: int


class Accesses(NamedTuple):
    """Accesses that follow one another after a reset."""

    bus: str
    width: int
    accesses: list[Access]
    seed: int


class BusFuzzer(Fuzzer):
    """Check that each access is answered in time and by the protocol, and that runs stay right."""

    name = "bus"
    weight = 15
    batch = 250

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        program = tf.compile(tf.plan("3", "allgather"), max_flits=3)
        self.fabrics = {
            (bus, width): tf.Fabric(program, width=width, bus=bus)
            for bus in MASTERS
            for width in (8, 40)
        }
        self.facts = {
            key: manifest(fabric, command="", files=[]) for key, fabric in self.fabrics.items()
        }

    def make(self, draw: random.Random) -> Accesses:
        bus, width = draw.choice(list(self.fabrics))
        facts = self.facts[bus, width]["bus"]
        named = [register["offset"] for register in facts["registers"].values()]
        named += [window["offset"] for window in facts["windows"].values()]
        accesses = []
        for _ in range(self.batch):
            address = draw.choice([draw.choice(named), draw.randrange(0, facts["size"], 4)])
            word = draw.choice([0, 1, 2, 3, 2**32 - 1, draw.getrandbits(32)])
            strobes = draw.choice([15, 15, 15, draw.randrange(16)])
            writes = draw.random() < 0.5
            wait = draw.choice([0, 0, 0, 1, 9])
            accesses.append(Access(address, word if writes else None, strobes, wait))
        return Accesses(bus, width, accesses, draw.getrandbits(16))

    def run(self, given: Accesses) -> None:
        fabric, facts = self.fabrics[given.bus, given.width], self.facts[given.bus, given.width]

        async def bench(ctx: Any) -> None:
            master = MASTERS[given.bus](ctx, fabric, random.Random(given.seed))
            for access in given.accesses:
                await master.wait(access.wait)
                if access.word is None:
                    await master.read(access.address)
                else:
                    await master.write(access.address, access.word, access.strobes)
            await master.wait(LONGEST_RUN)
            scenario = BusScenario(master, facts, given.seed)
            await scenario.set("interrupt_enable", 0)
            await scenario.check_run(facts["max_flits"])

        simulator = Simulator(fabric)
        simulator.add_clock(1e-6)
        simulator.add_testbench(bench)
        simulator.run()

    def show(self, given: Accesses) -> str:
        return f"{given.bus}, {given.width} bits, {len(given.accesses)} accesses"
