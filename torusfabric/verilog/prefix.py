"""Prefixes of module names: with different ones, several fabrics are parts of one design."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from .design import Design

__all__ = ["with_prefix"]

_Value = TypeVar("_Value")


def with_prefix(design: Design, prefix: str) -> Design:
    r"""A design in which the names of all modules begin with a prefix.

    Names of instances, and so of contents of ROMs, stay as they are: they are local to a module.

    Parameters
    ----------
    design : Design
        Without a prefix.
    prefix : str

    Examples
    --------
    >>> text = "module top(a);\n  input a;\n  leaf leaf (\n    .a(a)\n  );\nendmodule\n"
    >>> leaf = "module leaf(a);\n  input a;\nendmodule\n"
    >>> design = with_prefix(Design({"leaf": leaf, "top": text}, "top", {"top": {"leaf": 1}}), "x_")
    >>> design.top, design.instances
    ('x_top', {'x_top': {'x_leaf': 1}})
    >>> design.modules["x_top"].splitlines()[2]
    '  x_leaf leaf ('
    """
    if not prefix:
        return design
    names = {name: prefix + name for name in design.modules}
    # A module's own name, or the name at the beginning of an instance.
    used = re.compile(rf"^(module |  )({'|'.join(names)})\b", re.M)

    def renamed(values: Mapping[str, _Value]) -> dict[str, _Value]:
        return {names.get(name, name): value for name, value in values.items()}

    return replace(
        design,
        prefix=prefix,
        top=names[design.top],
        modules={
            names[name]: used.sub(lambda match: match[1] + names[match[2]], text)
            for name, text in design.modules.items()
        },
        instances={names[name]: renamed(children) for name, children in design.instances.items()},
        classes=[(names[name], nodes) for name, nodes in design.classes],
        outports=renamed(design.outports),
        inports=renamed(design.inports),
        shapes=renamed(design.shapes),
        parts=renamed(design.parts),
        settings=renamed(design.settings),
        comments=renamed(design.comments),
        inner=frozenset(names[name] for name in design.inner),
    )
