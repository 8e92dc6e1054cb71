"""What a user says of tables that are loaded, and the fabric of a manifest with an image."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .output import progress_bar
from .parser import given_beside

if TYPE_CHECKING:
    from ..contract.adapter import System
    from ..fabric.fabric import Fabric

__all__ = ["check_fabric_file", "fabric_of_file", "fabric_with_image"]


def check_fabric_file(arguments: Namespace, *others: str) -> None:
    """Refuse what says what a fabric is where one exists.

    Others are the attributes of what says what is done with it.
    """
    if arguments.fabric is not None:
        for name in given_beside(arguments, "fabric", "image", *others):
            raise InputError(f"{name} must be left out with --fabric, whose manifest says it")


def fabric_with_image(arguments: Namespace) -> tuple[Fabric, System | None, dict[str, Any]]:
    """A fabric that exists and into which an image is to be loaded, and what is known of it."""
    from ..analysis.facts import facts_together, schedule_facts

    if arguments.image is None:
        raise InputError("--image must be given with --fabric")
    (fabric, system), found = fabric_of_file(arguments, empty=True), []
    for mode in fabric.program.modes:
        with progress_bar("checking") as progress:
            found.append(
                schedule_facts(mode.schedule, progress, mode.operators, flits=fabric.flits)
            )
    return fabric, system, facts_together(found)


def fabric_of_file(arguments: Namespace, *, empty: bool = False) -> tuple[Fabric, System | None]:
    """A fabric that exists with an image, by default that of what it is built with; its system.

    If empty that is to be loaded, by a port of its own and not behind the bus.
    """
    from ..fabric.adapted import read_system
    from ..fabric.fabric import Fabric
    from ..fabric.images import built_image, read_fabric, read_image

    there, path = read_fabric(arguments.fabric), arguments.image
    image = read_image(path, there.room, there.width) if path else built_image(there)
    fabric = Fabric.holding(image, bus=None if empty else there.bus, empty=empty)
    return fabric, read_system(fabric, there.manifest)
