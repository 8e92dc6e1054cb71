"""Fabrics with loaded tables and beats: words of ports have several flits."""

import numpy as np
import pytest
from helpers import few
from loaded_port import as_forecast, quickest

import torusfabric as tf
from torusfabric.adapters.loading.image import read_image
from torusfabric.adapters.loading.room import Room
from torusfabric.errors import InputError
from torusfabric.program.fields import IDLE, Action
from torusfabric.proof import prove
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache
from torusfabric.verilog.manifest import interface_facts

#: Topology, collectives with their algorithms, beat, flits and compiler options. Words of a
#: spanning tree are stored after different numbers of cycles, and read later.
BUILT = [
    ("2x2", "allreduce:spanning-tree", 2, 9, {}),
    ("3x3", "alltoall,allgather", 2, 13, {}),
    # Blocks of a message alternate by beats in the send memory.
    ("3x3", "allgather,reduce-scatter", 2, 13, {}),
    ("3x3", "broadcast:spanning-tree,reduce-scatter", 4, 10, {}),
    ("4", "broadcast,reduce", 2, 7, {"root": "any"}),
    ("mesh:3x3", "allreduce,gather", 2, 11, {}),
    ("2x2x3", "alltoall,scatter", 8, 19, {}),
    ("4x2", "reduce:spanning-tree,allgather", 4, 16, {}),
    ("3x4", "gather,scatter", 4, 21, {"root": "any"}),
]


def compiled(topology, names, flits, **options):
    """Return the program of some collectives."""
    each = [(name.partition(":")[0], name.partition(":")[2]) for name in names.split(",")]
    plans = [tf.plan(topology, name, algorithm=algorithm or None) for name, algorithm in each]
    return tf.compile(plans, max_flits=flits, **options)


def jobs_of(fabric):
    """Return runs of each mode: the longest, one flit, and lengths that end within a beat."""
    program, most = fabric.program, fabric.flits
    return [
        tf.Job(
            mode=mode if len(program.modes) > 1 else None,
            length=length,
            root=length if chosen.any_root else None,
        )
        for mode, chosen in enumerate(program.modes)
        for length in (most, 1, fabric.beat + 1, most - 1)
        if not chosen.any_root or length < chosen.groups.group_size
    ]


@pytest.mark.parametrize("top", ["host", "stream"])
@pytest.mark.parametrize(("topology", "names", "beat", "flits", "chosen"), few(4, BUILT))
def test_runs(topology, names, beat, flits, chosen, top):
    """Runs of any length and root deliver all words in the predicted cycles."""
    program = compiled(topology, names, flits, **chosen)
    fabric = tf.Fabric(program, width=8, top=top, tables="ram", beat=beat)
    assert interface_facts(fabric)["beat"] == beat
    assert as_forecast(tf.simulate(fabric, jobs=jobs_of(fabric), engine="compiled"))


@pytest.mark.parametrize("top", ["host", "stream"])
def test_images(top, tmp_path):
    """Other collectives are loaded into the same fabric, also from a file."""
    built = tf.Fabric(compiled("3x3", "alltoall", 10), width=8, top=top, tables="ram", beat=4)
    room = Room.from_json(built.room.to_json())
    assert room == built.room
    assert room.beat == 4
    assert room.digest(8) != room.with_facts(beat=1).digest(8)
    made = tf.image(built, "scatter")
    made.save(tmp_path / "a.img")
    read = read_image(tmp_path / "a.img", room, 8)
    assert read == made
    fabric = tf.Fabric.holding(read, empty=True)
    assert fabric.beat == 4
    assert as_forecast(tf.simulate(fabric, jobs=jobs_of(fabric), engine="compiled"))


def test_the_beat_of_streams():
    """Streams have the beat of fixed tables by default, and the beat of the room otherwise."""
    program = compiled("4x4", "alltoall", 16)
    fixed, loaded = (tf.Fabric(program, width=16, top="stream", tables=how)
                     for how in ("rom", "ram"))  # fmt: skip
    assert fixed.beat == loaded.beat == 2
    assert tf.Fabric(program, width=16, tables="ram").beat == 1
    assert tf.Fabric(program, width=16, top="stream", tables=loaded.room).beat == 2
    with pytest.raises(InputError, match="Beat must be 2, for which the tables were made, not 4"):
        tf.Fabric(program, width=16, top="stream", tables=loaded.room, beat=4)


@pytest.mark.parametrize(
    ("beat", "message"),
    [(3, "a power of two"), (16, "at most the 8 flits of a message"), (0, "a power of two")],
)
def test_a_beat_that_does_not_fit_is_refused(beat, message):
    with pytest.raises(InputError, match=message):
        tf.Fabric(compiled("2x2", "allgather", 8), width=8, tables="ram", beat=beat)


#: Faults in the addresses and times of reads and stores, by the attribute of `Room` they replace.
FAULTS = {
    "read_lag": lambda room, form: np.where(
        form.action_values(Action.MEMORY) == room.ports, 0, IDLE
    ),
    "store_addresses": lambda room, form: form.store_addresses,
    "stores_exactly": property(lambda room: False),
}


@pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")
@pytest.mark.parametrize("name", ["", *FAULTS])
def test_faults_are_refuted(name, monkeypatch):
    """Rooms that read a word too early or store it elsewhere are refuted."""
    plan = tf.plan("3", "reduce", algorithm="spanning-tree", trees=2)
    if name:
        monkeypatch.setattr(Room, name, FAULTS[name])
    program = tf.compile(plan, max_flits=7)
    fabric = tf.Fabric(program, width=8, tables="ram", beat=2)
    assert prove(fabric, cache=Cache()).proved is not bool(name)


@pytest.mark.parametrize("length", [1, 5])
def test_rows_wait_where_links_differ(length):
    """Messages shorter than the links: the last row ends before its words have arrived, and all
    words are right.
    """
    plan = quickest("2x2x3", "alltoall", flits=5, link_latency="0:8,1:1,2:1")
    fabric = tf.Fabric(tf.compile(plan, max_flits=5), width=8, tables="ram")
    assert as_forecast(tf.simulate(fabric, jobs=[tf.Job(length=length)], engine="compiled"))
