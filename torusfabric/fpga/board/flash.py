"""Onto the board, with the platform's own programmer."""

import hashlib
import os
import re

from ...errors import MissingTool, WorkFailed
from ...toolchain import tools
from ...toolchain.folders import locked_folder
from ...toolchain.quoting import shell_command
from .build import Built
from .catalogue import Board

__all__ = ["flash", "flash_command"]

#: What programmers print when there is no board for them.
_NO_BOARD = re.compile(
    r"Can't find iCE FTDI|unable to open ftdi device|No DFU capable USB device|"
    r"no active bootloaders|no device found|device not found|LIBUSB_ERROR_NO_DEVICE",
    re.IGNORECASE,
)

#: How to get a programmer: Debian's and Ubuntu's packages, and PyPI's.
_INSTALL = {
    "iceprog": "apt install fpga-icestorm",
    "openFPGALoader": "apt install openfpgaloader",
    "dfu-util": "apt install dfu-util",
    "openocd": "apt install openocd",
    "tinyprog": "pip install tinyprog",
}


def flash_command(board: Board) -> str:
    """The command that loads the bitstream, as one would type it in the folder of the files."""
    return shell_command(board.program)


def flash(built: Built, board: Board) -> None:
    """Load a bitstream onto a board.

    Raises
    ------
    MissingTool
        If the programmer is not installed, or no board is attached.
    WorkFailed
        If the programmer fails for another reason, or the bitstream is no longer the one that was
        built.
    """
    program, *arguments = board.program
    where = f"the bitstream is {built.bitstream}"
    if tools.find(program) is None:
        variable = tools.env_var(program)
        named = os.environ.get(variable)
        detail = f" as {named!r} (set by {variable})" if named else ""
        how = _INSTALL.get(program, f"install {program}")
        raise MissingTool(f"Tool {program} was not found{detail}: {how}; {where}")
    with locked_folder(built.folder):
        _check_bitstream(built)
        try:
            tools.run(program, arguments, folder=built.folder, log="flash.log", what=board.name)
        except WorkFailed:
            log = built.folder / "flash.log"
            match = _NO_BOARD.search(log.read_text(encoding="utf-8", errors="replace"))
            if match is None:
                raise
            raise MissingTool(
                f"Board {board.name} was not found by {program} ({match[0]}): attach it, and "
                f"check that you may use its USB port; {where}"
            ) from None


def _check_bitstream(built: Built) -> None:
    """See that nobody has put another bitstream in the place of the one that was built."""
    found = hashlib.sha256(built.bitstream.read_bytes()).hexdigest()
    if found != built.report["sha256"]:
        raise WorkFailed(
            f"Bitstream {built.bitstream} must be the one that was built, not one of another build "
            "in the same folder: build it again, in a folder of its own"
        )
