# amaranth: UnusedElaboratable=no
"""The self-test image: its parts against their models, and the whole behind a pseudo-terminal."""

import json
import re
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator
from helpers import expected_words, fabric_of, random_messages
from hypothesis import given, settings
from hypothesis import strategies as st
from serial_bench import compiled, on_terminal
from test_bitstream import flipped, forgetful

from torusfabric.cli import main
from torusfabric.collective import OPERATORS, Operator, parse_collective
from torusfabric.errors import InputError, WorkFailed
from torusfabric.fpga.selftest.client import BoardClient
from torusfabric.fpga.selftest.data import expected_data, send_data
from torusfabric.fpga.selftest.expected import ExpectedWord
from torusfabric.fpga.selftest.facts import facts_of
from torusfabric.fpga.selftest.generator import ROUNDS, HashGenerator
from torusfabric.fpga.selftest.image import self_test
from torusfabric.fpga.selftest.line_sender import LineSender, Template
from torusfabric.fpga.selftest.serial_line import open_port
from torusfabric.fpga.selftest.tester import HostPort, Result
from torusfabric.fpga.selftest.tester import Tester as FabricTester
from torusfabric.fpga.selftest.uart import UartReceiver, UartTransmitter, divisor_for
from torusfabric.fpga.selftest.verdict import Verdict
from torusfabric.fpga.selftest.words import SentWords, hash_word
from torusfabric.rtl.assembly import Assembly
from torusfabric.rtl.sequencer import WaveSequencer

COLLECTIVES = [
    ("2x2", "allgather", "hamiltonian", {"flits": 2}),
    ("3x3", "allgather", "one-packet", {"flits": 1}),
    ("2x3", "alltoall", "matching", {"flits": 2}),
    ("3x3", "scatter", "matching", {"flits": 2, "root": 2}),
    ("3x3", "gather", "matching", {"flits": 2, "root": 4}),
    ("arrowhead:1", "broadcast", "wormhole-forest", {"flits": 4, "root": 2}),
]

REDUCTIONS = [
    ("2x2", "reduce-scatter", "matching", {"flits": 2}),
    ("3x3", "reduce-scatter", "matching", {"flits": 1, "operator": Operator("min", True)}),
    ("2x2", "allreduce", "matching", {"flits": 4, "operator": Operator("xor")}),
    ("3x3", "allreduce", "matching", {"operator": Operator("max")}),
    ("2x3", "allreduce", "matching", {"flits": 12, "operator": Operator("or")}),
    ("3x3", "reduce", "max-flow", {"flits": 2, "root": 4, "operator": Operator("and")}),
    ("2x2", "reduce", "diagonal", {"flits": 3, "root": 1}),
]


def run(design, testbench):
    """Run a testbench on a design."""
    simulator = Simulator(design)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()


@settings(derandomize=True, deadline=None, max_examples=12)
@given(st.integers(1, 100), st.lists(st.tuples(*[st.integers(0, 0xFFFF)] * 4), min_size=3))
def test_hash_in_hardware(width, inputs):
    """The hardware computes the words that Python does, of any width."""
    dut = HashGenerator(width)

    async def testbench(ctx):
        for values in inputs:
            for name, value in zip(("run", "origin", "destination", "flit"), values, strict=True):
                ctx.set(getattr(dut, name), value)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            await ctx.tick().repeat(ROUNDS)
            assert ctx.get(dut.word) == hash_word(width, *values)

    run(dut, testbench)


@pytest.mark.parametrize("width", [16, 32])
def test_words_of_two_runs_differ(width):
    """No two words of a run are the same, nor is any word that of the run before."""
    words = {
        hash_word(width, run, origin, destination, flit)
        for run in (1, 2)
        for origin in range(8)
        for destination in range(4)
        for flit in range(4)
    }
    assert len(words) >= (256 if width == 32 else 253)


@pytest.mark.parametrize("width", [1, 4, 8])
def test_narrow_words_change_every_run(width):
    """Words that collide in one run do not in all others."""
    runs = range(1, 40)
    series = {tuple(hash_word(width, r, origin, 0, flit) for r in runs)
              for origin in range(8) for flit in range(4)}  # fmt: skip
    assert len(series) == 32


