"""Links on transceivers: words arrive in time and in the right code, whatever the line does."""

import json
import re

import pytest
from board_systems import board_system
from helpers import few
from verilog_bench import have_icarus

from torusfabric.adapters.boards.hardware.link_plan import SERDES
from torusfabric.cli import main

pytest.importorskip("liteiclink")

import serdes_bench

from torusfabric.adapters.boards.pairs.words import COMMA

#: The 8b/10b code of IEEE 802.3, tables 36-1 and 36-2, after at least as many zeros as ones: six
#: bits for the lower five bits of a byte, then four bits for the upper three.
SIX = (  # noqa: SIM905 (a table is read more easily)
    "100111 011101 101101 110001 110101 101001 011001 111000 111001 100101 010101 110100 001101 "
    "101100 011100 010111 011011 100011 010011 110010 001011 101010 011010 111010 110011 100110 "
    "010110 110110 001110 101110 011110 101011"
).split()
FOUR = ("1011", "1001", "0101", "1100", "1101", "1010", "0110", "1110")

#: Bytes whose last bits follow four equal bits.
ALIKE = {False: (17, 18, 20), True: (11, 13, 14)}


def part(bits, more, turned):
    """Return the bits as they are sent, and True if more ones than zeros have then been sent."""
    balanced = 2 * bits.count("1") == len(bits)
    if more and (turned or not balanced):
        bits = bits.translate({48: "1", 49: "0"})
    return bits, more == balanced


def coded(byte, more):
    """Return the ten bits of a byte in order, and True if more ones than zeros have been sent."""
    if byte == COMMA | 256:
        return ("1100000101" if more else "0011111010"), not more
    low, high = byte & 31, byte >> 5
    six, more = part(SIX[low], more, low == 7)
    last = "0111" if high == 7 and low in ALIKE[more] else FOUR[high]
    four, more = part(last, more, high == 3)
    return six + four, more


@pytest.mark.skipif(not have_icarus(), reason="Icarus Verilog is not installed")
@pytest.mark.parametrize("line", few(1, [
    {"odd": 1, "begin": 5.0},
    {"words": 20, "late": 4.0, "begin": 2.5},
    {"words": 17, "late": 1.2, "begin": 7.5, "slip": 9_000.0, "until": 18_000.0},
]))  # fmt: skip
def test_words_come_in_time(line, tmp_path):
    """Words arrive in order and in time in both directions, also after a lost bit."""
    system = board_system((2,), "2", 20, width=32, max_flits=8, phy=SERDES)
    with serdes_bench.short_resets():
        said = serdes_bench.run_pair(system, tmp_path, **line)
    for came in said.came.values():
        numbers = [number for _, number in came[-40:]]
        assert numbers == [*range(numbers[0], numbers[0] + 40)]
        took = [cycles - 0.5 for cycles, _ in came]
        assert SERDES.least <= min(took) <= max(took) <= SERDES.most
    check_code(said.codes[-900:])  # while it is reset, no disparity is counted


def check_code(codes):
    """Check that all bytes are sent in 8b/10b code, two cycles after they are given."""
    sent = [unit for units, _ in codes[:-2] for unit in (units & 511, units >> 9)]
    tens = [f"{ten:010b}"[::-1] for _, pair in codes[2:] for ten in (pair & 1023, pair >> 10)]
    first = sent.index(COMMA | 256)
    more = coded(sent[first], True)[0] == tens[first]
    for unit, ten in zip(sent[first:], tens[first:], strict=True):
        expected, more = coded(unit, more)
        assert ten == expected
    assert len({*sent}) > 240


@pytest.mark.long
@pytest.mark.parametrize("board", ["ecpix5-45f", "versa-ecp5"])
def test_transceivers_are_placed(board, tmp_path):
    """Transceivers at 2.5 Gbit/s and their 25 MHz clocks are placed and routed."""
    command = ["build", "--board", board, "4", "allgather", "--boards", "2", "--block", "1"]
    assert main([*command, "--flits", "4", "--width", "8", "--phy", "serdes",
                 "-o", str(tmp_path / "out")]) == 0  # fmt: skip
    found = json.loads((tmp_path / "out/report.json").read_text())
    used = {name: each["used"] for name, each in found["resources"].items()}
    assert (used["DCUA"], used["EHXPLLL"], found["clock_mhz"]) == (1, 1, 25)
    said = (tmp_path / "out/build/fabric.tim").read_text()
    clocks = re.findall(r"(\w+)': .*at ([\d.]+) MHz", said)
    assert {("serdes_tx_0_clock", "125.00"), ("serdes_rx_0_clock", "125.00")} <= {*clocks}
    assert re.search(r"constraining clock net '[\w.]*serdes_rx_0_words_0' to 25.00 MHz", said)
