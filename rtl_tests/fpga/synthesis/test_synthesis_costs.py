"""Costs of cells, and the memories that become block RAM on a device."""

import dataclasses
import itertools
import json
from dataclasses import replace

import pytest
from hand_written import OUTER, PORTS, SMALL_STORE, STORE, design, router
from helpers import few
from printed import printed

import torusfabric as tf
from torusfabric import Fabric, emit, plan
from torusfabric import compile as compile_program
from torusfabric.fpga.synthesis.family import Cost
from torusfabric.fpga.synthesis.memory_choice import block_ram_fill, choose_memory_rule
from torusfabric.fpga.synthesis.report import cost_per_bit
from torusfabric.fpga.synthesis.synthesize import synthesize
from torusfabric.fpga.synthesis.target import TARGETS, find_target
from torusfabric.rtl.multiplexer import branched_lut_count, lut_count
from torusfabric.verilog.design import Design, RouterClass
from torusfabric.verilog.module_text import MemoryRule


@pytest.mark.parametrize("target", ["ice40-hx8k", pytest.param("ecp5-25k", marks=pytest.mark.long)])
def test_wave_router_costs_one_lut_and_one_flip_flop_a_bit(target):
    width, nodes = 8, 4
    report = synthesize(design(width, nodes), target)
    bits = PORTS * width
    (row,) = report.classes
    assert (row["name"], row["nodes"]) == ("router", nodes)
    assert (row["luts"], row["ffs"], row["brams"]) == (bits, bits, 0)
    assert (row["outport_bits"], row["luts_per_bit"], row["ffs_per_bit"]) == (bits, 1, 1)
    assert row["why"] is None
    assert row["fmax_mhz"] is None
    fabric = report.fabric
    assert (fabric["luts"], fabric["ffs"], fabric["brams"]) == (nodes * bits, nodes * bits, 0)
    assert fabric["fits"] is True
    assert fabric["fmax_mhz"] is None
    assert [(m["name"], m["instances"], m["luts"]) for m in report.modules] == [
        ("router", nodes, bits),
        ("fabric", 1, 0),
    ]


@pytest.mark.long
def test_memories_adders_and_hierarchy_on_ice40():
    nested = Design(
        {"store": STORE, "outer": OUTER},
        "outer",
        {"outer": {"store": 2}},
        classes={"store": RouterClass(2)},
    )
    report = synthesize(nested, "ice40-up5k")
    row = report.classes[0]
    assert (row["brams"], row["ffs"]) == (1, 8)
    assert row["luts"] in (8, 9)  # the first bit of a carry chain may take one more LUT
    assert row["carries"] == 7
    assert "luts_per_bit" not in row
    assert report.fabric["brams"] == 2
    assert report.fabric["luts"] == 2 * row["luts"]


@pytest.mark.long
def test_memories_and_adders_on_ecp5():
    modules = {"store": STORE, "small_store": SMALL_STORE}
    report = synthesize(Design(modules, "store", {}), "ecp5-85k")
    store, small = report.modules
    assert (store["brams"], store["luts"], store["carries"], store["ffs"]) == (1, 8, 8, 8)
    assert (small["brams"], small["lutrams"], small["luts"]) == (0, 2, 12)
    assert report.fabric["luts"] == 8  # `small_store` is not part of the top module
    assert small["instances"] == 0


@pytest.mark.long
def test_wide_multiplexers_are_only_used_for_speed():
    text = "module wide(input [63:0] d, input [5:0] s, output q); assign q = d[s]; endmodule\n"
    wide = Design({"wide": text}, "wide", {})
    compact = synthesize(wide, "ecp5-25k")
    fast = synthesize(wide, "ecp5-25k", mapping="fast")
    assert compact.fabric["muxes"] == 0
    assert fast.fabric["muxes"] > 0
    assert (compact.mapping, fast.mapping) == ("compact", "fast")


