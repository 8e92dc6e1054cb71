"""Amaranth's check of its own JSON schemas, put off until metadata of a component are checked.

It checks them whenever it is imported, which takes more than half of that import.
"""

import importlib
import sys
from types import ModuleType
from typing import Any, NamedTuple

__all__ = ["put_off_schema_checks"]

#: The library of JSON schemas.
LIBRARY = "jschon"


def put_off_schema_checks() -> None:
    """Let what Amaranth asks of its schemas be found right, unless that library is there."""
    sys.modules.setdefault(LIBRARY, _Later(LIBRARY))


class _Right(NamedTuple):
    """What is found of a schema."""

    valid: bool = True


class _Schema:
    """A schema that is taken to be right, until anything is compared with it."""

    def __init__(self, schema: Any, **_: Any) -> None:
        self._schema = schema

    def validate(self) -> _Right:
        return _Right()

    def evaluate(self, instance: Any) -> Any:
        library = _library()
        catalog = library.create_catalog("2020-12")
        return library.JSONSchema(self._schema, catalog=catalog).evaluate(instance)


class _Later(ModuleType):
    """Stands for the library, which is imported when anything else of it is used."""

    JSONSchema = _Schema

    def create_catalog(self, *_: str) -> None:
        """No catalog is needed to find a schema right."""

    def __getattr__(self, name: str) -> Any:
        # Whoever looks at all modules does not use this one.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(_library(), name)


def _library() -> Any:
    """The library itself."""
    if isinstance(sys.modules.get(LIBRARY), _Later):
        del sys.modules[LIBRARY]
    return importlib.import_module(LIBRARY)
