"""Families that only their vendors place and route: what cells cost, and what fits."""

import pytest
from hand_written import PORTS, SMALL_STORE, STORE, design

from torusfabric.errors import InputError
from torusfabric.fpga.synthesis.families import FAMILIES
from torusfabric.fpga.synthesis.family import Cost
from torusfabric.fpga.synthesis.synthesize import synthesize
from torusfabric.fpga.synthesis.target import PARTS, TARGETS, find_target
from torusfabric.verilog.design import Design
from torusfabric.verilog.module_text import MemoryStyle, memory_attributes

#: What a memory of 16 x 8 bits takes where tables can be memories: LUTs and memories of tables.
OF_TABLES = {
    "xilinx-7": (8, 8),
    "xilinx-us": (8, 8),
    "cyclone-v": (8, 8),
    "nexus": (12, 2),
}

#: Where yosys reads few cells, and is done in seconds.
QUICK = ("cyclone-v", "efinix", "gatemate")


def families(*, quick):
    """The names of the families that are quick, or are not."""
    return [name for name in PARTS if (name in QUICK) == quick]


def each(test):
    """A test of every family; those that take long only with all others that do."""
    slow = [pytest.param(name, marks=pytest.mark.long) for name in families(quick=False)]
    return pytest.mark.parametrize("family", [*families(quick=True), *slow])(test)


@each
def test_router_has_a_table_and_a_flip_flop_a_bit(family):
    row = synthesize(design(4), family).classes[0]
    assert row["luts"] == row["ffs"] == row["outport_bits"] == PORTS * 4


@each
def test_memories_and_sums(family):
    row = synthesize(Design({"store": STORE}, "store", {}), family).fabric
    assert (row["brams"], row["lutrams"], row["ffs"]) == (1, 0, 8)
    assert 8 <= row["luts"] <= 10
    assert 8 <= row["carries"] <= 10
    if family in OF_TABLES:
        small = Design({"small_store": SMALL_STORE}, "small_store", {})
        row = synthesize(small, family).fabric
        assert (row["luts"], row["lutrams"], row["brams"]) == (*OF_TABLES[family], 0)


@pytest.mark.long
def test_ultra_rams_are_asked_for():
    (attribute,) = memory_attributes(MemoryStyle.ULTRA)
    text = STORE.replace("(* no_rw_check *)", attribute).replace("[7:0] wa", "[11:0] wa")
    text = text.replace("[7:0] ra", "[11:0] ra").replace("[0:255]", "[0:4095]")
    row = synthesize(Design({"store": text}, "store", {}), "xilinx-us").fabric
    assert (row["urams"], row["brams"]) == (1, 0)


def test_families_are_their_largest_parts():
    assert PARTS.keys() == {name for name, family in FAMILIES.items() if family.pnr is None}
    for family, parts in PARTS.items():
        sizes = [capacity["luts"] for _, capacity in parts]
        assert sizes == sorted(sizes)
        assert find_target(family) is TARGETS[f"{family}-{parts[-1][0]}"]


def test_adaptive_logic_modules_are_counted_by_halves():
    kinds = ["MISTRAL_ALUT6", *["MISTRAL_ALUT4"] * 3, *["MISTRAL_FF"] * 5]
    module = {"cells": {str(k): {"type": kind} for k, kind in enumerate(kinds)}}
    assert find_target("cyclone-v").measure(module, ()) == Cost(luts=4, ffs=5, cells=3)
    module = {"cells": {str(k): {"type": "MISTRAL_FF"} for k in range(13)}}
    assert find_target("cyclone-v").measure(module, ()).cells == 4


def test_nothing_is_placed_without_a_tool():
    with pytest.raises(InputError, match=r"nextpnr knows, not xilinx-us-vu9p$"):
        synthesize(design(1), "xilinx-us-vu9p", pnr=True)