@pytest.mark.parametrize(("topology", "inputs"), few(0, [("4x4", 4), ("8x8", 9)]))
def test_out_ports_of_many_inputs_cost_what_is_planned(topology, inputs):
    """Out-ports of many inputs cost the planned LUTs: synthesis keeps the stages of a cascade and
    builds no tree beside it.
    """
    program = compile_program(plan(topology, "alltoall"))
    fabric = Fabric(program, width=8)
    ((module, _),) = fabric.router_classes
    choices = fabric.netlist.modules[module]().choices
    assert max(len(choice.words) for choice in choices) == inputs
    (row,) = synthesize(emit(fabric).routers(), "ecp5-25k").classes
    luts = sum(
        (branched_lut_count if choice.branched else lut_count)(len(choice.words))
        for choice in choices
    )
    assert row["luts"] == 8 * luts
    # The router has no other LUTs, and each is assigned to a part by its inputs.
    assert sum(row["parts"].values()) == row["luts"] >= row["least_luts"]
    assert row["parts"]["settings"] == 0


def test_words_of_flip_flops_do_without_enables():
    text = """module small(input clk, input we, input w, r, input [15:0] d, output [15:0] q);
  reg [15:0] words [0:1];
  always @(posedge clk) if (we) words[w] <= d;
  assign q = words[r];
endmodule
"""
    cost = synthesize(Design({"small": text}, "small", {}), "ice40-hx8k").fabric
    # One LUT for each bit of each word, which decodes the address, and one for each bit read.
    assert (cost["ffs"], cost["luts"]) == (32, 32 + 16)


@pytest.mark.long
def test_cost_of_control_is_explained():
    counter = "  reg [19:0] count; always @(posedge clk) count <= inject ? 0 : count + 1;"
    counter += "\n  assign busy = count[19];"
    text = router(4, extra=counter).replace("input inject", "input inject, output busy", 1)
    plain = design(4)
    busy = dataclasses.replace(plain, modules={**plain.modules, "router": text})
    row = synthesize(busy, "ice40-hx8k").classes[0]
    assert row["ffs"] == 16 + 20
    assert row["luts"] >= 16 + 20
    assert row["why"] == (
        f"{row['luts'] / 16:.2f} LUTs and 2.25 flip-flops an out-port bit (16 bits): "
        f"16 LUTs and 16 flip-flops drive out-ports; {row['luts'] - 16} LUTs and 20 flip-flops are "
        "control, selection before the last LUT, and the node's own ports, shared by all bits"
    )


def test_cost_a_bit_is_explained_above_a_tenth():
    drivers = {"bits": 100, "luts": 100, "ffs": 100}
    assert cost_per_bit(Cost(luts=110, ffs=110), drivers)["why"] is None
    assert cost_per_bit(Cost(luts=111, ffs=100), drivers)["why"].startswith(
        "1.11 LUTs and 1.00 flip"
    )
    assert cost_per_bit(Cost(luts=100, ffs=111), drivers)["why"].startswith(
        "1.00 LUTs and 1.11 flip"
    )
    assert cost_per_bit(Cost(luts=5), {**drivers, "bits": 0})["luts_per_bit"] is None


def test_all_targets_know_what_fits():
    assert {"ice40-hx8k", "ice40-up5k", "ecp5-25k", "ecp5-85k"} <= TARGETS.keys()
    for target in TARGETS.values():
        for name, most in target.capacity.items():
            assert target.misfit_reason(Cost(**{name: most})) is None
            assert target.misfit_reason(Cost(**{name: most + 1})).startswith(
                f"does not fit: {most + 1} "
            )
    too_much = Cost(luts=1182241, brams=4320, urams=961)
    assert find_target("xilinx-us-vu9p").misfit_reason(too_much) == (
        "does not fit: 1182241 LUTs of 1182240, 961 ultra RAMs of 960"
    )


def test_logic_cells_of_ice40_are_shared_where_they_can_be():
    def cell(kind, **ports):
        return {
            "type": kind,
            "port_directions": {p: "output" if p in "OQ" else "input" for p in ports},
            "connections": {p: [bit] for p, bit in ports.items()},
        }

    cells = {
        "lut": cell("SB_LUT4", I0=2, I1=3, I2=4, I3="0", O=10),
        "its register": cell("SB_DFF", C=1, D=10, Q=11),
        "lut read twice": cell("SB_LUT4", I0=11, I1=5, I2="0", I3="0", O=12),
        "a register of its own": cell("SB_DFFE", C=1, E=2, D=12, Q=13),
        "carry beside the first lut": cell("SB_CARRY", I0=3, I1=4, CI=6, CO=14),
        "carry of its own": cell("SB_CARRY", I0=3, I1=5, CI=14, CO=15),
    }
    module = {"cells": cells, "ports": {"q": {"direction": "output", "bits": [12, 13, 15]}}}
    cost = find_target("ice40-hx8k").module_cost(module, ())
    assert cost == Cost(luts=2, ffs=2, carries=2, cells=4)


