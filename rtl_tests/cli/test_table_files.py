"""Tables of commands as CSV and LaTeX files, and units beside each count."""

import csv
import json
import re
import shutil
import subprocess

import pytest
from helpers import few

from torusfabric.cli import main
from torusfabric.cli.table_files import latex_table
from torusfabric.sweep.work import compute_row

COMMANDS = {
    "compare 4x4 allgather": ("algorithm", "by"),
    "compare 4x4 allreduce --flits 1:8": ("flits", "cycle limit"),
    "compare 3x3 allgather,alltoall": (None, None),
}


@pytest.mark.parametrize("command", few(2, [*COMMANDS], tuples=True))
def test_csv_is_what_is_printed(command, tmp_path, capsys):
    """A CSV file has the printed heads and cells, and is the same beside JSON."""
    path = tmp_path / "table.csv"
    assert main([*command.split(), "--table", str(path)]) == 0
    printed = capsys.readouterr().out
    heads, *rows = csv.reader(path.read_text().splitlines())
    assert len(rows) > 1
    assert {len(row) for row in rows} == {len(heads)}
    first = COMMANDS[command]
    assert first[0] is None or tuple(heads[:2]) == first
    assert all(cell in printed for row in [heads, *rows] for cell in row)
    text = path.read_text()
    assert main([*command.split(), "--table", str(path), "--json"]) == 0
    json.loads(capsys.readouterr().out)
    assert path.read_text() == text


@pytest.mark.parametrize("command", few(2, [*COMMANDS], tuples=True))
def test_latex_has_the_same_cells(command, tmp_path):
    """A LaTeX table has the cells of the CSV file."""
    for name in ("table.csv", "table.tex"):
        assert main([*command.split(), "--table", str(tmp_path / name)]) == 0
    _, *rows = csv.reader((tmp_path / "table.csv").read_text().splitlines())
    lines = (tmp_path / "table.tex").read_text().splitlines()
    found = [line for line in lines if line.endswith(r" \\")][1:]
    assert len(found) == len(rows)
    for line, row in zip(found, rows, strict=True):
        cells = line.removesuffix(r" \\").split(" & ")
        plain = [cell.removesuffix(" %") for cell in row]
        assert cells == [cell.replace("_", r"\_").replace("#", r"\#") for cell in plain]


@pytest.mark.parametrize("name", ["table", "table.txt", "table.svg", "-", "table.gz"])
@pytest.mark.parametrize("command", COMMANDS)
def test_other_names_are_refused(command, name, tmp_path, monkeypatch, capsys):
    """A table with another file ending is refused in one line, before planning."""
    monkeypatch.chdir(tmp_path)
    assert main([*command.split(), "--table", name]) == 1
    out, error = capsys.readouterr()
    assert not out
    assert error == f"torusfabric: Table must be called FILE.csv or FILE.tex, not {name}\n"
    assert not list(tmp_path.iterdir())


SPECIAL = "a_b & 5 % of #1 {x} $y ~ ^ \\"


def test_special_characters():
    """Special characters of LaTeX are escaped."""
    text = latex_table(["name", "n"], [[SPECIAL, "12"], ["plain", "-"]])
    assert r"a\_b \& 5 \% of \#1 \{x\} \$y \textasciitilde{} \textasciicircum{}" in text
    assert r"\begin{tabular}{lr}" in text


@pytest.mark.parametrize("first", ["[x] a", "*", "<b>|", "a\nb"])
def test_cells_stay_text(first):
    """A cell that begins a row with a star or a bracket, or contains <, remains text in LaTeX."""
    text = latex_table(["name", "share"], [["a", "5.0 %"], [first, "-"]])
    *_, row, _, _ = text.splitlines()
    shown = {"[x] a": "{[}x] a", "*": "{*}", "a\nb": r"a\textbackslash{}nb"}
    assert row == shown.get(first, r"\textless{}b\textgreater{}\textbar{}") + r" & - \\"


