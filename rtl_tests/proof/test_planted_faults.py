"""Faults that are planted in the text, or in the program, are all refuted.

All of them: ``python -m pytest rtl_tests/proof/test_planted_faults.py -m "long or not long"``.
"""

from dataclasses import replace

import numpy as np
import pytest
from helpers import few, with_fields
from planted import CHOICE, OTHER_WAY, Fault, fabric_of, names, planted, refutation

import torusfabric as tf
from torusfabric.program import Action, Point
from torusfabric.proof import prove, routers
from torusfabric.proof.solver import solve
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache

pytestmark = pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")

#: What is registered of two expressions, each in a line of its own.
PAIR = r"write_enable <= \{(.*), (.*)\};"

QUICK = (
    Fault("table", "fabric", r"\.rx\(\{(\S+), (\S+), ", r".rx({\2, \1, ", 2),
    Fault("table", "host", r"<= host_node;", "<= ~host_node;"),
    Fault("table", "host", PAIR, r"write_enable <= {\2, \1};"),
    Fault(
        "table", "fabric", r"\.write_enable\(write_enable\[0\]\)", ".write_enable(write_enable[1])"
    ),
    Fault("table", "read_merge_4", r"\|", "&"),
    Fault("table", "endpoint_0", r"write_node == node", "write_node >= node"),
    Fault("table", "sequencer", r"~stages\[4\]", "~stages[3]"),
)

LINKS = (
    Fault("long links", "fabric", r"link_2 link_from_0_0", "link_7 link_from_0_0"),
    Fault("long links", "link_7", r"at >= 3'd5", "at >= 3'd4"),
    Fault("long links", "link_7", r"at >= 3'd5", "at >= 3'd6"),
    Fault("long links", "link_2", r"arrived <= sent", "arrived <= {sent[1:0], sent[2]}"),
    Fault("long links", "fabric", r"\.sent\(tx_0\[2:0\]\)", ".sent(tx_1[2:0])"),
    Fault("long links", "fabric", r"\.rx\(\{(\w+), (\w+), ", r".rx({\2, \1, "),
    Fault("long links", "fabric", r"\.rx\(\{(.*), arrived_0_(\d)", r".rx({\1, tx_\2[2:0]"),
    Fault("streams of a mesh", "fabric", r"numbers\(\{2'd0, 2'd1\}\)", "numbers({2'd1, 2'd0})"),
    Fault(
        "streams of a mesh", "unloader", r"own_numbers >> \{packet, 1'd0\}", "own_numbers >> packet"
    ),
    Fault("slow link", "fabric", r"\.rx\(\{arrived_0_0", ".rx({tx_0[2:0]"),
)

WIRES = (
    Fault("table", "fabric", r"\.rx\(\{tx_(\d)", ".rx({tx_0"),
    Fault("table", "fabric", r"\.node\(3'd2\)", ".node(3'd3)"),
    Fault("table", "fabric", r"\(inject_0\)",
          "({inject_0[11:9], inject_0[6], inject_0[8:7], inject_0[5:0]})"),
    Fault("table", "fabric", r"\(inject_0\)",
          "({inject_0[11:9], inject_0[7], inject_0[8], inject_0[6:0]})"),
    Fault("sums along trees", "fabric", r"made_1\[11:9\]", "made_1[8:6]"),
    Fault("table", "fabric", r"\.write_data\(write_data_near_1\)",
          ".write_data(~write_data_near_1)"),
    Fault("table", "fabric", r"\.write_enable\(write_enable_near_1\)",
          ".write_enable(write_enable_near_0)"),
    Fault("table", "fabric", r"\.read_bank\(read_bank_near_1\)", ".read_bank(read_address_near_1)"),
    Fault("table", "fabric", r"read_data_3, read_data_2", "read_data_2, read_data_2"),
    Fault("table", "fabric", r"\.busy\(busy_near_1\)", ".busy(store_0_near_1)"),
    Fault("table", "fabric", r"\.select\(select_near_0\)", ".select(~select_near_0)"),
    Fault("engine", "fabric", r"\.offset\(\{offset_1_1, offset_0_0\}",
          ".offset({offset_1_2, offset_0_0}"),
    Fault("engine", "fabric", r"000a0009", "000a0008"),
    Fault("engine", "fabric", r"\{24'h(\w*)1\}", r"{24'h\g<1>0}"),
)  # fmt: skip

