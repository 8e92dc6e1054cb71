"""The picture of the architecture is true."""

import ast
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "torusfabric"
PICTURE = runpy.run_path(str(ROOT / "scripts" / "architecture.py"))
ROOMS = [name for name, _, _ in PICTURE["ROOMS"]]


def imported_rooms(path):
    """The rooms that a module imports from, wherever in its text."""
    here = path.relative_to(PACKAGE).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            above = here[: len(here) + 1 - node.level]
            target = [*above, *filter(None, (node.module or "").split("."))]
            names = target[:1] or [alias.name for alias in node.names]
            yield from (name for name in names if name in ROOMS)


def test_picture_shows_the_rooms():
    """Every folder of the package is in the picture."""
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders <= set(ROOMS)


def test_picture_is_drawn_anew():
    """The picture in the documents is what the script draws."""
    drawn = PICTURE["architecture"]()
    assert drawn == (ROOT / "docs" / "project" / "architecture.svg").read_text(encoding="utf-8")


def test_imports_point_down():
    """A room imports only from those below it."""
    upward = [
        f"{path.relative_to(ROOT)} imports {other}"
        for room in ROOMS
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for other in imported_rooms(path)
        if ROOMS.index(other) < ROOMS.index(room)
    ]
    assert upward == []