def test_units_stand_in_the_heads_of_papers(tmp_path):
    """LaTeX tables have rules of booktabs, and units in the heads, not beside the numbers."""
    heads = []
    for words in ("compare 4x4 allgather", "compare 4x4 allreduce --flits 1,3,8"):
        assert main([*words.split(), "--table", str(tmp_path / "table.tex")]) == 0
        lines = (tmp_path / "table.tex").read_text().splitlines()
        assert [line for line in lines if line.startswith("\\") and "tabular" not in line] == [
            r"\toprule", r"\midrule", r"\bottomrule"
        ]  # fmt: skip
        assert r"\usepackage{booktabs}" in lines[1]
        heads.append(lines[lines.index(r"\toprule") + 1])
        assert not any(r"\%" in line for line in lines[lines.index(r"\midrule") :])
    assert {"delta (hops)", r"links used (\%)", "of (messages)"} <= {*heads[0].split(" & ")}
    assert "flits & cycle limit (cycles) & " in heads[1]


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_latex_reads_it(tmp_path):
    """LaTeX accepts a table with special characters."""
    body = latex_table(["name", "n"], [[SPECIAL, "12"]])
    document = (
        rf"\documentclass{{article}}\usepackage{{booktabs}}\begin{{document}}{body}\end{{document}}"
    )
    (tmp_path / "t.tex").write_text(document)
    subprocess.run(["pdflatex", "-halt-on-error", "t.tex"], cwd=tmp_path, check=True)


BUFFERLESS = ("6x6", "allgather", "--algorithm", "bufferless")


def lines(capsys, *words):
    """Return the printed lines of a command by their first words."""
    assert main(list(words)) == 0
    found = (re.split(" {2,}", line, maxsplit=1) for line in capsys.readouterr().out.splitlines())
    return {line[0]: line[1] for line in found if len(line) == 2}


def test_plan_and_check_say_the_same(capsys, tmp_path):
    """`plan` and `check` print the same lines."""
    path = str(tmp_path / "b.json")
    planned = lines(capsys, "plan", *BUFFERLESS, "-o", path)
    checked = lines(capsys, "check", path)
    assert planned["steps"] == "10 of 1 message"
    assert planned["bound"] == "10 of 1 message, where no block rests"
    assert planned["message times"] == "10; no schedule takes less than 35/4"
    for name in ("seconds", "file"):
        planned.pop(name), checked.pop(name, None)
    assert checked == planned


def test_json_has_the_unit(capsys):
    """JSON has the unit of steps and both bounds."""
    assert main(["plan", "6x6", "allgather", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rounds"], facts["unit"], facts["bound"]) == (18, "steps of 1/2 message", 18)
    assert (facts["tau"], facts["tau_bound"]) == (9, 8.75)


@pytest.mark.parametrize("command", ["draw", "animate"])
def test_pictures_and_pages(capsys, tmp_path, command):
    """Pictures and animations state the length of steps."""
    path = tmp_path / "x"
    assert (
        lines(capsys, command, "4x4", "allgather", "-o", str(path))["steps"] == "8 of 1/2 message"
    )
    assert "8 steps of 1/2 message, store-and-forward" in path.read_text()


def test_simulation(capsys):
    """A simulation states the length of steps."""
    found = lines(capsys, "simulate", "2x2", "allgather", "--width", "4")
    assert found["steps"] == "2 of 1/2 message"
    assert found["bound"] == "2 of 1/2 message"
    assert found["message times"].startswith("1; ")


def test_compare(capsys):
    """`compare` shows steps of half and of whole messages in one table, with their times."""
    assert main(["compare", "6x6", "allgather", "--width", "4"]) == 0
    out = capsys.readouterr().out
    assert "no schedule takes less than 35/4 message times" in out
    rows = {line.split()[0]: " ".join(line.split()) for line in out.splitlines()}
    assert rows["algorithm"].startswith("algorithm by of chunks steps or rounds bound delta messa")
    assert rows["hamiltonian"].startswith("hamiltonian steps 1/2 message 2 18 18 18 9 ")
    assert rows["bufferless"].startswith(
        "bufferless steps 1 message 1 10 10 (no block rests) 10 10 "
    )
    assert rows["matching"].startswith("matching steps 1 message 1 9 9 9 9 ")


def test_sweep():
    """Rows of a sweep have the length of steps and the message times."""
    point = {"step": "plan", "topology": "4x4", "collective": "allgather", "algorithm": "best"}
    row = compute_row(point)["result"]
    assert (row["unit"], row["tau"], row["tau_bound"]) == ("steps of 1/2 message", 4, 3.75)
