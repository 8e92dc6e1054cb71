"""What a board says it is, as plain data: the facts about the fabric that it carries."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ...collective import Operator
from ...errors import WorkFailed
from ...toolchain.version import __version__
from .jobs import choices_of

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["Facts", "checked_facts", "facts_of", "operator_of"]

#: The facts by name, as they are sent in JSON.
Facts = dict[str, Any]


def facts_of(fabric: "Fabric") -> Facts:
    """What a fabric is: the answer of a board that carries it.

    Where runs leave a choice, the numbers are those of the largest one, and ``modes`` says what
    each is made of: `torusfabric.fpga.selftest.job_facts` makes the facts of one run of it.
    """
    program, layouts = fabric.program, fabric.layouts
    modes = [_choosing(fabric, number) for number in range(len(layouts))]
    return {
        "torusfabric": __version__,
        "topology": str(program.topology),
        **(_in_common(modes) if choices_of(fabric) else _alone(fabric)),
        "nodes": fabric.nodes,
        "width": fabric.width,
        "max_flits" if program.any_length else "flits": fabric.flits,
        "send_base": layouts[0].send_base,
        "send_words": max(layout.send_words for layout in layouts),
        "recv_base": layouts[0].recv_base,
        "recv_words": max(layout.recv_words for layout in layouts),
        "predicted_cycles": fabric.predicted_cycles,
        **({"modes": modes} if choices_of(fabric) else {}),
    }


def _alone(fabric: "Fabric") -> Facts:
    """What the only run of a fabric carries out."""
    schedule, operator = fabric.program.schedule, fabric.program.mode.operator_of()
    return {
        "collective": schedule.collective.name,
        "root": schedule.collective.root,
        **(operator_facts(operator) if operator else {}),
        "algorithm": schedule.algorithm,
        "schedule_digest": schedule.digest[:16],
    }


def _in_common(modes: list[Facts]) -> Facts:
    """What modes carry out, in one fact each."""
    return {name: ",".join(mode[name] for mode in modes) for name in ("collective", "algorithm")}


def _choosing(fabric: "Fabric", number: int) -> Facts:
    """What the runs of a mode carry out.

    With n flits a chunk they take ``constant + per_flit * n`` cycles: ``cycles`` lists the n from
    which on this holds, and both numbers.
    """
    mode, layout = fabric.program.modes[number], fabric.layouts[number]
    schedule = mode.schedule
    pieces = mode.timing.pieces(1 if mode.any_length else mode.loop.flits)
    return {
        "collective": schedule.collective.name,
        "root": "any" if mode.any_root else schedule.collective.root,
        "operators": [operator.name for operator in mode.operators],
        "algorithm": schedule.algorithm,
        "schedule_digest": schedule.digest[:16],
        "chunks": schedule.chunks,
        "send_parts": layout.send_words // fabric.flits,
        "recv_parts": layout.recv_words // fabric.flits,
        "cycles": [list(piece) for piece in pieces],
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

#: Those of each mode, where runs leave a choice.
_NUMBERS_OF_A_MODE = {"chunks": 1, "send_parts": 1, "recv_parts": 1}


def _is_root(said: Any) -> bool:
    return said is None or (type(said) is int and said >= 0)


def _are_names(said: Any) -> bool:
    return isinstance(said, list) and all(isinstance(name, str) for name in said)


def _are_cycles(said: Any) -> bool:
    """Whether these are pieces of three numbers each, the first from the shortest length on."""
    if not isinstance(said, list) or not said:
        return False
    pieces = all(isinstance(piece, list) and len(piece) == 3 for piece in said)
    return pieces and all(type(n) is int for piece in said for n in piece) and said[0][0] <= 1


#: A fact's form in words, and whether something is that.
_Form = tuple[str, Callable[[Any], bool]]

#: What else a board says that leaves no choice, and what each mode of one that does.
_ALONE: dict[str, _Form] = {"root": ("a node or null", _is_root)}
_OF_A_MODE: dict[str, _Form] = {
    "root": ("a node, null or any", lambda said: said == "any" or _is_root(said)),
    "operators": ("a list of names", _are_names),
    "schedule_digest": ("a text", lambda said: isinstance(said, str)),
    "cycles": ("a list of three numbers each", _are_cycles),
}


def checked_facts(found: Any) -> Facts:
    """What a board said, if it says all that is needed to work with it.

    Raises
    ------
    WorkFailed
        If it does not.
    """
    facts: Facts = dict(found)
    numbers = {
        "max_flits" if name == "flits" and "max_flits" in facts else name: least
        for name, least in _NUMBERS.items()
    }
    if not isinstance(facts.get("topology"), str):
        raise WorkFailed(f"Board must say its topology, not {facts.get('topology')!r}")
    _check(facts, numbers, facts)
    modes = facts.get("modes", [])
    if not isinstance(modes, list) or not all(isinstance(mode, dict) for mode in modes):
        raise WorkFailed(f"Board must say its modes, a list, not {modes!r}")
    if not modes:
        _check(facts, {"flits": 1}, facts)
        _check_forms(facts, _ALONE)
    for mode in modes:
        _check(mode, _NUMBERS_OF_A_MODE, facts)
        _check_forms(mode, _OF_A_MODE)
    return facts


def operator_of(facts: Facts) -> Operator:
    """How a board that leaves no choice, or a run of another, combines words.

    Raises
    ------
    WorkFailed
        If the board does not say it.
    """
    name, signed = facts.get("operator"), facts.get("signed")
    if not isinstance(name, str) or not isinstance(signed, bool):
        said = f"{name!r}, {signed!r}"
        raise WorkFailed(f"Board must say its operator, and whether it is signed, not {said}")
    return Operator.parse(f"{name}:signed" if signed else name)


def operator_facts(operator: Operator) -> Facts:
    """What a board says of its operator."""
    return {"operator": operator.name.removesuffix(":signed"), "signed": operator.signed}


def _check_forms(said: Facts, forms: Mapping[str, _Form]) -> None:
    for name, (form, fits) in forms.items():
        if name not in said or not fits(said[name]):
            raise WorkFailed(f"Board must say its {name}, {form}, not {said.get(name)!r}")


def _check(said: Facts, numbers: Mapping[str, int], facts: Facts) -> None:
    """Check numbers and names among what a board said."""
    for name, least in numbers.items():
        value = said.get(name)
        if type(value) is not int or value < least:
            raise WorkFailed(
                f"Board must say its {name}, a whole number from {least} on, not {value!r}: its "
                f"image is of torusfabric {facts['torusfabric']}, this is {__version__}"
            )
    for name in ("collective", "algorithm"):
        if not isinstance(said.get(name), str):
            raise WorkFailed(f"Board must say its {name}, not {said.get(name)!r}")
