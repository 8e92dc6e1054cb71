"""Sphinx: sections of docstrings as tables, and a table of the members of each class.

The sections *Attributes* and *Members* of a NumPy docstring become tables. A class with methods or
properties gets a table of these behind its docstring, with the first sentence of each.
"""

import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import PycodeError
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.inspect import getdoc

import torusfabric

__all__ = ["first_sentence", "format_sections", "members_of", "setup"]

#: Sections whose entries become a table.
SECTIONS = ("Attributes", "Members")

#: Stands for the first paragraph of a property while napoleon reads the docstring. Why: napoleon
#: takes the words before a colon for the type of the property.
PARAGRAPH = "first-paragraph-of-a-property"

#: Beginning of the docstring that Python gives the fields of a named tuple, without information.
ALIAS = "Alias for field number"


def format_sections(lines: Sequence[str]) -> list[str]:
    r"""Return the lines of a docstring with tables in place of some sections.

    Examples
    --------
    >>> section = ["Members", "-------", "go : In(1)", "    A pulse", "    of one cycle."]
    >>> print("\n".join(format_sections(section)))
    Members
    -------
    <BLANKLINE>
    .. list-table::
       :header-rows: 1
    <BLANKLINE>
       * - name
         - type
         - meaning
       * - ``go``
         - In(1)
         - A pulse of one cycle.
    <BLANKLINE>
    """
    starts = [k - 1 for k, line in enumerate(lines) if k and re.fullmatch(r"-{3,}", line)]
    found = list(lines[: starts[0] if starts else len(lines)])
    for start, end in zip(starts, [*starts, len(lines)][1:], strict=True):
        if lines[start] not in SECTIONS:
            found += lines[start:end]
            continue
        rows = [("name", "type", "meaning")]
        for names, kind, text in _entries(lines[start + 2 : end]):
            rows.append((", ".join(f"``{name}``" for name in names.split(", ")), kind, text))
        found += [*lines[start : start + 2], "", *_table(rows)]
    return found


def _entries(lines: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the names, the type and the text of each entry of a section."""
    heads = [k for k, line in enumerate(lines) if line and not line.startswith(" ")]
    for head, end in zip(heads, [*heads, len(lines)][1:], strict=True):
        names, _, kind = lines[head].partition(" : ")
        text = " ".join(line.strip() for line in lines[head + 1 : end] if line.strip())
        yield names, kind.replace("*", r"\*").replace("|", r"\|"), text


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table of reStructuredText; the first row is the head."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in rows:
        lines += [f"   {'*' if k == 0 else ' '} - {cell}" for k, cell in enumerate(row)]
    return [*lines, ""]


def members_of(cls: type, until: frozenset[str] = frozenset()) -> Iterator[tuple[str, str]]:
    """Yield the name and the first sentence of each documented member, in the order of the code.

    Parameters
    ----------
    cls : type
        The class.
    until : frozenset of str
        Name of the base class whose members, and those of further bases, are left out; empty
        for the members of `cls` alone.
    """
    seen = set[str]()
    for each in cls.__mro__ if until else [cls]:
        if each.__name__ in until and each is not cls:
            return
        comments = _comments(each)
        for name, value in vars(each).items():
            if name.startswith("_") or name in seen:
                continue
            seen.add(name)
            called = isinstance(value, classmethod | staticmethod) or inspect.isfunction(value)
            if called or hasattr(value, "__get__"):
                text = getdoc(value, cls=each, name=name, allow_inherited=True) or ""
            else:
                text = comments.get(name, "")
            if text and not text.startswith(ALIAS):
                yield name + "()" * called, first_sentence(text)


def _comments(cls: type) -> dict[str, str]:
    """Return the comments of the form ``#: text`` of attributes of a class, by name."""
    try:
        found = ModuleAnalyzer.for_module(cls.__module__).find_attr_docs()
    except PycodeError:
        return {}
    return {name: "\n".join(text) for (owner, name), text in found.items()
            if owner == cls.__qualname__}  # fmt: skip


def first_sentence(text: str) -> str:
    r"""Return the first sentence of a docstring, on one line.

    Examples
    --------
    >>> first_sentence("Return the node,\nfrom 0. The root\nis 0.\n\nMore.")
    'Return the node, from 0.'
    """
    paragraph = " ".join(text.strip().partition("\n\n")[0].split())
    return re.split(r"(?<=[.])(?<!e\.g\.)\s(?=[A-Z`])", paragraph)[0]


#: First paragraphs of properties that napoleon reads at this moment, by the name of the property.
_first_paragraphs: dict[str, list[str]] = {}


def prepare_lines(
    _app: Sphinx, what: str, name: str, _obj: Any, _options: Any, lines: list[str]
) -> None:
    """Change the lines of a docstring before napoleon reads them."""
    lines[:] = format_sections(lines)
    if what in ("property", "attribute") and lines:
        end = lines.index("") if "" in lines else len(lines)
        _first_paragraphs[name], lines[:end] = lines[:end], [PARAGRAPH]


def complete_lines(
    _app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Change the lines of a docstring after napoleon has read them."""
    if PARAGRAPH in lines and name in _first_paragraphs:
        start = lines.index(PARAGRAPH)
        lines[start : start + 1] = _first_paragraphs.pop(name)
    if what in ("class", "exception") and inspect.isclass(obj):
        inherited = frozenset(options.inherited_members or ())
        rows = [
            (f":py:obj:`{each} <{name}.{each.removesuffix('()')}>`", text)
            for each, text in members_of(obj, inherited)
        ]
        if rows:
            lines += ["", ".. rubric:: Methods and properties", ""]
            lines += _table([("name", "meaning"), *rows])


def skip_alias(_app: Sphinx, _what: str, _name: str, obj: Any, _skip: Any, _options: Any) -> Any:
    """Skip a field of a named tuple, which the parameters explain."""
    return True if str(obj.__doc__).startswith(ALIAS) else None


def name_bases(_app: Sphinx, _name: str, _obj: Any, _options: Any, bases: list[Any]) -> None:
    """Leave out base classes without a page."""
    public = [getattr(torusfabric, name) for name in torusfabric.__all__]
    bases[:] = [base for base in bases if base in public]


def set_dashes(_app: Sphinx, doctree: nodes.document) -> None:
    """Replace the two hyphens that napoleon puts behind the type of a parameter by a dash."""
    for field in doctree.findall(nodes.field_body):
        for text in [*field.findall(nodes.Text)]:
            dashed = re.sub(r"^(\)?) -- ", "\\1 \N{EN DASH} ", text)
            if dashed != text:
                text.parent.replace(text, nodes.Text(dashed))


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the extension; Sphinx calls this."""
    # Napoleon has the priority 500.
    app.connect("autodoc-process-docstring", prepare_lines, priority=400)
    app.connect("autodoc-process-docstring", complete_lines, priority=600)
    app.connect("autodoc-process-bases", name_bases)
    app.connect("autodoc-skip-member", skip_alias)
    app.connect("doctree-read", set_dashes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