@pytest.mark.parametrize("divisor", [4, 5, 13])
def test_serial_line(divisor):
    """What is sent is received, byte after byte without a pause."""
    m = Module()
    m.submodules.transmitter = transmitter = UartTransmitter(divisor)
    m.submodules.receiver = receiver = UartReceiver(divisor)
    m.d.comb += receiver.rx.eq(transmitter.tx)
    sent, received = [0x00, 0xFF, 0x55, 0xA3, 0x80, 0x01], []

    async def testbench(ctx):
        left = list(sent)
        ctx.set(receiver.data.ready, 1)
        for _ in range(11 * 10 * divisor):
            ctx.set(transmitter.data.valid, bool(left))
            ctx.set(transmitter.data.payload, left[0] if left else 0)
            _, _, ready, valid, byte = await ctx.tick().sample(
                transmitter.data.ready, receiver.data.valid, receiver.data.payload
            )
            if ready and left:
                left.pop(0)
            if valid:
                received.append(byte)

    run(m, testbench)
    assert received == sent


def test_receiver_is_not_fooled():
    """A low too short for a start bit is no byte, nor is one without a stop bit."""
    dut, bit = UartReceiver(8), 8

    async def testbench(ctx):
        for level, cycles in ((1, 20), (0, 2), (1, 10 * bit), (0, 10 * bit), (1, 12 * bit)):
            ctx.set(dut.rx, level)
            for _ in range(cycles):
                await ctx.tick()
                assert not ctx.get(dut.data.valid)

    run(dut, testbench)


@pytest.mark.parametrize(
    ("frequency", "baud"), [(12e6, 4_000_000), (12e6, 1_900_000), (1e4, 115200)]
)
def test_rate_that_cannot_be_made(frequency, baud):
    """A rate that the clock cannot make is refused."""
    with pytest.raises(InputError, match=rf"^Baud rate must be within 2 % .* not {baud}$"):
        divisor_for(frequency, baud)
    assert divisor_for(12e6, 115200) == 104


def test_sender_fills_in_numbers():
    """Numbers appear with all their digits, whatever the pace at which bytes are taken."""
    template = Template({"one": "a {x}.", "two": "{y}{x}"}, {"x": 9, "y": 32})
    dut = LineSender(template)
    said = []

    async def testbench(ctx):
        ctx.set(dut.number_x, 0x1AF)
        ctx.set(dut.number_y, 0x0123CDEF)
        for line, pause in (("one", 0), ("two", 3)):
            ctx.set(dut.line, template.starts[line])
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            for cycle in range(200):
                ctx.set(dut.data.ready, cycle % (pause + 1) == pause)
                _, _, valid, ready, byte = await ctx.tick().sample(
                    dut.data.valid, dut.data.ready, dut.data.payload
                )
                if valid and ready:
                    said.append(byte)
            assert not ctx.get(dut.busy)

    run(dut, testbench)
    assert bytes(said).decode() == "a 1af.\n0123cdef1af\n"


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("collective", ["reduce", "reduce-scatter"])
def test_expected_words_in_hardware(collective, name, signed):
    """The hardware computes the words, and combines them, as Python does."""
    words = SentWords(parse_collective(collective), 9, 5, Operator(name, signed))
    dut = ExpectedWord(words)

    async def testbench(ctx):
        sent = [(1, 2, 4, 3, 0), (0xFFFF, 8, 7, 1, 0)]
        received = [(number, 2, 0, 3, 1) for number in range(1, 33)]
        for number, node, peer, flit, is_received in [*sent, *received]:
            inputs = {"run": number, "node": node, "peer": peer, "flit": flit}
            for name, value in inputs.items():
                ctx.set(getattr(dut, name), value)
            ctx.set(dut.received, is_received)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            while ctx.get(dut.busy):
                await ctx.tick()
            destination = node if is_received else peer
            goal = destination if words.collective.personal else 0
            origins = range(9) if is_received else [node]
            terms = [[words.word(number, origin, goal, flit)] for origin in origins]
            total = words.operator.reduce(np.array(terms, object), 5)[0]
            assert ctx.get(dut.word) == total

    run(dut, testbench)


@pytest.mark.parametrize("nodes", [2, 9, 64])
@pytest.mark.parametrize("operator", [*map(Operator, OPERATORS), Operator("max", True)], ids=str)
def test_no_contribution_is_hidden(operator, nodes):
    """Whichever origin is left out, its words are missed in some of a few runs."""
    sent = SentWords(parse_collective("allreduce"), nodes, 8, operator)
    hidden = set(range(nodes))
    for number in range(1, 257):
        words = [[sent.word(number, origin, 0, 1)] for origin in range(nodes)]
        expected = operator.reduce(np.array(words, object), 8)
        for origin in sorted(hidden):
            rest = [*words[:origin], [operator.identity(8)], *words[origin + 1 :]]
            if operator.reduce(np.array(rest, object), 8) != expected:
                hidden.remove(origin)
    assert not hidden


