"""Shapes: nodes that differ in data only share a module."""

import pytest
from helpers import few, program_of

import torusfabric as tf
from torusfabric.rtl.placement import place


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "routers"),
    few(
        4,
        [
            ("8x8", "reduce", "spanning-tree", 14),
            ("12x12", "scatter", "matching", 27),
            ("8x8", "scatter", "matching", 27),
            ("5x5", "scatter", "necklace", 14),
            ("arrowhead:3", "broadcast", "spanning-tree", 14),
            ("16x16", "broadcast", "max-flow", 63),
            ("7x7x7", "allgather", "lee-code", 7),
        ],
    ),
)
def test_one_router_for_each_set_of_inputs(topology, collective, algorithm, routers):
    """There are as many router modules as different sets of inputs; endpoints alike."""
    program = program_of(topology, collective, algorithm)
    placement = place(program)
    assert len(placement.routers) == routers
    assert set(placement.router_of.tolist()) == set(range(routers))
    assert len(placement.endpoints.shapes) <= min(3 * routers, program.loop.variants)


def readers(*selection, flits):
    """The readers of all endpoints."""
    shapes = place(program_of(*selection, flits=flits)).endpoints.shapes
    return [reader for shape in shapes for reader in shape.readers]


def test_no_select_bits_for_one_memory():
    """So memories may be one, and rows stay short."""
    found = readers("3x4", "gather", "max-flow", flits=4)
    assert {len(reader.memories) > 1 for reader in found} == {False, True}
    assert not any(reader.address.at_node for reader in found)
    assert all((reader.code is None) == (len(reader.memories) == 1) for reader in found)


@pytest.mark.parametrize(("flits", "shift"), [(1, 0), (2, 1), (8, 3)])
def test_zeros_that_bases_end_with_are_in_no_rom(flits, shift):
    """Bases of blocks of 2^n words end with n zeros, behind which words are counted."""
    (found,) = {
        reader.address.shift
        for reader in readers("4x4", "reduce", "max-flow", flits=flits)
        if reader.address.at_node
    }
    assert found == shift


def test_one_endpoint_whatever_the_ports():
    """Nodes have one module that send and store by other ports, and are wired to it as they do."""
    program = program_of("8x8", "allreduce", "spanning-tree", flits=16)
    endpoints = place(program).endpoints
    assert (len(endpoints.shapes), program.loop.variants) == (2, 60)
    injections = {wires.injections for wires in endpoints.wires}
    words = {wires.words for wires in endpoints.wires}
    assert len(injections) > 20
    assert len(words) > 10


def test_few_endpoints_of_several_modes():
    """That nodes send by different ports in one mode does not show in the others."""
    plans = [tf.plan("8x8", name) for name in ("allgather", "allreduce", "alltoall")]
    program = tf.compile(plans, max_flits=16)
    assert len(place(program).endpoints.shapes) <= 2
