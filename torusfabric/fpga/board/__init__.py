"""Bitstreams: from a fabric to files for a board, and onto the board.

The users are the commands ``boards``, ``build``, ``flash`` and ``run``. Modules in the order in
which a reader needs them:

=============== =====================================================================
module          content
=============== =====================================================================
``catalogue``   `Board`: platform, pins, tools and limits of a board
``board_files`` loading of `Board` descriptions from the folder ``boards``
``platforms``   changes to Amaranth's platforms: current tools, a slower clock
``needs``       a lower bound of the resources of a fabric; refusal before any tool runs
``plan``        the files and the script of a build
``run``         runs of that script, with one placer and router after another
``build``       `build`: the whole way to a bitstream and its report
``flash``       loading of a bitstream onto the board
``limits``      search for the largest torus that fits onto a board
=============== =====================================================================
"""

from ..synthesis.nextpnr import ECP5_PLACERS
from .board_files import find_board, load_boards
from .build import BuildResult, build
from .catalogue import COMPACT, ECP5_ROUTERS, Board, Limit, Misfit
from .flash import LIST_PORTS, Step, flash, flash_command, led_meanings, next_steps
from .limits import Attempt, find_limit, make_attempt
from .needs import build_minutes, check_selection

__all__ = ["COMPACT", "ECP5_PLACERS", "ECP5_ROUTERS", "LIST_PORTS", "Attempt", "Board",
           "BuildResult", "Limit", "Misfit", "Step", "build", "check_selection", "build_minutes",
           "find_board", "find_limit", "flash", "flash_command", "led_meanings", "load_boards",
           "next_steps", "make_attempt"]  # fmt: skip