def test_report_has_the_keys_others_read():
    report = synthesize(design(1), "ice40-hx8k")
    value = json.loads(json.dumps(report.to_json()))
    assert value["target"] == "ice40-hx8k"
    assert {"name", "nodes", "luts", "ffs", "brams", "fmax_mhz"} <= value["classes"][0].keys()
    assert {"luts", "ffs", "brams", "fmax_mhz", "fits"} <= value["fabric"].keys()


def test_report_prints_as_a_table():
    text = printed(synthesize(design(8, 4), "ice40-hx8k"))
    rows = [[part.strip() for part in line.split("│")] for line in text.splitlines()]
    assert ["", "router", "4", "32", "32", "0", "32", "", "1.00", "1.00", ""] in rows
    assert ["", "fabric", "4", "128", "128", "0", "128", "", "", "", ""] in rows
    assert ["", "of the device", "", "1.7 %", "1.7 %", "0.0 %", "1.7 %", "", "", "", ""] in rows


def choose(memories, *, luts=83640, brams=208, rest=20000):
    """The memory rule for an ECP5 of some size, and a fabric with `rest` LUTs beside memories."""
    device = find_target("ecp5-85k")
    device = replace(device, capacity={"luts": luts, "brams": brams})
    blocks = sum(
        count * device.device_family.block_ram_count(*size) for size, count in memories.items()
    )
    return choose_memory_rule(memories, device, Cost(luts=rest, brams=blocks))


def count_of_style(rule, memories, style):
    """The number of memories of each size that have a style by a rule, one memory a node."""
    found = {}
    for size, count in memories.items():
        rules = MemoryRule.parse(rule).split_by_count([[size]] * count)
        found[size] = sum(each.choose_style(*size).value == style for each in rules)
    return found


