"""Links on differential pairs: words arrive at any delay, and impossible choices are refused."""

import json
import random
import re
from dataclasses import replace

import pytest
from amaranth.hdl import ClockDomain, Module
from amaranth.sim import Simulator
from board_systems import board_system
from helpers import few

import torusfabric as tf
from torusfabric.adapters.boards.bridge.linked import CableSignals, SimulatedPins, pair_domain
from torusfabric.adapters.boards.drive import simulate_boards
from torusfabric.adapters.boards.drive.compiled import CompiledBoards
from torusfabric.adapters.boards.hardware import Block
from torusfabric.adapters.boards.hardware.link_plan import LVDS
from torusfabric.adapters.boards.pairs import PairLinks, pair_links
from torusfabric.adapters.boards.pairs.lvds import LvdsLayer
from torusfabric.adapters.boards.pairs.words import (
    TRUSTED,
    BitEncoding,
    PairReceiver,
    PairSender,
    WordTimer,
)
from torusfabric.cli import main
from torusfabric.fpga.board import find_board
from torusfabric.fpga.board.plan import plan_build
from torusfabric.fpga.bridge.board import ConnectedBoard
from torusfabric.fpga.bridge.bus_access import BusAccess
from torusfabric.fpga.bridge.simulated import CYCLE_SECONDS, SimulatedPort
from torusfabric.rtl.run_choices import RunError

#: Cycles in which a pair carries one word, four bits in each: 600 Mbit/s at 25 MHz.
CYCLES = 6
GEAR = BitEncoding.gear


class Line:
    """A differential pair in Amaranth's simulator that delays bits by a number of bits.

    Parameters
    ----------
    noise : range
        While these words are sent, every 50th bit or so is wrong.
    slips : int, optional
        When this word is sent, a bit comes twice.

    Attributes
    ----------
    got : list of (float, int or None)
        Latency in cycles and number of each received word.
    """

    def __init__(self, late, *, noise=range(0), slips=None, words=400, seed=1):
        m, self._random = Module(), random.Random(seed)
        self._noise, self._slips = noise, slips
        units = BitEncoding(CYCLES)
        m.submodules.sender, m.submodules.receiver = PairSender(units), PairReceiver(units)
        m.submodules.timer = WordTimer(CYCLES)
        m.d.comb += m.submodules.sender.load.eq(m.submodules.timer.load)
        self._parts = m.submodules.sender, m.submodules.receiver, m.submodules.timer
        self._bits, self._words, self.got = [0] * late, words, []
        simulator = Simulator(m)
        simulator.add_clock(1e-8)
        simulator.add_testbench(self._run)
        simulator.run()

    async def _run(self, ctx):
        sender, receiver, timer = self._parts
        sent, cycles, phase, clock = {}, CYCLES, self._random.randrange(6), 0
        for now in range(cycles * self._words):
            if now % cycles == phase:
                word = self._random.getrandbits(CYCLES * GEAR - 1)
                sent[word] = now, len(sent)
                ctx.set(sender.word, word)
            if now % cycles == (phase + 2) % cycles:
                ctx.set(timer.turned, len(sent) % 2)
            self._bits += [ctx.get(sender.units) >> k & 1 for k in range(GEAR)]
            came, self._bits = self._bits[:GEAR], self._bits[GEAR:]
            if self._noise and len(sent) in self._noise:
                came = [bit ^ (self._random.random() < 0.02) for bit in came]
            if len(sent) == self._slips:
                self._bits.insert(0, came[-1])
                self._slips = None
            ctx.set(receiver.units, sum(bit << k for k, bit in enumerate(came)))
            await ctx.tick()
            if clock and not ctx.get(receiver.clock) and (word := ctx.get(receiver.word)):
                at, number = sent.get(word, (now, None))
                self.got.append(((now + 1 - at) / cycles, number))
            clock = ctx.get(receiver.clock)


@pytest.mark.parametrize("late", few(4, range(31)))
def test_words_begin_wherever_they_do(late):
    """Words arrive in order at any bit delay, and their latency is within that of the link plan."""
    got = Line(late, seed=late).got
    numbers = [number for _, number in got]
    assert len(got) > 400 - 300
    assert numbers == [*range(numbers[0], numbers[0] + len(numbers))]
    took = {cycles - 0.5 for cycles, _ in got}
    assert LVDS.least - 1 / 6 <= min(took) == max(took) <= LVDS.most


def test_a_place_is_kept_and_found_again():
    """Wrong bits keep the word alignment; after an additional bit the receiver finds it again."""
    line = Line(5, noise=range(200, 260), slips=300, words=480)
    numbers = [number for _, number in line.got]
    assert {*range(260, 295), *range(420, 475)} <= {*numbers}
    assert len({*range(310, 400)} - {*numbers}) > TRUSTED
    assert 10 < len({*range(200, 260)} & {*numbers}) < 60


def pair(**options):
    return board_system((2,), "2", 16, phy=LVDS, **{"max_flits": 8} | options)