ROUTERS = (
    Fault("table", "selector_2_3", CHOICE, OTHER_WAY),
    Fault("table", "router_0", r"inject\[8:6\]", "inject[5:3]"),
    Fault("table", "router_0", r"rx\[5:3\]", "rx[8:6]"),
    Fault("table", "router_0", r"\.select\(select\)", ".select(~select)", 1),
    Fault("pattern", "router_0", r"\.given\(enable\)", ".given(~enable)"),
    Fault("pattern", "router_0", r"tx <= (\{[^}]*\});", r"tx <= \1 ^ 12'h800;"),
    Fault("rounds", "router_0", r"tx <= (\{.*\});", r"tx <= \1 & 12'h7ff;"),
    Fault("engine", "selector_2_3", CHOICE, OTHER_WAY),
    Fault("engine", "branches_3_3", CHOICE, OTHER_WAY, 1),
)

SEQUENCERS = (
    Fault("table", "sequencer", r"table_\[1\] = 1'd1", "table_[1] = 1'd0"),
    Fault("table", "sequencer", r"start & ", "start | "),
    Fault("table", "sequencer", r"goes_2 <= goes;", "goes_2 <= goes_3;"),
    Fault("table", "sequencer", r"goes_3 <= (\w+);", r"goes_3 <= \1 | begins;"),
    Fault("table", "sequencer", r"row \+ 1'd1", "row - 2'd2"),
    Fault("table", "sequencer", r"cycles\[3:0\] \+ 4'd1", "cycles[3:0] + 4'd2"),
    Fault("table", "sequencer", r"= stages\[0\] & ", "= ~stages[0] & "),
    Fault("table", "sequencer", r"stages\[5\] & ", "stages[5] | "),
    Fault("table", "sequencer", r"~stages\[4\]", "~stages[3]"),
    Fault("table", "sequencer", r"else if \(busy\) begin", r"\g<0> done <= running;"),
    Fault("table", "sequencer", r"select = (\w+);", r"select = ~\1;"),
    Fault("table", "sequencer", r"busy \? (\S+) : idle_address", r"busy ? \1 : ~idle_address"),
    Fault("engine", "sequencer", r"table_\[1\] = (\d+)'h\w+", r"table_[1] = \1'h0"),
    Fault("engine", "sequencer", r"length == 2'd0", "length == 2'd3"),
    Fault("lengths", "sequencer", r"length > 3'd5", "length >= 3'd5"),
    Fault("engine", "sequencer", r"length - 2'd1", "length - 2'd2"),
    Fault("engine", "sequencer", r"cycles\[4:0\] \+ 5'd1", "cycles[4:0] + 5'd2"),
    Fault("engine", "sequencer", r"root >= 3'd6", "root > 3'd4"),
    Fault("engine", "sequencer", r"refused\[0\] \? 4'd3", "refused[0] ? 4'd4"),
    Fault("engine", "sequencer", r"if \(start\) refused", "if (start & (|wrong)) refused"),
    Fault(
        "engine",
        "sequencer",
        r"else if \(busy\) begin",
        r"else if (start & ~busy) done <= 1'd0; \g<0>",
    ),
    Fault("engine", "sequencer", r"= single_flit;", "= ~single_flit;"),
    Fault("engine", "sequencer", r"pause_left == 2'd2", "pause_left == 2'd1"),
    Fault("engine", "sequencer", r"end_of_rows \? 1'd0", "end_of_rows ? 1'd1"),
)

