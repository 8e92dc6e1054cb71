"""Pages, help texts and docstrings use the words of the glossary, not their variants."""

import re
from pathlib import Path

import pytest
from commands import command_section, parsers
from written_text import PACKAGE, ROOT, docstrings_of, written_pages

from torusfabric.cli import make_parser

GLOSSARY = ROOT / "docs/reference/glossary.md"
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "boards/README.md")]
PAGES += written_pages()


def replaced_words() -> list[str]:
    """Return the variants that are wrong in every meaning: those without a remark in the table."""
    _, _, table = GLOSSARY.read_text("utf-8").partition("| use | instead of |\n|---|---|\n")
    rows = (row.split("|")[2].strip() for row in table.splitlines() if row.startswith("|"))
    return [variant for variant in rows if "," not in variant]


VARIANTS = re.compile(rf"\b({'|'.join(replaced_words())})s?\b", re.IGNORECASE)


def prose(text: str) -> str:
    """Return a page without code, targets of links, comments and the table of variants."""
    text = text.partition("| use | instead of |")[0]
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`|<!--.*?-->|\]\([^)]*\)|\]\[[^]]*\]", " ", text, flags=re.DOTALL)


def docstrings(path: Path) -> str:
    """Return all docstrings of a module, without the names of parameters."""
    return re.sub(r"^ *\w+ : ", "", "\n".join(docstrings_of(path)), flags=re.MULTILINE)


def test_variants_are_known() -> None:
    """The glossary has variants with and without a remark."""
    assert {"lamp", "owed", "dearest"} <= {*replaced_words()}
    assert not {"way", "place"} & {*replaced_words()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages(page: Path) -> None:
    """No page uses a variant."""
    assert VARIANTS.findall(prose(page.read_text("utf-8"))) == []


def test_help() -> None:
    """No help text uses a variant."""
    text = "\n".join([make_parser().format_help(), *map(command_section, parsers())])
    assert "cycles" in prose(text)
    assert VARIANTS.findall(prose(text)) == []


def test_docstrings() -> None:
    """No docstring uses a variant."""
    found = {
        str(path.relative_to(ROOT)): VARIANTS.findall(prose(docstrings(path)))
        for path in sorted(PACKAGE.rglob("*.py"))
    }
    assert {path: words for path, words in found.items() if words} == {}


def test_planted_variants_are_found() -> None:
    """A variant is found in prose, and not in code."""
    text = "The lamps show the DEAREST router; `lamps` and `dearest` are keys.\n"
    assert VARIANTS.findall(prose(text)) == ["lamp", "DEAREST"]
