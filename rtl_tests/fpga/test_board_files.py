"""Files with boards of users: each mistake is one line with the file and the line number."""

import importlib
import inspect
import pkgutil
import re

import amaranth_boards
import pytest
from amaranth.build import Platform
from helpers import fabric_of

from torusfabric.cli import main
from torusfabric.errors import InputError
from torusfabric.fpga.board import find_board
from torusfabric.fpga.board.plan import plan_build

RIGHT = """\
from amaranth_boards.icebreaker import ICEBreakerPlatform
from torusfabric.fpga.board import Board

BOARDS = {
    "mine": Board(
        title="Mine",
        platform=ICEBreakerPlatform,
        program=("iceprog", "fabric.bin"),
        products=("fabric.bin",),
        packer=("nextpnr-ice40", "icepack"),
        lamps={"running": ("led_r", 0), "done": ("led_g", 0)},
    ),
}
"""


@pytest.fixture
def file_of(tmp_path):
    """A function that writes a file of boards; returns its path."""

    def write(text):
        path = tmp_path / "mine.py"
        path.write_text(text)
        return str(path)

    return write


def test_file_that_is_right(file_of):
    """A valid file describes a board that knows its file. A missing file is an error."""
    path = file_of(RIGHT)
    board = find_board(path)
    assert (board.name, board.file) == ("mine", path)
    with pytest.raises(InputError, match=r"^File of boards none\.py does not exist; "):
        find_board("none.py")


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('title="Mine",', 'title="Mine"', 6, r"cannot be run: invalid syntax"),
        (
            "import Board\n",
            "import Bord\n",
            2,
            "cannot be run: ImportError: cannot imp",
        ),
        (
            "amaranth_boards.",
            "no_such.",
            1,
            "cannot be run: ModuleNotFoundError: No mo",
        ),
        ("title=", "tilte=", 5, r"cannot be run: TypeError: .*unexpected keyword argument 'tilte'"),
        ("BOARDS = {", "exit(3)\nBOARDS = {", 4, "cannot be run: SystemExit: 3"),
        ("BOARDS = {", "BOARDS = {}\nX = {", 0, "File of boards must describe one board, not none"),
        ("BOARDS", "BOARD", 0, "File of boards .* must define a dictionary BOARDS"),
        ('"mine"', "3", 5, "Name of a board must be a text, not 3"),
        ("BOARDS = {", 'BOARDS = {"x": 5}\nX = {', 4, "Board x must be a Board, not 5"),
        ('("fabric.bin",)', '"fabric.bin"', 5, "Products of Board must be a tuple of texts, not "),
        ('"fabric.bin",)', ")", 5, "Products of Board must be names of files beside report.json, "),
        ('("iceprog", "fabric.bin")', "()", 5, "Program of Board must be a command, not none"),
        ('"Mine"', "None", 5, "Title of Board must be text, not None"),
        ("=ICEBreakerPlatform", '="ICEBreaker"', 5, "Platform of Board must be a function, not '"),
        ('("led_g", 0)', '"led_g"', 5, "Lamps of Board must be a dictionary of running or done to"),
        (
            '"done"',
            '"works"',
            5,
            "Lamps of Board must be a dictionary of running or done to tuples",
        ),
        (
            "        lamps",
            "        minutes=0, lamps",
            5,
            "Minutes of Board must be a positive numb",
        ),
        ("        lamps", "        limit=3, lamps", 5, "Limit of Board must be a Limit or None, n"),
        ('"led_g", 0', '"led_x", 0', 5, "not fail: ResourceError: Resource led_x#0 does not exist"),
        ('"led_g", 0', '"led_g", 0, "r"', 5, "Parts of lamp done must be left out, not r"),
        ("        lamps", '        uart=("uart", 7), lamps', 5, "Resource uart#7 does not exist"),
        ("=ICEBreakerPlatform", "=lambda: 1 / 0", 5, "not fail: ZeroDivisionError: division by z"),
        ("=ICEBreakerPlatform", "=int", 5, "Platform of board mine must be one of Amaranth's with"),
        ('"led_g", 0', '"spi_flash_1x", 0', 5, "Parts of lamp done must be cs or .*, not left out"),
        (
            "        lamps",
            '        uart=("spi_flash_1x", 0), lamps',
            5,
            "Parts of serial line must be cs or .*, not rx and tx",
        ),
        ('"led_g", 0', '"clk12", 0', 5, "must be one of Amaranth's .*, not fail: "),
        (
            "        lamps",
            "        resources=(1,), lamps",
            5,
            "Amaranth's .*, not fail: TypeError: ",
        ),
    ],
)
def test_file_that_is_wrong(file_of, old, new, line, message):
    """The message names the mistake and its line in the file."""
    path = file_of(RIGHT.replace(old, new, 1))
    assert old in RIGHT
    with pytest.raises(InputError) as caught:
        find_board(path)
    said = str(caught.value)
    assert re.search(message, said, re.IGNORECASE)
    assert "\n" not in said
    if line:
        assert said.endswith(f"({path}:{line})")


