"""The folder of a design: it holds the files of the last run and the user's own files."""

import hashlib
import json

import pytest
from helpers import fabric_of, leave_out_texts

from torusfabric import verilog
from torusfabric.errors import InputError
from torusfabric.verilog import Design
from torusfabric.verilog.design import MANIFEST

#: The record of the files that were written.
RECORD = ".torusfabric-verilog.json"


@pytest.fixture
def no_conversion(monkeypatch):
    leave_out_texts(monkeypatch)


def design(*names, **manifest):
    """A design with files of the given names, and a manifest that lists them."""
    listed = {"manifest_version": 1, "schedule_digest": "..", "files": ["fabric.v", *names]}
    files = dict.fromkeys(names, "new") | {MANIFEST: json.dumps(listed | manifest)}
    return Design({"fabric": ""}, "fabric", {}, files=files)


def names_in(folder):
    """The names of all entries of a folder, except the record."""
    return sorted(path.name for path in folder.iterdir() if path.name != RECORD)


def files_in(folder):
    """The paths of all files in a folder and its subfolders, except the record."""
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and path.name != RECORD
    )


@pytest.mark.usefixtures("no_conversion")
@pytest.mark.parametrize("collective", ["allgather", "alltoall"])
def test_one_top_after_the_other(tmp_path, collective):
    """The manifest lists every file of a run, and files of a run with another top are removed."""
    for top in ("core", "host", "core"):
        fabric = fabric_of("2x2", collective, top=top)
        made = verilog.write(fabric, tmp_path, command="..")
        assert files_in(tmp_path) == sorted(made.file_names)
        listed = json.loads((tmp_path / MANIFEST).read_text())["files"]
        assert sorted([*listed, MANIFEST]) == files_in(tmp_path)
        beside = ["address_map.json"] if top == "core" else []
        assert [name for name in listed if "/" not in name] == ["fabric.v", *beside]


def test_files_of_the_user_stay(tmp_path):
    """Files that no manifest lists stay, and so does a folder with the name of a listed file."""
    design("old.json", "folder").write(tmp_path)
    (tmp_path / "folder").unlink()
    (tmp_path / "folder").mkdir()
    (tmp_path / "mine.v").write_text("")
    design().write(tmp_path)
    assert names_in(tmp_path) == ["fabric.v", "folder", MANIFEST, "mine.v"]


def test_folders_inside_go_when_they_are_empty(tmp_path):
    """Empty subfolders are removed; links, and folders with files of the user, stay."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.py").write_text("")
    folder = tmp_path / "out"
    design("bench/a.py", "used/a.py", "linked/a.py").write(folder)
    (folder / "used" / "mine.py").write_text("")
    (folder / "linked" / "a.py").unlink()
    (folder / "linked").rmdir()
    (folder / "linked").symlink_to(tmp_path / "mine")
    design().write(folder)
    assert names_in(folder) == ["fabric.v", "linked", MANIFEST, "used"]
    assert names_in(folder / "used") == ["mine.py"]
    assert names_in(tmp_path / "mine") == ["a.py"]


@pytest.mark.parametrize(
    "manifest",
    [
        "",
        "[",
        '{"name": "a web site", "files": ["mine.v"]}',
        '{"manifest_version": 1, "schedule_digest": "..", "files": ["../mine.v", "/mine.v", ""]}',
        "[" * 100_000,
    ],
)
def test_other_manifests_remove_nothing(tmp_path, manifest):
    """A broken or foreign manifest removes no file, and is replaced only with `force`."""
    folder = tmp_path / "out"
    folder.mkdir()
    for path in (folder / "mine.v", tmp_path / "mine.v"):
        path.write_text("")
    (folder / MANIFEST).write_text(manifest)
    if manifest:
        with pytest.raises(InputError, match=r"^File .*manifest\.json exists and is not as"):
            design().write(folder)
        assert (folder / MANIFEST).read_text() == manifest
        assert names_in(folder) == [MANIFEST, "mine.v"]
    design().write(folder, force=True)
    assert names_in(folder) == ["fabric.v", MANIFEST, "mine.v"]
    assert (tmp_path / "mine.v").exists()


def test_nothing_is_written_where_one_file_cannot_be(tmp_path):
    """If one of the files cannot be written, the earlier ones stay as they were."""
    design("old.json").write(tmp_path)
    (tmp_path / "new.json").mkdir()
    for force in (False, True):
        with pytest.raises(InputError, match=r"^File .*new\.json"):
            design("new.json").write(tmp_path, force=force)
    assert (tmp_path / "old.json").read_text() == "new"
    assert json.loads((tmp_path / MANIFEST).read_text())["files"] == ["fabric.v", "old.json"]


@pytest.mark.parametrize("name", ["fabric.v", "bench/Makefile", MANIFEST])
def test_files_that_others_wrote_or_changed_stay(tmp_path, name):
    """Files that a user wrote or changed are kept, unless `force` is given."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    for _ in range(2):
        path.write_text("mine")
        before = files_in(tmp_path)
        with pytest.raises(InputError, match=rf"^File .*{name} exists and is not as .*--force"):
            design("bench/Makefile").write(tmp_path)
        assert path.read_text() == "mine"
        assert files_in(tmp_path) == before
        design("bench/Makefile").write(tmp_path, force=True)
        assert path.read_text() != "mine"
        design("bench/Makefile").write(tmp_path)
        design().write(tmp_path)
        assert files_in(tmp_path) == ["fabric.v", MANIFEST]
        path.parent.mkdir(exist_ok=True)


def test_what_was_changed_is_not_removed(tmp_path):
    design("old.json").write(tmp_path)
    (tmp_path / "old.json").write_text("mine")
    design().write(tmp_path)
    assert (tmp_path / "old.json").read_text() == "mine"


@pytest.mark.parametrize("name", ["../mine.v", "/{}/mine.v", "a/../../mine.v"])
def test_records_name_nothing_outside(tmp_path, name):
    """A forged record removes no file outside of its folder."""
    folder = tmp_path / "out"
    folder.mkdir()
    (tmp_path / "mine.v").write_text("")
    digest = hashlib.sha256(b"").hexdigest()
    record = {"format": "torusfabric-files", "files": {name.format(tmp_path): [digest]}}
    (folder / RECORD).write_text(json.dumps(record))
    design().write(folder)
    assert (tmp_path / "mine.v").exists()
