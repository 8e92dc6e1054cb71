"""Blocks of fabrics on several boards: the options that choose one, alone or with all others."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .arguments import add_options, positive
from .several_boards import add_boards_options, check_one_chip, make_boards

if TYPE_CHECKING:
    from ..fpga.board import Board
    from ..fpga.pairs import PairLinks
    from ..rtl.boards import Block, BoardSystem
    from .fabric import Made

__all__ = ["add_block_options", "block_options", "clocked", "make_block", "make_linked"]

#: What carries words by a wire for each bit.
WITHOUT_PAIRS = None, "parallel"


def add_block_options(parser: ArgumentParser) -> None:
    """Add the arguments that choose a block of a fabric that is cut into boards."""
    add_boards_options(parser)
    add_options(
        parser,
        """
        --block A,B: with --boards: the block, by its coordinates among all, that is alone on the
            board, with its link ports looped back, or with --phy lvds or serdes on pairs of pins
        --lanes N: with --phy lvds or serdes: pairs for data to each other board (default as many as
            it takes)
        """,
        lanes={"dest": "pairs", "type": positive},
    )


def block_options(arguments: Namespace) -> dict[str, object]:
    """The options that say which block, where there is one."""
    names = ("boards", "block", "ppm", "retries", "phy")
    given = {name: getattr(arguments, name) for name in names} | {"lanes": arguments.pairs}
    return {name: value for name, value in given.items() if value is not None}


def make_block(arguments: Namespace, platform: Any = None) -> Made:
    """The fabric that arguments select, or the block of it.

    Parameters
    ----------
    platform : Platform, optional
        Of the board, to whose pins link ports may lead.

    Raises
    ------
    InputError
        If there are boards and no block, or the other way round, or there is no such block.
    """
    from ..rtl.boards.block import Block
    from .fabric import make_fabric

    if (arguments.boards is None) != (arguments.block is None):
        raise InputError(
            f"--boards and --block must come together for {arguments.command}, as 2x2 and 0,1: "
            "there is one block on a board"
        )
    if arguments.boards is None:
        check_one_chip(arguments)
        return make_fabric(arguments, any_root=True)
    made, system = make_boards(arguments)
    number = system.boards.block(arguments.block)
    links = _on_pairs(arguments, system, number, platform)
    return made._replace(fabric=Block(system, number, links=links))


def _on_pairs(
    arguments: Namespace, system: BoardSystem, number: int, platform: Any
) -> PairLinks | None:
    """The links of a block on pairs of wires, where that is asked for."""
    _check_lanes(arguments)
    if arguments.phy is None:
        return None
    if arguments.phy in WITHOUT_PAIRS:
        raise InputError(
            "--phy must be lvds or serdes, or left out for link ports that are looped back, for a "
            "block"
        )
    if platform is None:
        raise InputError(
            "--block must be left out with --phy to run boards: those that are linked run together"
        )
    from ..fpga.pairs import LINKS

    return LINKS[arguments.phy](system, number, platform, arguments.pairs)


def _check_lanes(arguments: Namespace) -> None:
    """Refuse a number of pairs where there are none."""
    if arguments.phy in WITHOUT_PAIRS and arguments.pairs is not None:
        raise InputError("--lanes must come with --phy lvds or serdes, which have pairs")


def make_linked(arguments: Namespace) -> list[Block]:
    """The blocks of all boards that arguments select, to be run together.

    Raises
    ------
    InputError
        If there are no such boards, or they do not carry the links.
    """
    from ..fpga.bridge.simulated import linked_blocks
    from ..fpga.pairs import LINKS

    if getattr(arguments, "image", None) is not None:
        raise InputError("--image must be left out for several boards, whose tables are fixed")
    _check_lanes(arguments)
    platform, (_, system) = None, make_boards(arguments)
    if arguments.phy in LINKS:
        from ..fpga.board import find_board

        if arguments.board in (None, "sim"):
            raise InputError(f"--board must come with --phy {arguments.phy}: it has the pairs")
        platform = clocked(arguments, find_board(arguments.board)).make_platform()
    return linked_blocks(system, platform, arguments.pairs)


def clocked(arguments: Namespace, board: Board) -> Board:
    """A board whose fabric has the clock that its links need."""
    if arguments.phy != "serdes":
        return board
    from ..fpga.pairs.serdes import FABRIC_MHZ

    return replace(board, mhz=FABRIC_MHZ)