ENDPOINTS = (
    Fault("table", "endpoint_0", r"rx\[8:3\]", "rx[5:0]"),
    Fault("table", "endpoint_0", r"bank_0\[(\w+)\] <=", r"bank_0[~\1] <="),
    Fault("table", "endpoint_0", r"bank_4\[(\w+\[1:0\])\]", r"bank_4[\1 ^ 1'd1]"),
    Fault("table", "endpoint_0", r"write_node == node", "write_node != node"),
    Fault("table", "endpoint_0", r"write_node == node\[1:0\]", "write_node == node[2:1]"),
    Fault("table", "endpoint_0", r"write_node == node\[1:0\]", "write_node[0] == node[0]"),
    Fault("table", "endpoint_0", r"write_enable & ", "write_enable | "),
    Fault("table", "endpoint_0", r"~\(read_node == node", "~(read_node >= node"),
    Fault("table", "endpoint_0", r"\.given\(store_0\)", ".given(~store_0)"),
    Fault("table", "endpoint_0", r"read_data <= (.*);", r"read_data <= (\1) | 3'd4;"),
    Fault("engine", "endpoint_0", r"pointer_8 \+ ", "pointer_8 - "),
    Fault("engine", "endpoint_0", r"\{\|offset", "{&offset", 2),
    Fault("engine", "endpoint_0", r"(\w+) \? pointer_8 : ", r"~\1 ? pointer_8 : "),
    Fault("engine", "endpoint_0", r"bank_5\[(\w+)\] <= write_data",
          r"bank_5[\1 ^ 1'd1] <= write_data"),
    Fault("pattern", "endpoint_0", r"read_node == node", "read_node != node"),
    Fault("rounds", "endpoint_0", r"read_node == node", "read_node != node"),
)  # fmt: skip

OTHERS = (
    Fault("engine", "control_stage", "<= busy;", "<= 1'b1;"),
    Fault("table", "control_stage", "<= write_data;", "<= ~write_data;"),
    Fault("table", "control_stage", "<= store_1;", "<= store_0;"),
    Fault("engine", "rom", r"data <= rows\[address\];", "data <= rows[address ^ 1'b1];"),
    Fault("engine", "rom", r"k < DEPTH \? k : DEPTH - 1", "k < DEPTH ? DEPTH - 1 - k : 0"),
    Fault("many rows", "look_up", r"= rows\[address\];", "= rows[address ^ 1'b1];"),
    Fault("many rows", "look_up", r"k < DEPTH \? k ", "k < DEPTH ? DEPTH - 1 - k "),
    Fault("many rows", "sequencer", r"\.DEPTH\(20\)", ".DEPTH(19)"),
    Fault("many rows", "sequencer", r"CONTENTS\((\d+)'h\w", r"CONTENTS(\1'h0"),
    Fault("engine", "root_unit", r"choose_2 = 2'd1;", "choose_2 = 2'd2;"),
    Fault("engine", "root_unit", r"choose_5 = 2'd2;", "choose_5 = 2'd1;"),
    Fault("engine", "root_unit", r"offset_0_1 <= (\S+);", r"offset_0_1 <= ~\1;"),
    Fault("sums", "combiner", r"rx\[2:0\] \+ ", "rx[2:0] - "),
    Fault("sums of words", "sum_idle_2_3", r"word \+ ", "word - "),
    Fault("sums of words", "sum_idle_2_3", CHOICE, OTHER_WAY),
    Fault("engine", "cascade_3_3", CHOICE, OTHER_WAY, 1),
    Fault("sums", "combiner", r">=", "<="),
    Fault("sums", "combiner", r"\.given\(operator_code\)", ".given(~operator_code)"),
    Fault("sums", "combiner", r"result <= (\{[^}]*\});", r"result <= \1 ^ 1'b1;"),
    Fault("sums", "combiner", r"3'd0 : inject\[5:3\]", "3'd1 : inject[5:3]", 1),
    Fault("sums along trees", "combiner_1", r"rx\[8:6\] \+ ", "rx[8:6] - "),
    Fault("sums along trees", "combiner_1", r"rx\[2:0\] >= inject", "rx[2:0] >= ~inject"),
    Fault("sums along trees", "router_0", r"inject\[5:3\]", "inject[2:0]"),
    Fault("sums along trees", "router_0", r"rx\[8:6\]", "rx[5:3]"),
    Fault("sums around cycles", "combiner", r"rx\[2:0\] \+ ", "rx[2:0] - "),
    Fault("sums around cycles", "router_0", r"\{~operator_here, ", "{operator_here, "),
    Fault("sums around cycles", "router_0", r"\.select\(select\)", ".select(~select)", 3),
    Fault("sums around cycles", "router_0", r"inject\[5:3\]", "inject[2:0]"),
    Fault("table", "host", r"~host_addr\[4\]", "host_addr[4]"),
    Fault("engine", "host", r"next_read_address = (.+);", r"next_read_address = ~(\1);"),
    Fault("table", "host", r"= host_we & ", "= "),
    Fault("table", "host", r"& ~busy ", ""),
    Fault("table", "host", r"& ~start ", ""),
    Fault("table", "fabric", r"\.start\(start\), \.busy\(busy\)", ".start(start), .busy(start)"),
    Fault("engine", "host", r"\(~host_addr\[1\] \| ~host_addr\[0\]\)", "~host_addr[1]"),
    Fault("engine", "host", r"\(~host_addr\[1\] \| ~host_addr\[0\]\)", "1'd1"),
    Fault("engine", "host", r"~busy &\n +\(~host_addr\[5\] &\n", "(~host_addr[5] &"),
    Fault("engine", "endpoint_0", r"<= write_enable_1 & ", "<= write_enable & "),
    Fault(
        "engine",
        "fabric",
        r"\.write_enable_1\(write_enable_1_near_0\)",
        ".write_enable_1(write_enable_near_0)",
    ),
    Fault("table", "host", r"= host_we & (.*);", "= host_we;"),
    Fault("table", "host", PAIR, "write_enable <= host_we;"),
    Fault("table", "host", PAIR, r"write_enable <= {\1, \1};"),
    Fault("table", "host", PAIR, r"write_enable <= {\1 | \2, \2};"),
    Fault("table", "host", r"write_data <= (\w+);", "write_data <= host_wdata;"),
    Fault("table", "host", r"<= host_addr\[3:0\]", "<= host_addr[4:1]"),
    Fault("table", "host", r" locator_nodes\[3\] = 3'd1", " locator_nodes[3] = 3'd0"),
    Fault("table", "host", r" locator_table\[5\] = 4'd11", " locator_table[5] = 4'd10"),
    Fault("table", "host", r"(write_locator_offset_2 <= .*) < ", r"\1 >= "),
)


