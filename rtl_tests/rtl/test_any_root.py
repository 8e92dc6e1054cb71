"""Fabrics whose root is chosen at each run: masked schedules, cores, and refusals."""

import pytest
from core_bench import check_core
from fabrics import build_fabric, check_fabric, mask_schedule
from helpers import few

import torusfabric as tf
from torusfabric.rtl.netlist import Role

MASKED = [
    ("2x3", "scatter", "matching"),
    ("2x3", "reduce", "matching"),
    ("2x2", "gather", "hamiltonian"),
    ("2x4", "gather", "matching"),
    ("arrowhead:1", "reduce", "matching"),
    ("2x2", "reduce", "necklace"),
]


def fabric_of_mask(topology, collective, algorithm="matching", *, top="host", **lengths):
    """A fabric of any root whose nodes all do the same, by a masked schedule."""
    program = tf.compile(mask_schedule(topology, collective, algorithm), root="any", **lengths)
    return tf.Fabric(program, width=9, top=top)


@pytest.mark.parametrize("lengths", [{"max_flits": 4}, {"flits": 3}])
@pytest.mark.parametrize(("topology", "collective", "algorithm"), few(3, MASKED))
def test_every_root_of_a_mask(topology, collective, algorithm, lengths):
    """A masked schedule serves every root."""
    tf.check(mask_schedule(topology, collective, algorithm))
    check_fabric(fabric_of_mask(topology, collective, algorithm, **lengths))


def test_a_mask_has_no_roms_in_nodes():
    """A masked reduce has no ROMs, because nothing in it depends on the root."""
    fabric = fabric_of_mask("3x3", "reduce", flits=2)
    roles = {instance.role for instance in fabric.netlist.instances}
    assert Role.ROM not in roles
    with pytest.raises(tf.InputError, match=r"^This schedule serves all roots alike"):
        tf.compile(mask_schedule("3x3", "reduce"))


@pytest.mark.parametrize(
    "fabric",
    [
        lambda: build_fabric("2x4", "gather", flits=2, root="any", top="core"),
        lambda: build_fabric("2x3", "reduce", flits=2, root="any", top="core"),
        lambda: fabric_of_mask("2x4", "gather", flits=2, top="core"),
        lambda: fabric_of_mask("2x3", "reduce", flits=2, top="core"),
    ],
)
def test_core(fabric):
    """A core with a root for each run delivers the words of root 4."""
    check_core(fabric(), root=4)


@pytest.mark.parametrize(
    ("collective", "options", "message"),
    [
        # The address of a received block would depend on the root.
        (
            "scatter",
            {"top": "core"},
            "Top must be host or stream for scatter from any root, not core",
        ),
        ("allgather", {}, "Root any needs a collective with a root"),
    ],
)
def test_any_root_is_refused(collective, options, message):
    with pytest.raises(tf.InputError, match=f"^{message}"):
        build_fabric("2x3", collective, root="any", **options)


def test_plans_from_other_nodes_are_refused():
    with pytest.raises(tf.InputError, match=r"^Root any needs a schedule from node 0, not from n"):
        tf.compile(tf.plan("2x3", "gather", root=1), root="any")
