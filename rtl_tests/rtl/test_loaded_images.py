"""Requirements of an image: for its fabric, complete, with schedules, and not too large."""

import json
import zlib

import numpy as np
import pytest
from loaded_port import FLITS, WIDTH, fabric_of, give, planned, ring_room, wanted

import torusfabric as tf
from torusfabric.adapters.loading import image as images
from torusfabric.adapters.loading.fitting import loadable_form, program_from_modes
from torusfabric.adapters.loading.image import FILL_MASK_INDEX, Image, read_image
from torusfabric.adapters.loading.layout import HEADER_WORDS, MOST_RUN_ROWS
from torusfabric.adapters.loading.loadable import LoadableMode
from torusfabric.adapters.loading.loader import END_MARK, ROWS_AT
from torusfabric.adapters.loading.room import room_for
from torusfabric.errors import InputError, WorkFailed
from torusfabric.program.fields import Action, Stage
from torusfabric.simulation.engines.compiled import CompiledEngine

#: Inputs of out-ports that send the words their nodes read, and pass on none.
OWN = tuple(((int(Stage.INJECTION), port),) for port in range(2)) * 2


@pytest.fixture
def room():
    """The room of a ring."""
    return ring_room()


def test_no_torn_image_runs(room, tmp_path):
    """An image for another fabric, an incomplete one, or one with a wrong bit is refused."""
    image = Image.from_schedules(room, WIDTH, wanted(planned("scatter", room)))
    words = image.words
    at = len(words) // 2
    wrong = {
        "another fabric": [words[0], words[1] ^ 1, *words[2:]],
        "another format": [words[0] ^ 1 << 24, *words[1:]],
        "torn": words[:at],
        "a row too few": [*words[:-4], END_MARK, words[-1]],
        "a wrong bit": [*words[:at], words[at] ^ 1 << 7, *words[at + 1 :]],
        "a wrong check": [*words[:-1], words[-1] ^ 1],
    }
    fabric = fabric_of(image)
    engine = CompiledEngine(fabric)
    for fault in wrong.values():
        give(fabric, image, fault)
        with pytest.raises(WorkFailed, match="refused its image"):
            tf.simulate(fabric, engine=engine)
        raw = np.array(fault, "<u4").tobytes()
        (tmp_path / "wrong.bin").write_bytes(raw)
        with pytest.raises(InputError, match=r"^(Image|File) .*; make"):
            read_image(tmp_path / "wrong.bin", room, WIDTH)
    # The same fabric runs once a whole image is loaded.
    give(fabric, image, words)
    assert tf.simulate(fabric, engine=engine).passed


@pytest.mark.parametrize("texts", [[5], [None], [{}]])
def test_schedules_of_an_image_that_are_none(room, tmp_path, texts):
    """Anything but schedules behind the words of an image is refused with one line."""
    path, image = (
        tmp_path / "image.bin",
        Image.from_schedules(room, WIDTH, wanted(planned("scatter", room))),
    )
    image.save(path)
    raw, size = path.read_bytes(), 4 * len(image.words)
    tail = json.loads(zlib.decompress(raw[size:])) | {"schedules": [texts]}
    path.write_bytes(raw[:size] + zlib.compress(json.dumps(tail).encode()))
    with pytest.raises(InputError, match=r"^Image .* lacks its schedules, or they"):
        read_image(path, room, WIDTH)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda raw, size: raw + b"\0", r"\(1 byte more than is packed\)"),
        (lambda raw, size: raw + raw[size:], "bytes more than is packed"),
        (lambda raw, size: raw[:-1], r"\(bytes that end too soon\)"),
        (lambda raw, size: raw[:size] + zlib.compress(bytes(2**26)), r"\(more than "),
        (lambda raw, size: raw[:size] + zlib.compress(b'{"served": 1, "served": 2}'), "twice"),
    ],
)
def test_an_image_ends_with_its_schedules(room, tmp_path, change, reason):
    path, image = (
        tmp_path / "image.bin",
        Image.from_schedules(room, WIDTH, wanted(planned("scatter", room))),
    )
    image.save(path)
    path.write_bytes(change(path.read_bytes(), 4 * len(image.words)))
    with pytest.raises(InputError, match=rf"^Image .* lacks its schedules, .*{reason}"):
        read_image(path, room, WIDTH)


