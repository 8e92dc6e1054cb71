"""Sphinx: shows how a class is called where a metaclass or a base class hides it.

Amaranth's components have a ``__new__``, and topologies a metaclass, that take any arguments;
autodoc takes these for the signature.
"""

import inspect
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.inspect import stringify_signature

__all__ = ["setup"]


def signature_of(app: Sphinx, what: str, name: str, obj: Any, *more: Any) -> tuple[str, str] | None:
    """Return the parameters of the constructor where autodoc shows any arguments."""
    _, args, _ = more
    if what != "class" or not str(args).startswith("(*args"):
        return None
    if not inspect.isfunction(obj.__init__):
        return "", ""
    called = inspect.signature(obj.__init__)
    _, *parameters = called.parameters.values()
    shown = called.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
    return stringify_signature(shown, show_annotation=False), ""


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.connect("autodoc-process-signature", signature_of)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
