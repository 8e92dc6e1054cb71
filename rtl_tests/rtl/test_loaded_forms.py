"""Modes of several forms and modes of any root in fabrics with loaded tables."""

import pytest
from helpers import simulated
from loaded_port import LONG, HostPort, with_rows

import torusfabric as tf
from torusfabric.adapters.loading.fitting import loadable_form
from torusfabric.adapters.loading.image import FILL_MASK_INDEX, Image, read_image
from torusfabric.adapters.loading.layout import HEADER_WORDS, TableLayout
from torusfabric.adapters.loading.loadable import LoadableMode
from torusfabric.adapters.loading.loader import END_MARK, PIECE_AT, ROWS_AT
from torusfabric.adapters.loading.room import room_for
from torusfabric.collective import random_messages
from torusfabric.errors import InputError
from torusfabric.program.host_words import word_addresses
from torusfabric.proof import prove
from torusfabric.simulation.engines.compiled import CompiledEngine
from torusfabric.toolchain import tools

FLITS = 24


@pytest.fixture(scope="module")
def broadcast():
    """The image of a broadcast from any root: one tree for short messages, two for long ones."""
    plans = [tf.plan("5", "broadcast", trees=trees) for trees in (1, 2)]
    mode = LoadableMode(tuple(loadable_form(plan, FLITS, ()) for plan in plans), (1, 10), True)
    return Image(room_for([mode]), 8, [mode])


def engine_of(fabric):
    """Return a function that simulates a fabric at lengths where forms change, from three roots."""
    engine = CompiledEngine(fabric)
    starts = fabric.program.modes[0].range_starts
    lengths = [1, *(start - early for start in starts[1:] for early in (1, 0)), FLITS]
    jobs = [tf.Job(length=n, root=root) for n in lengths for root in (0, 1, 4)]
    return lambda: tf.simulate(fabric, jobs=jobs, engine=engine)


def test_forms_by_length_and_root(broadcast, tmp_path):
    """Each length has its form and each root its rows; a run takes one cycle more than in a fabric
    of its own.
    """
    fabric = tf.Fabric.holding(broadcast, empty=True)
    (mode,) = fabric.program.modes
    assert (mode.range_starts, mode.roots, len(fabric.program.forms)) == ((1, 10), 5, 10)
    report = engine_of(fabric)()
    assert report.passed
    for job in report.jobs:
        schedule = broadcast.modes[0].forms[job.length >= 10].program.schedule
        assert job.cycles == fabric.program.cycles(job.length)
        alone = tf.compile(schedule, max_flits=FLITS)
        assert job.cycles - alone.cycles(job.length) == 1  # one more cycle to look up the mode
    broadcast.save(tmp_path / "a.bin")
    assert read_image(tmp_path / "a.bin", fabric.room, 8).words == broadcast.words


def rows_written(image):
    """Return the rows of each table that an image writes, by the number of the table's owner."""
    words, rows = image.words, {}
    at = FILL_MASK_INDEX + TableLayout(image.room, image.width).fill_words + 1
    while words[at] != END_MARK:
        owner, count = words[at] % (1 << PIECE_AT), (words[at] >> ROWS_AT) + 1
        rows.setdefault(owner, set()).update(range(words[at + 1], words[at + 1] + count))
        at += HEADER_WORDS + count
    return rows


def test_what_lies_between_the_forms_of_a_mode_stays():
    """An image that fills one mode also writes the rows between its forms."""
    short, long = (tf.plan("9", "broadcast", trees=trees) for trees in (1, 2))
    several = [([short, long], False), ([short], False), ([long], False)]
    modes = [
        LoadableMode.from_forms([loadable_form(plan, LONG, ()) for plan in one])
        for one, _ in several
    ]
    whole = Image.from_schedules(room_for(modes, rows=64), 8, several)
    assert [place.number for place in whole.places] == [0, 3, 1, 2]
    tables = [*TableLayout(whole.room, 8).single_tables]
    rows = rows_written(whole.with_modes(several[:1], 0))
    for name in ("modes", "starts"):
        assert rows[whole.room.nodes + tables.index(name)] == {0, 3}


