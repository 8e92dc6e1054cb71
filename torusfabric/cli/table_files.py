"""Tables as files: CSV or LaTeX, as the file is called."""

import csv
import io
import re
from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from ..errors import InputError
from ..toolchain.files import write_file
from ..toolchain.quoting import visible
from .arguments import check_output

__all__ = ["check_table", "write_table"]

#: What LaTeX takes for more than itself.
SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
SPECIAL |= {sign: f"\\{sign}" for sign in "&%$#_{}"}
SPECIAL |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}

#: The units of columns in heads of LaTeX, where the head is not one itself.
UNITS = {
    "of": "messages",
    "bound": "steps or rounds",
    "delta": "hops",
    "as a stream": "message times",
}

#: Cells that are aligned to the right.
NUMBER = re.compile(r"-?[0-9][0-9./]*( %)?|-")


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


def write_table(
    path: str, columns: Sequence[str], rows: Iterable[Iterable[object]], unit: str = ""
) -> None:
    """Write a table as what the file is called.

    Parameters
    ----------
    unit : str
        The unit of all columns but the first, for LaTeX; by default each column has that of its
        head, in `UNITS`.
    """
    texts = [[str(cell) for cell in row] for row in rows]
    if _is_csv(path):
        write_file(path, "".join(map(_csv, [columns, *texts])))
    else:
        first, *others = columns
        units = {first: "", **dict.fromkeys(others, unit)} if unit else UNITS
        heads = [f"{head} ({units[head]})" if units.get(head) else head for head in columns]
        write_file(path, latex(heads, texts))


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
    r"""A table in LaTeX by the package booktabs; columns of numbers are aligned to the right.

    A column of percentages has the sign in its head.

    Examples
    --------
    >>> print(latex(["algorithm", "links used"], [["max-flow", "4.5 %"]]))
    % A table of torusfabric.
    % It needs \usepackage{booktabs}.
    \begin{tabular}{lr}
    \toprule
    algorithm & links used (\%) \\
    \midrule
    max-flow & 4.5 \\
    \bottomrule
    \end{tabular}
    <BLANKLINE>
    """
    cells = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in columns]
    aligned = "".join("r" if all(map(NUMBER.fullmatch, column)) else "l" for column in cells)
    heads = list(columns)
    for number, column in enumerate(cells):
        if column and all(cell == "-" or cell.endswith(" %") for cell in column):
            heads[number] += " (%)"
            cells[number] = [cell.removesuffix(" %") for cell in column]
    lines = [rf"\begin{{tabular}}{{{aligned}}}", r"\toprule", _row(heads), r"\midrule"]
    lines += [*map(_row, zip(*cells, strict=True)), r"\bottomrule", r"\end{tabular}", ""]
    return BEGINNING + "% It needs \\usepackage{booktabs}.\n" + "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    """A row in LaTeX."""
    texts = ["".join(SPECIAL.get(sign, sign) for sign in visible(cell)) for cell in cells]
    if texts and texts[0].startswith(("[", "*")):
        # Behind the end of a row these would be an argument of it.
        texts[0] = f"{{{texts[0][0]}}}{texts[0][1:]}"
    return " & ".join(texts) + r" \\"
