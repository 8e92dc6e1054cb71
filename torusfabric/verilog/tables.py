"""Tables of the pages for people, in Markdown."""

from collections.abc import Iterable

__all__ = ["table"]


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """The lines of a table.

    Examples
    --------
    >>> table(("port", "bits"), [("clk", "1")])
    ['| port | bits |', '|---|---|', '| clk | 1 |']
    """
    lines = [f"| {' | '.join(row)} |" for row in (tuple(head), *rows)]
    return [lines[0], "|---" * (lines[0].count("|") - 1) + "|", *lines[1:]]
