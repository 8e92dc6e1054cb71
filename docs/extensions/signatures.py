"""Sphinx: signatures as users call classes and functions.

Amaranth's components have a ``__new__``, and topologies a metaclass, that take any arguments.
Autodoc would show these in place of the constructor. Defaults that are members of an enumeration
become their values, which functions take as well.
"""

import enum
import inspect
import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.inspect import stringify_signature

__all__ = ["setup", "signature_of"]


def signature_of(app: Sphinx, what: str, name: str, obj: Any, *more: Any) -> tuple[str, str] | None:
    """Return the signature of a class or a function as users call it; None to leave it."""
    _, args, _ = more
    if what not in ("class", "exception", "function", "method") or args is None:
        return None
    if what == "class" and issubclass(obj, enum.Enum):
        return "", ""  # users name a member
    if what == "class" and str(args).startswith("(*args"):
        if not inspect.isfunction(obj.__init__):
            return "", ""
        called = inspect.signature(obj.__init__)
        _, *parameters = called.parameters.values()
        shown = called.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
        args = stringify_signature(shown, show_annotation=False)
    return _with_values(str(args), obj.__init__ if inspect.isclass(obj) else obj), ""


def _with_values(args: str, function: Any) -> str:
    """Return a signature with values in place of members of enumerations and of functions."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return args
    for each in parameters:
        if isinstance(each.default, enum.Enum):
            written = f"{each.name}={type(each.default).__name__}.{each.default.name}"
            args = args.replace(written, f"{each.name}={each.default.value!r}")
    return re.sub(r"=<function [^=]*>", "=..", args)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the extension; Sphinx calls this."""
    app.connect("autodoc-process-signature", signature_of)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
