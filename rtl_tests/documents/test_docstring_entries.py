"""Entries of docstrings say more than the annotations."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parents[2] / "torusfabric"

#: Packages of torusfabric.
ROOMS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))

#: Words of a type or a description that carry no information by themselves.
EMPTY = frozenset(
    re.findall(
        r"\w+",
        """
        a an and are array as bool by callable dict file float for from function generator given
        in int integer is it its iterable iterator list mapping ndarray none number of on one
        optional or path sequence set str string that the this to tuple what which with
        """,
    )
)


class Entry(NamedTuple):
    """An entry of a section, with its first line, its number of lines, and its parts."""

    section: str
    first: int
    lines: int
    names: str
    type: str
    text: str


Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def documented(path: Path) -> Iterator[tuple[Documented, list[str], int]]:
    """Yield each documented object, the lines of its docstring and the number of the first."""
    lines = path.read_text("utf-8").splitlines()
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, Documented) and ast.get_docstring(node):
            text = node.body[0]
            assert text.end_lineno is not None
            yield node, lines[text.lineno - 1 : text.end_lineno], text.lineno - 1


def sections(lines: list[str]) -> Iterator[tuple[str, int, int]]:
    """Yield each section of a docstring: name, first line, and end."""
    starts = [k - 1 for k, line in enumerate(lines) if re.fullmatch(r" *-{3,}", line)]
    for start, end in zip(starts, [*starts, len(lines) - 1][1:], strict=False):
        yield lines[start].strip(), start, end


def entries(lines: list[str]) -> Iterator[Entry]:
    """Yield the entries of the sections for parameters and results."""
    for section, start, end in sections(lines):
        if section not in ("Parameters", "Returns"):
            continue
        margin = len(lines[start]) - len(lines[start].lstrip())
        body = [k for k in range(start + 2, end) if lines[k].strip()]
        heads = [k for k in body if len(lines[k]) - len(lines[k].lstrip()) == margin]
        for head, after in zip(heads, [*heads[1:], body[-1] + 1 if body else 0], strict=True):
            names, colon, type_ = lines[head].strip().partition(" : ")
            if section == "Returns" and not colon:
                names, type_ = "", names
            text = " ".join(line.strip() for line in lines[head + 1 : after])
            yield Entry(section, head, after - head, names, type_, text)


def words(text: str) -> set[str]:
    """Return the informative words of a text, in lower case and in the singular."""
    found = re.findall(r"[a-z0-9]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower())
    return {word.rstrip("s") for word in found if word not in EMPTY}


def annotation(node: Documented, entry: Entry) -> str:
    """Return the annotations of the objects that an entry names."""
    if isinstance(node, ast.ClassDef):
        fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
        init = (each for each in node.body if getattr(each, "name", "") == "__init__")
        found = {ast.unparse(each.target): ast.unparse(each.annotation) for each in fields}
        for each in init:
            found |= arguments(each)  # type: ignore[arg-type]
    elif entry.section == "Returns":
        return ast.unparse(node.returns) if node.returns else ""
    else:
        found = arguments(node)
    return " ".join(found.get(name.strip(" *"), "") for name in entry.names.split(","))


def arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    """Return the annotation of each argument."""
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return {each.arg: ast.unparse(each.annotation) for each in given if each.annotation}


def says_nothing(node: Documented, entry: Entry) -> bool:
    """Return True if each word of an entry is also in its name or its annotation."""
    known = (
        words(entry.names) | words(annotation(node, entry)) | words(entry.names.replace("_", ""))
    )
    if entry.section == "Returns" and entry.names:
        return False  # an annotation gives no name to a result
    return words(entry.type) | words(entry.text) <= known


def faults(path: Path) -> list[str]:
    """Return the entries of a file that say nothing new."""
    found = []
    for node, lines, first in documented(path):
        for entry in entries(lines):
            if says_nothing(node, entry):
                where = f"{path.name}:{first + entry.first + 1}"
                found.append(f"{where}: {node.name}: {entry.names or entry.type}")
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_entries_say_more_than_annotations(room: str) -> None:
    """Each entry says more than its name and its annotation."""
    assert [
        fault for path in sorted((PACKAGE / room).rglob("*.py")) for fault in faults(path)
    ] == []


PLANTED = '''
def count(nodes: int, seed: int, root: Topology) -> list[str]:
    """Count.

    Parameters
    ----------
    nodes : int
    seed : int
        The seed.
    root : Topology
        Where it starts.

    Returns
    -------
    list of str
    """
'''


def test_planted_entries_are_found(tmp_path: Path) -> None:
    """An entry with only a type, and an entry that repeats its name, are found."""
    path = tmp_path / "planted.py"
    path.write_text(PLANTED)
    found = [fault.split(": ", 1)[1] for fault in faults(path)]
    assert found == ["count: nodes", "count: seed", "count: list of str"]
