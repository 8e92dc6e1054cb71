"""Fabrics with loaded tables: other images, links of several latencies, buses, proofs."""

import re
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from bus_masters import AxiLiteMaster, WishboneMaster
from helpers import few, simulated
from loaded_port import (
    BASE,
    FLITS,
    LONG,
    WIDTH,
    HostPort,
    as_forecast,
    fabric_of,
    planned,
    quickest,
    ring_room,
    wanted,
    with_rows,
)
from verilog_bench import have_icarus, lint_icarus

import torusfabric as tf
from torusfabric.adapters.loading.fitting import loadable_form
from torusfabric.adapters.loading.image import Image, read_image
from torusfabric.adapters.loading.layout import TableLayout
from torusfabric.adapters.loading.loadable import list_entries
from torusfabric.adapters.loading.room import room_for
from torusfabric.fabric.images import without_links
from torusfabric.proof import prove
from torusfabric.rtl.netlist import Role
from torusfabric.schedule import Rounds
from torusfabric.simulation.engines.compiled import CompiledEngine
from torusfabric.toolchain import tools

#: The master for the registers of each bus.
MASTERS = {"wishbone": WishboneMaster, "axi4": AxiLiteMaster}


@pytest.fixture
def room():
    """The room of a ring."""
    return ring_room()


def with_ones(fabric):
    """Fill all tables of a fabric with ones, as before any image is loaded."""
    ones = lambda tables, _: [[(1 << width) - 1] * rows for rows, width in tables]
    tables = [name for name, role in fabric.netlist.roles.items() if role is Role.TABLE]
    with_rows(fabric, dict.fromkeys(tables, ones))
    return fabric


def test_images(room, tmp_path):
    """Images of other collectives, roots and broken links run on the same hardware."""
    whole = Image.from_schedules(
        room,
        WIDTH,
        wanted(
            planned("alltoall", room),
            planned("broadcast", room, root=4),
            planned("allreduce", room, broken_links=["1:+0"]),
            planned("allgather", room, broken_links=["1:+0"]),
        ),
    )
    whole.save(tmp_path / "a.bin")
    image = read_image(tmp_path / "a.bin", room, WIDTH)
    assert image.words == whole.words
    assert [fact["collective"] for fact in image.facts] == [
        "alltoall", "broadcast", "allreduce!1:+0", "allgather!1:+0"
    ]  # fmt: skip
    fabric = with_ones(fabric_of(image))
    assert tf.simulate(fabric, jobs=12, engine=CompiledEngine(fabric)).passed


@pytest.mark.parametrize("kind", few(1, ["allgather", "scatter", "alltoall"]))
def test_rounds_take_the_cycles_of_their_image(kind):
    """Collectives around a fault run in rounds, each in the cycles of the image."""
    plan = tf.plan("3x3", "allgather", algorithm="matching")
    room = room_for([loadable_form(plan, 8, ()).program], rows=16)
    around = quickest("3x3", kind, room, flits=8, broken_links=["4:+0"])
    made = Image.from_schedules(room, WIDTH, wanted(around))
    assert isinstance(made.program.schedule, Rounds)
    fabric = tf.Fabric.holding(made)
    report = tf.simulate(fabric, jobs=[tf.Job(length=n) for n in (1, 2, 8)])
    assert report.passed
    assert [job.cycles for job in report.jobs] == [made.program.cycles(n) for n in (1, 2, 8)]


@pytest.mark.parametrize("latency", few(1, ["1,4:+0=3", "0:1,1:2"]))
def test_links_that_differ(latency):
    """Unequal link latencies make rows wait for slow links; runs take the predicted cycles."""
    names = ("reduce", "scatter", "allreduce")
    plans = [quickest("3x3", name, flits=FLITS, link_latency=latency) for name in names]
    fabric = tf.Fabric(tf.compile(plans, max_flits=FLITS), width=WIDTH, tables="ram")
    jobs = [tf.Job(mode=mode, length=n) for n in (1, FLITS) for mode in range(len(names))]
    assert as_forecast(tf.simulate(fabric, engine=CompiledEngine(fabric), jobs=jobs))


@pytest.mark.parametrize("cycles", few(1, [2, 3]))
def test_links_of_several_cycles(cycles):
    """All collectives take their predicted cycles on longer links."""
    plans = [
        quickest("3x3", name, flits=FLITS, link_latency=str(cycles))
        for name in ("alltoall", "reduce-scatter", "allreduce", "broadcast", "gather", "reduce")
    ]
    fabric = tf.Fabric(tf.compile(plans, max_flits=FLITS), width=WIDTH, tables="ram")
    # Some rows wait for arriving words, some carry streaming sums, some pause.
    assert {entry.form.least_row_cycles > 1 for entry in list_entries(fabric.image.modes)} == {
        True,
        False,
    }
    assert {
        entry.form.has_overlapping_rows and entry.form.needs_operators
        for entry in list_entries(fabric.image.modes)
    } == {
        True,
        False,
    }
    jobs = [tf.Job(mode=mode, length=n) for mode in range(len(plans)) for n in (1, FLITS)]
    assert as_forecast(tf.simulate(fabric, engine=CompiledEngine(fabric), jobs=jobs))


