"""One run of a board that leaves a choice: what it is, as if the board could do nothing else."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ...collective import Operator, parse_collective
from ...errors import InputError
from ...topology import parse_topology
from .facts import Facts, operator_facts, operator_of
from .jobs import CHOICES

__all__ = ["NO_CHOICES", "asked_job", "choices_in", "describe_job", "job_facts"]

#: A run that says nothing of its choices.
NO_CHOICES: Mapping[str, int] = MappingProxyType({})


def choices_in(facts: Facts) -> list[str]:
    """What the runs of a board choose, by name."""
    modes = facts.get("modes", [])
    has = {
        "mode": len(modes) > 1,
        "length": "max_flits" in facts,
        "root": any(mode["root"] == "any" for mode in modes),
        "operation": any(len(mode["operators"]) > 1 for mode in modes),
    }
    return [name for name in CHOICES if has[name]]


def job_facts(facts: Facts, job: Mapping[str, int] = NO_CHOICES) -> Facts:
    """The facts of a run, as those of a board that carries out nothing else.

    Parameters
    ----------
    facts : dict
        What the board says it is.
    job : dict of str to int
        What the run chooses; by default the longest one of mode 0 from node 0, by operation 0.

    Returns
    -------
    dict
        ``flits`` are those of this run, ``stride`` is how far apart messages lie in memory, and
        ``job`` has every choice that the board leaves.

    Raises
    ------
    InputError
        If the board leaves no such choice.
    """
    choices = choices_in(facts)
    for name, value in job.items():
        if name not in choices:
            raise InputError(f"{name.title()} must be left out for this board, not {value}")
    if "modes" not in facts:
        return facts | {"stride": facts["flits"], "job": {}}
    number = _checked("Mode", job.get("mode", 0), range(len(facts["modes"])))
    mode, stride = facts["modes"][number], facts.get("max_flits") or facts["flits"]
    flits = _checked("Length", job.get("length", stride), range(1, stride + 1))
    root, operators = mode["root"], mode["operators"]
    if root == "any":
        collective = parse_collective(mode["collective"])
        size = collective.groups(parse_topology(facts["topology"])).size
        root = _checked("Root", job.get("root", 0), range(size))
    operation = job.get("operation", 0) if operators else 0
    operation = _checked("Operation", operation, range(max(len(operators), 1)))
    everything = {"mode": number, "length": flits, "root": root or 0, "operation": operation}
    return {
        **{name: value for name, value in facts.items() if name not in ("modes", "max_flits")},
        **{name: mode[name] for name in ("collective", "algorithm", "schedule_digest")},
        "root": root,
        **_operator_facts(operators, operation),
        "flits": flits,
        "stride": stride,
        "send_words": mode["send_parts"] * flits,
        "recv_words": mode["recv_parts"] * flits,
        "predicted_cycles": _cycles(mode, flits),
        "job": {name: everything[name] for name in choices},
    }


def _checked(what: str, value: int, values: range) -> int:
    """A number that is one of those that there are."""
    if value not in values:
        raise InputError(f"{what} must be from {values.start} to {values.stop - 1}, not {value}")
    return value


def _operator_facts(operators: list[str], operation: int) -> Facts:
    """How words are combined, if they are."""
    if not operators:
        return {}
    return operator_facts(Operator.parse(operators[operation]))


def _cycles(mode: Facts, flits: int) -> int:
    """The cycles of a run with so many flits."""
    block = -(-flits // mode["chunks"])
    constant, slope = next((c, s) for first, c, s in reversed(mode["cycles"]) if first <= block)
    return int(constant + slope * block)


def asked_job(
    facts: Facts,
    *,
    mode: str | None = None,
    length: int | None = None,
    root: int | None = None,
    operation: str | None = None,
) -> dict[str, int]:
    """What a run chooses, as a user says it.

    Parameters
    ----------
    facts : dict
        What the board says it is.
    mode : str, optional
        Its number, its collective, or ``COLLECTIVE:ALGORITHM``; to be given if there are several.
    length, root : int, optional
    operation : str, optional
        Its number, or the operator.

    Raises
    ------
    InputError
        If there is no such choice, in this mode or at all.
    """
    number = _mode_of(facts, mode)
    of_mode = facts["modes"][number or 0] if "modes" in facts else facts
    if root is not None and of_mode["root"] != "any":
        raise InputError(f"Root must be left out for {of_mode['collective']}, not {root}")
    said = {
        "mode": number,
        "length": length,
        "root": root,
        "operation": _operation_of(of_mode, operation),
    }
    job = {name: value for name, value in said.items() if value is not None}
    job_facts(facts, job)
    return job


def _mode_of(facts: Facts, text: str | None) -> int | None:
    """The number of the mode that a user names; None where there is one."""
    if "mode" not in choices_in(facts):
        if text is not None:
            raise InputError(f"Mode must be left out for a board of one collective, not {text}")
        return None
    names = [f"{mode['collective']}:{mode['algorithm']}" for mode in facts["modes"]]
    found = [
        number
        for number, name in enumerate(names)
        if text in (str(number), name, name.partition(":")[0])
    ]
    if len(found) != 1:
        said = "left out" if text is None else text
        raise InputError(f"Mode must be one of {', '.join(names)}, not {said}")
    return found[0]


def _operation_of(of_mode: Facts, text: str | None) -> int | None:
    """The number of the operation that a user names."""
    if text is None:
        return None
    known = of_mode.get("operators", [])
    for number, name in enumerate(known):
        if len(known) > 1 and text in (str(number), name):
            return number
    wanted = f"one of {', '.join(known)}" if len(known) > 1 else "left out"
    raise InputError(f"Operation must be {wanted} for {of_mode['collective']}, not {text}")


def describe_job(facts: Facts) -> str:
    """A run in words: ``allreduce by max, 3 flits``; empty where there is no choice.

    Parameters
    ----------
    facts : dict
        Of the run, from `job_facts`.
    """
    job: dict[str, Any] = facts["job"]
    if not job:
        return ""
    words = facts["collective"]
    if "operator" in facts:
        words += f" by {operator_of(facts)}"
    if "root" in job and facts["root"] is not None:
        words += f", root {facts['root']}"
    if "length" in job:
        words += f", {facts['flits']} flit{'s' * (facts['flits'] > 1)}"
    return str(words)
