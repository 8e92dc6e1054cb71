"""What a board says it is, as plain data: the facts about the fabric that it carries."""

from typing import TYPE_CHECKING, Any

from ... import __version__
from ...errors import WorkFailed

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["Facts", "checked_facts", "facts_of"]

#: The facts by name, as they are sent in JSON.
Facts = dict[str, Any]


def facts_of(fabric: "Fabric") -> Facts:
    """What a fabric is: the answer of a board that carries it."""
    schedule, layout = fabric.program.schedule, fabric.layout
    operator = fabric.program.mode.operator_of()
    return {
        "torusfabric": __version__,
        "topology": str(schedule.topology),
        "collective": schedule.collective.name,
        "root": schedule.collective.root,
        **({"operator": operator.name, "signed": operator.signed} if operator else {}),
        "algorithm": schedule.algorithm,
        "schedule_digest": schedule.digest[:16],
        "nodes": fabric.nodes,
        "width": fabric.width,
        "flits": fabric.flits,
        "send_base": layout.send_base,
        "send_words": layout.send_words,
        "recv_base": layout.recv_base,
        "recv_words": layout.recv_words,
        "predicted_cycles": fabric.predicted_cycles,
    }


#: The facts that are numbers, and the least that each can be.
_NUMBERS = {
    "nodes": 2,
    "width": 1,
    "flits": 1,
    "send_base": 0,
    "send_words": 1,
    "recv_base": 0,
    "recv_words": 1,
    "predicted_cycles": 1,
}


def checked_facts(found: Any) -> Facts:
    """What a board said, if it says all that is needed to work with it.

    Raises
    ------
    WorkFailed
        If it does not.
    """
    facts: Facts = dict(found)
    for name, least in _NUMBERS.items():
        value = facts.get(name)
        if type(value) is not int or value < least:
            raise WorkFailed(
                f"Board must say its {name}, a whole number from {least} on, not {value!r}: its "
                f"image is of torusfabric {facts['torusfabric']}, this is {__version__}"
            )
    for name in ("topology", "collective", "algorithm"):
        if not isinstance(facts.get(name), str):
            raise WorkFailed(f"Board must say its {name}, not {facts.get(name)!r}")
    return facts
