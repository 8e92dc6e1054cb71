"""Names and documents use the words that CONTRIBUTING lists, and none that it rules out."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import command_reference

import torusfabric as tf
from torusfabric.cli import make_parser

ROOT = Path(__file__).parents[2]

#: Rooms in whose names they have been looked for.
ROOMS = ("algorithms", "analysis", "cli", "collective", "draw", "planning", "proof", "schedule",
         "simulation", "sweep", "toolchain", "topology")  # fmt: skip

PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "boards/README.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))

#: In prose: words that are never used, and those that are used otherwise.
PROSE = re.compile(
    r"\b(lanes?|owed?|owes|told|views?|farms?|echo(?:es)?"
    r"|(?:a|an|the|its|their|that|this|one|each|which|whose|own|no|any|and) places?(?! and route)"
    r"|kinds?(?! of\b))\b",
    re.IGNORECASE,
)

#: Of names: `kind` is a key of files, and a property that says what it is the kind of.
BANNED = {"lane", "owed", "told", "view", "farm", "echo", "place"}


def banned_list() -> set[str]:
    """The words of the list in CONTRIBUTING that are not used."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    paragraph = re.search(
        r"^Not used, in names and prose: (.*?)\n`", text, re.MULTILINE | re.DOTALL
    )
    assert paragraph
    plain = re.sub(r"\(.*?\)", "", paragraph[1], flags=re.DOTALL)
    return {re.findall(r"\w+", item.removeprefix(" and"))[0] for item in plain.split(",")}


def prose(text: str) -> str:
    """A page without code, targets of links, comments and the paragraph of what is not used."""
    text = re.sub(
        r"^Not used, in names and prose:.*?\n\n", "", text, flags=re.MULTILINE | re.DOTALL
    )
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`|<!--.*?-->|\]\([^)]*\)|\]\[[^]]*\]", " ", text, flags=re.DOTALL)


def names(path: Path) -> Iterator[str]:
    """The public names of a module: its own, of its classes and functions, and of fields."""
    yield path.stem
    tree = ast.parse(path.read_text("utf-8"))
    owners: list[ast.Module | ast.ClassDef] = [tree]
    owners += [each for each in tree.body if isinstance(each, ast.ClassDef)]
    for owner in owners:
        for each in owner.body:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield each.name
            elif isinstance(each, ast.AnnAssign):
                yield ast.unparse(each.target)


def parts(name: str) -> set[str]:
    """The words of a name in the singular; an idiom is none of them."""
    spread = re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().replace("in_place", "")
    return {word.rstrip("s") for word in re.findall(r"[a-z]+", spread)}


def test_the_list_is_known() -> None:
    """What CONTRIBUTING rules out is looked for."""
    assert banned_list() == BANNED | {"kind"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages(page: Path) -> None:
    """No page uses a word that is ruled out."""
    assert [found[0] for found in PROSE.finditer(prose(page.read_text("utf-8")))] == []


def test_help() -> None:
    """Nor does what commands say of themselves, but for names of options."""
    text = prose(make_parser().format_help() + command_reference())
    assert [found[0] for found in PROSE.finditer(re.sub(r"--[\w-]+", " ", text))] == []


@pytest.mark.parametrize("room", ROOMS)
def test_names(room: str) -> None:
    """No public name or module has a word that is ruled out; to place ranks is no noun."""
    paths = sorted((ROOT / "torusfabric" / room).rglob("*.py"))
    found = {name for path in paths for name in names(path) if not name.startswith("_")}
    assert {name for name in found if parts(name) & BANNED} - {"place_ranks"} == set()


def test_names_of_the_package() -> None:
    """No name of `torusfabric` itself has one."""
    assert [name for name in tf.__all__ if parts(name) & BANNED] == []


def test_planted_words_are_found() -> None:
    """In prose, but not in code; in names of any form."""
    text = "What is owed lies in its place, told by `a view`. Place and route take a kind of time."
    assert [found[0] for found in PROSE.finditer(prose(text))] == ["owed", "its place", "told"]
    assert parts("HostView") & parts("text_places") & BANNED == set()
    assert [word for name in ("HostView", "text_places") for word in parts(name) & BANNED] == [
        "view", "place",
    ]  # fmt: skip
