"""Sphinx: pages for files outside the documents, and links to these pages.

``<!-- whole: ../../CHANGELOG.md -->`` in a page becomes the text of that file. Links in this text,
and links of all pages to such a file, lead to the page that shows the file.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx

__all__ = ["setup"]

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent

WHOLE = re.compile(r"<!-- whole: (\S+) -->\n")
LINK = re.compile(r"(?<=\]\()(?!https?:|#|/)([^)#\s]+)(?=(?:#[^)]*)?\))")
CODE = re.compile(r"(^```.*?^```\n)", re.DOTALL | re.MULTILINE)

#: The page that stands for the README.
FRONT = {ROOT / "README.md": "/index.md"}


def shown_whole() -> dict[Path, str]:
    """Return the pages that show whole files, by file."""
    pages = {}
    for page in DOCS.rglob("*.md"):
        for name in WHOLE.findall(page.read_text(encoding="utf-8")):
            pages[(page.parent / name).resolve()] = f"/{page.relative_to(DOCS).as_posix()}"
    return pages


def read(app: Sphinx, page: str, source: list[str]) -> None:
    """Insert files into the text of a page, and let links lead to pages."""
    folder = (DOCS / page).parent

    def whole(match: re.Match[str]) -> str:
        path = (folder / match[1]).resolve()
        app.env.note_dependency(path)
        return _linked(path.read_text(encoding="utf-8"), path.parent, app.config.shown_whole)

    source[0] = WHOLE.sub(whole, _linked(source[0], folder, app.config.shown_whole))


def _linked(text: str, folder: Path, pages: dict[Path, str]) -> str:
    """Return the text of a file in a folder, with links to pages in place of links to files."""

    def link(match: re.Match[str]) -> str:
        path = (folder / match[1]).resolve()
        if path in pages:
            return pages[path]
        if path.is_relative_to(DOCS):
            return f"/{path.relative_to(DOCS).as_posix()}"
        if path.is_dir() and (path / "README.md") in pages:
            return pages[path / "README.md"]
        return match[1]

    parts = CODE.split(text)
    return "".join(part if k % 2 else LINK.sub(link, part) for k, part in enumerate(parts))


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the extension; Sphinx calls this."""
    app.add_config_value("shown_whole", FRONT | shown_whole(), "", [dict])
    # After the extension that runs blocks: the blocks of inserted files run in the tests.
    app.connect("source-read", read, priority=700)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
