"""Docstrings begin with their subject, and relative clauses are rare."""

import re
import tokenize

import pytest
from written_text import PACKAGE, PACKAGES, docstrings_of, modules_of

#: Words that begin a relative clause.
CLAUSES = {"What", "Of", "As", "And", "Where", "Which", "How", "Whether", "That", "Those", "Whose",
           "When"}  # fmt: skip

#: Largest number of words *what* among 1,000.
MOST = 1


def docstrings(package):
    """Yield the path of the module and the text of each docstring of a package."""
    for path in modules_of(package):
        for text in docstrings_of(path):
            yield str(path.relative_to(PACKAGE)), text


def comments(package):
    """Yield the text of each comment of a package."""
    for path in modules_of(package):
        with tokenize.open(path) as file:
            for token in tokenize.generate_tokens(file.readline):
                if token.type == tokenize.COMMENT:
                    yield token.string


def words_of(text):
    """Return the words of a docstring without examples, code, and parameters named ``what``."""
    text = re.sub(r"^ *(>>>|\.\.\.) .*$", "", text, flags=re.MULTILINE)
    return re.findall(r"[A-Za-z']+", re.sub(r"`[^`]*`|^ *what : ", "", text, flags=re.MULTILINE))


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_rare(package):
    """The word *what* is rare in docstrings and comments."""
    texts = [*(text for _, text in docstrings(package)), *comments(package)]
    words = [word for text in texts for word in words_of(text)]
    assert len(words) > 300
    assert 1000 * sum(word.lower() == "what" for word in words) < MOST * len(words)


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_begin_with_a_noun_or_a_verb(package):
    """No docstring begins with a relative clause."""
    firsts = [(path, text.split(maxsplit=1)[0]) for path, text in docstrings(package)]
    assert [(path, word) for path, word in firsts if word in CLAUSES] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_entries_have_a_noun_of_their_own(package):
    """No entry of a docstring begins with "Of"."""
    entry = re.compile(r"^ {4,}Of\b", re.MULTILINE)
    assert [path for path, text in docstrings(package) if entry.search(text)] == []
