"""Connected boards, simulated behind their bridges: words, cycles, faults and messages."""

import json
import re
import shutil
import sys

import numpy as np
import pytest
from bridge_bench import COLLECTIVES, REDUCTIONS
from helpers import check_refused, delay_end, fabric_of, few, forgetful, misrouted

import torusfabric as tf
from torusfabric.cli.connect import BUILDS
from torusfabric.errors import InputError, WorkFailed
from torusfabric.fpga.bridge import board as bridge_board
from torusfabric.fpga.bridge import bus_access
from torusfabric.fpga.bridge.board import BoardEngine, ConnectedBoard
from torusfabric.fpga.bridge.bus_access import BURST, BusAccess
from torusfabric.fpga.bridge.simulated import SimulatedPort
from torusfabric.fpga.bridge.uart_bone import Command


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "options"),
    [*few(0, COLLECTIVES), *few(1, REDUCTIONS)],
)
def test_every_collective(topology, collective, algorithm, options):
    """Every word arrives, and each run takes the predicted cycles."""
    fabric = fabric_of(topology, collective, algorithm, width=8, **options)
    report = tf.connect("sim", fabric).run(repeat=2)
    assert report.passed
    assert report.cycles == fabric.predicted_cycles
    assert report.words_checked == tf.simulate(fabric, repeat=2).words_checked
    assert (report.engine, report.direct_words) == ("bridge", 0)


def test_only_a_serial_port_needs_its_library(monkeypatch):
    """A simulated board works without the library for serial ports. For a real board, the error
    names the extra to install.
    """
    monkeypatch.setitem(sys.modules, "serial", None)
    for name in ("bus_access", "board"):
        monkeypatch.delitem(sys.modules, f"torusfabric.fpga.bridge.{name}", raising=False)
    assert tf.connect("sim:2x2 allgather --width 8").run([tf.Job(length=1)]).passed
    with pytest.raises(tf.MissingTool, match=r"serial was not found: .*torusfabric\[boards\]"):
        tf.connect("/dev/null")


def test_a_selection_that_is_no_command_line():
    with pytest.raises(tf.InputError, match='words as on a command line, not "2x2 \'x"'):
        tf.connect("sim:2x2 'x")


@pytest.mark.parametrize("width", few(2, [1, 33, 70], tuples=True))
def test_words_of_other_widths(width):
    """Words of one bit, and of two and three bus words, arrive."""
    board = tf.connect("sim", fabric_of("2", "allgather", width=width, flits=2))
    report = board.run(seed=7)
    assert report.passed
    words = [[(1 << width) - 1, k] for k in range(2)]
    got, report = board.carry(words)
    assert report.passed
    assert got[1].tolist() == [word for row in words for word in row]


def test_jobs_of_an_engine():
    """Choices of each run are written into registers, and each run takes its predicted cycles."""
    plans = [tf.plan("3", name) for name in ("allgather", "allreduce")]
    fabric = tf.Fabric(tf.compile(plans, max_flits=4, operators=["add", "max"]), width=8)
    board = tf.connect("sim", fabric)
    jobs = [tf.Job(mode=1, length=3, operation=1), tf.Job(mode=0, length=1)]
    report = board.run(jobs)
    assert report.passed
    assert [(job.mode, job.length, job.operation) for job in report.jobs] == [
        (1, 3, 1),
        (0, 1, None),
    ]
    assert [job.cycles for job in report.jobs] == [
        fabric.program.cycles(3, mode=1), fabric.program.cycles(1, mode=0)
    ]  # fmt: skip
    words, report = board.carry([[1, 5], [9, 6], [4, 8]], tf.Job(mode=1, operation=1))
    assert words.tolist() == [[9, 8]] * 3
    assert (report.passed, report.jobs[0].length) == (True, 2)


def test_any_root():
    """A root for each run is one more register."""
    program = tf.compile(tf.plan("3", "broadcast"), max_flits=3, root="any")
    report = tf.connect("sim", tf.Fabric(program, width=8)).run([tf.Job(length=2, root=2)])
    assert report.passed
    assert report.roots == (2,)


