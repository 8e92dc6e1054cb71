"""Parts of a page: blocks of commands and of Python that run, and files of these blocks to show.

A comment before a block, or on a line of its own, gives directions::

    <!-- file: net.v -->           write the block to a file before anything runs
    <!-- not run: needs a board --> show the block, and do not run it
    <!-- status: 1 -->             expect this status of the last command, instead of 0
    <!-- output: 12 lines -->      show only the first lines of the output; `none`: no line
    <!-- figure: net.svg A caption. -->        show a picture that a block has written
    <!-- figure: net.svg A caption. | Text. --> show it with an alternative text of its own
    <!-- animation: net.html A caption. -->    show a page that a block has written
    <!-- signals: out/manifest.json -->        list the signals of a fabric that a block has written
    <!-- signals: out/manifest.json load* -->  list the signals whose names match a pattern

Blocks of ``sh`` and ``python`` run unless a comment says `file` or `not run`.
"""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Block", "ShownFile", "blocks_of", "parts_of"]

#: A fenced block of a language, with the comments right before it; or a comment that shows a file.
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
        Language of the block, as after its fence.
    text : str
        Content of the block.
    file : str
        File to which the block is written; empty for none.
    runs : bool
        True if the block runs.
    status : int
        Expected exit status of the last command.
    lines : int or None
        Most lines of the output to show; None for all.
    """

    language: str
    text: str
    file: str
    runs: bool
    status: int
    lines: int | None

    def as_json(self) -> dict[str, Any]:
        """Return plain values, for the process that runs the block."""
        return asdict(self)


@dataclass(frozen=True)
class ShownFile:
    """A file that a block has written, and that the page shows.

    Parameters
    ----------
    what : str
        ``figure``, ``animation`` or ``signals``.
    name : str
        Path of the file.
    caption : str
        Text below a picture or an animation; for signals, patterns of their names.
    alt : str
        Alternative text of a picture; if empty, its title and the caption.
    """

    what: str
    name: str
    caption: str
    alt: str = ""


def parts_of(text: str) -> Iterator[tuple[tuple[int, int], Block | ShownFile]]:
    """Yield the blocks and shown files of a page, each with its span in the text."""
    for match in PART.finditer(text):
        if match["what"]:
            caption, _, alt = match["caption"].partition(" | ")
            yield (
                match.span(),
                ShownFile(match["what"], match["name"], caption.rstrip(), alt.strip()),
            )
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
    """Return the blocks of a page, in their order."""
    return [part for _, part in parts_of(text) if isinstance(part, Block)]