def tried(fabric, runs=1, *, operator=None):
    """Run the tester of a fabric, or of one with another operator; returns what each run gave."""
    m = Module()
    tested = fabric
    if operator is not None:
        tested = copy(fabric)
        tested.program = replace(fabric.program, operator=operator)
    m.submodules.tester = tester = FabricTester(tested)
    m.submodules.fabric = design = Assembly(fabric.netlist)
    connect(m, tester.host, design)
    found = []

    async def testbench(ctx):
        for number in range(1, runs + 1):
            ctx.set(tester.run, number)
            ctx.set(tester.start, 1)
            await ctx.tick()
            ctx.set(tester.start, 0)
            for _ in range(30_000):
                await ctx.tick()
                if not ctx.get(tester.busy):
                    break
            names = ("result", "node", "address", "expected", "got", "busy")
            found.append({name: ctx.get(getattr(tester, name)) for name in names})

    run(m, testbench)
    return found


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "options"), [*COLLECTIVES, *REDUCTIONS]
)
def test_tester_passes(topology, collective, algorithm, options):
    """The tester finds all collectives right, run after run."""
    found = tried(fabric_of(topology, collective, algorithm, width=8, **options), runs=2)
    assert [(f["result"], f["busy"]) for f in found] == [(Result.PASS, 0)] * 2


@pytest.mark.parametrize("width", [1, 24, 40])
def test_tester_of_other_widths(width):
    """Words of a bit, and words wider than the hash, are tested as well."""
    fabric = fabric_of("2x2", "allgather", "hamiltonian", width=width, flits=2)
    assert tried(fabric)[0]["result"] == Result.PASS


def test_tester_names_the_first_fault():
    """With a wrong bit in the settings, node, address and both words are named."""
    fabric = flipped(fabric_of("2x2", "allgather", "hamiltonian", width=8, flits=2))
    (found,) = tried(fabric)
    assert found["result"] == Result.WRONG
    origin, flit = divmod(found["address"] - fabric.layout.recv_base, 2)
    assert found["expected"] == hash_word(8, 1, origin, 0, flit)
    sent = [[hash_word(8, 1, node, 0, flit) for flit in range(2)] for node in range(4)]
    assert found["got"] in np.append(np.array(sent).ravel(), 0)


@pytest.mark.parametrize(("topology", "collective", "algorithm"), [
    ("2x2", "reduce", "max-flow"), ("2x2", "reduce-scatter", "matching"),
    ("2x2", "allreduce", "matching"),
])  # fmt: skip
def test_tester_finds_a_wrong_operator(topology, collective, algorithm):
    """Hardware that takes unsigned minima fails where it should take others, or signed ones."""
    fabric = fabric_of(topology, collective, algorithm, operator=Operator("min"))
    for operator in (Operator("min", True), Operator("and"), Operator("add")):
        found = tried(fabric, runs=3, operator=operator)
        assert Result.WRONG in [f["result"] for f in found]


@pytest.mark.parametrize("name", OPERATORS)
def test_tester_finds_a_lost_contribution(name):
    """A part of a sum that is left out on the way is found, whatever the operator."""
    found = tried(forgetful("3x3", operator=Operator(name)), runs=2)
    assert Result.WRONG in [f["result"] for f in found]


def test_tester_gives_up():
    """A fabric that is not done when predicted is late, whatever its words."""
    fabric = fabric_of("3x3", "allgather", "hamiltonian", flits=4)
    fabric.netlist.modules["sequencer"] = lambda: WaveSequencer(steps=4, waves=20)
    assert tried(fabric)[0]["result"] == Result.LATE