def shares(rule, memories, *, luts=83640, brams=208, rest=20000):
    """The shares of the LUTs and block RAMs of a device that a rule uses, counted anew."""
    blocks = count_of_style(rule, memories, "block")
    for (width, depth), count in memories.items():
        tiles = -(-depth // 16)
        each = 6 * tiles * -(-width // 4) + (tiles - 1) * width
        rest += (count - blocks[width, depth]) * each
    used = sum(-(-width // 36) * blocks[width, depth] for width, depth in memories)
    return rest / luts, used / brams


SIZES = {(128, 64): 20, (32, 32): 30, (64, 16): 25, (8, 4): 40}


def price(luts, blocks, *, none_fits=False):
    """The price of a choice by its shares: less than 1 if it fits easily."""
    worst = max(luts, blocks)
    return luts + blocks / 4 if worst < 3 / 4 or none_fits else 1 + worst


@pytest.mark.parametrize("luts", [22000, 30000, 50000, 83640, 10**6])
@pytest.mark.parametrize("brams", [10, 60, 130, 10**4])
def test_no_other_choice_costs_less(luts, brams):
    """The price is the smallest of all choices by size; on a full device it is the larger share."""
    device = {"luts": luts, "brams": brams}
    found = shares(choose(SIZES, **device), SIZES, **device)
    every = []
    for chosen in itertools.product(["block", "distributed"], repeat=len(SIZES)):
        styles = zip(SIZES, chosen, strict=True)
        entries = sorted((depth, width, style) for (width, depth), style in styles)
        rule = ",".join(f"{style}:{depth}x{width}" for depth, width, style in entries)
        every.append(shares(rule, SIZES, **device))
    none_fits = min(max(each) for each in [found, *every]) > 1
    least = min(price(*each, none_fits=none_fits) for each in every)
    assert price(*found, none_fits=none_fits) <= least * 1.00001


def test_no_luts_are_wasted_where_everything_fits():
    """Memories become block RAMs up to three quarters of the device, shallow ones stay LUTs."""
    assert choose({(32, 96): 80, (32, 16): 32}, rest=4000) == "registers:2,distributed:16x32,block"
    assert choose({(32, 32): 170}) == "registers:2,distributed"
    assert choose({(32, 32): 40}) == "registers:2,block"
    assert choose({(32, 16): 40}) == "registers:2,distributed"


def test_a_size_is_divided_only_on_a_nearly_full_device():
    """Nodes differ in the kind of RAM only if the device would be more than 3/4 full otherwise."""
    memories = {(128, 64): 64}
    assert choose(memories) == "registers:2,block:64x128@34,distributed"
    assert choose(memories, brams=400) == "registers:2,block"
    assert choose(memories, luts=200000) == "registers:2,distributed"
    for rest in range(0, 80000, 5000):
        rule = choose(memories, rest=rest)
        if "@" in rule:
            for other in ("block", "distributed"):
                assert max(shares(other, memories, rest=rest)) > 3 / 4


def test_a_rule_gives_each_size_its_number():
    """Sizes in any order of widths and depths get their own style, with the fewest entries."""
    memories = {(64, 32): 3, (200, 8): 5, (16, 64): 40, (128, 16): 4}
    rule = choose(memories, luts=24000, brams=40)
    assert count_of_style(rule, memories, "registers") == dict.fromkeys(memories, 0)
    first = "registers:2,distributed:8x200,distributed:16x128,distributed:32x64,"
    assert rule == f"{first}block:64x16@38,distributed"


def test_a_fabric_that_fits_no_device_shows_its_cheapest_memories():
    """Deep memories stay block RAMs, where LUTs of them would fill more than the device, too."""
    deep = {(32, 464): 512, (32, 8): 100}
    assert choose(deep) == "registers:2,distributed:8x32,block"


@pytest.mark.parametrize("target", ["ecp5-85k", "ecp5-25k"])
def test_synthesis_chooses_and_reports_the_memories(target):
    """A fabric has the kinds of RAM of the rule in the report, which `emit` takes as well."""
    fabric = tf.Fabric(tf.compile(tf.plan("2x2", "allgather"), flits=16), width=32)
    report = synthesize(fabric, target)
    assert report.ram == "registers:2,distributed"
    assert {row["style"] for row in report.memories} == {"distributed"}
    assert report.fabric["brams"] == 0
    again = synthesize(emit(fabric, ram=report.ram), target)
    assert (again.fabric, again.memories) == (report.fabric, report.memories)
    assert "--ram registers:2,distributed" in printed(report)


def test_a_full_device_has_both_kinds(monkeypatch):
    """On a device with too few of either resource, some nodes use block RAMs and others LUTs."""
    device = find_target("ecp5-25k")
    small = replace(device, capacity=device.capacity | {"luts": 1800, "brams": 14})
    monkeypatch.setitem(TARGETS, "ecp5-25k", small)
    fabric = tf.Fabric(tf.compile(tf.plan("2x2", "allgather"), flits=16), width=32)
    report = synthesize(fabric, "ecp5-25k")
    assert "@" in report.ram
    assert {row["style"] for row in report.memories} == {"block", "distributed"}
    assert report.fabric["fits"]
    design = emit(fabric, ram=report.ram)
    comments = [design.comments[name] for name in ("endpoint_0", "endpoint_0_ram_1")]
    assert comments == ["Of node 0.", "Of nodes 1, 2, 3."]


def test_wide_words_take_several_blocks():
    family = find_target("ecp5-85k").device_family
    assert [
        family.block_ram_count(*shape) for shape in ((36, 512), (37, 512), (36, 513), (1, 9999))
    ] == [
        1,
        2,
        2,
        1,
    ]


def test_share_of_block_rams_counts_the_words_of_memories():
    """Two nodes with 4 words of 32 bits to send and 8 to receive fill a share of four block
    RAMs.
    """
    fabric = tf.Fabric(tf.compile(tf.plan("2", "allgather"), flits=4), width=32)
    device = find_target("ecp5-85k")
    report = synthesize(emit(fabric, ram="block"), "ecp5-85k")
    brams = report.fabric["brams"]
    assert block_ram_fill(report, device) == 2 * (4 + 8) * 32 / (brams * 512 * 36)
    assert block_ram_fill(replace(report, memories=[]), device) is None
    assert block_ram_fill(replace(report, fabric={"brams": 0}), device) is None
    assert block_ram_fill(report, find_target("xilinx-7")) is None
