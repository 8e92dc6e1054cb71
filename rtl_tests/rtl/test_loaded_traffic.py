"""Loaded tables with traffic of one's own: unequal messages, and sums of listed nodes."""

import numpy as np
import pytest
from loaded_port import as_forecast

import torusfabric as tf
from torusfabric.adapters.loading.fitting import loadable_form, loadable_modes
from torusfabric.adapters.loading.image import read_image
from torusfabric.adapters.loading.room import room_for
from torusfabric.collective import random_messages
from torusfabric.proof import prove
from torusfabric.simulation.engines.compiled import CompiledEngine
from torusfabric.toolchain import tools

FLITS, WIDTH = 16, 8

#: Options by which messages have unequal lengths, by collective; on six nodes.
UNEQUAL = {
    "allgather": {"counts": [16, 0, 3, 1, 8, 2]},
    "gather": {"counts": [5, 16, 0, 1, 9, 2], "root": 4},
    "scatter": {"counts": [0, 16, 3, 1, 8, 2], "root": 1},
    "reduce-scatter": {"counts": [16, 1, 0, 5, 8, 2]},
    "alltoall": {"counts": [[(3 * a + 7 * b) % 17 * (a != b) for b in range(6)] for a in range(6)]},
    "pattern": {"traffic": [(0, 5, 16), (0, [1, 2], 3), (4, 0, 1), (3, [0, 5], 9)]},
}


def fabric_with(*names, network="2x3", top="host", beat=1, **room):
    """Return a fabric with loaded tables of some collectives, with room for others."""
    program = tf.compile([tf.plan(network, name) for name in names], max_flits=FLITS)
    how = {"width": WIDTH, "top": top, "beat": beat}
    limits = {"rows": 256, "depth": 16, **room}
    modes = loadable_modes(program, beat=beat)
    tables = room_for(modes, streams=top == "stream", **limits)
    return tf.Fabric(program, tables=tables, **how)


def loaded(fabric, name, **options):
    """Return a fabric with empty tables, into which an image of a collective is loaded."""
    return tf.Fabric.holding(tf.image(fabric, name, **options), empty=True)


def check_runs(fabric, jobs=6):
    """Simulate a fabric; check all words, and the cycles of all runs."""
    report = tf.simulate(fabric, jobs=jobs, engine=CompiledEngine(fabric))
    assert as_forecast(report)
    assert report.words_checked


@pytest.mark.parametrize(("top", "beat"), [("host", 1), ("host", 4), ("stream", 1)])
@pytest.mark.parametrize("kind", UNEQUAL)
def test_unequal_messages(kind, top, beat):
    """Runs of any length bring every word of messages of unequal lengths."""
    if kind == "reduce-scatter" and (top, beat) != ("host", 1):
        kind = "scatter"
    fabric = fabric_with("alltoall", "allreduce", top=top, beat=beat)
    found = loaded(fabric, kind, **UNEQUAL[kind])
    schedule = found.program.schedule
    assert tf.check(schedule)
    assert tf.bound(schedule) <= schedule.round_count
    check_runs(found)