def with_wrong_start(fabric, bit):
    """Invert a bit of the first entry of the table that a start is compared with."""
    wrong = lambda _, rows: [[*rows[0][:-1], rows[0][-1] ^ 1 << bit]]
    with_rows(fabric, {"table_starts": wrong})


@pytest.mark.parametrize("kind", ["scatter", "gather", "broadcast", "reduce"])
def test_programs_are_executed(kind):
    """The executed program of an image delivers the words of its collective from any root."""
    program = tf.compile([tf.plan("2x3", kind)], max_flits=FLITS, root="any")
    loaded = tf.Fabric(program, width=8, tables="ram").program
    for length, root in ((1, 0), (FLITS, 4)):
        words = random_messages(loaded.part(0).layout, length, width=8, seed=1)
        owed, receives = loaded.delivered(words, length=length, root=root, width=8)
        got = loaded.execute(words, length=length, root=root, width=8)
        assert (got == owed)[receives].all()
        _, address = word_addresses(loaded, received=True, length=length, root=root)
        assert (address >= 0)[receives].all()


def test_more_entries_than_a_word_has_bits():
    """More entries than a word has bits are named by several words of an image."""
    plans = [tf.plan("5", kind) for kind in ("broadcast", "scatter", "gather", "reduce")] * 2
    built = tf.Fabric(tf.compile(plans, max_flits=2, root="any"), width=8, tables="ram")
    fabric = tf.Fabric.holding(built.image, empty=True)
    assert fabric.room.sizes.entries == 64
    jobs = [tf.Job(mode=mode, length=2, root=root) for mode in range(8) for root in (0, 4)]
    assert tf.simulate(fabric, jobs=jobs, engine=CompiledEngine(fabric)).passed


def test_entries_are_filled_and_freed():
    """A mode may have more or fewer entries than the mode that it replaces."""
    plans = [tf.plan("3", name) for name in ("broadcast", "allgather")]
    program = tf.compile(plans, max_flits=LONG, root="any")
    fabric = tf.Fabric(program, width=8, tables="ram")
    gather = tf.image(fabric, "gather", root=1, onto=fabric.image, mode=0)
    assert (gather.freed, gather.fills) == ([2, 3], range(1))
    again = tf.image(fabric, "broadcast", root="any", onto=gather, mode=0)

    async def bench(ctx):
        port = HostPort(ctx, fabric)
        await port.set(host_we=0)
        assert await port.start(0, root=3) == 2
        assert await port.start(0, root=2) == 1
        await port.end()
        assert (await port.load(gather.words))[0] == 3
        assert await port.start(3) == 1
        assert await port.start(0) == 1
        assert (await port.end())[0] == gather.program.cycles(LONG, mode=0)
        assert (await port.load(again.words))[0] == 3
        assert await port.start(0, root=1) == 1
        assert (await port.end())[0] == again.program.cycles(LONG, mode=0)

    simulated(fabric, bench)


@pytest.mark.long
@pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")
def test_proof():
    """Runs and refused starts are proved for every root; a wrong entry is refuted."""
    plans = [tf.plan("3", name) for name in ("broadcast", "allgather")]
    fabric = tf.Fabric(tf.compile(plans, max_flits=1, root="any"), width=1, tables="ram")
    assert prove(fabric).proved
    with_wrong_start(fabric, 1)
    assert not prove(fabric).proved


def test_what_does_not_fit():
    """A fabric with a fixed root refuses an image of any root, and a full one further forms."""
    plan = tf.plan("5", "broadcast", trees=1)
    fabric = tf.Fabric(tf.compile(plan, max_flits=FLITS), tables="ram")
    with pytest.raises(InputError, match="The root of this fabric is fixed"):
        Image.from_schedules(fabric.room, 8, [([plan], True)])
    room = fabric.room.with_facts(roots=True, rows=64, settings=[64] * 5)
    with pytest.raises(InputError, match=r"Entries of modes must be at most 4 .*, not 5;"):
        Image.from_schedules(room, 8, [([plan], True)])