def test_fabrics_that_cannot_be_tested():
    """Fabrics without a host port are refused in one line."""
    fabric = fabric_of("4x4", "allgather", "hamiltonian", flits=2, top="core")
    with pytest.raises(
        InputError, match=r"^Fabric of a self-test must have the host top, not core$"
    ):
        self_test(fabric, 4)


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "options"), [*COLLECTIVES, *REDUCTIONS]
)
@pytest.mark.parametrize("width", [8, 13])
def test_what_the_host_expects(topology, collective, algorithm, options, width):
    """The host knows from the facts of the board what every node must receive."""
    fabric = fabric_of(topology, collective, algorithm, width=width, **options)
    messages = random_messages(fabric, 3)
    expected, receiving = expected_words(fabric.program, messages, width=width)
    facts = json.loads(json.dumps(facts_of(fabric)))
    words, receives = expected_data(send_data(messages.astype(int), facts), facts)
    assert (receives == receiving).all()
    assert (words[receives] == expected[receives]).all()


FACTS = {"nodes": 4, "send_words": 2, "width": 12}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros((4, 2)), "Data must be unsigned integers, not float64"),
        (np.zeros((3, 2), int), "Data must be of shape (4, 2): nodes, words; not (3, 2)"),
        (np.zeros(8, int), "Data must be of shape (4, 2): nodes, words; not (8,)"),
        (np.full((4, 2), 4096), "Data must be from 0 to 4095, not 4096"),
        (np.full((4, 2), -1), "Data must be from 0 to 4095, not -1"),
    ],
)
def test_data_that_does_not_fit(data, message):
    """Data that does not fit the board is refused before a word is sent."""
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        send_data(data, FACTS)


def test_verdicts():
    """Lines of the board are read, and anything else is not taken for one."""
    line = "fail run=000a cycles=10 predicted=10 node=3 address=22 expected=a5 got=a4"
    verdict = Verdict.parse(line)
    assert (verdict.run, verdict.node, verdict.address, verdict.got) == (10, 3, 0x22, 0xA4)
    facts = {"recv_base": 0x20, "flits": 2, "recv_words": 8}
    assert verdict.describe(facts) == (
        "run 10: node 3 holds 0xa4 for flit 0 of node 1 (address 34), not 0xa5"
    )
    assert verdict.describe(facts | {"operator": "add"}).startswith(
        "run 10: node 3 holds 0xa4 as sum 0 (address 34), not 0xa5"
    )
    late = Verdict.parse("late run=0001 cycles=14 predicted=4")
    assert late.describe(facts) == "run 1: 20 cycles, not 4"
    assert Verdict.parse("pass") is None
    assert Verdict.parse("pass luck=1") is None


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """A board with an all-gather on 3x3 behind a pseudo-terminal."""
    fabric = fabric_of("3x3", "allgather", "hamiltonian", width=12, flits=2)
    with on_terminal(compiled(fabric, tmp_path_factory.mktemp("image"))) as port:
        yield fabric, port


def test_client(board):
    """A host writes any node's words, starts, and reads any node's."""
    fabric, port = board
    with open_port(port) as line:
        client = BoardClient(line)
        assert client.facts == json.loads(json.dumps(facts_of(fabric)))
        first = client.test(3)
        assert first.passed
        assert first.cycles == first.predicted == fabric.cycles
        assert client.status() == first
        assert client.test().run == first.run + 1
        messages = random_messages(fabric, 5).astype(int)
        words, cycles = client.run(messages)
        assert cycles == fabric.cycles
        assert words.dtype == np.uint16
        assert (words == messages.reshape(1, -1)).all()
        client.write(4, 1, [0xABC])
        client.start()
        assert client.read(7, fabric.layout.recv_base + 9) == [0xABC]


def test_help_for_those_who_type(board):
    """A command that there is not is answered with all that there are."""
    _, port = board
    with open_port(port) as line:
        BoardClient(line)
        line.write(b"x")
        assert line.readline().startswith(b"commands: HEX n node, ")