@pytest.mark.long
def test_boards_run_on_pairs():
    """Boards on pairs run within the planned latency; beyond it, all report a link error."""
    assert simulate_boards(pair(), jobs=12).passed
    with CompiledBoards(pair(), seed=1, link_errors=0.0) as boards:
        for cable in boards.cables:
            cable.late = 14
        boards.start_and_wait(tf.Job(length=3))
        assert boards.output_values("error") == [RunError.LINK] * 2


class OwnPins(SimulatedPins):
    """Simulated pins for a board that is simulated alone."""

    def add_common_hardware(self, m, platform):
        m.domains += ClockDomain(self.sending_domain(0), reset_less=True)


def test_a_block_runs_over_pairs(monkeypatch):
    """A block runs alone over pairs with different delays, one for each link port."""
    # A block alone, with its pairs looped back.
    alone = property(
        lambda board: replace(board.system.link_plan, boards=board.system.boards.looped_back)
    )
    monkeypatch.setattr(Block, "link_plan", alone)
    system = pair(max_flits=None, flits=2, width=16)
    platform = find_board("ulx3s-85f").make_platform()
    own = OwnPins(LvdsLayer(platform), 1, [(1, 0)], CableSignals(), [3, 17])
    pairs = PairLinks(system, 1, own, platform)
    block = Block(system, 1, links=pairs)
    port = SimulatedPort(block)
    port._simulator.add_clock(CYCLE_SECONDS / pairs.units.cycles, domain=pair_domain(1))  # noqa: SLF001
    for _ in range(4):  # until the receiver is aligned to words
        port.read(1)
    report = ConnectedBoard(block, BusAccess(port)).run()
    assert report.passed
    assert report.words_checked == 4


def test_all_clocks_are_constrained():
    """The clocks of incoming bits and of the words made of them are constrained."""
    system, board = pair(), find_board("ulx3s-85f")
    block = Block(system, 1, links=pair_links(system, 1, board.make_platform()))
    text = str(plan_build(block, board)[0].files["fabric.lpf"])
    clocks = dict(re.findall(r'FREQUENCY NET "[\w.]*bundle_0\.(\w+)" (\d+)', text))
    assert clocks == {"lvds_rx_0_clock": "300000000", "lvds_rx_0_words_0": "25000000"}


@pytest.mark.long
def test_pairs_are_placed(tmp_path):
    """Pairs at 600 Mbit/s are placed and routed with their clocks."""
    command = ["build", "--board", "ulx3s-25f", "4", "allgather", "--boards", "2", "--block", "1"]
    assert main([*command, "--flits", "4", "--width", "8", "--phy", "lvds",
                 "-o", str(tmp_path / "out")]) == 0  # fmt: skip
    found = json.loads((tmp_path / "out/report.json").read_text())
    used = {name: each["used"] for name, each in found["resources"].items()}
    assert (used["IOLOGIC"], used["CLKDIVF"], used["EHXPLLL"]) == (3, 2, 1)
    said = (tmp_path / "out/build/fabric.tim").read_text()
    assert re.search(r"constraining clock net '[\w.]*lvds_rx_0_words_0' to 25.00 MHz", said)


@pytest.mark.parametrize(("board", "phy", "words", "line"), [
    ("ulx3s-85f", "lvds", ["4x4", "--boards", "2x1", "--block", "1,0", "--lanes", "3"],
     "8 links of 8 bits at 25 MHz (1600 Mbit/s) need 4 pairs, 2 links on each, but there are 3"),
    ("ulx3s-85f", "lvds", ["4x4", "--boards", "2x2", "--block", "1,0"],
     "This board has pins for 1 neighbours, but its block has more"),
    ("ulx3s-85f", "lvds", ["4", "--boards", "2", "--block", "1", "--width", "22"],
     "Words between boards must have at most 21 bits for pairs that carry 23 bits in a cycle of 25 "
     "MHz, not 22; choose a smaller --width, or a lower --rate between boards"),
    ("versa-ecp5", "lvds", ["4", "--boards", "2", "--block", "1"],
     "--phy lvds needs an ECP5 with a resource lvds in its board file"),
    ("ecpix5-45f", "serdes", ["4x4", "--boards", "2x1", "--block", "1,0", "--width", "16"],
     "8 links of 16 bits at 25 MHz (3200 Mbit/s) need 2 pairs, 4 links on each, but there are 1"),
    ("ulx3s-85f", "serdes", ["4", "--boards", "2", "--block", "1"],
     "--phy serdes needs an ECP5 with a resource serdes in its board file"),
    ("icestick", "serdes", ["4", "--boards", "2", "--block", "1"],
     "Board must be an ECP5 with an oscillator of a multiple of 25 MHz, not 12 MHz"),
])  # fmt: skip
def test_what_does_not_fit_is_said(board, phy, words, line, tmp_path, capsys):
    if phy == "serdes":
        pytest.importorskip("liteiclink")
    command = ["build", "--board", board, words[0], "allgather", *words[1:]]
    command += [] if "--width" in words else ["--width", "8"]
    assert main([*command, "--flits", "4", "--phy", phy, "-o", str(tmp_path / "out")]) == 1
    assert line in capsys.readouterr().err
