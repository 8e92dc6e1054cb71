"""A core with room for several programs: its structure follows from the room alone."""

import pytest

import torusfabric as tf
from torusfabric.adapters.loading.fitting import loadable_form
from torusfabric.adapters.loading.room import room_for
from torusfabric.rtl.core import room as core_room
from torusfabric.rtl.netlist import Role


@pytest.fixture
def programs():
    """An all-gather and an all-reduce, in the form that is loaded."""
    plans = [tf.plan("3x3", "allgather", algorithm="matching"), tf.plan("3x3", "allreduce")]
    return [loadable_form(plan, 8, ()).program for plan in plans]


@pytest.mark.parametrize("inputs", [None, []])
def test_each_bit_of_a_room_has_a_place_of_its_own(programs, inputs, monkeypatch):
    """Too few template rows are an error, because two bits of the tables could look alike."""
    room = room_for(programs, inputs=inputs)
    core_room.assemble_tables(room, {}, idles=True)
    monkeypatch.setattr(core_room, "TEMPLATE_SAMPLES", 30)
    with pytest.raises(AssertionError, match=r"a template has|no two values"):
        core_room.assemble_tables(room, {}, idles=True)


def test_structure_follows_from_the_room_alone(programs):
    """Fabrics that hold different images differ only in the contents of their tables."""
    room = room_for(programs, rows=32)
    fabrics = [tf.Fabric(program, width=8, tables=room) for program in programs]
    texts = [dict(tf.emit(fabric).modules) for fabric in fabrics]
    tables = {name for fabric in fabrics for name, role in fabric.netlist.roles.items()
              if role in (Role.TABLE, Role.LOADER)}  # fmt: skip
    apart = {
        name for name in texts[0].keys() | texts[1] if texts[0].get(name) != texts[1].get(name)
    }
    assert apart
    assert apart <= tables | {"fabric"}
