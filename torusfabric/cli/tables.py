"""Existing fabrics with loaded tables: the options ``--fabric`` (a manifest) and ``--image``."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .output import progress_bar
from .parser import changed_names

if TYPE_CHECKING:
    from ..contract.adapter import System
    from ..fabric.fabric import Fabric

__all__ = ["check_fabric_file", "fabric_of_file", "fabric_with_image"]


def check_fabric_file(arguments: Namespace, *others: str) -> None:
    """Raise an error for an option that describes a fabric, if ``--fabric`` gives an existing one.

    Parameters
    ----------
    arguments : Namespace
        Arguments of the command.
    *others : str
        Attributes of arguments that do not describe the fabric, which are allowed.
    """
    if arguments.fabric is not None:
        for name in changed_names(arguments, "fabric", "image", *others):
            if name.startswith("--broken-"):
                other = " or by `repair`" if name == "--broken-link" else ""
                raise InputError(
                    f"{name} and --fabric exclude each other; plan around the fault by `image "
                    f"{name}`{other}, and give the image to --image"
                )
            raise InputError(
                f"{name} and --fabric exclude each other, because the manifest and the image "
                f"decide it; leave {name} out"
            )


def fabric_with_image(arguments: Namespace) -> tuple[Fabric, System | None, dict[str, Any]]:
    """Return the existing fabric of ``--fabric`` with the image of ``--image``, for simulation.

    The tables of the fabric are RAMs, which are empty at first. The image is loaded over the *load
    port*, the signals by which a fabric receives images, without a bus.

    Returns
    -------
    fabric : Fabric
        The fabric.
    system : System or None
        The fabric with its adapter, if it has one.
    facts : dict
        The names and values to print about the schedules of the image, which are checked.
    """
    from ..analysis.facts import merge_facts, schedule_facts

    if arguments.image is None:
        raise InputError("--fabric needs --image FILE, the collectives that the fabric runs")
    (fabric, system), found = fabric_of_file(arguments, empty=True), []
    for mode in fabric.program.modes:
        with progress_bar("checking") as progress:
            found.append(
                schedule_facts(mode.schedule, progress, mode.operators, flits=fabric.flits)
            )
    return fabric, system, merge_facts(found)


def fabric_of_file(arguments: Namespace, *, empty: bool = False) -> tuple[Fabric, System | None]:
    """Return the fabric of ``--fabric`` with an image, and its system if it has an adapter.

    The image is that of ``--image``; by default the one that the fabric was built with.

    Parameters
    ----------
    arguments : Namespace
        Arguments of the command.
    empty : bool
        True if the tables are empty at first and the image is loaded over the load port (the
        signals by which a fabric receives images), without a bus. False if tables contain the image
        from the start.
    """
    from ..fabric.adapter_access import read_system
    from ..fabric.fabric import Fabric
    from ..fabric.images import image_around_faults, read_fabric, read_image

    there, path = read_fabric(arguments.fabric), arguments.image
    image = read_image(path, there.room, there.width) if path else image_around_faults(there)
    fabric = Fabric.holding(image, bus=None if empty else there.bus, empty=empty)
    return fabric, read_system(fabric, there.manifest)
