"""The folder of a design: it holds the files of the last run, and what is the user's own."""

import json

import pytest
from helpers import fabric_of

from torusfabric import verilog
from torusfabric.errors import InputError
from torusfabric.verilog import Design
from torusfabric.verilog import text as text_module
from torusfabric.verilog.folder import MANIFEST


@pytest.fixture
def no_conversion(monkeypatch):
    """Modules without a text, for nobody reads it."""
    empty = verilog.ModuleText("", (), {})
    monkeypatch.setattr(
        text_module, "module_texts", lambda netlist: dict.fromkeys([*netlist.modules, "rom"], empty)
    )


def design(*names, **manifest):
    """A design of the files of such names, with a manifest that lists them."""
    listed = {"manifest_version": 1, "schedule_digest": "..", "files": ["fabric.v", *names]}
    files = dict.fromkeys(names, "new") | {MANIFEST: json.dumps(listed | manifest)}
    return Design({"fabric": ""}, "fabric", {}, files=files)


def names_in(folder):
    """The names of all that is in a folder."""
    return sorted(path.name for path in folder.iterdir())


def files_in(folder):
    """The names of all files in a folder, and in folders inside."""
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


@pytest.mark.usefixtures("no_conversion")
@pytest.mark.parametrize("collective", ["allgather", "alltoall"])
def test_one_top_after_the_other(tmp_path, collective):
    """Every file of a run is listed, and those of a run with another top are gone."""
    for top in ("core", "host", "core"):
        fabric = fabric_of("2x2", collective, top=top)
        made = verilog.write(fabric, tmp_path, command="..")
        assert files_in(tmp_path) == sorted(made.file_names)
        listed = json.loads((tmp_path / MANIFEST).read_text())["files"]
        assert sorted([*listed, MANIFEST]) == files_in(tmp_path)
        beside = ["address_map.json", "core.md"] if top == "core" else []
        assert [name for name in listed if "/" not in name] == ["fabric.v", *beside]


def test_files_of_the_user_stay(tmp_path):
    """What no manifest of ours lists stays, and so does a folder that has the name of a file."""
    design("old.json", "folder").write(tmp_path)
    (tmp_path / "folder").unlink()
    (tmp_path / "folder").mkdir()
    (tmp_path / "mine.v").write_text("")
    design().write(tmp_path)
    assert names_in(tmp_path) == ["fabric.v", "folder", MANIFEST, "mine.v"]


def test_folders_inside_go_when_they_are_empty(tmp_path):
    """So it is only with folders of ours: what a user has put there, or linked to, stays."""
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
        "[]",
        '{"files": ["mine.v"]}',
        '{"name": "a web site", "files": ["mine.v"]}',
        '{"manifest_version": 1, "schedule_digest": "..", "files": "mine.v"}',
        '{"manifest_version": 1, "schedule_digest": "..", "files": [["mine.v"], 1, null]}',
        '{"manifest_version": 1, "schedule_digest": "..", "files": ["../mine.v", "/mine.v", ""]}',
        "[" * 100_000,
    ],
)
def test_other_manifests_remove_nothing(tmp_path, manifest):
    """A manifest of something else, or a broken one, is replaced and not believed."""
    folder = tmp_path / "out"
    folder.mkdir()
    for path in (folder / "mine.v", tmp_path / "mine.v"):
        path.write_text("")
    (folder / MANIFEST).write_text(manifest)
    design().write(folder)
    assert names_in(folder) == ["fabric.v", MANIFEST, "mine.v"]
    assert (tmp_path / "mine.v").exists()


def test_nothing_is_written_where_one_file_cannot_be(tmp_path):
    """If any of the files cannot be written, the earlier ones stay as they were."""
    design("old.json").write(tmp_path)
    (tmp_path / "old.json").write_text("old")
    (tmp_path / "new.json").mkdir()
    with pytest.raises(InputError, match=r"^File must be writable, not .*new\.json"):
        design("new.json").write(tmp_path)
    assert (tmp_path / "old.json").read_text() == "old"
    assert json.loads((tmp_path / MANIFEST).read_text())["files"] == ["fabric.v", "old.json"]
