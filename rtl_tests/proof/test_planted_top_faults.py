"""Faults that are planted in the text of fabrics of other tops are all refuted.

All of them: ``python -m pytest rtl_tests/proof/test_planted_top_faults.py -m "long or not long"``.
"""

import pytest
from planted import FABRICS, Fault, fabric_of, names, planted, refutation

from torusfabric.proof import prove
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache

pytestmark = pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")

CORES = (
    Fault("core", "fabric", r"\.write_bank\(write_bank_0\)", ".write_bank(write_bank_1)"),
    Fault("core", "fabric", r"\.read_address\(read_address_2\)", ".read_address(~read_address_2)"),
    Fault("core", "fabric", r"\.write_node\(3'd1\)", ".write_node(3'd2)"),
    Fault(
        "core",
        "fabric",
        r"\(inject_0\)",
        "({inject_0[11:9], inject_0[7], inject_0[8], inject_0[6:0]})",
    ),
    Fault("core", "endpoint_0", r"write_enable & ", "write_enable | "),
    Fault("core", "endpoint_0", r"bank_4\[(\w+)\] <=", r"bank_4[~\1] <="),
    Fault("core", "endpoint_0", r"read_data <= (.*);", r"read_data <= (\1) | 3'd4;"),
    Fault("core", "sequencer", r"else if \(busy\) begin", r"\g<0> done <= running;"),
    Fault("core of any root", "sequencer", r"root >= ", "root > "),
    Fault("core of any root", "root_unit", r"offset_0_1 <= (\S+);", r"offset_0_1 <= ~\1;"),
)

STREAMING = (
    Fault("streaming core", "fabric", r"receive_0 = \{(\S+), (\S+),", r"receive_0 = {\2, \1,"),
    Fault("streaming core", "fabric", r"receive_4 = \{", "receive_4 = {~"),
    Fault(
        "streaming core", "fabric", r"tx_address = tx_address_now", "tx_address = tx_address_early"
    ),
    Fault("streaming core", "fabric", r"inject_1\[2:0\]", "inject_1[0], inject_1[2:1]"),
    Fault("streaming core", "fabric", r"\.next\(store_0\)", ".next(~store_0)"),
    Fault("streaming core", "sequencer", r"store_0 <= (\w+);", r"store_0 <= ~\1;"),
    Fault("streaming core", "sequencer", r"write_0 <= (\w+);", r"write_0 <= ~\1;"),
    Fault("streaming core", "router_0", r"inject\[2:0\]", "inject[5:3]"),
)

STREAMS = (
    Fault("streams", "fabric", r"\.write_address\(write_address_1\)",
          ".write_address(write_address_2)"),
    Fault("streams", "fabric", r"\.read_section\(read_section_1\)",
          ".read_section(~read_section_1)"),
    Fault("streams", "fabric", r"(endpoint_at_0 \([^;]*\.run_begins)\(\w+", r"\1(busy_near_0"),
    Fault("streams", "endpoint_0", r"section <= (section .*);", r"section <= ~(\1);"),
    Fault("streams", "endpoint_0", r"bank_0\[\{section, ", "bank_0[{~section, "),
    Fault("streams", "endpoint_0", r"bank_2\[\{section, ", "bank_2[{1'd0, "),
    Fault("streams", "endpoint_0", r"bank_4\[\{write_section\[0\]", "bank_4[{write_section[1]"),
    Fault("streams", "endpoint_0", r"bank_4\[(\w+\[3:0\])\]", r"bank_4[\1 ^ 4'd8]"),
    Fault("streams", "endpoint_0", r"if \(write_kept\)", "if (write_enable)"),
    Fault("streams", "endpoint_0", r"kept\[\{write_section, ", "kept[{1'd0, write_section[0], "),
    # Written and read alike, but what comes later is where what waits is.
    Fault("streams", "endpoint_0", r"(?s)bank_0\[\{section, (.*)bank_0\[\{read_section\[0\], ",
          r"bank_0[{1'd0, \1bank_0[{1'd0, "),
    Fault("streams", "endpoint_0", r"(?s)kept\[\{write_section, (.*)kept\[\{read_section, ",
          r"kept[{1'd0, write_section[0], \1kept[{1'd0, read_section[0], "),
    Fault("streams", "endpoint_0", r"if \(read_advance", "if (~read_advance"),
    Fault("streams", "endpoint_0", r"unloaded\[0\] \?", "unloaded[2] ?"),
    Fault("streams of any root", "endpoint_0", r"bank_0_sent_1\[\{(\w+)\[3\]",
          r"bank_0_sent_1[{~\1[3]"),
    Fault("streams of any root", "endpoint_0", r"unloaded \? (\w+) : (\w+)", r"unloaded ? \2 : \1"),
    Fault("streams of any root", "sequencer", r"root >= ", "root > "),
)  # fmt: skip

