"""What it costs that the root can be any: what a fabric stores, beside one from node 0."""

from argparse import Namespace
from typing import Any

from ..errors import InputError
from .fabric import Made, make_fabric

__all__ = ["in_a_line", "root_cost"]


def root_cost(arguments: Namespace, made: Made) -> dict[str, Any]:
    """What a fabric of any root stores, and what one from node 0 does.

    Parameters
    ----------
    arguments : Namespace
        With an open root.
    made : Made
        The fabric that they ask for.

    Returns
    -------
    dict
        Bits of ROMs and memories; ``from_node_0`` has the same of the best fabric of a fixed root,
        or None if the algorithm that is named serves no root alone.
    """
    try:
        fixed = make_fabric(Namespace(**{**vars(arguments), "root": None}))
    except InputError:
        return _stored(made) | {"from_node_0": None}
    return _stored(made) | {"from_node_0": _stored(fixed)}


def _stored(made: Made) -> dict[str, Any]:
    """What a fabric stores, its algorithm, and the form of its schedule."""
    from ..rtl.inventory import take_inventory

    schedules, inventory = [one.schedule for one in made.chosen], take_inventory(made.fabric)
    return {
        "algorithm": ",".join(schedule.algorithm for schedule in schedules),
        "form": ",".join(schedule.form for schedule in schedules),
        "rom_bits": inventory.rom_bits,
        "memory_bits": inventory.memory_bits,
    }


def in_a_line(cost: dict[str, Any]) -> str:
    """The same for people."""
    words = [_in_words(cost)]
    if cost["from_node_0"]:
        words.append(f"from node 0 {_in_words(cost['from_node_0'])}")
    return "; ".join(words)


def _in_words(stored: dict[str, Any]) -> str:
    rom, memory = stored["rom_bits"], stored["memory_bits"]
    return f"{memory:,} bits of memories and {rom:,} of ROMs ({stored['algorithm']})"
