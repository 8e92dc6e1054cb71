"""The commands ``image`` and ``repair`` for fabrics with loaded tables.

The tables of such a fabric are RAMs. An *image* is the contents of all tables; it decides which
collectives the fabric executes.
"""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from ..contract.options import add_options, parse_non_negative_int
from ..fabric.choose import PlanPurpose, choose_schedules
from ..fabric.options import add_fabric_file_option, add_selection_arguments
from ..fabric.spec import FabricSpec
from .arguments import FORCE, check_output
from .output import print_facts, print_json, progress_bar, raise_if_wrong
from .parser import Commands, add_command

if TYPE_CHECKING:
    from ..fabric.images import Image

__all__ = ["add_commands"]

#: First bytes of an image file of any version.
IMAGE_MAGIC = b"TFI"


def add_commands(commands: Commands) -> None:
    """Add the commands ``image`` and ``repair`` and their arguments.

    `commands` has the parser of each command.
    """
    image = add_command(commands, "image", run_image)
    add_fabric_file_option(image, required=True)
    add_selection_arguments(image, several=True)
    add_options(
        image,
        """
        -o --output FILE: File for the image.
        --onto FILE: Image that the fabric holds: the new image fills some modes only, while the
            others may run. Default: none, and all modes are filled.
        --mode K: with --onto: first mode to fill. Default: the first behind all modes of that
            image.
        """,
        FORCE,
        output={"required": True},
        mode=parse_non_negative_int,
    )
    repair = add_command(commands, "repair", run_repair)
    add_fabric_file_option(repair, required=True)
    add_options(
        repair,
        """
        --broken-link NODE:PORT: A link that is broken; may be repeated. Example: 5:+0.
        -o --output FILE: File for the image.
        """,
        FORCE,
        broken_link={"action": "append", "required": True},
        output={"required": True},
    )


def run_image(arguments: Namespace) -> None:
    """Run ``image``: plan a selection for an existing fabric, check it, and write its image."""
    from ..fabric.images import image, read_fabric

    check_output(arguments, arguments.output, IMAGE_MAGIC)
    fabric = read_fabric(arguments.fabric)
    spec, room = FabricSpec.of(vars(arguments) | {"tables": "ram"}), fabric.room
    if spec.topology is not None and spec.link_latency is None:
        spec = spec.replace(link_latency=room.topology.latency_text)
    purpose = PlanPurpose(room.flits, any_length=True, any_root=True, room=room)
    chosen = choose_schedules(spec, purpose)
    modes = [(one.forms or (one.schedule,), one.root == "any") for one in chosen]
    with progress_bar("checking"):
        found = image(fabric, modes, onto=arguments.onto, mode=arguments.mode)
    found.save(arguments.output)
    print_image(arguments, found)


def run_repair(arguments: Namespace) -> None:
    """Run ``repair``: plan around broken links, and write the image.

    The image is simulated first. If a word is wrong, an error is raised and nothing is written.
    """
    from ..fabric.images import repair

    check_output(arguments, arguments.output, IMAGE_MAGIC)
    with progress_bar("repairing"):
        found = repair(arguments.fabric, broken_links=arguments.broken_link)
    raise_if_wrong(found.report)
    found.image.save(arguments.output)
    facts = {
        "seconds": round(found.seconds, 3),
        "load_cycles": found.load_cycles,
        "check_cycles": found.check_cycles,
        "words_checked": found.report.words_checked,
        "words_wrong": found.report.words_wrong,
    }
    print_image(arguments, found.image, facts)


def print_image(arguments: Namespace, image: Image, more: dict[str, Any] | None = None) -> None:
    """Print the modes and sizes of an image.

    Parameters
    ----------
    arguments : Namespace
        Arguments of the command; ``--json`` selects the format.
    image : Image
        The image to describe.
    more : dict, optional
        Further facts to print.
    """
    rows = sum(entry.form.n_rows for entry in image.entries)
    facts: dict[str, Any] = {
        "fabric": f"{image.room.digest(image.width):08x}",
        "program": image.program.digest[:8],
        "rows": rows,
        "words": len(image.words),
        **({"fills": [*image.fills]} if image.fills else {}),
        "modes": image.facts,
        **(more or {}),
    }
    if arguments.json:
        print_json(facts)
        return
    shown = {name.replace("_", " "): value for name, value in facts.items() if name != "modes"}
    if image.fills:
        shown["fills"] = f"modes {', '.join(map(str, image.fills))}"
    shown["rows"] = f"{rows} of {image.room.sizes.rows}"
    for mode in image.facts:
        constant = ", ".join(
            f"from {piece['first']}: {piece['constant']} + {piece['per_flit']} n"
            for piece in mode["cycles"]
        )
        shown[f"mode {mode['mode']}"] = (
            f"{mode['collective']} by {mode['algorithm']}, cycles {constant}"
        )
    print_facts(shown)
