"""Files that a command replaces: its own files, and others only with --force."""

import gzip

import pytest
from helpers import check_refused, few

import torusfabric as tf
from torusfabric.cli import main

COMMANDS = {
    "plan 2x2 allgather -o": "plan.json",
    "plan 3 allgather -o": "plan.json.gz",
    "draw 2x2 allgather -o": "picture.svg",
    "draw 3 allgather -o": "picture.svgz",
    "animate 2x2 allgather -o": "page.html",
    "export 2x2 allgather -o": "plan.xml",
    "export 3 allgather -o": "plan.xml.gz",
    "export 2x2 allgather --format csv -o": "plan.csv",
    "compare 2x2 allgather --plot": "bars.svg",
    "compare 2x2 allgather --table": "table.csv",
    "compare 3 allgather --table": "table.csv.gz",
    "compare 2x2 allgather --flits 1:2 --table": "table.tex",
    "compare 2 allgather,alltoall --table": "together.csv",
    "simulate 2x2 allgather --width 8 --trace": "trace.jsonl",
    "simulate 2x2 allgather --width 8 --engine amaranth --wave": "waves.vcd",
}


@pytest.mark.parametrize("command", few(6, [*COMMANDS], tuples=True))
def test_files_of_others_stay(command, tmp_path, monkeypatch, capsys):
    """A file of another origin is kept, unless --force is given.

    Own and empty files are replaced.
    """
    monkeypatch.chdir(tmp_path)
    path = tmp_path / COMMANDS[command]
    words = [*command.split(), path.name]
    path.write_text("years of work")
    assert main(words) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"torusfabric: File {path.name} exists and is not as torusfabric")
    assert error.count("\n") == 1
    assert path.read_text() == "years of work"
    assert list(tmp_path.iterdir()) == [path]
    assert main([*words, "--force"]) == 0
    made = path.read_bytes()
    assert made != b"years of work"
    assert main(words) == 0  # its own file
    path.write_text("")
    assert main(words) == 0  # an empty file
    if not command.startswith("simulate"):
        assert path.read_bytes() == made


def test_images_replace_images_alone(tmp_path, monkeypatch, capsys):
    """An image replaces only an image."""
    monkeypatch.chdir(tmp_path)
    fabric = ["3", "allgather", "--tables", "ram", "--max-flits", "4", "--width", "8"]
    assert main(["verilog", *fabric, "-o", "out"]) == 0
    command = ["image", "--fabric", "out/manifest.json", "3", "allgather", "-o", "a.bin"]
    path = tmp_path / "a.bin"
    path.write_text("years of work")
    assert "File a.bin exists and is not as torusfabric" in check_refused(capsys, *command)
    assert main([*command, "--force"]) == 0
    made = path.read_bytes()
    assert main(command) == 0
    assert path.read_bytes() == made


#: Commands whose files cannot be compressed, with the word and the file name in the message.
PLAIN = {
    "sweep grid.toml -o": ("Results", "rows.jsonl"),
    "run --port sim --data data.npy -o": ("Array", "words.npy"),
}


