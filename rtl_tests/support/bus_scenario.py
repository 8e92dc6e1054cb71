"""A bus scenario: drives a fabric behind a bus by its manifest alone, and checks all answers.

The simulator gives a `bus`, an object with four coroutines: `read(address)` returns a word, or None
for an error response; `write(address, word, strobes)` returns True without an error response;
`wait(cycles)` waits; `irq()` returns the interrupt. Addresses count bytes.
"""

import random

__all__ = ["BusScenario", "allgathered"]

ALL = 0xF

#: Strobes of a part of a word: one byte, one half, all bytes but one.
SOME = (0x1, 0xC, 0x7)

#: Most words that are read after one run; others are read after other runs.
READS = 40

#: Least cycles of a run in which two accesses have time.
LONG = 45

#: Numbers of errors.
NO_LENGTH, STILL_BUSY = 3, 5


def allgathered(sent, length, stride):
    """Return the words that each node receives in an all-gather, by the number of the flit."""
    return {
        origin * stride + flit: words[flit]
        for origin, words in enumerate(sent)
        for flit in range(length)
    }


class BusScenario:
    """A sequence of checks of one fabric.

    Parameters
    ----------
    bus : object
        Bus with the four coroutines.
    manifest : dict
        Manifest of the fabric.
    seed : int
        Seed of random words, orders and pauses.
    """

    def __init__(self, bus, manifest, seed=1):
        self.bus, self.manifest, self.random = bus, manifest, random.Random(seed)
        facts = manifest["bus"]
        self.registers, self.size = facts["registers"], facts["size"]
        self.send, self.receive = (facts["windows"][name] for name in ("send", "receive"))
        self.parts = -(-manifest["width"] // facts["data_width"])
        self.nodes = manifest["nodes"]

    async def run(self):
        """Run all checks."""
        await self.check_registers()
        await self.check_refused()
        for length in self.lengths():
            await self.check_run(length)
        await self.check_refused()
        if "length" in self.registers:
            await self.check_wrong_lengths()

    def lengths(self):
        """Return the lengths to run: the longest, the shortest, and a random one."""
        if "length" not in self.registers:
            return [self.manifest["flits"]] * 2
        most = self.manifest["max_flits"]
        return [most, 1, self.random.randint(1, most)]

    # ---- accesses

    async def get(self, name, field=None):
        """Read a register, or a field of it."""
        register = self.registers[name]
        word = await self.bus.read(register["offset"])
        assert word is not None, f"{name} cannot be read"
        bits = register["fields"].get(field or "value") or {"low": 0, "width": 32}
        return word >> bits["low"] & (1 << bits["width"]) - 1

    async def set(self, name, word):
        """Write a register; return True if the write is accepted."""
        return await self.bus.write(self.registers[name]["offset"], word, ALL)

    def address(self, window, node, flit, part=0):
        """Return the address of one bus word of a flit."""
        return window["offset"] + node * window["stride"] + flit * window["flit_bytes"] + 4 * part

    async def pause(self):
        """Wait for a random number of cycles, often none."""
        await self.bus.wait(self.random.choice((0, 0, 0, 1, 2, 7)))

    async def write_flit(self, node, flit, word):
        """Write a flit of a node, the low bits first."""
        for part in range(self.parts):
            address = self.address(self.send, node, flit, part)
            assert await self.bus.write(address, word >> 32 * part & 0xFFFFFFFF, ALL), hex(address)
            await self.pause()

    async def read_flit(self, node, flit):
        """Read a flit of a node, its bus words in random order."""
        word, parts = 0, list(range(self.parts))
        self.random.shuffle(parts)
        for part in parts:
            address = self.address(self.receive, node, flit, part)
            got = await self.bus.read(address)
            assert got is not None, f"no word at {address:#x}"
            word |= got << 32 * part
        return word

    # ---- registers, and accesses that must be refused

    async def check_registers(self):
        """Check the reset value of each register, and the bits that hold a written word."""
        for name, register in self.registers.items():
            fields = register["fields"]
            word = await self.bus.read(register["offset"])
            reset = sum(field["reset"] << field["low"] for field in fields.values())
            assert word == reset, f"{name} reads as {word}, not as {reset}"
        for name, register in self.registers.items():
            mask = sum(
                (1 << field["width"]) - 1 << field["low"] for field in register["fields"].values()
            )
            if register["access"] == "read-write":
                before = await self.bus.read(register["offset"])
                for word in (0xFFFFFFFF, self.random.getrandbits(32), before):
                    assert await self.set(name, word)
                    assert not await self.bus.write(register["offset"], ~word & 0xFFFFFFFF, SOME[0])
                    assert await self.bus.read(register["offset"]) == word & mask, name
            elif register["access"] == "read":
                before = await self.bus.read(register["offset"])
                assert not await self.set(name, 0xFFFFFFFF), f"{name} can be written"
                assert await self.bus.read(register["offset"]) == before

    async def check_refused(self):
        """Check that each illegal access is answered with an error and has no effect."""
        send, receive = self.send, self.receive
        known = {register["offset"] for register in self.registers.values()}
        wrong = [offset for offset in range(0, 64, 4) if offset not in known]
        wrong += [send["offset"] - 4] * (send["offset"] > 64) + [self.size - 4, 3 * self.size // 4]
        wrong.append(self.address(send, self.nodes - 1, send["flits"] - 1, self.parts - 1) + 4)
        wrong.append(
            self.address(receive, self.nodes - 1, receive["flits"] - 1, self.parts - 1) + 4
        )
        for address in self.random.sample(wrong, len(wrong)):
            if address == receive["offset"]:
                continue  # nothing lies between the windows
            assert await self.bus.read(address) is None, f"{address:#x} can be read"
            assert not await self.bus.write(address, 1, ALL), f"{address:#x} can be written"
            await self.pause()
        place = self.random.randrange(self.nodes), self.random.randrange(send["flits"])
        assert await self.bus.read(self.address(send, *place)) is None, "send can be read"
        assert not await self.bus.write(self.address(receive, *place), 1, ALL), "receive is written"
        for strobes in SOME:
            assert not await self.bus.write(self.address(send, *place), 1, strobes)
        if self.parts > 1:
            flit = self.address(send, *place)
            assert not await self.bus.write(flit + 4, 1, ALL), "a flit begins with its second word"
            assert await self.bus.write(flit, 1, ALL)
            other = self.address(send, place[0] ^ 1, place[1], 1)
            assert not await self.bus.write(other, 1, ALL), "a flit goes on elsewhere"

    # ---- runs

    async def check_run(self, length):
        """Load words, run, and read all words, with illegal accesses during the run."""
        width, fixed = self.manifest["width"], "length" not in self.registers
        sent = [
            [self.random.getrandbits(width) for _ in range(self.send["flits"])]
            for _ in range(self.nodes)
        ]
        places = [(node, flit) for node in range(self.nodes) for flit in range(len(sent[node]))]
        self.random.shuffle(places)
        for node, flit in places:
            await self.write_flit(node, flit, sent[node][flit])
            if self.random.random() < 0.2:
                # A write without strobes, or a refused write, leaves the word as it is.
                assert await self.bus.write(self.address(self.send, node, flit), 0, 0)
                assert not await self.bus.write(self.address(self.send, node, flit), 0, SOME[0])
        assert fixed or await self.set("length", length)
        assert await self.set("interrupt_pending", 1)
        assert await self.set("interrupt_enable", 1)
        assert await self.bus.irq() == 0, "an interrupt is pending before the run"
        await self.check_abort()
        assert await self.set("start", 1), "no run began"
        if self.predicted(length) >= LONG:
            await self.check_busy()
        await self.check_done(length)
        expected = allgathered(sent, length, self.manifest["stride"])
        places = [(node, flit) for node in range(self.nodes) for flit in expected]
        for node, flit in self.random.sample(places, min(READS, len(places))):
            got = await self.read_flit(node, flit)
            assert got == expected[flit], f"flit {flit} of node {node} is {got}"

    async def check_abort(self):
        """Check that an aborted run is not done, and leaves the words to send as they are."""
        assert await self.set("start", 1), "no run began"
        await self.pause()
        assert await self.set("abort", 1)
        assert await self.get("status", "busy") == await self.get("status", "done") == 0
        assert await self.set("interrupt_pending", 1)

    async def check_busy(self):
        """Check that an access to a window, or a start, has no effect during a run."""
        chosen = self.random.randrange(3)
        if chosen == 0:
            refused = not await self.bus.write(self.address(self.send, 0, 0), 0, ALL)
        elif chosen == 1:
            refused = await self.bus.read(self.address(self.receive, 0, 0)) is None
        else:
            refused = not await self.set("start", 1)
        assert refused, f"access {chosen} of a busy fabric is not refused"
        assert await self.get("status", "busy") == 1, "the run is over too soon"
        if "error" in self.registers["status"]["fields"]:
            assert await self.get("status", "error") == (STILL_BUSY if chosen == 2 else 0)

    async def check_done(self, length):
        """Check that the interrupt rises at the end of the run, and falls when it is cleared."""
        for _ in range(200):
            if await self.bus.irq():
                break
            await self.bus.wait(1)
        assert await self.bus.irq() == 1, "no interrupt"
        assert await self.get("status", "done") == 1
        assert await self.get("status", "busy") == 0
        assert await self.get("cycles") == self.predicted(length)
        assert await self.set("interrupt_enable", 0)
        assert await self.bus.irq() == 0
        assert await self.set("interrupt_pending", 0)
        assert await self.get("interrupt_pending", "done") == 1
        assert await self.set("interrupt_pending", 1)
        assert await self.get("interrupt_pending", "done") == 0
        assert await self.set("interrupt_enable", 1)
        assert await self.bus.irq() == 0

    def predicted(self, length):
        """Return the predicted cycles of a run."""
        (mode,) = self.manifest["modes"]
        flits = -(-length // mode["chunks"])
        *_, piece = (piece for piece in mode["cycles"] if piece["from"] <= flits)
        return piece["constant"] + piece["per_flit"] * flits

    async def check_wrong_lengths(self):
        """Check that a start is refused for an invalid length, and accepted for a valid one."""
        most = self.manifest["max_flits"]
        bits = self.registers["length"]["fields"]["value"]["width"]
        for length in {0, most + 1, (1 << bits) - 1}:
            if 1 <= length & (1 << bits) - 1 <= most:
                continue
            assert await self.set("length", length)
            assert not await self.set("start", 1), f"a run of length {length} began"
            assert await self.get("status", "error") == NO_LENGTH
            assert await self.get("status", "busy") == 0
        assert await self.set("length", most)
        assert await self.set("start", 1)
        assert await self.get("status", "error") == 0
