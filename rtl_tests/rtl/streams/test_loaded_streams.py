"""Streams of fabrics with loaded tables: other collectives follow without a reset."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from bus_masters import AxiLiteMaster
from helpers import few, simulated
from loaded_port import as_forecast, quickest, wanted

import torusfabric as tf
from torusfabric.adapters.loading import contents
from torusfabric.adapters.loading.image import Image
from torusfabric.adapters.loading.loadable import LoadableMode
from torusfabric.adapters.loading.room import room_for
from torusfabric.adapters.streams.drive.beats import STATUS_SINK, Beat
from torusfabric.adapters.streams.drive.comparison import StreamComparison
from torusfabric.adapters.streams.drive.messages import PlannedRun, random_run_packets
from torusfabric.adapters.streams.drive.simulate import draw_jobs, simulate_streams
from torusfabric.adapters.streams.drive.traffic import make_traffic
from torusfabric.adapters.streams.ports import LOAD_MODE, STATUS_WORDS
from torusfabric.adapters.streams.sections import Sections
from torusfabric.errors import InputError, WorkFailed
from torusfabric.proof import prove
from torusfabric.rtl.run_choices import RunError
from torusfabric.simulation.engines import CompiledEngine
from torusfabric.simulation.jobs import complete_job
from torusfabric.toolchain import tools

FLITS, WIDTH = 5, 8


planned = partial(quickest, flits=FLITS)


#: A network, collectives (some along an axis), and options of planner and compiler.
BUILT = [
    ("5", "allreduce,scatter,gather", {}, {"operators": ["add", "max:signed"]}),
    ("mesh:3x3", "exchange,halo", {}, {}),
    ("3x3!4", "allgather,reduce", {}, {}),
    ("3x3", "alltoall@1,reduce-scatter", {}, {}),
    ("3x3", "allreduce,broadcast", {"link_latency": "2"}, {}),
    ("3", "gather,scatter,broadcast", {}, {"root": "any"}),
    ("3x3", "allreduce,alltoall", {}, {}),
    ("2x2x2", "alltoall,allreduce", {}, {}),
]


@pytest.mark.parametrize(("topology", "names", "planning", "chosen"), few(1, BUILT))
def test_built_in(topology, names, planning, chosen):
    """Runs deliver all words in the predicted cycles, and invalid packets are dropped."""
    plans = [planned(topology, name, **planning) for name in names.split(",")]
    program = tf.compile(plans, max_flits=FLITS, **chosen)
    fabric = tf.Fabric(program, width=WIDTH, top="stream", tables="ram")
    engine = CompiledEngine(fabric)
    for stall, faults in ((0, 0), (0.4, 0.25)):
        report = simulate_streams(
            fabric, jobs=draw_jobs(fabric, 20), stall=stall, faults=faults, engine=engine
        )
        assert as_forecast(report)


@pytest.fixture(scope="module")
def image():
    """The image of a fabric on a ring, with room for other images."""
    modes = [
        LoadableMode.from_forms([form])
        for form in map(_loadable, (planned("5", name) for name in ("allreduce", "allgather")))
    ]
    room = room_for(modes, rows=64, depth=16, streams=True)
    return Image(room.with_facts(roots=True, entries=8), WIDTH, modes)


def _loadable(plan):
    from torusfabric.adapters.loading.fitting import loadable_form

    return loadable_form(plan, FLITS, tf.compile(planned("5", "allreduce")).operators)


@pytest.mark.parametrize("stall", [0.3, pytest.param(0, marks=pytest.mark.long)])
def test_images_follow_one_another(image, stall):
    """All modes are replaced between runs, and then one mode, while words wait on both sides."""
    room = image.room
    second = Image.from_schedules(
        room, WIDTH, wanted(*(planned("5", name) for name in ("alltoall", "halo")))
    )
    third = second.with_modes([([planned("5", "gather")], True)], 1)
    fabrics = [tf.Fabric.holding(image)]
    fabrics += [tf.Fabric.holding(each, empty=True) for each in (second, third)]
    whole, exchanges, statuses = None, [], []
    for number, fabric in enumerate(fabrics):
        jobs = [complete_job(fabric, job) for job in draw_jobs(fabric, 6, seed=number)]
        drawn = [random_run_packets(fabric, job, seed=k) for k, job in enumerate(jobs)]
        runs = [*map(PlannedRun, jobs, drawn)]
        traffic = make_traffic(fabric, runs, stall=stall, seed=1, cycles=100)
        whole = traffic if whole is None else joined(whole, traffic)
        exchanges += [run.exchange for run in runs]
        statuses += [[0, 0, 0]] * (number > 0)
        statuses += [
            [k, 0, fabric.program.cycles(run.job.length, mode=run.job.mode)]
            for k, run in enumerate(runs)
        ]
    # One node receives more slowly than an image is loaded.
    slow = whole.sinks[0]._replace(stall=0.97)
    log = CompiledEngine(fabrics[0]).run_traffic(replace(whole, sinks=[slow, *whole.sinks[1:]]))
    found = StreamComparison(exchanges, log)
    assert not found.missing
    assert [run.first_wrong for run in found.run_comparisons if run.words_wrong] == []
    assert in_statuses(log) == statuses


def joined(before, after):
    """Concatenate the traffic of two fabrics with the same streams."""
    sources = [
        one._replace(beats=[*one.beats, *other.beats])
        for one, other in zip(before.sources, after.sources, strict=True)
    ]
    sinks = [
        one._replace(expected=one.expected + other.expected)
        for one, other in zip(before.sinks, after.sinks, strict=True)
    ]
    return replace(before, sources=sources, sinks=sinks)


def in_statuses(log):
    """The statuses that have arrived."""
    words = [arrival.word for arrival in log.arrivals[STATUS_SINK]]
    return [words[at : at + len(STATUS_WORDS)] for at in range(0, len(words), len(STATUS_WORDS))]


def test_no_torn_image_runs(image):
    """A torn image is refused, and so are later runs, until a whole image is loaded."""
    fabric = tf.Fabric.holding(image, empty=True)
    job = complete_job(fabric, tf.Job(mode=1, length=3))
    run = PlannedRun(job, random_run_packets(fabric, job, seed=1))
    right = make_traffic(fabric, [run], stall=0, seed=1, cycles=100)
    *nodes, commands = right.sources
    torn = image.words[: len(image.words) // 2], [*image.words[:-1], image.words[-1] ^ 1], []
    beats = []
    for tag, words in enumerate(torn):
        every = [LOAD_MODE, 0, 0, 0, tag, *words]
        beats += [Beat(word, k == len(every) - 1) for k, word in enumerate(every)]
    beats += [Beat(word, k == 4) for k, word in enumerate([1, 3, 0, 0, 9])]
    sinks = [*right.sinks[:-1], right.sinks[-1]._replace(expected=3 * 6)]
    sources = [*nodes, commands._replace(beats=beats + commands.beats)]
    refused = [[tag, RunError.IMAGE, 0] for tag in (0, 1, 2, 9)]
    # A torn image also discards the image before it.
    for before in (fabric, tf.Fabric.holding(image)):
        traffic = replace(right, sources=sources, sinks=sinks, loads=False)
        log = CompiledEngine(before).run_traffic(traffic)
        assert not StreamComparison([run.exchange], log).run_comparisons[0].words_wrong
        assert in_statuses(log) == [*refused, [0, 0, 0], [0, 0, image.program.cycles(3, mode=1)]]


def test_a_command_of_another_number_of_words_is_refused(image):
    """A command with a wrong number of words is refused; only a load command may exceed five."""
    fabric = tf.Fabric.holding(image)
    job = complete_job(fabric, tf.Job(mode=1, length=3))
    run = PlannedRun(job, random_run_packets(fabric, job, seed=1))
    right = make_traffic(fabric, [run], stall=0, seed=1, cycles=100)
    *nodes, commands = right.sources
    wrong = [
        [LOAD_MODE],
        [LOAD_MODE, 0, 0, 0],
        [1, 3, 0],
        [1, 3, 0, 0, 6, 0],
        [1, 3, 0, 0, 7, 0, 0, 0],
    ]
    beats = [Beat(word, k == len(every) - 1) for every in wrong for k, word in enumerate(every)]
    sinks = [*right.sinks[:-1], right.sinks[-1]._replace(expected=3 * (len(wrong) + 1))]
    sources = [*nodes, commands._replace(beats=beats + commands.beats)]
    log = CompiledEngine(fabric).run_traffic(replace(right, sources=sources, sinks=sinks))
    assert not StreamComparison([run.exchange], log).run_comparisons[0].words_wrong
    refused = [[tag, RunError.COMMAND, 0] for tag in (0, 0, 0, 6, 7)]
    assert in_statuses(log) == [*refused, [0, 0, image.program.cycles(3, mode=1)]]


def test_what_a_table_says_matters(image, monkeypatch):
    """A wrong origin in the table of a node gives wrong words, and a refused image is an error."""
    right = contents.pack_rows

    def wrong(layout, **values):
        if "memory" in values:
            values["origin"] = np.where(values["origin"] == 4, 3, values["origin"])
        return right(layout, **values)

    monkeypatch.setattr(contents, "pack_rows", wrong)
    built = tf.Fabric.holding(replace(image))
    report = tf.simulate(built, jobs=[tf.Job(mode=1)], engine="amaranth")
    assert report.words_wrong
    monkeypatch.undo()
    other = replace(image, width=WIDTH + 1)
    fabric = tf.Fabric.holding(image, empty=True)
    fabric.front.tables = replace(fabric.tables, image=other)
    with pytest.raises(WorkFailed, match="The fabric in simulation refused its image"):
        tf.simulate(fabric, jobs=[tf.Job(mode=1)], engine="amaranth")


@pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")
@pytest.mark.parametrize("right", [True, pytest.param(False, marks=pytest.mark.long)])
def test_proof(monkeypatch, right):
    """Runs are proved; runs that stay in one section are refuted."""
    if not right:
        monkeypatch.setattr(Sections, "next_section", lambda self, section, step=None: section)
    fabric = tf.Fabric(
        tf.compile(tf.plan("2", "allgather"), max_flits=1), width=1, top="stream", tables="ram"
    )
    assert prove(fabric).proved is right


def test_tables_of_another_top(image):
    """Tables for streams are refused by a fabric with a host port."""
    with pytest.raises(InputError, match="These tables were made for another top"):
        tf.Fabric(image.program, width=WIDTH, tables=image)


def test_packets_that_nodes_lack():
    """A room without lists of origins refuses collectives in which some nodes lack packets."""
    gather, halo = (_loadable(planned("mesh:4", name)) for name in ("allgather", "halo"))
    room = room_for([gather.program], rows=32, depth=16, streams=True)
    room.check_form(halo)
    with pytest.raises(InputError, match="needs lists of origins at nodes that lack packets"):
        room.with_facts(lists=False).check_form(halo)


def test_command(tmp_path, monkeypatch, capsys):
    """The commands make a fabric, an image of another collective, and a run of the image."""
    from torusfabric.cli import main

    monkeypatch.chdir(tmp_path)
    how = "--top stream --tables ram --rows 32 --inputs all --width 8 --max-flits 4 -o out --quiet"
    assert main(f"verilog 3 allgather {how}".split()) == 0
    assert main(["image", "--fabric", "out/manifest.json", "3", "alltoall", "-o", "a.bin"]) == 0
    assert (
        main(["simulate", "--fabric", "out/manifest.json", "--image", "a.bin", "--flits", "3"]) == 0
    )
    assert "words wrong       0" in capsys.readouterr().out


def test_bus():
    """Behind a bus, images are loaded through a window, and runs are started by registers."""
    program = tf.compile(planned("3", "allgather"), max_flits=FLITS)
    fabric = tf.Fabric(program, width=WIDTH, top="stream", tables="ram", bus="axi-lite")
    image, facts = tf.image(fabric, "alltoall"), fabric.register_map
    at = {register.name: register.offset for register in facts.registers}
    load, received = facts.window("load").offset, [[] for _ in range(3)]

    async def node(ctx, number):
        port = fabric.node[number]
        ctx.set(port.receive.ready, 1)
        for part in range(3):
            ctx.set(port.send.payload.data, 16 * number + part)
            ctx.set(port.send.payload.destination, part)
            ctx.set(port.send.payload.last, 1)
            ctx.set(port.send.valid, 1)
            while not (await ctx.tick().sample(port.send.ready))[2]:
                pass
        ctx.set(port.send.valid, 0)

    async def listens(ctx, number):
        port = fabric.node[number].receive
        while len(received[number]) < 3:
            _, _, valid, word = await ctx.tick().sample(port.valid, port.payload.data)
            if valid:
                received[number].append(word)

    async def bench(ctx):
        plain = SimpleNamespace(random=lambda: 1, choice=min, getrandbits=int)
        port = AxiLiteMaster(ctx, fabric, plain)
        assert await port.read(at["status"]) & 8
        for number, word in enumerate(image.words):
            assert await port.write(load + 4 * number, word, 15)
        assert await port.read(at["status"]) & 8
        assert await port.read(at["loaded_program"]) == int(image.program.digest[:8], 16)
        await port.write(at["length"], 1, 15)
        assert await port.write(at["start"], 1, 15)
        while not (status := await port.read(at["status"])) & 2:
            pass
        assert status >> 4 == 0
        assert await port.read(at["cycles"]) == image.program.cycles(1)
        while min(map(len, received)) < 3:
            await ctx.tick()
        assert received == [[16 * origin + part for origin in range(3)] for part in range(3)]

    nodes = [partial(drive, number=number) for number in range(3) for drive in (node, listens)]
    simulated(fabric, bench, *nodes)
