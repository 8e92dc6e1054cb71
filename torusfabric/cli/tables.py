"""What a user says of tables that are loaded, and the fabric of a manifest with an image."""

from __future__ import annotations

import argparse
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .arguments import add_options, positive
from .output import progress_bar
from .parser import given_beside
from .several import choose_schedules

if TYPE_CHECKING:
    from ..program import Program
    from ..program.frame import Frame
    from ..rtl import Fabric

__all__ = ["add_fabric_file", "add_tables_options", "check_fabric_file", "fabric_of_file",
           "fabric_with_image", "frame_of", "require_lengths"]  # fmt: skip


def add_tables_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say whether tables are loaded, and what there is room for."""
    group = parser.add_argument_group("tables")
    add_options(
        group,
        """
        --tables: rom: what nodes do is fixed; ram: it lies in memories that are loaded (default
            rom)
        --rows R: with --tables ram: rows that all modes together may have (default what they need)
        --depth D: with --tables ram: cycles that a word may take from its row to its arrival
            (default what they need)
        --inputs all|COLLECTIVE,..: with --tables ram: what out-ports can select: everything, or
            what these collectives need, too (default what is built in needs)
        """,
        tables={"choices": ("rom", "ram"), "default": "rom"},
        rows=positive,
        depth=positive,
    )


def require_lengths(arguments: Namespace) -> bool:
    """True if tables are loaded; then each run chooses its length.

    Raises
    ------
    InputError
        If an option is missing or beside the point, or more rows or cycles are asked than can be
        built.
    """
    from ..program.frame import require_frame_size

    given = vars(arguments)
    if given.get("tables", "rom") == "rom":
        return False
    if given.get("max_flits") is None:
        raise InputError("--max-flits must be given for --tables ram")
    require_frame_size(given.get("rows"), given.get("depth"))
    return True


def frame_of(arguments: Namespace, program: Program) -> Frame:
    """What may be loaded into a fabric that is built with a program."""
    from ..program.fitting import loadable_form, loadable_modes
    from ..program.frame import Frame

    others: list[Program] | None = None
    if arguments.inputs != "all":
        given = {"collective": arguments.inputs, "plan": None, "root": None}
        names, flits = Namespace(**vars(arguments) | given), program.flits
        every = choose_schedules(names, flits=flits, any_length=True) if arguments.inputs else ()
        others = [loadable_form(one.schedule, flits, program.operators).program for one in every]
    streams = vars(arguments).get("top") == "stream"
    size = {"rows": arguments.rows, "depth": arguments.depth}
    return Frame.of(loadable_modes(program), inputs=others, streams=streams, **size)


def add_fabric_file(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Add the argument that names a fabric that exists."""
    text = "--fabric MANIFEST: manifest.json of a fabric with --tables ram that exists\n"
    add_options(parser, text, fabric={"required": required})


def check_fabric_file(arguments: Namespace, *others: str) -> None:
    """Refuse what says what a fabric is where one exists.

    Others are the attributes of what says what is done with it.
    """
    if arguments.fabric is not None:
        for name in given_beside(arguments, "fabric", "image", *others):
            raise InputError(f"{name} must be left out with --fabric, whose manifest says it")


def fabric_with_image(arguments: Namespace) -> tuple[Fabric, dict[str, Any]]:
    """A fabric that exists and into which an image is to be loaded, and what is known of it."""
    from ..analysis.facts import facts_together, schedule_facts

    if arguments.image is None:
        raise InputError("--image must be given with --fabric")
    fabric, found = fabric_of_file(arguments, empty=True), []
    for mode in fabric.program.modes:
        with progress_bar("checking") as progress:
            found.append(
                schedule_facts(mode.schedule, progress, mode.operators, flits=fabric.flits)
            )
    return fabric, facts_together(found)


def fabric_of_file(arguments: Namespace, *, empty: bool = False) -> Fabric:
    """A fabric that exists with an image, by default that of what it is built with.

    If empty that is to be loaded, by a port of its own and not behind the bus.
    """
    from ..rtl import Fabric
    from ..rtl.loaded.image import read_fabric, read_image
    from ..sweep.loaded import built_image

    there, path = read_fabric(arguments.fabric), arguments.image
    image = read_image(path, there.frame, there.width) if path else built_image(there)
    return Fabric.holding(image, bus=None if empty else there.bus, empty=empty)
