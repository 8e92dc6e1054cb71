"""Fabrics behind a bus in Amaranth's simulator: random accesses and refusals."""

import random

import pytest
from amaranth.sim import Simulator
from bus_masters import AxiLiteMaster, WishboneMaster
from bus_scenario import BusScenario
from helpers import few, simulated

import torusfabric as tf
from torusfabric.adapters.bus.register_map import REGISTERS as ALL_REGISTERS
from torusfabric.contract.registers import IDENTIFICATION
from torusfabric.verilog import manifest

MASTERS = {"wishbone": WishboneMaster, "axi-lite": AxiLiteMaster}


def fabric_of(bus, topology="4", *, width=8, **lengths):
    """An all-gather behind a bus."""
    program = tf.compile(tf.plan(topology, "allgather"), **(lengths or {"max_flits": 20}))
    return tf.Fabric(program, width=width, bus=bus)


def converse(fabric, seed=1):
    """Drive a fabric with a bus master that knows only its manifest."""
    facts = manifest(fabric, command="", files=[])

    async def bench(ctx):
        master = MASTERS[fabric.bus](ctx, fabric, random.Random(seed))
        await BusScenario(master, facts, seed).run()

    simulated(fabric, bench)


def test_a_fabric_answers_by_its_manifest():
    converse(fabric_of("wishbone"))


@pytest.mark.parametrize(
    ("bus", "width"), few(2, [("axi-lite", 8), ("wishbone", 96), ("axi-lite", 33)])
)
def test_flits_are_as_many_words_as_they_need(bus, width):
    converse(fabric_of(bus, "2", width=width, max_flits=3))


@pytest.mark.long
@pytest.mark.parametrize("bus", MASTERS)
@pytest.mark.parametrize("topology", ["2x2", "2x3", "7", "3x3"])
@pytest.mark.parametrize("width", [1, 32, 64, 100])
@pytest.mark.parametrize("seed", range(3))
def test_fabrics_of_many_sizes(bus, topology, width, seed):
    converse(fabric_of(bus, topology, width=width, max_flits=20), seed)


