"""Tables as CSV or LaTeX files, by the ending of the file name."""

import csv
import io
import re
from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from ..errors import InputError
from ..toolchain.files import write_text_file
from ..toolchain.quoting import escape_unprintable
from .arguments import check_output

__all__ = ["check_table", "write_table"]

#: Replacements of characters that LaTeX would interpret.
SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
SPECIAL |= {sign: f"\\{sign}" for sign in "&%$#_{}"}
SPECIAL |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}

#: Units that LaTeX heads of columns show, unless the head is a unit itself.
UNITS = {
    "of": "messages",
    "bound": "steps or rounds",
    "delta": "hops",
    "as a stream": "message times",
}

#: Cells of a column of numbers, which is aligned to the right.
NUMBER = re.compile(r"-?[0-9][0-9./]*( %)?|-")


def check_table(arguments: Namespace, first: str) -> None:
    """Check, before any work starts, that the file of ``--table`` can be written.

    Parameters
    ----------
    arguments : Namespace
        Arguments of the command.
    first : str
        Head of the first column of the table. A CSV file that begins so may be replaced.

    Raises
    ------
    InputError
        If the file name ends neither in ``.csv`` nor in ``.tex``, or the file may not be replaced.
    """
    if arguments.table:
        beginning = f"{_csv_line([first])[:-1]}," if _is_csv(arguments.table) else BEGINNING
        check_output(arguments, arguments.table, beginning)


def write_table(
    path: str, columns: Sequence[str], rows: Iterable[Iterable[object]], unit: str = ""
) -> None:
    """Write a table as CSV or LaTeX, by the ending of the file name.

    Parameters
    ----------
    path : str
        The file, ``.csv`` or ``.tex``; compressed if it ends in ``.gz``.
    columns : sequence of str
        Heads of the columns.
    rows : iterable of (iterable of object)
        Cells of each row.
    unit : str
        Unit of all columns but the first, for LaTeX. By default each column has its unit in
        `UNITS`.
    """
    texts = [[str(cell) for cell in row] for row in rows]
    if _is_csv(path):
        write_text_file(path, "".join(map(_csv_line, [columns, *texts])))
    else:
        first, *others = columns
        units = {first: "", **dict.fromkeys(others, unit)} if unit else UNITS
        heads = [f"{head} ({units[head]})" if units.get(head) else head for head in columns]
        write_text_file(path, latex_table(heads, texts))


def _is_csv(path: str) -> bool:
    """Return True if the name `path` ends in ``.csv``, False for ``.tex``; refuse other endings.

    A further ending ``.gz`` is ignored.
    """
    suffix = PurePath(path.removesuffix(".gz")).suffix
    if suffix not in (".csv", ".tex"):
        raise InputError(f"Table must be called FILE.csv or FILE.tex, not {path}")
    return suffix == ".csv"


def _csv_line(cells: Sequence[str]) -> str:
    """Return a line of CSV with the texts `cells`."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


#: First line of a LaTeX file.
BEGINNING = "% A table of torusfabric.\n"


def latex_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    r"""Return a table in LaTeX, with rules of the package booktabs.

    Columns of numbers are aligned to the right. The percent sign of a column of percentages is
    moved to its head.

    Parameters
    ----------
    columns : sequence of str
        Heads of the columns.
    rows : sequence of (sequence of str)
        Cells of each row.

    Examples
    --------
    >>> print(latex_table(["algorithm", "links used"], [["max-flow", "4.5 %"]]))
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
    lines = [rf"\begin{{tabular}}{{{aligned}}}", r"\toprule", _latex_row(heads), r"\midrule"]
    lines += [*map(_latex_row, zip(*cells, strict=True)), r"\bottomrule", r"\end{tabular}", ""]
    return BEGINNING + "% It needs \\usepackage{booktabs}.\n" + "\n".join(lines)


def _latex_row(cells: Iterable[str]) -> str:
    """Return a row of the texts `cells` in LaTeX, with special characters escaped."""
    texts = [
        "".join(SPECIAL.get(sign, sign) for sign in escape_unprintable(cell)) for cell in cells
    ]
    if texts and texts[0].startswith(("[", "*")):
        # After the end of a row, LaTeX would take [ or * as an argument of the row's \\.
        texts[0] = f"{{{texts[0][0]}}}{texts[0][1:]}"
    return " & ".join(texts) + r" \\"
