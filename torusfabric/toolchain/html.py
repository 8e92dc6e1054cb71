"""Values as tables of a page, for notebooks."""

from collections.abc import Mapping

from .quoting import xml_text

__all__ = ["facts_table"]

#: Names stand left of their values, numbers below one another.
_CELL = "text-align:left;vertical-align:top"


def facts_table(title: str, facts: Mapping[str, object]) -> str:
    """Names and values as an HTML table, with a title above.

    Examples
    --------
    >>> facts_table("net", {"nodes": "<16>"}).count("<tr>")
    1
    >>> "&lt;16&gt;" in facts_table("net", {"nodes": "<16>"})
    True
    """
    rows = "".join(
        f'<tr><th style="{_CELL}">{xml_text(name)}</th>'
        f'<td style="{_CELL}">{xml_text(str(value))}</td></tr>'
        for name, value in facts.items()
    )
    head = f'<caption style="{_CELL};font-weight:bold">{xml_text(title)}</caption>'
    return f"<table>{head}{rows}</table>"