@pytest.mark.parametrize(
    ("collective", "algorithm", "fault"),
    [("allgather", "hamiltonian", misrouted), ("reduce-scatter", "matching", forgetful)],
)
def test_wrong_words(collective, algorithm, fault):
    """A wrong select bit and a sum without a contribution are found and named."""
    fabric = fabric_of("2x2", collective, algorithm, width=8, flits=2, fault=fault)
    report = tf.connect("sim", fabric).run()
    found = tf.simulate(fabric)
    assert not report.passed
    assert report.words_wrong == found.words_wrong > 0
    assert report.first_wrong == found.first_wrong
    assert report.cycles == report.predicted_cycles


def test_wrong_cycles():
    """A run that ends later than predicted fails, though its words are right."""
    good = fabric_of("2x2", "allgather", "hamiltonian", width=8, flits=2)
    fabric = tf.Fabric(good.program, width=good.width, bus="wishbone")
    delay_end(fabric)
    report = tf.connect("sim", fabric).run()
    assert not report.passed
    assert report.cycles > report.predicted_cycles == good.predicted_cycles


def test_run_without_an_end(monkeypatch):
    """A run that does not end is a failure after the time limit."""
    monkeypatch.setattr(bridge_board, "LONGEST", 0)
    fabric = tf.Fabric(tf.compile(tf.plan("2x2", "allgather"), flits=2), width=8, bus="wishbone")
    delay_end(fabric, flits=4000)
    with pytest.raises(WorkFailed, match=r"^The board is still at work after 0 s; reset it, and"):
        tf.connect("sim", fabric).run()


def test_start_that_is_refused():
    """A refused start and an impossible job are errors of one line with the reason."""
    board = tf.connect("sim:2 allgather --max-flits 5 --width 8")
    with pytest.raises(InputError, match=r"^Length must be from 1 to 5 flits, not 6$"):
        board.run([tf.Job(length=6)])
    length = board.registers.register("length").offset
    board.access.write_word(length, 7)
    board.access.write_word(board.registers.register("start").offset, 1)
    assert board.access.read_word(board.registers.register("status").offset) >> 4 == 3
    engine = BoardEngine(board.fabric, board.registers, board.access)
    refused = r"^The board refused Job\(.*\) \(length\)$"
    with pytest.raises(WorkFailed, match=refused):
        engine.run(np.zeros((2, 5), np.uint64), job=tf.Job())
    assert board.run([tf.Job(length=5)]).passed


def test_another_fabric():
    """A board with another fabric is refused, with the digests of both."""
    other, expected = (fabric_of("2x2", "allgather", "hamiltonian", width=w) for w in (8, 9))
    message = f"of 9 bits ({expected.digest:08x}); build this one"
    with pytest.raises(WorkFailed, match=re.escape(message)):
        ConnectedBoard(expected, BusAccess(SimulatedPort(other)))


@pytest.mark.parametrize("bus", [None, "wishbone"])
def test_words_of_the_bus_are_flits(bus):
    """A fabric with beats of two flits is put behind the bridge with beats of one flit, with or
    without a bus of its own.
    """
    program = tf.compile(tf.plan("2", "allgather"), flits=4)
    fabric = tf.Fabric(program, width=8, bus=bus, beat=2)
    assert tf.connect("sim", fabric).run().passed


@pytest.mark.parametrize(("top", "bus"), [("core", None), ("stream", None), ("stream", "wishbone")])
def test_only_a_host_port_stands_behind_a_bridge(top, bus):
    program = tf.compile(tf.plan("2x2", "allgather"), flits=4)
    with pytest.raises(InputError, match=f"^Top must be host for a .* bridge, not {top}$"):
        tf.connect("sim", tf.Fabric(program, width=8, top=top, bus=bus))


def test_torn_command():
    """The board accepts commands after an incomplete one."""
    fabric = fabric_of("2", "allgather", width=8, flits=2)
    port = SimulatedPort(fabric)
    port.write(bytes([Command.WRITE, 200, 0, 0, 0, 64, 1]))
    assert ConnectedBoard(fabric, BusAccess(port)).run().passed


