"""Names of functions: a verb and an object, or a noun phrase; few have one word."""

import ast
from pathlib import Path

import pytest
from written_text import PACKAGES, modules_of

#: Names of one word that are allowed.
LISTED = Path(__file__).with_name("one_word_names.txt").read_text("utf-8").splitlines()
ONE_WORD = {word for line in LISTED if not line.startswith("#") for word in line.split()}

#: Largest share of names with one word, in percent.
MOST = 45

#: Participles that say nothing alone.
BARE = {"given", "shown", "held", "kept", "named", "found", "chosen", "joined", "listed", "made",
        "told", "sent", "taken", "stored", "left", "known", "wanted", "written",
        "asked"}  # fmt: skip

#: Public names, and their overrides, that are older than the rule.
PUBLIC = {"delivered", "given", "listed", "moved", "passed", "put", "renumbered"}


def function_names(package: str) -> list[str]:
    """Return the names of all functions and methods of a package, without leading underscores."""
    found = []
    for path in modules_of(package):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.append(node.name)
    return [name.strip("_") for name in found if not name.startswith("__") and name != "elaborate"]


@pytest.mark.parametrize("package", PACKAGES)
def test_few_names_have_one_word(package: str) -> None:
    """Names of one word are few, and each is in the list of allowed names."""
    names = function_names(package)
    short = [name for name in names if "_" not in name]
    assert 100 * len(short) < MOST * len(names)
    assert {*short} - ONE_WORD == set()


def test_no_allowed_name_is_unused() -> None:
    """Each allowed name is used."""
    used = {name for package in PACKAGES for name in function_names(package)}
    used |= {"main"}
    assert used >= ONE_WORD


def test_no_name_is_a_bare_participle() -> None:
    """No name is a bare participle."""
    used = {name for package in PACKAGES for name in function_names(package)}
    assert used & BARE <= PUBLIC
