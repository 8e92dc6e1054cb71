"""Reports as they are printed."""

import io

from rich.console import Console


def printed(report):
    """What a report prints, 100 columns wide."""
    console = Console(file=io.StringIO(), width=100)
    console.print(report.render())
    return console.file.getvalue()