class Port:
    """A port with something other than a bridge at its other end, or nothing."""

    name = "ttyX"

    def __init__(self, answer=b"", *, talks=False):
        self._answer, self._left, self._talks = answer, b"", talks

    def read(self, size):
        if self._talks and not self._left:
            self._left = self._answer
        first, self._left = self._left[:size], self._left[size:]
        return first

    def write(self, data):
        self._left += self._answer


@pytest.mark.parametrize(
    ("port", "message"),
    [
        (Port(), "does not identify itself as 0x746f7275, it is silent: is the bitstream"),
        (Port(b"OK\r\n"), "does not identify itself as 0x746f7275, it answers 0x4f4b0d0a: is the"),
        (Port(b"hello", talks=True), r"keeps talking \(b'.*\), so it cannot be asked what it is: "),
        (Port(b"toru"), r"holds another fabric \(\w+\) than <Program 2x2 allgather .*> of 8 bits "),
    ],
)
def test_port_without_a_board(monkeypatch, port, message):
    """A silent port, a foreign answer and endless bytes are each an error of one line."""
    monkeypatch.setattr(bus_access, "PATIENCE", 0.02)
    fabric = fabric_of("2x2", "allgather", "hamiltonian", width=8)
    with pytest.raises(WorkFailed, match=rf"^Board on ttyX {message}"):
        ConnectedBoard(fabric, BusAccess(port))


class Echo:
    """A port that keeps all written bytes, and answers the address of each word that is read."""

    name = "echo"

    def __init__(self):
        self.sent, self._left = [], b""

    def write(self, data):
        self.sent.append(data)
        if data[0] == Command.READ:
            first = int.from_bytes(data[2:6], "big")
            self._left += b"".join((first + k).to_bytes(4, "big") for k in range(data[1]))

    def read(self, size):
        first, self._left = self._left[: size - 1 or 1], self._left[size - 1 or 1 :]
        return first


