"""Reports in their printed form."""

import io

from rich.console import Console


def printed(report):
    """Return the printed form of a report, 100 columns wide."""
    console = Console(file=io.StringIO(), width=100)
    console.print(report.render())
    return console.file.getvalue()
