"""Files of boards that users write: whatever is wrong in one is a line that names file and line."""

import re

import pytest

from torusfabric.cli import main
from torusfabric.errors import InputError
from torusfabric.fpga.board import find_board

RIGHT = """\
from amaranth_boards.icebreaker import ICEBreakerPlatform
from torusfabric.fpga.board import Board

BOARDS = {
    "mine": Board(
        title="Mine",
        platform=ICEBreakerPlatform,
        program=("iceprog", "selftest.bin"),
        products=("selftest.bin",),
        packer=("nextpnr-ice40", "icepack"),
        lamps={"passed": ("led_g", 0), "failed": ("led_r", 0)},
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
    """What a user writes after our own files is taken; the board knows where it comes from."""
    path = file_of(RIGHT)
    board = find_board(path)
    assert (board.name, board.file) == ("mine", path)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('title="Mine",', 'title="Mine"', 6, r"Python that runs, not fail: invalid syntax"),
        (
            "import Board\n",
            "import Bord\n",
            2,
            "Python that runs, not fail: ImportError: cannot imp",
        ),
        (
            "amaranth_boards.",
            "no_such.",
            1,
            "Python that runs, not fail: ModuleNotFoundError: No mo",
        ),
        ("title=", "tilte=", 5, r"not fail: TypeError: .*unexpected keyword argument 'tilte'"),
        ("BOARDS = {", "exit(3)\nBOARDS = {", 4, "Python that runs, not fail: SystemExit: 3"),
        ("BOARDS = {", "BOARDS = {}\nX = {", 0, "File of boards must describe one board, not none"),
        ("BOARDS", "BOARD", 0, "File of boards must define a dictionary BOARDS, as .* does not"),
        ('"mine"', "3", 5, "Name of a board must be a text, not 3"),
        ("BOARDS = {", 'BOARDS = {"x": 5}\nX = {', 4, "Board x must be a Board, not 5"),
        (
            '("selftest.bin",)',
            '"selftest.bin"',
            9,
            "Entry products of board mine must be a tuple of",
        ),
        ('"Mine"', "None", 6, "Entry title of board mine must be a text, not None"),
        ("=ICEBreakerPlatform", '="ICEBreaker"', 7, "Entry platform of board mine must be a class"),
        (
            '("led_g", 0)',
            '"led_g"',
            11,
            "Entry lamps of board mine must be a dictionary of running",
        ),
        (
            '"passed"',
            '"works"',
            11,
            "Entry lamps of board mine must be a dictionary of running, pas",
        ),
        (
            '"led_g", 0',
            '"led_x", 0',
            11,
            "Resource of lamp passed must be one of the platform, not ",
        ),
        ('"led_g", 0', '"led_g", 0, "r"', 11, "Part of lamp passed must be left out, not r"),
        (
            "        lamps",
            '        uart=("uart", 7), lamps',
            11,
            "Resource of serial line must be one",
        ),
        (
            "        lamps",
            "        minutes=0, lamps",
            11,
            "Entry minutes of board mine must be a posi",
        ),
        (
            "=ICEBreakerPlatform",
            "=lambda: 1 / 0",
            7,
            "not fail: ZeroDivisionError: division by zero",
        ),
        (
            "=ICEBreakerPlatform",
            "=int",
            7,
            "Platform of board mine must be one of Amaranth's with a",
        ),
        (
            "        lamps",
            "        resources=(1,), lamps",
            11,
            "Resources of board mine must be Amara",
        ),
        (
            "        lamps",
            "        limit=3, lamps",
            11,
            "Entry limit of board mine must be a Limit, n",
        ),
    ],
)
def test_file_that_is_wrong(file_of, old, new, line, message):
    """The message says what is wrong, and where."""
    path = file_of(RIGHT.replace(old, new, 1))
    assert old in RIGHT
    with pytest.raises(InputError) as caught:
        find_board(path)
    said = str(caught.value)
    assert re.search(message, said)
    assert "\n" not in said
    if line:
        assert said.endswith(f"({path}:{line})")


def test_file_that_is_no_text(tmp_path, capsys):
    """Bytes that are no text are refused by the commands, too."""
    path = tmp_path / "mine.py"
    path.write_bytes(b"BOARDS = {\xff\x00}")
    assert main(["build", "--board", str(path), "2x2", "allgather"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("torusfabric: File of boards must be Python that runs, not fail: ")
    assert said.count("\n") == 1