def test_blocks_of_short_messages():
    """With chunks of R flits in turn, a message of n flits has ceil(n / R) blocks, at most C."""
    collective = tf.parse_collective("gather", counts=[0, 1, 4, 5, 16], topology=tf.Torus(5))
    for turn, chunks in ((1, 4), (2, 4), (4, 2)):
        dealt = tf.Collective("gather", root=0, lengths=collective.lengths, turn_flits=turn)
        blocks = dealt.blocks(tf.Torus(5), chunks)
        there = blocks.has_block(np.arange(blocks.n_blocks)).reshape(5, chunks).sum(axis=1)
        assert there.tolist() == [min(-(-n // turn), chunks) for n in (0, 1, 4, 5, 16)]


def test_short_messages_take_fewer_cycles():
    """An all-gather in which one message is long takes fewer cycles than one of long messages."""
    fabric = fabric_with("alltoall")
    short = tf.image(fabric, "allgather", counts=[FLITS, 1, 1, 1, 1, 1], algorithm="any-traffic")
    whole = tf.image(fabric, "allgather", groups=[range(6)])
    assert short.program.cycles() < whole.program.cycles()


def test_files(tmp_path):
    """Images keep the lengths of messages, and so do schedule files."""
    fabric = fabric_with("alltoall")
    image = tf.image(fabric, "allgather", **UNEQUAL["allgather"])
    image.save(tmp_path / "a.bin")
    assert read_image(tmp_path / "a.bin", fabric.room, WIDTH) == image
    schedule = image.program.schedule
    schedule.save(tmp_path / "a.json")
    again = tf.load(tmp_path / "a.json")
    assert again.collective == schedule.collective
    assert tf.image(fabric, again) == image


def test_repair():
    """The image around a broken link has the messages that the fabric was built with."""
    fabric = fabric_with("allgather", rows=64)
    for kind in ("alltoall", "pattern"):
        built = tf.Fabric.holding(tf.image(fabric, kind, **UNEQUAL[kind]))
        found = tf.repair(built, broken_links=["0:+0"])
        assert found.report.passed
        old, new = (each.program.schedule for each in (built.image, found.image))
        assert old.collective == new.collective


def test_refused_plans():
    """Messages that are too long, and plans for fixed tables, are refused."""
    fabric = fabric_with("alltoall")
    with pytest.raises(tf.InputError, match=r"at most 16 flits for these tables, not 17"):
        tf.image(fabric, "allgather", counts=[17, 1, 1, 1, 1, 1])
    with pytest.raises(tf.InputError, match="is for fixed tables; give the collective"):
        tf.image(fabric, tf.plan("2x3", "allgather", counts=[8, 1, 1, 1, 1, 1]))


@pytest.mark.parametrize(("top", "beat"), [("host", 1), ("host", 4), ("stream", 2)])
@pytest.mark.parametrize("groups", [[[0, 1, 5]], [[4, 0, 2], [1, 3]]], ids=["one", "two"])
@pytest.mark.parametrize("kind", ["reduce", "allreduce", "reduce-scatter"])
def test_sums_of_listed_nodes(kind, groups, top, beat, tmp_path):
    """Nodes add the words of listed groups as they arrive."""
    fabric = fabric_with("alltoall", "allreduce", top=top, beat=beat)
    root = {"root": 1} if kind == "reduce" else {}
    found = loaded(fabric, kind, groups=groups, **root)
    assert tf.check(found.program.schedule)
    check_runs(found)
    image = found.tables.image
    image.save(tmp_path / "a.bin")
    assert read_image(tmp_path / "a.bin", fabric.room, WIDTH) == image


@pytest.mark.parametrize("network", ["3x3!1=relay,5=relay", "mesh:2x3", "2x2x2"])
@pytest.mark.parametrize("latency", ["1", "3", "2,0:+0=4,4:+1=1"])
def test_words_that_arrive_are_added(network, latency):
    """A program delivers the words of its collective; a node adds one word to a sum in a round."""
    if latency != "1":
        network = network.partition("!")[0]
    groups = [[0, 3, 4]] if network.startswith("3x3") else [[5, 3, 0, 2]]
    for kind in ("allreduce", "reduce-scatter"):
        plan = tf.plan(network, kind, groups=groups, link_latency=latency, chunks=7)
        form = loadable_form(plan, FLITS, (tf.Operator.parse("add"),))
        topology, program = plan.topology, form.program
        for length in (1, 6, FLITS):
            words = random_messages(program.layout, length, width=WIDTH, seed=length)
            owed, receives = program.delivered(words, length=length, width=WIDTH)
            got = program.execute(words, length=length, width=WIDTH)
            assert (got == owed)[receives].all()
        assert form.longest_delay == topology.longest_link
        for transfers in program.schedule.rounds():
            places = [*zip(transfers.walk(topology)[:, 1], transfers.payload.wanted, strict=True)]
            assert len(places) == len({*places})


@pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("allgather", {"counts": [2, 0, 1]}),
        ("allreduce", {"groups": [[0, 2]]}),
    ],
)
def test_proof(kind, options):
    """Unequal messages, and sums of listed nodes, are proved for all data."""
    program = tf.compile([tf.plan("3", "allreduce")], max_flits=2)
    room = room_for(loadable_modes(program), rows=16, depth=4)
    fabric = tf.Fabric(program, width=1, tables=room)
    assert prove(tf.Fabric.holding(tf.image(fabric, kind, **options))).proved


def test_commands(tmp_path, monkeypatch, capsys):
    """The commands build, load, simulate and repair fabrics of unequal messages."""
    from torusfabric.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("0,8,8,8\n1,0,1,1\n1,1,0,1\n1,1,1,0\n")
    how = "--tables ram --rows 64 --inputs all --width 8 --max-flits 8 --counts a.csv --quiet"
    assert main(f"verilog 2x2 alltoall,allreduce {how} -o out".split()) == 0
    fabric = "--fabric out/manifest.json"
    assert main(f"repair {fabric} --broken-link 0:+0 -o r.bin".split()) == 0
    assert "words wrong    0" in capsys.readouterr().out
    assert main(f"image {fabric} 2x2 alltoall --counts a.csv -o a.bin".split()) == 0
    assert main(f"simulate {fabric} --image a.bin".split()) == 0
    assert "words wrong       0" in capsys.readouterr().out
