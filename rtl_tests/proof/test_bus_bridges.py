"""Bridges to buses are proved by induction, and faults that are planted in them refuted."""

import re
from dataclasses import replace
from functools import cache

import pytest
from helpers import few

import torusfabric as tf
from torusfabric.proof.bridges import bridge_harness
from torusfabric.proof.solver import solve
from torusfabric.rtl.bus import Bus
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache

pytestmark = pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")


@cache
def text_of(bus):
    program = tf.compile(tf.plan("3", "allgather"), flits=2)
    return tf.emit(tf.Fabric(program, width=4, bus=bus))


def failure(bus, design):
    return solve(bridge_harness(design, Bus(bus)), Cache()).failed


FAULTS = {
    "an answer to a read does not end": (
        "axi-lite", r"s_axil_rvalid & s_axil_rready", "1'd0"
    ),
    "a write is acknowledged that failed": (
        "wishbone", r"assign wb_ack = (.*) & ~access_error;", r"assign wb_ack = \1;"
    ),
    "an answer is not held": (
        "axi-lite", r"s_axil_rvalid & s_axil_rready\)", r"s_axil_rvalid)"
    ),
    "data are taken without an address": (
        "axi-lite", r"s_axil_awvalid & s_axil_wvalid", "s_axil_wvalid"
    ),
    "an answer comes twice": (
        "axi-lite", r"s_axil_bvalid & s_axil_bready", "s_axil_bvalid & s_axil_rready"
    ),
    "a word that is read is another": (
        "wishbone", r"wb_dat_r = access_word", "wb_dat_r = ~access_word"
    ),
    "a read is carried out as a write": (
        "wishbone", r"access_write = wb_we", "access_write = 1'b1"
    ),
    "a word that was asked for is another": (
        "axi-lite", r"s_axil_rdata <= access_word", "s_axil_rdata <= ~access_word"
    ),
    "a word does not wait": (
        "axi-lite", r"if \(rst\) begin", r"if (fsm_state) s_axil_rdata <= access_word; \g<0>"
    ),
    "an error of a write is not said": (
        "axi-lite", r"s_axil_bresp <= access_error \? 2'd2", "s_axil_bresp <= access_error ? 2'd0"
    ),
    "a read is of the address of a write": (
        "axi-lite", r"access_write \? (\S+) : (\S+);", r"access_write ? \2 : \1;"
    ),
    "a write is taken before the last is answered": (
        "axi-lite", r"~s_axil_bvalid", "1'b1"
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("bus", ["wishbone", "axi-lite"])
def test_a_bridge_is_proved(bus):
    assert failure(bus, text_of(bus)) is None


@pytest.mark.parametrize("what", few(3, [*FAULTS]))
def test_a_fault_in_a_bridge_is_refuted(what):
    bus, old, new = FAULTS[what]
    design = text_of(bus)
    changed, count = re.subn(old, new, design.modules["bus_bridge"], count=1)
    assert count == 1
    found = failure(bus, replace(design, modules=design.modules | {"bus_bridge": changed}))
    assert found is not None
    assert found.reached
