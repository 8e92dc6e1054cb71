"""Docstrings begin with their subject, and relative clauses are rare."""

import ast
import re
import tokenize
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "torusfabric"

ROOMS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))

#: Words that begin a relative clause.
CLAUSES = {"What", "Of", "As", "And", "Where", "Which", "How", "Whether", "That", "Those", "Whose",
           "When"}  # fmt: skip

#: Largest number of words *what* among 1,000.
MOST = 1


def docstrings(room):
    """Yield the path and the text of each docstring of a room."""
    for path in sorted((PACKAGE / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text:
                    yield str(path.relative_to(PACKAGE)), text


def comments(room):
    """Yield the text of each comment of a room."""
    for path in sorted((PACKAGE / room).rglob("*.py")):
        with tokenize.open(path) as file:
            for token in tokenize.generate_tokens(file.readline):
                if token.type == tokenize.COMMENT:
                    yield token.string


def words_of(text):
    """Return the words of a docstring without examples, code, and parameters named ``what``."""
    text = re.sub(r"^ *(>>>|\.\.\.) .*$", "", text, flags=re.MULTILINE)
    return re.findall(r"[A-Za-z']+", re.sub(r"`[^`]*`|^ *what : ", "", text, flags=re.MULTILINE))


@pytest.mark.parametrize("room", ROOMS)
def test_what_is_rare(room):
    """The word *what* is rare in docstrings and comments."""
    texts = [*(text for _, text in docstrings(room)), *comments(room)]
    words = [word for text in texts for word in words_of(text)]
    assert len(words) > 300
    assert 1000 * sum(word.lower() == "what" for word in words) < MOST * len(words)


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_begin_with_a_noun_or_a_verb(room):
    """No docstring begins with a relative clause."""
    firsts = [(path, text.split(maxsplit=1)[0]) for path, text in docstrings(room)]
    assert [(path, word) for path, word in firsts if word in CLAUSES] == []


@pytest.mark.parametrize("room", ROOMS)
def test_entries_have_a_noun_of_their_own(room):
    """No entry of a docstring begins with "Of"."""
    entry = re.compile(r"^ {4,}Of\b", re.MULTILINE)
    assert [path for path, text in docstrings(room) if entry.search(text)] == []
