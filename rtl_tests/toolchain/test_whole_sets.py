"""A set of files is complete or has no manifest, wherever the writing process is stopped."""

import errno
import os
import signal
import sys
from pathlib import Path

import pytest

from torusfabric.errors import InputError
from torusfabric.toolchain.owned import require_complete_set, write_file_set
from torusfabric.verilog.design import MANIFEST, Design

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes fork")

#: File system operations, by their names in audit hooks.
OPERATIONS = ("open", "os.mkdir", "os.remove", "os.rename", "os.rmdir")

#: Files of a user beside ours.
OTHERS = {"notes.txt": b"mine", "bench/waves.gtkw": b"mine, too"}


def design(word):
    """A design with files in two folders, some of which the other design lacks."""
    own = {f"only-{word}.txt": word, f"bench/{word}.py": word}
    both = {MANIFEST: f'{{"word": "{word}"}}', "bench/Makefile": word}
    return Design({"fabric": f"// {word}\n"}, "fabric", {}, files=both | own)


def found(folder):
    """Map the visible files of a folder to their contents."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    names = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    return {name: content for name, content in names.items() if "/." not in f"/{name}"}


def expected(word):
    """Map the files of a design to their contents."""
    written = {"fabric.v": design(word).text} | design(word).files
    return {name: text.encode() for name, text in written.items()}


def stopped(act, folder, number, fault):
    """Run a function in a child process, and fail its file system operation of the given number.

    Returns
    -------
    bool
        True if there were that many operations.
    """
    child = os.fork()
    if child == 0:
        left = number

        def hook(event, arguments):
            nonlocal left
            if event in OPERATIONS and str(folder) in str(arguments[0]):
                writes = event != "open" or arguments[2] & (os.O_WRONLY | os.O_RDWR)
                left -= bool(writes)
                if left == 0 and writes:
                    fault(event)

        sys.addaudithook(hook)
        try:
            act()
        except InputError:
            os._exit(1)
        except BaseException:
            os._exit(3)
        os._exit(0 if left > 0 else 1)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) in (0, 1), "an error of another kind"
    return status != 0


def kill(event):
    os.kill(os.getpid(), signal.SIGKILL)


def fill(event):
    if event in ("open", "os.mkdir"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def folder(tmp_path):
    """A folder with an older design, and files of a user."""
    folder = tmp_path / "out"
    design("old").write(folder)
    for name, content in OTHERS.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize("fault", [kill, fill])
def test_a_design_over_an_older_one(folder, tmp_path, fault):
    """A folder with a manifest holds all of the old or all of the new design. A full disk leaves
    one of the two.
    """
    number, states = 1, []
    while stopped(lambda: design("new").write(folder), tmp_path, number, fault):
        there = found(folder)
        assert OTHERS.items() <= there.items()
        ours = {name: content for name, content in there.items() if name not in OTHERS}
        whole = [word for word in ("old", "new") if ours == expected(word)]
        states += whole
        if MANIFEST in ours or fault is fill:
            assert whole, f"operation {number}: a mixture of {sorted(ours)}"
        else:
            with pytest.raises(InputError, match=r"is incomplete, for manifest\.json is missing"):
                require_complete_set(folder / MANIFEST)
        design("old").write(folder)
        assert found(folder) == expected("old") | OTHERS
        number += 1
    assert {"old", "new"} <= set(states)
    assert found(folder) == expected("new") | OTHERS


@pytest.mark.parametrize("fault", [kill, fill])
def test_a_design_in_a_new_folder(tmp_path, fault):
    """In a new folder, a full disk leaves nothing or the design; a kill may also leave files
    without a manifest.
    """
    number, folder = 1, tmp_path / "out" / "deep"
    while stopped(lambda: design("new").write(folder), tmp_path, number, fault):
        there = found(folder) if folder.exists() else {}
        if fault is fill:
            assert there == expected("new") or not (tmp_path / "out").exists()
        assert there == expected("new") or MANIFEST not in there
        number += 1
        for path in sorted(tmp_path.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    assert number > 5


def test_a_file_that_cannot_be_replaced(folder):
    """If one file cannot be replaced, the older design stays."""
    (folder / "bench" / "new.py").mkdir()
    with pytest.raises(InputError):
        design("new").write(folder)
    assert expected("old").items() <= found(folder).items()


def test_the_seal_goes_first(tmp_path):
    """A set without its seal is reported as incomplete."""
    write_file_set(tmp_path, "some", {"a": b"1", "seal": b"2"}, seal="seal", force=False)
    require_complete_set(tmp_path / "seal")
    (tmp_path / "seal").unlink()
    with pytest.raises(InputError, match=r"^Folder \S+ is incomplete, for seal is missing"):
        require_complete_set(tmp_path / "seal")
    require_complete_set(Path(tmp_path, "elsewhere", "seal"))