def test_parts_of_a_network(tmp_path):
    """The same hardware runs collectives along an axis and without a node."""
    plan = tf.plan("3x3", "allgather", algorithm="matching")
    room = room_for([loadable_form(plan, FLITS, ()).program], rows=32, depth=8)
    plans = [
        quickest(text, name, room, flits=FLITS)
        for text, name in (("3x3", "alltoall@1"), ("3x3!4", "allgather"))
    ]
    Image.from_schedules(room, WIDTH, wanted(*plans)).save(tmp_path / "a.bin")
    image = read_image(tmp_path / "a.bin", room, WIDTH)
    assert [fact["collective"] for fact in image.facts] == ["alltoall@1", "allgather!4"]
    fabric = fabric_of(image)
    assert as_forecast(tf.simulate(fabric, jobs=8, engine=CompiledEngine(fabric)))


def test_repair():
    """A cut link gives wrong words, and the repaired image gives right ones."""
    fabric = tf.Fabric(tf.compile([tf.plan("4", "allgather")], max_flits=2), width=8, tables="ram")
    broken = without_links(fabric, ["0:+0"])
    assert not tf.simulate(broken, engine=CompiledEngine(broken)).passed
    fabric = tf.Fabric.holding(replace(fabric.image, room=fabric.room.with_facts(rows=64, depth=9)))
    found = tf.repair(fabric, broken_links=["0:+0"])
    assert found.report.passed
    assert found.load_cycles == len(found.image.words)


def test_refused_start(room):
    """A start without an image is refused with error 10."""
    fabric = fabric_of(Image.from_schedules(room, WIDTH, wanted(planned("gather", room))), [])
    engine = CompiledEngine(fabric)
    from torusfabric.simulation.engines.edges import EdgeRequest
    from torusfabric.simulation.engines.session import Session

    with Session(engine.model, fabric, vcd=None) as session:
        passed = session.simulate_edges(
            EdgeRequest(3, {"start": [1, 0], "length": [1]}, ["busy", "error"])
        )
        assert passed.shown["busy"].tolist() == [0, 0, 0]
        assert passed.shown["error"][1] == 10


#: The fastest algorithm of each collective on 4x4 that can be loaded.
EIGHT = {
    "broadcast": "spanning-tree", "allgather": "bufferless", "scatter": "farthest-first",
    "gather": "farthest-first", "alltoall": "matching", "reduce": "spanning-tree",
    "reduce-scatter": "hamiltonian", "allreduce": "spanning-tree",
}  # fmt: skip


def test_table_bits():
    """The tables of eight collectives on 4x4 take at most 4,000 bits a node."""
    chosen = [quickest("4x4", name, flits=16, algorithm=by) for name, by in EIGHT.items()]
    forms = [loadable_form(plan, 16, ()) for plan in chosen]
    programs = [form.program for form in forms]
    settings = room_for(programs).settings_of(forms)
    assert [count for _, count in settings.values()] == [26, 4, 6, 36, 18]
    for inputs in (None, programs):
        assert TableLayout(room_for(programs, inputs=inputs), 32).table_bits <= 16 * 4_000
    room = room_for(programs, inputs=programs, streams=True)
    assert TableLayout(room, 32).table_bits <= 16 * 4_000


def test_command(tmp_path, monkeypatch, capsys):
    """The commands make a fabric, an image of another collective and a run, and refuse an image
    that does not fit.
    """
    from torusfabric.cli import main

    monkeypatch.chdir(tmp_path)
    how = "--tables ram --rows 32 --inputs all --width 8 --max-flits 4 -o out --quiet"
    assert main(f"verilog 5 allgather {how}".split()) == 0
    image = "image --fabric out/manifest.json 5"
    assert main(f"{image} alltoall -o a.bin".split()) == 0
    run = "simulate --fabric out/manifest.json --image a.bin --flits 3"
    assert main(run.split()) == 0
    assert main(f"{image} scatter --onto a.bin --root 2 -o c.bin".split()) == 0
    assert "modes 1" in capsys.readouterr().out
    assert main(f"{image} gather --onto c.bin --mode 0 -o d.bin".split()) == 0
    assert main(run.replace("a.bin", "d.bin").split()) == 0
    assert main(f"{image} allreduce -o b.bin".split()) == 1
    assert "This fabric has no operators" in capsys.readouterr().err
    assert not Path("b.bin").exists()