@pytest.mark.parametrize("fault", few(4, [*QUICK], tuples=True), ids=names(QUICK))
def test_a_fault_in_the_text_is_refuted(fault):
    assert refutation(fault) is not None


def test_a_refuted_run_has_waves_with_its_words():
    wrong = refutation(QUICK[-1])
    assert wrong is not None
    assert (wrong.signal, wrong.cycle) == ("busy", 11)
    assert "tx_0_0" in wrong.wave
    assert "word_1" in wrong.wave


def test_many_sums_are_proved_port_by_port(monkeypatch):
    """Those of the last in-port, too."""
    monkeypatch.setattr(routers, "MOST_SUMS", 1)
    fault = Fault("loaded sums", "combiner", r"\{inject, result\}", "{result, inject}", 1)
    fabric = fabric_of(fault.fabric)
    every = routers.router_harnesses(fabric, planted(fault))
    assert [each.name for each in every if solve(each).failed] == ["combiner at in-port 1"]


EVERY = LINKS + WIRES + ROUTERS + SEQUENCERS + ENDPOINTS + OTHERS


def test_every_fault_can_be_planted():
    """A text that has changed leaves none out unnoticed."""
    for fault in QUICK + EVERY:
        planted(fault)


@pytest.mark.long
@pytest.mark.parametrize("fault", EVERY, ids=names(EVERY))
def test_every_fault_in_the_text_is_refuted(fault):
    wrong = refutation(fault)
    assert wrong is not None
    assert wrong.module
    assert wrong.signal


def turned(field):
    """Addresses that are one off, where there are any."""
    return replace(field, values=np.where(field.values > 0, field.values - 1, field.values))


def swapped(field):
    """Another out-port's sources."""
    return replace(field, point=Point(Action.SELECT, 3 - field.point.number))


PROGRAMS = {
    "a setting selects another source": (Action.SELECT, swapped),
    "a reader reads the word before": (Action.READ, turned),
    "memories store a word too low": (Action.WRITE, turned),
    "rows come in another order": (
        Action.SELECT, lambda field: replace(field, values=field.values[::-1].copy())
    ),
    "memories store too early": (
        Action.WRITE, lambda field: replace(field, delay=field.delay - 1)
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("what", PROGRAMS)
def test_a_fault_in_the_program_is_refuted(what):
    program = with_fields(fabric_of("table").program, *PROGRAMS[what])
    assert prove(tf.Fabric(program, width=3), cache=Cache()).counterexample is not None
