"""Pictures, animations and signals that blocks of a page have written, as text of the page.

A picture is written in two forms, light and dark, and the page shows one of them. Each form links
to its file, which the script `_static/site.js` enlarges in the page.
"""

import json
import re
import shutil
from fnmatch import fnmatch
from html import escape, unescape
from pathlib import Path

from dark import dark, light
from pages import ShownFile
from sphinx.errors import ExtensionError

__all__ = ["MADE", "alternative", "render_shown", "with_pairs"]

#: Folder, beside the pages, of pictures and animations that pages have made.
MADE = "_made"

#: A picture of the repository, alone on a line of a page.
OWN = re.compile(r"^!\[([^\]]*)\]\((?!/|https?:)([^)\s]+\.svg)\)$", re.MULTILINE)


def render_shown(part: ShownFile, page: str, folder: Path, docs: Path) -> str:
    """Return the text that shows a file of `folder` on a page; copy pictures beside the pages."""
    if part.what == "signals":
        return _signals((folder / part.name).read_text(encoding="utf-8"), part.caption.split())
    target = docs / MADE / page
    target.mkdir(parents=True, exist_ok=True)
    if part.what == "animation":
        return _animation(part, page, folder, target)
    svg = (folder / part.name).read_text(encoding="utf-8")
    alt = part.alt or alternative(svg, part.caption)
    return f"{_pair(svg, alt, part.name, page, target)}\n*{part.caption}*\n"


def with_pairs(text: str, page: str, docs: Path) -> str:
    """Return a page whose pictures from the repository have a light and a dark form."""

    def pair(match: re.Match[str]) -> str:
        path = (docs / page).parent / match[2]
        target = docs / MADE / page
        target.mkdir(parents=True, exist_ok=True)
        return _pair(path.read_text(encoding="utf-8"), match[1], path.name, page, target)

    return OWN.sub(pair, text)


def alternative(svg: str, caption: str) -> str:
    """Return the alternative text of a picture: its title, and the words of its caption.

    Examples
    --------
    >>> alternative("<svg><title>4x4 allgather, matching: 4 steps</title></svg>", "A {term}`node`.")
    'Picture of 4x4 allgather, matching: 4 steps. A node.'
    """
    title = re.search(r"<title>(.*?)</title>", svg, re.DOTALL)
    plain = re.sub(r"\{\w+\}`([^`<]*?)(?: <[^`]*>)?`|`([^`]*)`", r"\1\2", caption)
    return f"Picture of {unescape(title[1]).rstrip('.')}. {plain}" if title else plain


def _signals(manifest: str, patterns: list[str]) -> str:
    """Return a table of the signals in a manifest; signals of node 0 stand for all nodes.

    Raises
    ------
    ExtensionError
        If no signal has a name that matches one of the patterns.
    """
    rows = [
        (f"`{name}`", port["direction"], str(port["width"]), port["protocol"], port["meaning"])
        for name, port in json.loads(manifest)["ports"].items()
        if not port["node"] and any(fnmatch(name, each) for each in patterns or ["*"])
    ]
    if not rows:
        raise ExtensionError(f"no signal of the manifest matches {' '.join(patterns)}")
    head = "| signal | direction | width | protocol | meaning |\n|---|---|---|---|---|\n"
    cells = ([re.sub(r"[|*<>\[\]]", r"\\\g<0>", cell) for cell in row] for row in rows)
    return head + "".join(f"| {' | '.join(row)} |\n" for row in cells)


def _animation(part: ShownFile, page: str, folder: Path, target: Path) -> str:
    """Return an animation in a frame."""
    shutil.copy(folder / part.name, target)
    address = f"{'../' * page.count('/')}{MADE}/{page}/{part.name}"
    title = escape(alternative("", part.caption))
    return (
        f'<iframe class="animation" src="{address}" title="Animation: {title}" '
        'tabindex="0"></iframe>\n\n'
        f'*{part.caption}* <a href="{address}">Open this animation on a page of its own</a>\n'
    )


def _pair(svg: str, alt: str, name: str, page: str, target: Path) -> str:
    """Return a picture in a light and a dark form with its width; Sphinx makes links of them."""
    stem = name.removesuffix(".svg").replace("/", "-")
    (target / f"{stem}.svg").write_text(light(svg), encoding="utf-8")
    (target / f"{stem}-dark.svg").write_text(dark(svg), encoding="utf-8")
    found = re.search(r'<svg [^>]*?\bwidth="([\d.]+)(pt)?', svg)
    pixels = f" width={round(float(found[1]) * (4 / 3 if found[2] else 1))}px" if found else ""
    text = re.sub(r"[\[\]\\`*_<>]", r"\\\g<0>", alt)
    place = f"/{MADE}/{page}/{stem}"
    return (
        f"![{text}]({place}.svg){{.only-light{pixels}}}\n"
        f"![{text}]({place}-dark.svg){{.only-dark{pixels}}}\n"
    )
