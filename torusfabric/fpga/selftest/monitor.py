"""What a person says to a board, a line at a time."""

from ...errors import InputError

__all__ = ["COMMANDS", "perform"]

#: How many numbers the commands take.
_COUNTS = {
    "info": (0, 0),
    "test": (0, 1),
    "status": (0, 0),
    "start": (0, 0),
    "read": (2, 3),
    "write": (3, 1 << 20),
}

COMMANDS = "info, test [RUNS], status, start, read NODE PLACE [COUNT] or write NODE PLACE WORD.."


def perform(console, text):
    """Do one command.

    Parameters
    ----------
    console : Console
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
        If it is no command, or its numbers are not those of this board.
    WorkFailed
        If the board does not answer as it must.
    """
    word, numbers = _parse(text)
    facts = console.facts
    if word == "info":
        width = max(map(len, facts))
        return facts, "\n".join(f"{name:<{width}}  {value}" for name, value in facts.items())
    if word in ("test", "status"):
        verdict = console.test(*numbers) if word == "test" else console.status()
        return vars(verdict), verdict.describe(facts)
    if word == "start":
        cycles = console.start()
        return {"cycles": cycles}, f"done in {cycles} cycles"
    node, place, *others = numbers
    count = len(others) if word == "write" else (others or [1])[0]
    _check_place(facts, node, place, count, "send" if word == "write" else "recv")
    if word == "write":
        _check_words(facts, others)
        console.write(node, place, others)
        return {"written": count}, f"wrote {count} word{'s' * (count > 1)}"
    words = console.read(node, place, count)
    return {"words": words}, " ".join(f"{w:0{-(-facts['width'] // 4)}x}" for w in words)


def _parse(text):
    """A command's word and numbers."""
    word, *rest = text.split() or [""]
    least, most = _COUNTS.get(word, (0, -1))
    if not least <= len(rest) <= most:
        raise InputError(f"Command must be {COMMANDS}, not {text!r}")
    try:
        bases = [16 if k > 1 and word == "write" else 0 for k in range(len(rest))]
        return word, [int(number, base) for number, base in zip(rest, bases, strict=True)]
    except ValueError:
        raise InputError(f"Numbers of a command must be whole numbers, not {text!r}") from None


def _check_place(facts, node, place, count, part):
    """See that there are such places; what a node sends is only written, the rest only read."""
    if not 0 <= node < facts["nodes"]:
        raise InputError(f"Node must be from 0 to {facts['nodes'] - 1}, not {node}")
    if count < 1:
        raise InputError(f"Count must be at least 1, not {count}")
    first = facts[f"{part}_base"]
    last = first + facts[f"{part}_words"] - 1
    what = "is sent" if part == "send" else "was received"
    for at in (place, place + count - 1):
        if not first <= at <= last:
            raise InputError(
                f"Place must be from {first} to {last}, where what {what} is, not {at}"
            )


def _check_words(facts, words):
    """See that they fit into a flit."""
    for word in words:
        if word < 0 or word >> facts["width"]:
            most = (1 << facts["width"]) - 1
            raise InputError(f"Word must be from 0 to {most:x} (hexadecimal), not {word:x}")