def test_monitor(board, capsys):
    """The monitor carries out commands, for people and for programs."""
    fabric, port = board
    base = fabric.layout.recv_base
    asked = ["test 2", "write 1 0 a5 5a", "start", f"read 8 {base + 2} 2"]
    options = [part for command in asked for part in ("-c", command)]
    assert main(["monitor", port, *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(rf"run \d+: pass, {fabric.cycles} cycles as predicted", lines[0])
    assert lines[1:] == ["wrote 2 words", f"done in {fabric.cycles} cycles", "0a5 05a"]
    assert main(["monitor", port, "--json", *options]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert [r["command"] for r in results] == asked
    assert results[3]["words"] == [0xA5, 0x5A]
    assert main(["monitor", port, "-c", "jump"]) == 1
    assert capsys.readouterr().err.startswith("torusfabric: Command must be info, test [RUNS], ")


def test_run(board, capsys, tmp_path):
    """Real data goes through the board and comes back gathered."""
    fabric, port = board
    data = random_messages(fabric, 7).astype(np.uint16)
    np.save(tmp_path / "data.npy", data)
    files = [str(tmp_path / "data.npy"), "-o", str(tmp_path / "gathered.npy")]
    assert main(["run", port, *files, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["cycles"], result["words_wrong"]) == (fabric.cycles, 0)
    assert result["words_checked"] == 9 * 18
    gathered = np.load(tmp_path / "gathered.npy")
    assert gathered.shape == (9, 18)
    assert (gathered == data.reshape(1, -1)).all()
    (tmp_path / "text.npy").write_text("no array")
    assert main(["run", port, str(tmp_path / "text.npy"), *files[1:]]) == 1
    assert "Data must be a readable .npy file, not" in capsys.readouterr().err


def test_sums_on_a_board(tmp_path, capsys):
    """Arrays go through a reduction as well: a row for each node in, and its share of sums out."""
    operator = Operator("min", True)
    fabric = fabric_of("2x2", "reduce-scatter", "matching", width=12, flits=2, operator=operator)
    data = random_messages(fabric, 7).astype(np.uint16)
    np.save(tmp_path / "data.npy", data.reshape(4, 4, 2))
    files = [str(tmp_path / "data.npy"), "-o", str(tmp_path / "sums.npy")]
    with on_terminal(compiled(fabric, tmp_path)) as port:
        assert main(["run", port, *files, "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert main(["monitor", port, "-c", "test 20", "-c", "info"]) == 0
        said = capsys.readouterr().out
    assert (result["operator"], result["signed"]) == ("min", True)
    assert (result["words_checked"], result["words_wrong"]) == (8, 0)
    signed = (data.astype(int) ^ 0x800) - 0x800
    assert (np.load(tmp_path / "sums.npy") == signed.min(0).reshape(4, 2) % 4096).all()
    assert re.search(r"^run \d+: pass, .*\n(.*\n)*operator +min\n", said)


def test_port_that_cannot_be_opened(tmp_path):
    """A port that does not exist is one line."""
    with pytest.raises(
        InputError, match=r"^Port must be .* that can be opened, not /dev/absent \(No such"
    ):
        open_port("/dev/absent")


class Silent:
    """A port with nothing at its other end, or something else than a board."""

    name, timeout = "ttyX", 0

    def __init__(self, line=b""):
        self._line, self._asked = line, False

    def read(self, count):
        return b""

    def readline(self):
        return self._line

    def write(self, data):
        return len(data)


def test_port_without_a_board():
    """A port with nothing behind it, or something else, is one line."""
    with pytest.raises(WorkFailed, match=r"^Board on ttyX must identify itself, not be silent: "):
        BoardClient(Silent())
    with pytest.raises(WorkFailed, match=r"^Board on ttyX must identify itself, not answer 'OK': "):
        BoardClient(Silent(b"OK\r\n"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "options"), [*COLLECTIVES, *REDUCTIONS]
)
def test_images_of_all_collectives(tmp_path, topology, collective, algorithm, options):
    """Behind a pseudo-terminal every collective passes, and carries data."""
    fabric = fabric_of(topology, collective, algorithm, width=16, **options)
    with on_terminal(compiled(fabric, tmp_path)) as port, open_port(port) as line:
        client = BoardClient(line)
        assert client.test(20).passed
        messages = random_messages(fabric, 5).astype(np.uint16)
        words, _ = client.run(messages)
        expected, receives = expected_data(messages, client.facts)
        assert (words[receives] == expected[receives]).all()


@pytest.mark.long
def test_faulty_image(tmp_path):
    """With a faulty fabric the test fails, and so does sending data."""
    fabric = flipped(fabric_of("2x2", "allgather", "hamiltonian", width=16, flits=2))
    with on_terminal(compiled(fabric, tmp_path)) as port:
        assert main(["monitor", port, "-c", "test"]) == 2
        np.save(tmp_path / "data.npy", np.arange(8).reshape(4, 2))
        files = [str(tmp_path / "data.npy"), "-o", str(tmp_path / "gathered.npy")]
        assert main(["run", port, *files]) == 2
    assert set(HostPort(fabric).members) >= {"start", "done"}
