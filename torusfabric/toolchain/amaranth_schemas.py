"""Postponement of a slow self-check of Amaranth, for commands that have to start quickly.

Amaranth defines JSON schemas for the metadata of components. When it is imported it validates its
own schemas, with the library jschon, which takes more than half of the import. This module puts a
substitute for jschon into `sys.modules`. The substitute accepts every schema, and imports the real
library as soon as metadata are compared with a schema.
"""

import importlib
import sys
from types import ModuleType
from typing import Any, NamedTuple

__all__ = ["postpone_schema_checks"]

#: The library of JSON schemas.
LIBRARY = "jschon"


def postpone_schema_checks() -> None:
    """Skip the check that Amaranth makes of its own JSON schemas when it is imported.

    The check takes more than half of the import. This function must be called before the import. If
    the library jschon, which makes the check, has been imported already, nothing changes.
    """
    sys.modules.setdefault(LIBRARY, _LazyLibrary(LIBRARY))


class _ValidResult(NamedTuple):
    """The result "valid", which `_AssumedSchema` returns without checking the schema."""

    valid: bool = True


class _AssumedSchema:
    """A substitute for a JSON schema of the library jschon, whose import is slow.

    It says that the schema is valid without checking it. To compare metadata with the schema, it
    imports the real library and lets it do so.
    """

    def __init__(self, schema: Any, **_: Any) -> None:
        self._schema = schema

    def validate(self) -> _ValidResult:
        return _ValidResult()

    def evaluate(self, instance: Any) -> Any:
        library = _import_library()
        catalog = library.create_catalog("2020-12")
        return library.JSONSchema(self._schema, catalog=catalog).evaluate(instance)


class _LazyLibrary(ModuleType):
    """A substitute for the library jschon, which imports the real one when it is needed."""

    JSONSchema = _AssumedSchema

    def create_catalog(self, *_: str) -> None:
        """Do nothing, because validation without the library needs no catalog."""

    def __getattr__(self, name: str) -> Any:
        # Tools that inspect every module (such as `inspect.getmodule`) ask for names like
        # __file__. They must not cause the import.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(_import_library(), name)


def _import_library() -> Any:
    """Import the real library in place of the substitute, and return it."""
    if isinstance(sys.modules.get(LIBRARY), _LazyLibrary):
        del sys.modules[LIBRARY]
    return importlib.import_module(LIBRARY)
