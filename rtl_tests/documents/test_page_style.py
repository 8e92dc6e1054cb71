"""Pages keep the limits of style: short paragraphs, few relative clauses, and a line of needs."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from written_text import DOCS, ROOT, written_pages

#: Pages that only include other files, or only lead to other pages.
LEADING = {"index.md", "project/changelog.md", "project/contributing.md", "reference/boards.md",
           "tutorials/counters.md"}  # fmt: skip

#: Largest number of words in a paragraph, and of words *what* among 1,000.
MOST_WORDS, MOST_WHATS = 80, 2

PAGES = [page for page in written_pages() if str(page.relative_to(DOCS)) not in LEADING]
ALL = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "boards/README.md"]


def prose(text: str) -> str:
    """Return a page without code, comments and directives of other formats."""
    text = re.sub(r"^( *)(```|:::+).*?^\1\2 *$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"<!--.*?-->|^\([\w-]+\)=$", "", text, flags=re.MULTILINE | re.DOTALL)


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs and items of lists of a page, without tables and headings."""
    for part in re.split(r"\n\s*\n|\n(?=\s*(?:[-*] |\d+\. |\||#))", prose(text)):
        if part.strip() and not part.lstrip().startswith(("|", "#")):
            yield part


def name_of(page: Path) -> str:
    """Return the path of a page, for the names of tests."""
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", ALL, ids=name_of)
def test_paragraphs_are_short(page: Path) -> None:
    """No paragraph has more than 80 words."""
    found = [part for part in paragraphs(page.read_text("utf-8")) if len(part.split()) > MOST_WORDS]
    assert [" ".join(part.split())[:60] for part in found] == []


@pytest.mark.parametrize("page", ALL, ids=name_of)
def test_what_is_rare(page: Path) -> None:
    """Fewer than 2 of 1,000 words are *what*; a short page may have one."""
    words = re.findall(r"[A-Za-z']+", prose(page.read_text("utf-8")))
    whats = sum(word.lower() == "what" for word in words)
    assert whats <= 1 or 1000 * whats < MOST_WHATS * len(words)


@pytest.mark.parametrize("page", ALL, ids=name_of)
def test_paragraphs_begin_with_a_subject(page: Path) -> None:
    """No paragraph begins with a relative clause."""
    starts = [part.split()[0] for part in paragraphs(page.read_text("utf-8"))]
    assert [word for word in starts if word in {"What", "Of", "Whether", "That", "Whose"}] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_needs_are_named(page: Path) -> None:
    """Each page for users has a line "You need:" with the extras and tools of its commands."""
    text = page.read_text("utf-8")
    if page.parent.name in {"start", "how-to", "tutorials", "understanding"}:
        assert re.search(r"^You need: ", text, re.MULTILINE)


def test_planted_faults_are_found() -> None:
    """Long paragraphs and list items are found; code and tables are not counted."""
    long = "word " * 81
    text = f"# Title\n\n{long}\n\n```sh\n{long}\n```\n\n| {long} |\n\n- {long}\n- What is short\n"
    counts = [len(part.split()) for part in paragraphs(text)]
    assert counts == [81, 82, 4]
