"""Tables of the pages for people, in Markdown."""

from collections.abc import Iterable

from ..toolchain.quoting import markdown_cell

__all__ = ["table"]


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """The lines of a table.

    Examples
    --------
    >>> table(("port", "bits"), [("clk", "1")])
    ['| port | bits |', '|---|---|', '| clk | 1 |']
    """
    head = tuple(head)
    lines = [f"| {' | '.join(map(markdown_cell, row))} |" for row in (head, *rows)]
    return [lines[0], "|---" * len(head) + "|", *lines[1:]]