def test_links_that_do_not_fit():
    """An image must have the link latencies of its fabric."""
    room = room_for([loadable_form(tf.plan("3x3", "allgather"), FLITS, ()).program])
    plan = tf.plan("3x3", "alltoall", link_latency="2")
    with pytest.raises(InputError, match="must be 3x3 for this fabric, not 3x3 on links of 2 cyc"):
        Image.from_schedules(room, WIDTH, wanted(plan))


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"rows": 2}, r"needs 3 rows .*, but this fabric has 2; build"),
        ({"settings": (1, 8, 8, 8, 8)}, "Settings of table select must be at most 1 .*, not 2"),
        ({"depth": 1}, r"needs 4 cycles of depth .*, but this fabric has 1"),
        ({"inputs": OWN}, r"an input of out-port \+0 of node 0 from in-port -0"),
        ({}, r"This fabric has no operators, which a reduction needs"),
    ],
)
def test_what_does_not_fit(options, wrong):
    """A schedule that does not fit the room is refused with one line."""
    one = loadable_form(planned("scatter"), FLITS, ())
    room = room_for([one.program], rows=64, depth=16).with_facts(**options)
    kinds = {"rows": "alltoall", "settings": "alltoall", "depth": "broadcast", "inputs": "alltoall"}
    kind = kinds[next(iter(options))] if options else "allreduce"
    with pytest.raises(InputError, match=wrong):
        Image.from_schedules(room, WIDTH, wanted(planned(kind)))


def test_a_frame_has_room_for_what_it_is_made_of():
    """A room with fewer rows than its modes need together is refused."""
    modes = [LoadableMode((loadable_form(planned(k), FLITS, ()),)) for k in ("scatter", "alltoall")]
    with pytest.raises(InputError, match=r"^Rows must be at most 4 .*, not "):
        room_for(modes, rows=4)
    room = room_for(modes)
    with pytest.raises(InputError, match=r"^Rows must be at most 4 .*, not "):
        program_from_modes(modes, room.with_facts(rows=4))


def test_what_readers_cannot_read():
    """A room whose readers have the inputs of built-in collectives refuses other schedules."""
    forms = [loadable_form(planned(name), FLITS, ()) for name in ("allgather", "allreduce")]
    room = room_for([form.program for form in forms], rows=64, depth=16, inputs=[])
    room = room.with_facts(words=64)
    assert [room.memories_of_reader(port) for port in range(2)] == [(2,), (2,)]
    # Passing words take the path of sums, so that out-ports have half the inputs.
    arriving, made = (
        range(2),
        range(room.sources.first_of_stage(Stage.EARLY_RESULT), room.sources.first_injection),
    )
    chosen = {k for port in range(2) for k in room.source_numbers(Action.SELECT, port)}
    assert chosen.isdisjoint(arriving)
    assert not chosen.isdisjoint(made)
    with pytest.raises(InputError, match=r"input of the reader of out-port \+0 from the memory of"):
        loadable_form(tf.plan("5", "alltoall", broken_links=["1:+0"]), FLITS, (), room)
    image = Image.from_schedules(
        room, WIDTH, wanted(planned("scatter", room), planned("allgather", room))
    )
    fabric = fabric_of(image)
    assert tf.simulate(fabric, jobs=4, engine=CompiledEngine(fabric)).passed


def test_runs_of_rows_are_as_long_as_a_word_can_say(room, monkeypatch):
    assert MOST_RUN_ROWS == 1 << 32 - ROWS_AT
    monkeypatch.setattr(images, "MOST_RUN_ROWS", 4)
    words, at, counts = (
        Image.from_schedules(room, WIDTH, wanted(planned("scatter", room))).words,
        FILL_MASK_INDEX + 2,
        [],
    )
    while words[at] != END_MARK:
        counts.append((words[at] >> ROWS_AT) + 1)
        at += HEADER_WORDS + counts[-1]
    assert max(counts) == 4
