"""The commands that a person types for a board, a line at a time."""

from collections.abc import Sequence
from typing import Any

from ...errors import InputError
from ...toolchain.hints import hint
from .client import BoardClient
from .facts import Facts

__all__ = ["COMMANDS", "perform"]

#: The least and the most numbers that each command takes.
_COUNTS = {
    "info": (0, 0),
    "test": (0, 1),
    "status": (0, 0),
    "start": (0, 0),
    "read": (2, 3),
    "write": (3, 1 << 20),
}

#: The commands, for messages.
COMMANDS = (
    "info, test [RUNS], status, start, read NODE ADDRESS [COUNT] or write NODE ADDRESS WORD.."
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
    word, numbers = _parse(text)
    facts = board.facts
    if word == "info":
        width = max(map(len, facts))
        return facts, "\n".join(f"{name:<{width}}  {value}" for name, value in facts.items())
    if word in ("test", "status"):
        verdict = board.test(*numbers) if word == "test" else board.status()
        return vars(verdict), verdict.describe(facts)
    if word == "start":
        cycles = board.start()
        return {"cycles": cycles}, f"done in {cycles} cycles"
    node, address, *others = numbers
    count = len(others) if word == "write" else (others or [1])[0]
    _check_location(facts, node, address, count, "send" if word == "write" else "recv")
    if word == "write":
        _check_words(facts, others)
        board.write(node, address, others)
        return {"written": count}, f"wrote {count} word{'s' * (count > 1)}"
    words = board.read(node, address, count)
    return {"words": words}, " ".join(f"{w:0{-(-facts['width'] // 4)}x}" for w in words)


def _parse(text: str) -> tuple[str, list[int]]:
    """The word and the numbers of a command."""
    word, *rest = text.split() or [""]
    least, most = _COUNTS.get(word, (0, -1))
    if not least <= len(rest) <= most:
        meant = "" if word in _COUNTS else hint(word, list(_COUNTS))
        raise InputError(f"Command must be {COMMANDS}, not {text!r}{meant}")
    try:
        bases = [16 if k > 1 and word == "write" else 0 for k in range(len(rest))]
        return word, [int(number, base) for number, base in zip(rest, bases, strict=True)]
    except ValueError:
        raise InputError(f"Numbers of a command must be whole numbers, not {text!r}") from None


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