FOUR, ENGINE = "streams of four sections", "engine of four sections"

SECTIONS = (
    # Sections wrap at two: of the run, of what is loaded, of what is unloaded, of what is kept.
    Fault(FOUR, "endpoint_0", r"bank_0\[\{section, ", "bank_0[{1'd0, section[0], "),
    Fault(FOUR, "endpoint_0", r"section <= section \+ \{1'd0, (\w+)\};",
          r"section <= {1'd0, section[0] ^ \1};"),
    Fault(FOUR, "endpoint_0", r"bank_4\[\{write_section\[1:0\]", "bank_4[{1'd0, write_section[0]"),
    Fault(FOUR, "endpoint_0", r"bank_0\[\{read_section\[1:0\]", "bank_0[{1'd0, read_section[0]"),
    Fault(FOUR, "endpoint_0", r"kept\[\{write_section, ", "kept[{1'd0, write_section[1:0], "),
    Fault(FOUR, "fabric", r"\.read_section\(read_section_1\)",
          ".read_section(3'h4 ^ read_section_1)"),
    Fault(ENGINE, "endpoint_0", r"bank_3_sent_1\[\{(\w+)\[5:4\]", r"bank_3_sent_1[{1'd0, \1[4]"),
)  # fmt: skip

SUMS = (
    Fault("injected sums", "operator_3", r"a \+ b", "a - b"),
    Fault("injected sums", "operator_3", r"a >= b", "a < b"),
    Fault("injected sums", "endpoint_0", r"\.a\((\w+)\),\s+\.b\(\w+\)", r".a(\1), .b(\1)"),
    Fault("injected sums", "endpoint_0", r"\.code\((\w+)\)", r".code(~\1)"),
    Fault("injected sums", "endpoint_0", r"\.a\((\w+)\)", r".a({\1[0], \1[1], \1[2]})"),
    Fault("injected sums", "endpoint_0", r"\{inject, rx\[2:0\]\}", "{rx[2:0], inject}"),
)

BEATS = (
    Fault("beats", "endpoint_0", r"flit_2_0 <= ", "flit_2_0 <= ~"),
    Fault("beats", "endpoint_0", r"(bank_\d)\[(\w+)\[2:1\]\]\[7:0\]", r"\1[\2[2:1]][15:8]"),
    Fault("beats", "host", r"write_address(\S*) <= ", r"write_address\1 <= ~"),
    Fault("streams of beats", "endpoint_0", r"flit_2_0 <= ", "flit_2_0 <= ~"),
    Fault("streams of beats", "endpoint_0", r"\[15:0\] <= rx", "[31:16] <= rx"),
    Fault("streams of beats", "endpoint_0", r"\{write_section\[0\], write", "{1'd0, write"),
)

QUICK = (BEATS[0], SUMS[0], STREAMS[0], CORES[0], CORES[3], STREAMING[0], STREAMING[-2])

EVERY = BEATS + CORES + STREAMING + STREAMS + SECTIONS + SUMS


def test_every_fault_can_be_planted():
    """A text that has changed leaves none out unnoticed."""
    for fault in EVERY:
        planted(fault)


@pytest.mark.parametrize("fault", QUICK, ids=names(QUICK))
def test_a_fault_in_another_top_is_refuted(fault):
    assert refutation(fault) is not None


@pytest.mark.long
@pytest.mark.parametrize("fault", EVERY, ids=names(EVERY))
def test_every_fault_in_another_top_is_refuted(fault):
    wrong = refutation(fault)
    assert wrong is not None
    assert wrong.module
    assert wrong.signal


@pytest.mark.long
@pytest.mark.parametrize("name", FABRICS)
def test_without_a_fault_all_is_proved(name):
    assert prove(fabric_of(name), cache=Cache()).counterexample is None