def test_accesses_wait_for_the_memories_only():
    """An access to a window takes an access to a register and the latency of the host port."""
    fabric = fabric_of("wishbone", "2")
    bus = manifest(fabric, command="", files=[])["bus"]
    sent, received = sorted(each["offset"] for each in bus["windows"].values())[:2]
    taken = []

    async def bench(ctx):
        register = bus["registers"]["length"]["offset"]
        for address, write in ((register, 1), (sent, 1), (received, 0)):
            for port, value in (("cyc", 1), ("stb", 1), ("we", write), ("adr", address // 4),
                                ("sel", 0b1111), ("dat_w", 1)):  # fmt: skip
                ctx.set(getattr(fabric, f"wb_{port}"), value)
            taken.append(1)
            while not (await ctx.tick().sample(fabric.wb_ack))[-1]:
                taken[-1] += 1
            ctx.set(fabric.wb_cyc, 0)
            await ctx.tick()

    simulator = Simulator(fabric)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run_until(1e-3)
    register, written, read = taken
    assert written == register + fabric.write_latency
    assert read == register + fabric.read_latency - 1


def test_an_access_that_is_given_up_answers_no_other():
    """The answer to an abandoned access to a window does not answer the next access."""
    fabric = fabric_of("wishbone", "2")
    bus = manifest(fabric, command="", files=[])["bus"]
    _, received = sorted(each["offset"] for each in bus["windows"].values())[:2]

    async def bench(ctx):
        for held in range(1, fabric.read_latency + 8):
            for port, value in (("cyc", 1), ("stb", 1), ("we", 0), ("adr", received // 4)):
                ctx.set(getattr(fabric, f"wb_{port}"), value)
            for _ in range(held):
                await ctx.tick()
                if ctx.get(fabric.wb_ack):
                    return
            ctx.set(fabric.wb_cyc, 0)
            # An abandoned access that was already checked still runs.
            await ctx.tick().repeat(4)
            assert (await WishboneMaster(ctx, fabric, random.Random(1)).read(0)) == IDENTIFICATION
            await ctx.tick().repeat(40)

    simulated(fabric, bench)


def test_reads_and_writes_take_turns():
    fabric = fabric_of("axi-lite", "2")
    length = fabric.register_map.register("length").offset
    answers = {"b": 0, "r": 0}

    async def bench(ctx):
        for name, value in (("awaddr", length), ("araddr", length), ("wstrb", 0b1111), ("wdata", 1),
                            *((f"{each}valid", 1) for each in ("aw", "w", "ar")),
                            *((f"{each}ready", 1) for each in answers)):  # fmt: skip
            ctx.set(getattr(fabric, f"s_axil_{name}"), value)
        for _ in range(100):
            await ctx.tick()
            for each in answers:
                answers[each] += ctx.get(getattr(fabric, f"s_axil_{each}valid"))

    simulated(fabric, bench)
    assert answers["b"] > 5
    assert abs(answers["b"] - answers["r"]) <= 1


def test_what_a_run_closes_ends_with_an_error():
    """A second start and accesses to the windows end with an error during a run."""
    fabric = fabric_of("wishbone", tf.Torus(2, link_latency=60), flits=2)
    start = fabric.register_map.register("start").offset
    sent, received = (window.offset for window in fabric.register_map.windows)

    async def bench(ctx):
        master = WishboneMaster(ctx, fabric, random.Random(1))
        for _ in range(2):
            assert await master.write(sent, 1, 0b1111)
            assert await master.read(received) is not None
            await master.wait(1)
            assert await master.write(start, 1, 0b1111)
            await master.wait(1)
            assert not await master.write(sent, 1, 0b1111)
            assert await master.read(received) is None
            assert not await master.write(start, 1, 0b1111)
            await master.wait(fabric.predicted_cycles)

    simulated(fabric, bench)


# ---- refusals, and the form of a register map


def test_a_core_has_no_bus():
    program = tf.compile(tf.plan("2x2", "allgather"))
    with pytest.raises(tf.InputError, match="Top must be host or stream for a fabric behind"):
        tf.Fabric(program, top="core", bus="wishbone")
    with pytest.raises(tf.InputError, match="Bus"):
        tf.Fabric(program, bus="vme")


def test_addresses_that_do_not_fit_are_refused():
    program = tf.compile(tf.plan("2", "allgather"), flits=1 << 28)
    with pytest.raises(tf.InputError, match="at most 32 bits, not 34"):
        tf.Fabric(program, bus="axi-lite")


def test_registers_lie_where_they_lie_in_every_fabric():
    short = fabric_of("wishbone", flits=1).register_map
    long = fabric_of("axi-lite").register_map
    names = {register.name for register in long.registers}
    assert names - {register.name for register in short.registers} == {"length", "round"}
    for register in short.registers:
        assert register.offset == long.register(register.name).offset


@pytest.mark.parametrize("names", [("broadcast", "alltoall"), ("alltoall", "broadcast")])
def test_windows_have_room_for_every_mode(names):
    program = tf.compile([tf.plan("3", name) for name in names], max_flits=5)
    sent, received = tf.Fabric(program, bus="wishbone").register_map.windows
    assert (sent.flits, received.flits) == (15, 15)


def test_registers_are_words_and_their_fields_ports():
    """Register 0 identifies the fabric, registers do not overlap, and fields name their ports."""
    offsets = [register.offset for register in ALL_REGISTERS]
    assert offsets[0] == 0
    assert offsets == sorted({offset & ~3 for offset in offsets})
    ports = {field.port for register in ALL_REGISTERS for field in register.fields}
    assert all(port.replace("_", "").isalnum() for port in ports if port)