#: A bench that loads a torn image, then a whole one, and runs an all-to-all of a flit on 3 nodes.
BENCH = """
module bench;
  reg clk = 0, rst = 1, start = 0, we = 0, load_we = 0, load_first = 0;
  reg [31:0] load_data, image [0:WORDS-1];
  reg [1:0] node; reg [7:0] word; reg [15:0] address;
  wire [7:0] read; wire busy, done, loaded; wire [31:0] cycles; wire [3:0] error;
  fabric fabric(.clk(clk), .rst(rst), .start(start), .mode(2'd0), .length(1'd1), .host_we(we),
    .host_node(node), .host_addr(address[BITS-1:0]), .host_wdata(word), .host_rdata(read),
    .load_we(load_we), .load_first(load_first), .load_data(load_data), .busy(busy), .done(done),
    .loaded(loaded), .cycles(cycles), .error(error));
  always #5 clk = ~clk;
  integer k, d, wrong = 0;
  task load(input integer count); begin
    for (k = 0; k < count; k = k + 1) begin
      load_we = 1; load_first = k == 0; load_data = image[k]; @(negedge clk);
    end
    load_we = 0; repeat (8) @(negedge clk);
  end endtask
  initial begin
    $readmemh("image.hex", image);
    repeat (20) @(negedge clk);
    rst = 0; @(negedge clk);
    $write("%b ", loaded);
    load(WORDS / 2);
    start = 1; @(negedge clk); start = 0; @(negedge clk);
    $write("%b %0d ", loaded, error);
    load(WORDS);
    for (k = 0; k < 3; k = k + 1) for (d = 0; d < 3; d = d + 1) begin
      we = 1; node = k; address = d; word = 16 * k + d; @(negedge clk);
    end
    we = 0; start = 1; @(negedge clk); start = 0;
    while (!done) @(negedge clk);
    for (k = 0; k < 3; k = k + 1) for (d = 0; d < 3; d = d + 1) begin
      node = k; address = BASE + d; repeat (LATENCY + 1) @(negedge clk);
      wrong = wrong + (read !== 16 * d + k);
    end
    $display("%b %0d %0d %0d", loaded, error, cycles, wrong);
    $finish;
  end
endmodule
"""


@pytest.mark.skipif(not have_icarus(), reason="needs Icarus Verilog")
def test_text(tmp_path):
    """Emitted Verilog starts with its built-in image, refuses a torn one, and runs a loaded one."""
    plans = [quickest("3", name, flits=1) for name in ("allgather", "alltoall")]
    fabric = tf.Fabric(tf.compile(plans[0], max_flits=1), width=8, tables="ram")
    image = tf.image(fabric, plans[1])
    (tmp_path / "image.hex").write_text("".join(f"{word:08x}\n" for word in image.words))
    known = {
        "WORDS": len(image.words),
        "BITS": fabric.netlist.inputs["host_addr"],
        "BASE": fabric.layout.recv_base,
        "LATENCY": fabric.read_latency,
    }
    text = re.sub("|".join(known), lambda found: str(known[found.group()]), BENCH)
    (tmp_path / "bench.v").write_text(text)
    tf.emit(fabric).write(tmp_path / "out")
    assert not lint_icarus(tmp_path / "out")
    sources = ["bench.v", "out/fabric.v"]
    subprocess.run(["iverilog", "-g2005", "-o", "a.vvp", *sources], cwd=tmp_path, check=True)
    shown = subprocess.run(["vvp", "a.vvp"], cwd=tmp_path, check=True, capture_output=True)
    assert shown.stdout.split() == f"1 0 10 1 0 {image.program.cycles(1)} 0".encode().split()


@pytest.mark.parametrize(("bus", "master"), MASTERS.items())
def test_bus(bus, master):
    """An image is loaded through a bus window; starts fail after a torn image."""
    plans = [quickest("3", name, flits=1) for name in ("allgather", "alltoall")]
    fabric = tf.Fabric(tf.compile(plans[0], max_flits=1), width=8, tables="ram", bus=bus)
    image, facts = tf.image(fabric, plans[1]), fabric.register_map
    at = {register.name: register.offset for register in facts.registers}
    load, found = facts.window("load").offset, []

    async def bench(ctx):
        port = master(ctx, fabric, SimpleNamespace(random=lambda: 1, choice=min, getrandbits=int))

        async def words(count):
            for number, word in enumerate(image.words[:count]):
                assert await port.write(load + 4 * number, word, 15)

        async def status():
            word = await port.read(at["status"])
            return word & 15, word >> 4, await port.read(at["modes"])

        found.append(await status())
        await words(20)
        found.append(await port.write(at["start"], 1, 15))
        found.append(await status())
        await words(len(image.words))
        found.append(await status())
        found.append(await port.write(at["start"], 1, 15))
        await port.wait(40)
        # The window ends with the longest image, and cannot be read.
        assert not await port.write(load + 4 * facts.window("load").flits, 0, 15)
        assert await port.read(load) is None
        found.extend([await status(), await port.read(at["loaded_program"])])
        found.append(await port.read(at["cycles"]))

    simulated(fabric, bench)
    program = image.program
    known = [(8, 0, 1), False, (0, 10, 0), (8, 10, 1), True, (10, 0, 1)]
    assert found == [*known, int(program.digest[:8], 16), program.cycles(1)]