def test_bursts():
    """Consecutive words are moved together, up to `BURST` words."""
    port = Echo()
    addresses = [*range(0, 4 * 150, 4), 4000, 4004, 800]
    assert (BusAccess(port).read(addresses) == np.array(addresses) // 4).all()
    assert [data[1] for data in port.sent] == [BURST, BURST, 150 - 2 * BURST, 2, 1]
    port.sent.clear()
    BusAccess(port).write([8, 12, 4], [1, 2, 3])
    assert port.sent == [
        bytes([1, 2, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2]), bytes([1, 1, 0, 0, 0, 1, 0, 0, 0, 3])
    ]  # fmt: skip
    assert BusAccess(port).read([]).size == 0


@pytest.mark.parametrize(
    ("words", "message"),
    few(
        3,
        [
            (np.zeros((4, 2)), "Words must be unsigned integers, not float64"),
            (np.zeros((3, 2), int), "Words must be of shape (4, 2), a row a node, not (3, 2)"),
            (np.zeros(8, int), "Words must be of shape (4, 2), a row a node, not (8,)"),
            (np.full((4, 2), 4096), "Words must be from 0 to 4095, not 4096"),
            (np.full((4, 2), -1), "Words must be from 0 to 4095, not -1"),
            (3, "Words must be of shape (4, 2), a row a node, not ()"),
        ],
    ),
)
def test_words_that_do_not_fit(words, message):
    """Words that do not fit the fabric are refused before one is sent."""
    board = tf.connect("sim", fabric_of("2x2", "allgather", "hamiltonian", width=12, flits=2))
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        board.carry(words)


def test_selections():
    """A simulated fabric is selected as in a build, with any length unless `--flits` is given."""
    board = tf.connect("sim:2x2 allreduce")
    assert board.fabric.flits == 16
    assert board.run([tf.Job(length=3)]).passed
    assert repr(board).startswith("<ConnectedBoard sim: <Program 2x2 allreduce by ")
    fixed = tf.connect("sim:2x3 allgather:matching --flits 2 --width 12").fabric
    assert (fixed.program.any_length, fixed.flits, fixed.width) == (False, 2, 12)
    for port, message in {
        "sim:4x4": "COLLECTIVE must be given",
        "sim:4x4 allreduce --wdith 3": "Unrecognized arguments: --wdith",
        "sim": "Port sim has no fabric to simulate",
    }.items():
        with pytest.raises(InputError, match=f"^{message}"):
            tf.connect(port)
    with pytest.raises(InputError, match=r"^Port sim:2x2 allgather names a fabric already"):
        tf.connect("sim:2x2 allgather", fixed)


def report_in(folder, **values):
    """A folder with the report of a build."""
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(json.dumps(values))
    return folder


def test_folders_of_builds(tmp_path, monkeypatch):
    """A board is known by the build report in a given folder, or by the report with its digest."""
    monkeypatch.chdir(tmp_path)
    command = "torusfabric build 2x2 allgather --algorithm hamiltonian --width 8 --flits 2"
    command += " --board icestick --baud 9600"
    fabric = fabric_of("2x2", "allgather", "hamiltonian", width=8, flits=2)
    folder = report_in(tmp_path / "out", command=command, digest=f"{fabric.digest:08x}")
    assert tf.connect("sim", folder).fabric.digest == fabric.digest

    monkeypatch.setattr(bus_access, "open_port", lambda path, *, baud: SimulatedPort(fabric))
    with pytest.raises(InputError, match=rf"^sim holds the fabric {fabric.digest:08x}, which"):
        tf.connect("/dev/ttyUSB7")
    report_in(BUILDS / "another", command=command, digest="0")
    shutil.move(folder, BUILDS / "icestick")
    for name, text in (("deep", "[" * 10**5), ("foreign", "{}")):
        report_in(BUILDS / name)
        (BUILDS / name / "report.json").write_text(text)
    assert tf.connect("/dev/ttyUSB7").run().passed
    for other in (tmp_path, BUILDS / "deep", BUILDS / "foreign"):
        with pytest.raises(InputError, match=r"^Folder .* holds no build, for it has no"):
            tf.connect("sim", other)


def test_tables_that_are_loaded(tmp_path, monkeypatch, capsys):
    """A loaded image runs. A torn image and an unexpected image on the board are refused."""
    from torusfabric.cli import main
    from torusfabric.fpga.board.build import fabric_facts

    monkeypatch.chdir(tmp_path)
    program = tf.compile(tf.plan("2", "allgather"), max_flits=1)
    fabric = tf.Fabric(program, width=8, tables="ram")
    hardware = "--width 8 --max-flits 1 --tables ram --inputs all"
    command = f"torusfabric build 2 allgather {hardware} --board icestick"
    report_in(BUILDS / "icestick", command=command, **fabric_facts(fabric))
    port = SimulatedPort(fabric)
    monkeypatch.setattr(bus_access, "open_port", lambda path, *, baud: port)
    image = "image --fabric build/icestick/report.json 2"
    assert main([*image.split(), "alltoall", "-o", "a.bin"]) == 0
    assert main(["load", "--board", "icestick", "a.bin"]) == 0
    capsys.readouterr()
    assert "sim holds the image " in check_refused(capsys, "run", "--board", "icestick")
    assert main(["run", "--board", "icestick", "--image", "a.bin", "--job", "length=1"]) == 0
    assert "alltoall" in capsys.readouterr().out
    board = tf.connect("/dev/ttyUSB7", BUILDS / "icestick", image="a.bin")
    board.access.write_word(board.registers.register("mode").offset, 1)
    assert board.run().passed
    scatter = tf.image(fabric, "scatter", root=1)
    scatter.words[-1] ^= 1
    with pytest.raises(WorkFailed, match=r"^Board on sim refused the image; make it again"):
        board.load(scatter)
    with pytest.raises(WorkFailed, match=r"^The board refused .* \(image\)$"):
        board.run()
    with pytest.raises(InputError, match=rf"^Image must be for fabric {fabric.digest:08x}, not"):
        board.load(tf.image(tf.Fabric(program, width=9, tables="ram"), "scatter"))