@pytest.mark.parametrize("command", PLAIN)
def test_what_is_not_compressed_is_not_called_so(command, tmp_path, monkeypatch, capsys):
    """A file name with .gz is refused if the file cannot be compressed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.toml").write_text('topologies = ["2"]\ncollectives = ["allgather"]\n')
    what, name = PLAIN[command]
    assert main([*command.split(), f"{name}.gz"]) == 1
    assert capsys.readouterr().err == (
        f"torusfabric: {what} cannot be compressed; name the file {name} in place of {name}.gz\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["grid.toml"]


@pytest.mark.parametrize("command", few(8, [*COMMANDS], tuples=True))
def test_what_is_called_compressed_is(command, tmp_path, monkeypatch, capsys):
    """A file whose name ends in .gz is compressed."""
    monkeypatch.chdir(tmp_path)
    name = COMMANDS[command].removesuffix(".gz") + ".gz"
    status = main([*command.split(), name])
    if "--wave" in command:
        assert status == 1
        assert capsys.readouterr().err.startswith("torusfabric: File of waves must end in .vcd or")
    else:
        assert status == 0
        assert gzip.decompress((tmp_path / name).read_bytes())


def test_view_that_a_user_saved_stays(tmp_path, monkeypatch):
    """A saved view of a waveform viewer is kept."""
    monkeypatch.chdir(tmp_path)
    words = [
        "simulate",
        "2",
        "allgather",
        "--width",
        "8",
        "--engine",
        "amaranth",
        "--wave",
        "w.vcd",
    ]
    assert main(words) == 0
    (tmp_path / "w.gtkw").write_text("[*]\n[*] GTKWave\n")
    assert main(words) == 0
    assert (tmp_path / "w.gtkw").read_text() == "[*]\n[*] GTKWave\n"


def test_folder_of_somebody_else(tmp_path, monkeypatch, capsys):
    """A folder with files of another origin is kept, unless --force is given."""
    monkeypatch.chdir(tmp_path)
    words = ["verilog", "2", "allgather", "--width", "8", "-o", "out"]
    (tmp_path / "out" / "bench").mkdir(parents=True)
    mine = tmp_path / "out" / "bench" / "Makefile"
    mine.write_text("all:\n")
    assert "replace it by --force" in check_refused(capsys, *words)
    assert mine.read_text() == "all:\n"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["bench"]
    assert main([*words, "--force"]) == 0
    assert main(words) == 0


def test_python_replaces_as_commands_do(tmp_path):
    """Python functions replace files by the same rules as commands."""
    schedule = tf.plan("2x2", "allgather")
    path = tmp_path / "package.json"
    for write in (schedule.save, lambda p, **how: tf.export_schedule(schedule, p, **how)):
        path.write_text('{"name": "a web site"}')
        with pytest.raises(tf.InputError, match=r"^File .* exists and is not as .*force=True"):
            write(path)
        assert path.read_text() == '{"name": "a web site"}'
        write(path, force=True)
        write(path)


@pytest.mark.parametrize("suffix", ["xml.gz", "csv.gz"])
def test_exports_are_compressed_by_name(suffix, tmp_path, monkeypatch):
    """Exports are compressed if the name ends in .gz, and can be imported."""
    monkeypatch.chdir(tmp_path)
    form = "msccl" if suffix.startswith("xml") else "csv"
    words = ["export", "2x2", "allgather", "--format", form, "-o"]
    assert main([*words, f"x.{suffix}"]) == main([*words, "plain"]) == 0
    packed = (tmp_path / f"x.{suffix}").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "plain").read_bytes()
    if form == "msccl":
        assert main(["import", "x.xml.gz", "--topology", "2x2", "-o", "plan.json"]) == 0


@pytest.mark.parametrize("name", ["picture.svgz", "picture.svg.gz"])
def test_pictures_are_compressed_by_name(name, tmp_path, monkeypatch):
    """Pictures are compressed if the name ends in .svgz or .gz."""
    monkeypatch.chdir(tmp_path)
    assert main(["draw", "2x2", "allgather", "-o", name]) == 0
    assert gzip.decompress((tmp_path / name).read_bytes()).startswith(b"<svg ")


@pytest.mark.parametrize(
    "command",
    [
        "compare 2x2 allgather --plot - --json",
        "plan 2x2 allgather,alltoall -o a.json,- --json",
        "simulate 2x2 allgather --width 8 --trace - --wave /dev/stdout",
    ],
)
def test_standard_output_holds_one_thing(command, tmp_path, monkeypatch, capsys):
    """Two results on standard output are refused."""
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) == 1
    out, error = capsys.readouterr()
    assert not out
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_one_of_several_files_to_standard_output(tmp_path, monkeypatch, capfd):
    """If one of several files goes to standard output, the report goes to standard error."""
    monkeypatch.chdir(tmp_path)
    assert main(["plan", "2x2", "allgather,alltoall", "-o", "a.json,-"]) == 0
    out, error = capfd.readouterr()
    (tmp_path / "b.json").write_text(out)
    assert tf.load(tmp_path / "b.json").collective.name == "alltoall"
    assert "checked" in error
