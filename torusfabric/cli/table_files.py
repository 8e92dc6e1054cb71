"""Tables as files: CSV or LaTeX, as the file is called."""

import csv
import io
import re
from argparse import Namespace, _ActionsContainer
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from ..errors import InputError
from ..toolchain.files import write_file
from .arguments import add_options, check_output

__all__ = ["add_table", "check_table", "write_table"]

#: What LaTeX takes for more than itself.
SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
SPECIAL |= {sign: f"\\{sign}" for sign in "&%$#_{}"}

#: Cells that are aligned to the right.
NUMBER = re.compile(r"-?[0-9][0-9./]*( %)?|-")


def add_table(parser: _ActionsContainer) -> None:
    """Add the option."""
    add_options(parser, "--table FILE.csv|.tex: write the table as CSV, or as LaTeX\n")


def check_table(arguments: Namespace, first: str) -> None:
    """Check before time is spent that a table can be written, given the head of its first column.

    Raises
    ------
    InputError
        If the file is called neither ``.csv`` nor ``.tex``, or would replace that of others.
    """
    if arguments.table:
        beginning = f"{_csv([first])[:-1]}," if _is_csv(arguments.table) else BEGINNING
        check_output(arguments, arguments.table, beginning)


def write_table(path: str, columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a table as what the file is called."""
    texts = [[str(cell) for cell in row] for row in rows]
    if _is_csv(path):
        write_file(path, "".join(map(_csv, [columns, *texts])))
    else:
        write_file(path, latex(columns, texts))


def _is_csv(path: str) -> bool:
    """Whether a file is called CSV; else it is called LaTeX."""
    suffix = PurePath(path.removesuffix(".gz")).suffix
    if suffix not in (".csv", ".tex"):
        raise InputError(f"Table must be called FILE.csv or FILE.tex, not {path}")
    return suffix == ".csv"


def _csv(cells: Sequence[str]) -> str:
    """A line of CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


#: How tables in LaTeX begin.
BEGINNING = "% A table of torusfabric.\n"


def latex(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    r"""A table in LaTeX; columns of numbers are aligned to the right.

    Examples
    --------
    >>> print(latex(["algorithm", "links used"], [["max-flow", "4.5 %"]]))
    % A table of torusfabric.
    \begin{tabular}{lr}
    \hline
    algorithm & links used \\
    \hline
    max-flow & 4.5 \% \\
    \hline
    \end{tabular}
    <BLANKLINE>
    """
    cells = list(zip(*rows, strict=True)) or [()] * len(columns)
    aligned = "".join("r" if all(map(NUMBER.fullmatch, column)) else "l" for column in cells)
    lines = [rf"\begin{{tabular}}{{{aligned}}}", r"\hline", _row(columns), r"\hline"]
    lines += [*map(_row, rows), r"\hline", r"\end{tabular}", ""]
    return BEGINNING + "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    """A row in LaTeX."""
    return " & ".join("".join(SPECIAL.get(sign, sign) for sign in cell) for cell in cells) + r" \\"
