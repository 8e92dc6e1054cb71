"""What a board says it is, as plain data: the facts about the fabric that it carries."""

from typing import TYPE_CHECKING, Any

from ... import __version__

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["Facts", "facts_of"]

#: The facts by name, as they are sent in JSON.
Facts = dict[str, Any]


def facts_of(fabric: "Fabric") -> Facts:
    """What a fabric is: the answer of a board that carries it."""
    schedule, layout = fabric.program.schedule, fabric.layout
    operator = fabric.program.operator if schedule.collective.reducing else None
    return {
        "torusfabric": __version__,
        "topology": str(schedule.topology),
        "collective": schedule.collective.kind,
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
