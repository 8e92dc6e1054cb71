"""Text written by hand, for tests of style: pages of the documentation, and docstrings."""

import ast
from collections.abc import Iterator
from pathlib import Path

__all__ = ["DOCS", "PACKAGE", "PACKAGES", "ROOT", "docstrings_of", "modules_of", "written_pages"]

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

#: Folder of torusfabric, and the names of the packages in it.
PACKAGE = ROOT / "torusfabric"
PACKAGES = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))

#: Folders of `DOCS` that a build of the site makes, and the folder of templates.
GENERATED = {"_build", "_made", "_templates", "api"}


def written_pages() -> list[Path]:
    """Return the pages of the documentation, without generated pages."""
    return [page for page in sorted(DOCS.rglob("*.md")) if not GENERATED & {*page.parts}]


def modules_of(package: str) -> list[Path]:
    """Return the modules of a package of torusfabric, with those of its subpackages."""
    return sorted((PACKAGE / package).rglob("*.py"))


def docstrings_of(path: Path) -> Iterator[str]:
    """Yield each docstring of a module, its classes and its functions."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield text
