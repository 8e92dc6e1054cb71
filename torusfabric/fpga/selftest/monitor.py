"""The commands that a person types for a board, a line at a time."""

from collections.abc import Sequence
from typing import Any

from ...errors import InputError
from ...toolchain.hints import hint
from .client import BoardClient
from .facts import Facts
from .job_facts import asked_job, describe_job, job_facts
from .jobs import CHOICES

__all__ = ["COMMANDS", "perform"]

#: The least and the most numbers that each command takes.
_COUNTS = {
    "info": (0, 0),
    "test": (0, 1),
    "status": (0, 0),
    "start": (0, 4),
    "read": (2, 3),
    "write": (3, 1 << 20),
}

#: The commands, for messages.
COMMANDS = (
    "info, test [RUNS], status, start [mode=NAME] [length=L] [root=NODE] [operation=NAME], "
    "read NODE ADDRESS [COUNT] or write NODE ADDRESS WORD.."
)


def perform(board: BoardClient, text: str) -> tuple[dict[str, Any], str]:
    """Carry out one command.

    Parameters
    ----------
    board : BoardClient
    text : str
        One of `COMMANDS`; words are in hexadecimal, other numbers as Python writes them.

    Returns
    -------
    result : dict
        For programs.
    text : str
        For people.

    Raises
    ------
    InputError
        If it is no command, or its numbers do not fit this board.
    WorkFailed
        If the answer of the board is not what it must be.
    """
    word, rest = _parse(text)
    facts = board.facts
    if word == "info":
        return facts, _told(facts)
    if word == "start":
        return _start(board, rest, text)
    numbers = _numbers(word, rest, text)
    if word in ("test", "status"):
        verdict = board.test(*numbers) if word == "test" else board.status()
        return vars(verdict), verdict.describe(facts)
    node, address, *others = numbers
    count = len(others) if word == "write" else (others or [1])[0]
    _check_location(facts, node, address, count, "send" if word == "write" else "recv")
    if word == "write":
        _check_words(facts, others)
        board.write(node, address, others)
        return {"written": count}, f"wrote {count} word{'s' * (count > 1)}"
    words = board.read(node, address, count)
    return {"words": words}, " ".join(f"{w:0{-(-facts['width'] // 4)}x}" for w in words)


def _parse(text: str) -> tuple[str, list[str]]:
    """The word of a command, and what follows."""
    word, *rest = text.split() or [""]
    least, most = _COUNTS.get(word, (0, -1))
    if not least <= len(rest) <= most:
        raise _unknown(word, text)
    return word, rest


def _unknown(word: str, text: str) -> InputError:
    meant = "" if word in _COUNTS else hint(word, list(_COUNTS))
    return InputError(f"Command must be {COMMANDS}, not {text!r}{meant}")


def _numbers(word: str, rest: Sequence[str], text: str) -> list[int]:
    """The numbers of a command."""
    try:
        bases = [16 if k > 1 and word == "write" else 0 for k in range(len(rest))]
        return [int(number, base) for number, base in zip(rest, bases, strict=True)]
    except ValueError:
        raise InputError(f"Numbers of a command must be whole numbers, not {text!r}") from None


def _told(facts: Facts) -> str:
    """What a board says it is, a fact or a mode a line."""
    modes = facts.get("modes", [])
    told = {name: value for name, value in facts.items() if name != "modes"}
    for number, mode in enumerate(modes):
        by = f" by {', '.join(mode['operators'])}" if mode["operators"] else ""
        root = "" if mode["root"] is None else f", root {mode['root']}"
        told[f"mode {number}"] = f"{mode['collective']}{by}{root}: {mode['algorithm']}"
    width = max(map(len, told))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in told.items())


def _start(board: BoardClient, rest: Sequence[str], text: str) -> tuple[dict[str, Any], str]:
    """Run the fabric once."""
    chosen = dict(part.partition("=")[::2] for part in rest)
    if not set(chosen) <= set(CHOICES):
        raise _unknown("start", text)
    numbers = {
        name: _numbers("start", [chosen[name]], text)[0]
        for name in ("length", "root")
        if name in chosen
    }
    job = asked_job(
        board.facts,
        mode=chosen.get("mode"),
        operation=chosen.get("operation"),
        length=numbers.get("length"),
        root=numbers.get("root"),
    )
    cycles = board.start(job)
    done = describe_job(job_facts(board.facts, job))
    return {"cycles": cycles}, f"{f'{done}: ' if done else ''}done in {cycles} cycles"


def _check_location(facts: Facts, node: int, address: int, count: int, memory: str) -> None:
    """Check that so many words from an address on lie in the send or the receive memory."""
    if not 0 <= node < facts["nodes"]:
        raise InputError(f"Node must be from 0 to {facts['nodes'] - 1}, not {node}")
    if count < 1:
        raise InputError(f"Count must be at least 1, not {count}")
    first = facts[f"{memory}_base"]
    last = first + facts[f"{memory}_words"] - 1
    use = "to write a send memory" if memory == "send" else "to read a receive memory"
    for each in (address, address + count - 1):
        if not first <= each <= last:
            raise InputError(f"Address must be from {first} to {last} {use}, not {each}")


def _check_words(facts: Facts, words: Sequence[int]) -> None:
    """Check that words fit into a flit."""
    for word in words:
        if word < 0 or word >> facts["width"]:
            most = (1 << facts["width"]) - 1
            raise InputError(f"Word must be from 0 to {most:x} (hexadecimal), not {word:x}")
