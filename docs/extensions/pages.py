"""The parts of a page that are carried out: blocks of commands and of Python, and what they show.

A comment before a block, or on a line of its own, says what is special about it::

    <!-- file: net.v -->           the block is written to a file before anything runs
    <!-- not run: needs a board --> the block is shown only
    <!-- status: 1 -->             its last command must end with this status, instead of 0
    <!-- output: 12 lines -->      only the first lines of the output are shown; `none`: nothing
    <!-- figure: net.svg A caption. -->        shows a picture that a block has written
    <!-- figure: net.svg A caption. | Text. --> the same, with an alternative text of its own
    <!-- animation: net.html A caption. -->    shows a page that a block has written
    <!-- signals: out/manifest.json -->        lists the signals of a fabric that is written
    <!-- signals: out/manifest.json load* -->  only those whose names match one of some patterns

Blocks of ``sh`` and ``python`` run unless they are files or something says that they do not.
"""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Block", "Shown", "blocks_of", "parts_of"]

#: A fenced block of a language, with the comments right before it; or a picture or page to show.
PART = re.compile(
    r"(?P<comments>(?:^<!-- [^\n]* -->\n)*)^```(?P<language>\w+)\n(?P<text>.*?)^```\n"
    r"|^<!-- (?P<what>figure|animation|signals): (?P<name>\S+) (?P<caption>.*?)-->\n",
    re.DOTALL | re.MULTILINE,
)
REMARK = re.compile(r"<!-- ([\w ]+): (.*?) -->")

#: Languages of blocks that run.
RUN = ("sh", "python")


@dataclass(frozen=True)
class Block:
    """A block of a page.

    Parameters
    ----------
    language : str
    text : str
    file : str
        Where it is written; nowhere if empty.
    runs : bool
    status : int
        With which its last command must end.
    lines : int or None
        How many lines of the output are shown at most; None for all.
    """

    language: str
    text: str
    file: str
    runs: bool
    status: int
    lines: int | None

    def as_json(self) -> dict[str, Any]:
        """Plain values, for a process that carries it out."""
        return asdict(self)


@dataclass(frozen=True)
class Shown:
    """A picture or a page that a block has written.

    Parameters
    ----------
    what : str
        ``figure``, ``animation`` or ``signals``.
    name : str
        Of the file.
    caption : str
        Text below a picture or an animation; patterns of the names of signals.
    alt : str
        Text in place of the picture; empty for its title and the caption.
    """

    what: str
    name: str
    caption: str
    alt: str = ""


def parts_of(text: str) -> Iterator[tuple[tuple[int, int], Block | Shown]]:
    """The blocks of a page and what it shows, each with its place in the text."""
    for match in PART.finditer(text):
        if match["what"]:
            caption, _, alt = match["caption"].partition(" | ")
            yield match.span(), Shown(match["what"], match["name"], caption.rstrip(), alt.strip())
            continue
        remarks = dict(REMARK.findall(match["comments"]))
        output = remarks.get("output", "")
        number = re.match(r"\d+", output)
        block = Block(
            language=match["language"],
            text=match["text"],
            file=remarks.get("file", ""),
            runs=match["language"] in RUN and not {"file", "not run"} & remarks.keys(),
            status=int(remarks.get("status", "0")),
            lines=int(number[0]) if number else 0 if output == "none" else None,
        )
        yield match.span(), block


def blocks_of(text: str) -> list[Block]:
    """The blocks of a page, in their order."""
    return [part for _, part in parts_of(text) if isinstance(part, Block)]
