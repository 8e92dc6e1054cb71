"""What is equal is built once, and what must differ is not: parts of hardware that are shared."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from torusfabric.rtl.endpoint_columns import StorePart
from torusfabric.rtl.endpoint_program import EndpointProgram
from torusfabric.rtl.netlist import Fixed, Part, _low_parts
from torusfabric.rtl.row_rom import RowRom
from torusfabric.rtl.shape_planner import ShapePlanner, _shift


def test_equal_fields_of_a_rom_are_one():
    rom = RowRom(members=1, spans=[slice(0, 3), slice(3, 5)])
    values = np.array([[0, 1, 2, 7, 7]])
    first = rom.add(values)
    assert rom.add(values) == first
    assert rom.width == first.width == 3
    wider = np.array([[0, 1, 2, 8, 8]])
    assert rom.add(wider) != first
    assert rom.width == 3 + 4


def test_what_does_not_matter_is_what_does():
    """A mode in which a field does not matter takes the constant of another."""
    rom = RowRom(members=1, spans=[slice(0, 2), slice(2, 4)])
    assert rom.add(np.array([[-1, -1, 3, 3]])).constants == (3, 3)
    assert rom.width == 0


@pytest.mark.parametrize(
    ("bases", "length", "bits"),
    [
        ([0, 8, 16], 8, 3),
        ([0, 4], 8, None),
        ([0, 8], 5, 3),
        ([1], 1, 0),
        ([2], 2, 1),
        ([3], 2, None),
    ],
)
def test_bases_that_need_no_adder(bases, length, bits):
    assert _shift(np.array(bases), length) == bits


def test_low_bits_of_a_value():
    parts = (Fixed(5, 3), Part("net", 4, 6), Fixed(1, 1))
    assert list(_low_parts(parts, 2)) == [Fixed(1, 2)]
    assert list(_low_parts(parts, 5)) == [Fixed(5, 3), Part("net", 4, 2)]
    assert list(_low_parts(parts, 10)) == list(parts)


@pytest.mark.parametrize("depth", [1, 2, 16, 17, 256, 257, 512, 513])
def test_sizes_of_memories(depth):
    """Sizes are 16, 256 and multiples of 512 words; what is a size is taken as it is."""
    many = np.full((2, 1), 10**6)
    program = SimpleNamespace(
        loops=SimpleNamespace(variants=2), program=SimpleNamespace(depth=many)
    )
    sizes = {1: 1, 2: 16, 16: 16, 17: 256, 256: 256, 257: 512, 512: 512, 513: 1024}
    assert EndpointProgram.size(program, 0, depth) == sizes[depth]


def test_readers_of_one_port():
    groups = [((0, 1), (2,)), ((0,), (1, 3))]
    planner = ShapePlanner.__new__(ShapePlanner)
    rivals = [planner._rivals(index, groups) for index in range(4)]  # noqa: SLF001
    assert rivals == [{1}, {0, 3}, set(), {1}]


def test_parts_that_store_alike():
    part = StorePart(base=np.array([1, 2]), pitch=2, delay=3, source=0)
    assert part.same(replace(part, source=1))
    assert not part.same(replace(part, base=np.array([1, 3])))
    for name in ("pitch", "delay"):
        assert not part.same(replace(part, **{name: 7}))
