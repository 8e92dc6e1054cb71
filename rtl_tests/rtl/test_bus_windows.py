"""AXI4 bursts in Amaranth's simulator: random, at full rate, and while runs begin."""

import random

import pytest
from helpers import simulated

import torusfabric as tf
from torusfabric.adapters.bus import front as attach
from torusfabric.adapters.bus import windows
from torusfabric.adapters.bus.windows import Windows

FIXED, INCR, WRAP = range(3)


def windows_of(width=16, nodes="3", flits=4, make=Windows, **latencies):
    """The windows of a fabric without the fabric behind them."""
    program = tf.compile(tf.plan(nodes, "alltoall"), max_flits=flits)
    fabric = tf.Fabric(program, width=width, bus="axi4")
    latencies = {"read_latency": 9, "write_latency": 5} | latencies
    return fabric.register_map, make(fabric.register_map, width=width, **latencies)


def beats_of(address, count, size, kind):
    """The address of each beat of a burst by the rules of AXI4."""
    found, whole = [], count << size
    for k in range(count):
        at = address if k == 0 or kind == FIXED else (address >> size << size) + (k << size)
        if kind == WRAP:
            low = address // whole * whole
            at = low + (at - low) % whole
        found.append(at)
    return found


class Bench:
    """A bus master, and a host port that answers after its latency."""

    def __init__(self, ctx, dut, register_map, seed, pace=0.3):
        self.ctx, self.dut, self.map = ctx, dut, register_map
        self.random, self.pace = random.Random(seed), pace
        self.written, self.line, self.time = {}, [0] * 9, 0

    def word(self, node, address):
        """The word that the host port returns for an address of a node."""
        return (node * 977 + address * 131 + 7) % (1 << len(self.dut.host_rdata))

    async def tick(self):
        """Advance one clock edge and let the host port answer."""
        dut, get = self.dut, self.ctx.get
        node, address = get(dut.host_node), get(dut.host_addr)
        if get(dut.host_we) and not (get(dut.start) or get(dut.busy)):
            self.written[node, address] = get(dut.host_wdata)
        self.line = [self.word(node, address), *self.line[:-1]]
        await self.ctx.tick()
        self.ctx.set(dut.host_rdata, self.line[-1])
        self.time += 1

    def port(self, name):
        return getattr(self.dut, f"s_axi_{name}")

    def rests(self):
        return self.random.random() < self.pace

    async def offer(self, channel, **values):
        """Hold values on a channel until the windows accept them."""
        while self.rests():
            await self.tick()
        for name, value in values.items():
            self.ctx.set(self.port(channel + name), value)
        self.ctx.set(self.port(f"{channel}valid"), 1)
        hangs = self.time + 100
        while not self.ctx.get(self.port(f"{channel}ready")):
            await self.tick()
            assert self.time < hangs, f"{channel} is not taken"
        await self.tick()
        self.ctx.set(self.port(f"{channel}valid"), 0)

    async def taken(self, channel, *names):
        """Take an answer, checked to be stable until then."""
        held, hangs = None, self.time + 100
        while True:
            rests = self.rests()
            self.ctx.set(self.port(f"{channel}ready"), not rests)
            if self.ctx.get(self.port(f"{channel}valid")):
                values = [self.ctx.get(self.port(channel + name)) for name in names]
                assert held in (None, values), "an answer changes while it waits"
                held = values
                if not rests:
                    await self.tick()
                    self.ctx.set(self.port(f"{channel}ready"), 0)
                    return held
            else:
                assert held is None, "an answer goes while it waits"
            assert self.time < hangs, f"no answer by {channel}"
            await self.tick()

    async def write(self, address, data, size, kind=INCR):
        """Write a burst of bytes, given by their addresses; return its response."""
        number = self.random.getrandbits(8)
        await self.offer("aw", addr=address, len=len(data) - 1, size=size, burst=kind, id=number)
        for k, (at, lanes) in enumerate(data):
            wide = self.map.flit_bytes
            word = sum(byte << 8 * (where % wide) for where, byte in lanes.items())
            strobes = sum(1 << where % wide for where in lanes)
            assert all(where // wide == at // wide for where in lanes)
            await self.offer("w", data=word, strb=strobes, last=k == len(data) - 1)
        resp, answered = await self.taken("b", "resp", "id")
        assert answered == number
        return resp

    async def read(self, address, count, size, kind=INCR):
        """Read a burst; return its flits and responses."""
        number = self.random.getrandbits(8)
        await self.offer("ar", addr=address, len=count - 1, size=size, burst=kind, id=number)
        found = []
        for k in range(count):
            data, resp, last, answered = await self.taken("r", "data", "resp", "last", "id")
            assert (last, answered) == (k == count - 1, number)
            found.append((data, resp))
        return found


def simulate(register_map, dut, play, *, seed=1, pace=0.3):
    """Run a coroutine with a bench; return its result."""
    results = []

    async def testbench(ctx):
        results.append(await play(Bench(ctx, dut, register_map, seed, pace)))

    simulated(dut, testbench)
    return results[0]


def lanes_of(at, size, generator):
    """Choose the bytes that a beat writes: all that it may, some of them, or none."""
    stop, part = (at >> size << size) + (1 << size), generator.choice([1, 1, 1, 0.5, 0])
    return {k: generator.getrandbits(8) for k in range(at, stop) if generator.random() < part}


async def random_bursts(bench, count=25):
    """Play bursts of all kinds against a model of bytes."""
    sent, received = bench.map.windows
    wide, generator = bench.map.flit_bytes, bench.random
    full, used = wide.bit_length() - 1, -(-len(bench.dut.host_wdata) // 8)
    mask = (1 << len(bench.dut.host_wdata)) - 1
    whole, known, at_now = {}, {}, None
    flit_of = lambda window, at: divmod((at - window.offset) // wide, window.stride // wide)
    for _ in range(count):
        window, size = generator.choice([sent, received]), generator.randint(0, full)
        size = generator.choice([size, full])
        kind = generator.choice([INCR, INCR, FIXED, WRAP])
        length = generator.choice([2, 4, 8]) if kind == WRAP else generator.randint(1, 12)
        address = window.offset + generator.randrange(window.nodes * window.stride)
        address = address >> size << size if kind == WRAP or generator.random() < 0.6 else address
        beats = beats_of(address, length, size, kind)
        if address // 4096 != (address + (length << size)) // 4096:
            continue
        inside = lambda at, window=window: (
            window.offset <= at and flit_of(window, at)[0] < window.nodes
            and flit_of(window, at)[1] < window.flits
        )  # fmt: skip
        if window is received:
            found = await bench.read(address, length, size, kind)
            for at, (data, resp) in zip(beats, found, strict=True):
                assert (resp == 0) == inside(at), hex(at)
                if resp == 0:
                    node, flit = flit_of(window, at)
                    half = 1 << len(bench.dut.host_addr) - 1
                    assert data == bench.word(node, half + flit)
            continue
        data = [(at, lanes_of(at, size, generator)) for at in beats]
        wrong = own = False
        for at, lanes in data:
            if not inside(at):
                wrong |= bool(lanes)
                continue
            flit, bytes_ = at // wide, {k % wide: byte for k, byte in lanes.items()}
            if not (bytes_ := {k: byte for k, byte in bytes_.items() if k < used}):
                continue
            if flit != at_now:
                wrong |= bool(known) and own
                known, at_now = {}, flit
            known |= bytes_
            own = True
            if all(k in known for k in range(used)):
                word = sum(known[k] << 8 * k for k in range(used)) & mask
                whole[flit_of(window, at)] = word
                known = {}
        resp = await bench.write(address, data, size, kind)
        assert (resp == 2) == wrong, (hex(address), length, size, kind)
        assert bench.written == whole


@pytest.mark.parametrize("width", [16, 32, 40, 128])
def test_bursts_of_all_kinds(width):
    simulate(*windows_of(width), random_bursts)


@pytest.mark.long
@pytest.mark.parametrize("width", [1, 8, 24, 32, 64, 100, 512])
@pytest.mark.parametrize("seed", range(4))
def test_many_bursts(width, seed):
    simulate(*windows_of(width, "2x3", 9), lambda bench: random_bursts(bench, 200), seed=seed)


async def full_rate(bench):
    """Play three write and three read bursts without gaps; return the cycles of their beats."""
    sent, received = bench.map.windows
    wide, ctx, taken = bench.map.flit_bytes, bench.ctx, []
    size = wide.bit_length() - 1
    for channel, answer, window in (("aw", "b", sent), ("ar", "r", received)):
        asked = bench.time
        for name, value in (("len", 15), ("size", size), ("burst", INCR), ("valid", 1)):
            ctx.set(bench.port(channel + name), value)
        ctx.set(bench.port(channel + "addr"), window.offset)
        for name in ("bready", "rready", "wvalid"):
            ctx.set(bench.port(name), 1)
        ctx.set(bench.port("wstrb"), (1 << wide) - 1)
        bursts, times, answers = 0, [], []
        while len(answers) < (48 if answer == "r" else 3):
            bursts += ctx.get(bench.port(channel + "ready"))
            if ctx.get(bench.port("wready")):
                times.append(bench.time)
            if ctx.get(bench.port(answer + "valid")):
                answers.append(bench.time)
            await bench.tick()
            ctx.set(bench.port(channel + "valid"), bursts < 3)
            assert bench.time < 500
        taken.append((asked, times, answers))
    return taken


def test_a_beat_passes_in_every_cycle():
    """One beat passes in every cycle, within bursts and between them; a write is answered once its
    words are in memory.
    """
    register_map, dut = windows_of(32, "3", 16)
    writes, reads = simulate(register_map, dut, full_rate, pace=0)
    asked, written, answers = writes
    assert written == [*range(asked + 2, asked + 50)]
    assert [answer - written[15 + 16 * k] for k, answer in enumerate(answers)] == [5 + 2] * 3
    asked, _, read = reads
    assert read == [*range(asked + 9 + 5, asked + 9 + 53)]


async def answers_late(bench):
    """Play bursts of a master that takes answers after its last request; count the bursts."""
    sent, received = bench.map.windows
    size, full = bench.map.flit_bytes.bit_length() - 1, bench.map.flit_bytes
    bench.ctx.set(bench.dut.s_axi_wvalid, 1)
    bench.ctx.set(bench.dut.s_axi_wstrb, (1 << full) - 1)
    taken = []
    for channel, length, window in (("aw", 0, sent), ("ar", 40, received)):
        for name, value in (("addr", window.offset), ("len", length), ("size", size),
                            ("burst", INCR), ("id", 7), ("valid", 1)):  # fmt: skip
            bench.ctx.set(bench.port(channel + name), value)
        bursts = 0
        for _ in range(120):
            bursts += bench.ctx.get(bench.port(f"{channel}ready"))
            await bench.tick()
        bench.ctx.set(bench.port(f"{channel}valid"), 0)
        taken.append(bursts)
    writes, reads = taken
    answers = [await bench.taken("b", "resp", "id") for _ in range(writes)]
    assert answers == [[0, 7]] * writes
    half = 1 << len(bench.dut.host_addr) - 1
    for beat in range(41 * reads):
        data, last = await bench.taken("r", "data", "last")
        flit = beat % 41
        assert (data, last) == (bench.word(0, half + flit), flit == 40)
    return writes, reads


def test_answers_wait_for_a_master_that_takes_none():
    """Bursts wait when the answer queue is full, and no answer is lost."""
    writes, reads = simulate(*windows_of(16, "3", 64), answers_late, pace=0.3)
    assert writes <= windows.WRITE_ANSWERS + 2
    assert reads == 2


async def while_busy(bench):
    """Write and read while a run is in progress; return the responses and the written words."""
    sent, received = bench.map.windows
    bench.ctx.set(bench.dut.busy, 1)
    full = bench.map.flit_bytes
    data = [(sent.offset, dict.fromkeys(range(sent.offset, sent.offset + full), 1))]
    return [
        await bench.write(sent.offset, data, full.bit_length() - 1),
        (await bench.read(received.offset, 1, 0))[0][1],
        bench.written,
    ]


def test_windows_are_closed_during_a_run():
    assert simulate(*windows_of(), while_busy) == [2, 2, {}]


async def refused_first(bench):
    """Return the responses to whole flits that each follow a refused or partial write."""
    (sent, received), wide = bench.map.windows, bench.map.flit_bytes
    size, found = wide.bit_length() - 1, []
    beyond = sent.offset + sent.flits * wide
    for before in (0, received.offset, beyond, sent.offset + sent.nodes * sent.stride, sent.offset):
        await bench.write(before, [(before, {before: 1})], size)
        at = sent.offset + wide
        data = [(at, dict.fromkeys(range(at, at + wide), len(found) + 1))]
        found.append((await bench.write(at, data, size), bench.written.pop((0, 1)) & 255))
    return found


@pytest.mark.parametrize("width", [16, 32, 100])
def test_the_response_to_a_write_does_not_depend_on_the_one_before(width):
    """A stray byte outside the window or a partial flit does not change the next response."""
    assert simulate(*windows_of(width), refused_first) == [(0, k) for k in range(1, 6)]


async def starts_at_random(bench, count=200):
    """Write flits while runs start; each response must say whether the flits were written."""
    sent, wide, generator = bench.map.windows[0], bench.map.flit_bytes, bench.random
    tick, said, left = bench.tick, set(), 0

    async def run_and_tick():
        nonlocal left
        start = not left and generator.random() < 0.2
        bench.ctx.set(bench.dut.start, start)
        bench.ctx.set(bench.dut.busy, left > 0)
        left = generator.randint(1, 8) if start else max(left - 1, 0)
        await tick()

    bench.tick = run_and_tick
    for number in range(count):
        length, where = generator.randint(1, 3), generator.randrange(sent.flits - 3)
        bench.written.clear()
        data = [(sent.offset + (where + k) * wide, number + k + 1) for k in range(length)]
        beats = [(at, dict.fromkeys(range(at, at + wide), word & 127)) for at, word in data]
        resp = await bench.write(beats[0][0], beats, wide.bit_length() - 1)
        assert (resp == 0) == (len(bench.written) == length)
        said.add(resp)
    return said


def test_a_response_says_whether_a_flit_was_written_while_a_run_began():
    assert simulate(*windows_of(8, flits=16), starts_at_random, pace=0.2) == {0, 2}


async def begins_meanwhile(bench):
    """Start a run while a read is in progress; return its response."""
    (_, received), size = bench.map.windows, bench.map.flit_bytes.bit_length() - 1
    await bench.offer("ar", addr=received.offset, len=0, size=size, burst=INCR, id=0)
    for _ in range(4):
        await bench.tick()
    bench.ctx.set(bench.dut.busy, 1)
    return await bench.taken("r", "resp")


def test_a_run_that_begins_fails_the_words_that_are_on_their_way():
    assert simulate(*windows_of(), begins_meanwhile, pace=0) == [2]


async def both_ways(bench):
    """Write and read at the same time; return the cycles of the beats of each."""
    sent, received = bench.map.windows
    full = bench.map.flit_bytes
    for channel, window in (("aw", sent), ("ar", received)):
        for name, value in (("addr", window.offset), ("len", 255), ("burst", INCR), ("valid", 1),
                            ("size", full.bit_length() - 1)):  # fmt: skip
            bench.ctx.set(bench.port(channel + name), value)
    for name, value in (("wstrb", (1 << full) - 1), ("wvalid", 1), ("rready", 1)):
        bench.ctx.set(bench.port(name), value)
    written, read = [], []
    for cycle in range(100):
        written += [cycle] * bench.ctx.get(bench.dut.s_axi_wready)
        read += [cycle] * bench.ctx.get(bench.dut.s_axi_rvalid)
        await bench.tick()
    return written, read


def test_beats_of_both_ways_take_turns():
    written, read = simulate(*windows_of(16, "3", 64), both_ways, pace=0)
    assert set(map(int.__sub__, written[2:], written[1:])) == {2}
    assert set(map(int.__sub__, read[2:], read[1:])) == {2}


def test_a_flit_is_no_wider_than_a_beat():
    program = tf.compile(tf.plan("2", "allgather"))
    with pytest.raises(tf.InputError, match="at most 512 bits, not 520"):
        tf.Fabric(program, width=520, bus="axi4")
    assert attach.MOST_BEAT_BITS == 512
    assert windows.ID_BITS == 8