def platforms():
    """Yield module and name of every concrete platform of amaranth-boards."""
    for found in pkgutil.iter_modules(amaranth_boards.__path__):
        module = importlib.import_module(f"amaranth_boards.{found.name}")
        for name, value in vars(module).items():
            if (
                inspect.isclass(value)
                and issubclass(value, Platform)
                and value.__module__ == module.__name__
                and not inspect.isabstract(value)
            ):
                yield module.__name__, name


def refusal_of(path):
    """The message with which a file of boards is refused, or None."""
    try:
        find_board(path)
    except InputError as error:
        return str(error)
    return None


def test_every_platform_is_taken_or_refused_in_a_line(file_of):
    """Every platform of amaranth-boards is accepted or refused in one line with its family."""
    said = {}
    for module, name in platforms():
        text = RIGHT.replace("amaranth_boards.icebreaker", module).replace("led", "no_led")
        text = re.sub("        lamps=.*\n", "", text)
        said[name] = refusal_of(file_of(text.replace("ICEBreakerPlatform", name)))
        assert "\n" not in (said[name] or ""), name
    for name, family in (
        ("ArtyA7_35Platform", "Xilinx series7 by Vivado"),
        ("MicroZedZ010Platform", "Xilinx series7 by Vivado"),
        ("AtlysPlatform", "Xilinx spartan6 by ISE"),
        ("DE10NanoPlatform", "Altera by Quartus"),
        ("TinyFPGAAX2Platform", "Lattice machxo2 by Diamond"),
        ("QuickfeatherPlatform", "Quicklogic by QLSymbiflow"),
    ):
        assert said[name].startswith(
            "Platform of board mine must be of iCE40 by IceStorm, ECP5 by Trellis or Gowin by "
            f"Apicula, not of {family} ("
        )
    taken = {name for name, text in said.items() if text is None}
    assert {"ICEStickPlatform", "ECPIX545Platform", "TangNano9kPlatform"} <= taken
    assert {"ULX3S_12F_Platform", "BlackIcePlatform", "TangPrimer20kPlatform"} <= taken
    assert len(said) > 80


def test_gowin_is_placed_by_the_tool_of_today(file_of):
    """A Gowin board by Amaranth's own class is placed by nextpnr-himbaechel."""
    text = RIGHT.replace("icebreaker", "tang_primer_20k").replace("ICEBreaker", "TangPrimer20k")
    text = re.sub("        lamps=.*\n", "", text)
    plan, platform = plan_build(fabric_of("2", "allgather", width=2), find_board(file_of(text)))
    script = plan.files[f"{plan.script}.sh"]
    assert "nextpnr-gowin" not in script
    assert '"$NEXTPNR_HIMBAECHEL_GOWIN" --quiet' in script
    assert "--vopt family=GW2A-18C" in script
    assert "nextpnr-himbaechel-gowin" in platform.required_tools


def test_another_toolchain_is_refused(file_of):
    """A known family with an unsupported toolchain is refused."""
    path = file_of(RIGHT.replace("=ICE", "=lambda: ICE").replace(
        "Platform,", 'Platform(toolchain="LSE-iCECube2"),'))  # fmt: skip
    with pytest.raises(InputError, match="not of SiliconBlue iCE40 by LSE-iCECube2 "):
        find_board(path)


@pytest.mark.parametrize(
    "command", [["build", "--board"], ["flash", "--board"], ["boards", "--measure"]]
)
def test_commands_refuse_a_family_without_a_flow(file_of, capsys, command):
    """Each command refuses a family without a flow, in one line with the board, its family and the
    families that work.
    """
    text = RIGHT.replace("icebreaker", "arty_a7").replace("ICEBreaker", "ArtyA7_35")
    selection = [] if command[0] == "boards" else ["2x2", "allgather"]
    assert main([*command, file_of(text), *selection]) == 1
    said = capsys.readouterr().err
    assert said.startswith("torusfabric: Platform of board mine must be of iCE40 by IceStorm, ")
    assert "Xilinx series7 by Vivado" in said
    assert said.count("\n") == 1


def test_file_that_is_no_text(tmp_path, capsys):
    """A file with bytes that are no text is refused in one line."""
    path = tmp_path / "mine.py"
    path.write_bytes(b"BOARDS = {\xff\x00}")
    assert main(["build", "--board", str(path), "2x2", "allgather"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("torusfabric: File of boards cannot be run: ")
    assert said.count("\n") == 1
