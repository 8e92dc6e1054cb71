"""The commands for fabrics whose tables are loaded: image, repair."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from ..contract.options import add_options, natural
from ..fabric.choose import PlanFor, choose_schedules
from ..fabric.options import add_fabric_file, add_selection
from ..fabric.spec import FabricSpec
from .arguments import FORCE, check_output
from .output import print_facts, print_json, progress_bar, raise_if_wrong
from .parser import Commands, add_command

if TYPE_CHECKING:
    from ..fabric.images import Image

__all__ = ["add_commands"]

#: How images of every version begin.
IMAGE = b"TFI"


def add_commands(commands: Commands) -> None:
    """Add the commands to a parser."""
    image = add_command(commands, "image", run_image)
    add_fabric_file(image, required=True)
    add_selection(image, several=True)
    add_options(
        image,
        """
        -o --output FILE: where to write the image
        --onto FILE: the image that the fabric holds: fill some modes only, while the others may run
        --mode K: with --onto: the first mode to fill (default the first behind all)
        """,
        FORCE,
        output={"required": True},
        mode=natural,
    )
    repair = add_command(commands, "repair", run_repair)
    add_fabric_file(repair, required=True)
    add_options(
        repair,
        """
        --broken-link NODE:PORT: a link that is broken; may be given again
        -o --output FILE: where to write the image
        """,
        FORCE,
        broken_link={"action": "append", "required": True},
        output={"required": True},
    )


def run_image(arguments: Namespace) -> None:
    """Write the image of a selection for a fabric that exists, every schedule checked."""
    from ..fabric.images import image, read_fabric

    check_output(arguments, arguments.output, IMAGE)
    fabric = read_fabric(arguments.fabric)
    spec, room = FabricSpec.of(vars(arguments) | {"tables": "ram"}), fabric.room
    if spec.topology is not None and spec.link_latency is None:
        spec = spec.replace(link_latency=room.topology.latency_text)
    purpose = PlanFor(room.flits, any_length=True, any_root=True, room=room)
    chosen = choose_schedules(spec, purpose)
    modes = [(one.forms or (one.schedule,), one.root == "any") for one in chosen]
    with progress_bar("checking"):
        found = image(fabric, modes, onto=arguments.onto, mode=arguments.mode)
    found.save(arguments.output)
    print_image(arguments, found)


def run_repair(arguments: Namespace) -> None:
    """Plan around broken links, try the image, and write it; the status is 2 if it is wrong."""
    from ..fabric.images import repair

    check_output(arguments, arguments.output, IMAGE)
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
    """Print what an image holds."""
    rows = sum(entry.form.rows for entry in image.entries)
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