def test_modes_are_filled_while_another_runs():
    """A mode is filled while another runs. Images for a running mode, and images made for other
    contents, are refused.
    """
    plan = partial(quickest, "3", flits=LONG)
    program = tf.compile([plan("allgather"), plan("scatter")], max_flits=LONG)
    fabric = tf.Fabric(program, width=WIDTH, tables=room_for(program.parts, rows=8, depth=4))
    later = fabric.image.with_modes(wanted(plan("alltoall")), 1)
    wrong = fabric.image.with_modes(wanted(plan("gather")))
    next_one = later.with_modes(wanted(plan("broadcast"), plan("gather")), 1)
    alone = Image.from_schedules(fabric.room, WIDTH, wanted(plan("allgather")))
    digests = [int(image.program.digest[:8], 16) for image in (fabric.image, later, next_one)]
    cycles = [later.program.cycles(LONG, mode=mode) for mode in range(2)]
    gathered, exchanged = [0, 16, 32] * 3, [16 * k + d for d in range(3) for k in range(3)]

    async def bench(ctx):
        port = HostPort(ctx, fabric)
        for node, part, flit in np.ndindex(3, 3, LONG):
            word = 16 * node + part
            await port.set(host_we=1, host_node=node, host_addr=part * LONG + flit, host_wdata=word)
        await port.set(host_we=0)
        assert await port.start(0) == 1
        assert await port.load(later.words) == (3, digests[1])
        assert await port.end() == (cycles[0], gathered)
        assert await port.load(wrong.words) == (3, digests[1])
        assert await port.start(1) == 1
        assert await port.load(next_one.words[:8]) == (3, digests[1])
        assert await port.load(fabric.image.words[:8]) == (3, digests[1])
        assert await port.end() == (cycles[1], exchanged)
        # A run that starts while its mode is being replaced ends correctly, and is its last.
        assert await port.load(next_one.words, start=BASE) == (1, 0)
        assert await port.end() == (cycles[1], exchanged)
        assert await port.start(1) == 10
        assert await port.start(0) == 1
        assert await port.end() == (cycles[0], gathered)
        assert await port.load(next_one.words) == (1, 0)
        assert await port.load(fabric.image.words) == (3, digests[0])
        # A run also ends correctly if a new image does not fill its mode.
        assert await port.start(1) == 1
        ran, received = await port.end()
        assert await port.load(alone.words, start=BASE) == (0, 0)
        # In a scatter, each node receives one part.
        cycles_again, received_again = await port.end()
        assert (cycles_again, received_again[::3]) == (ran, received[::3])
        # An image followed at once by another is not loaded: its check is still pending.
        await port.load(fabric.image.words, follow=alone.words[:4])
        assert ctx.get(fabric.loaded) == 0

    simulated(fabric, bench)


@pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")
def test_proof_of_what_adds_nothing():
    """Words that pass unused operators are proved to stay unchanged."""
    fabric = tf.Fabric(tf.compile(tf.plan("2", "allreduce"), max_flits=1), width=1, tables="ram")
    image = tf.image(fabric, "allgather")
    assert not image.program.operators
    assert prove(tf.Fabric.holding(image)).proved


@pytest.mark.long
@pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")
def test_proof():
    """Loaded tables are proved for all data; a wrong row is refuted."""
    plan = quickest("3", "alltoall", flits=1)
    fabric = tf.Fabric(tf.compile(plan, max_flits=1), width=1, tables="ram")
    assert prove(fabric).proved
    wrong = lambda _, rows: [*rows[:-1], [rows[-1][0] ^ 1, *rows[-1][1:]]]
    with_rows(fabric, {"table_node_1": wrong})
    assert not prove(fabric).proved


@pytest.mark.parametrize("algorithm", ["spanning-tree", "matching"])
def test_operators_with_registers_are_refused(algorithm):
    """An operator of several cycles is refused by its name, before any row is rewritten."""
    schedule = tf.plan("3x3", "allreduce", algorithm=algorithm)
    program = tf.compile(schedule, max_flits=4, operators=["add:fp16"])
    with pytest.raises(tf.InputError, match="add:fp16 has 5; use fixed tables"):
        tf.Fabric(program, width=16, tables="ram")
