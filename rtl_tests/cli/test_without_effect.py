"""Options that would have no effect are refused."""

import pytest

from torusfabric.cli import main

SELECTED = "{} describes a fabric, so it needs TOPOLOGY and COLLECTIVE, or --plan FILE"
FORMS = (
    "--forms chooses among schedules for different lengths, so it needs --max-flits and a "
    "collective to plan in place of --plan"
)


def need(option, other):
    """Return the message about an option that depends on another one."""
    return f"{option} needs {other}; give both, or leave {option} out"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("boards --width 4", need("--width", "--measure")),
        ("synth 2x2 allgather --target ice40-hx8k --seeds 2", need("--seeds", "--pnr")),
        ("simulate 2x2 allgather --image a.bin", need("--image", "--fabric")),
        ("verilog 2x2 allgather --rows 9 -o out", need("--rows", "--tables ram")),
        ("run --port sim -o words.npy", need("--output", "--data")),
        ("run --port sim --width 8", SELECTED.format("--width")),
        ("monitor --port sim --build build/x --max-flits 4", SELECTED.format("--max-flits")),
        ("run --port sim --boards 2x1", SELECTED.format("--boards")),
        (
            "run 2 allgather --width 8 --port sim --build build/x",
            "--build and a selection of a fabric exclude each other; leave one of them out",
        ),
        ("verilog 3x3 broadcast --forms long -o out", FORMS),
        ("simulate 3x3 broadcast --flits 64 --forms short", FORMS),
        ("simulate 3x3 broadcast,gather --forms all", FORMS),
        (
            "compare 2x4 allgather --map gray",
            "--map is for a file of MSCCL; give it by --plan FILE.xml, or leave --map out",
        ),
        (
            "compare --plan p.json --topology 2x4",
            "--topology is for a file of MSCCL; give it by --plan FILE.xml, or leave "
            "--topology out",
        ),
        (
            "compare 2x2 allgather --flits 1:4 --op max",
            "--op is for reductions (reduce, reduce-scatter, allreduce); leave it out for "
            "allgather",
        ),
        (
            "compare 2x2 allreduce --flits 1:4 --signed",
            "--signed needs --op min, --op max or --op add:saturating, not add",
        ),
        (
            "compare 2x2 allgather --forms long",
            "Unrecognized arguments: --forms (did you mean --ports or --force?) (see torusfabric "
            "compare --help all)",
        ),
        ("simulate 2x2 allgather --boards 2x1 --image a.bin", need("--image", "--fabric")),
        ("prove 2x2 allgather --image a.bin", need("--image", "--fabric")),
    ],
)
def test_what_an_option_needs_is_said(capsys, line, message):
    """An option without the other that it needs is refused, with the other in the message."""
    status, (out, err) = main(line.split()), capsys.readouterr()
    assert (status, out, err) == (1, "", f"torusfabric: {message}\n")


@pytest.fixture(scope="module")
def fabric(tmp_path_factory):
    """The options that name a fabric with loaded tables and an image for it."""
    folder = tmp_path_factory.mktemp("fabric")
    line = "verilog 3 allgather --tables ram --rows 32 --inputs all --width 8 --max-flits 4 --quiet"
    assert main([*line.split(), "-o", str(folder)]) == 0
    manifest, image = f"{folder}/manifest.json", f"{folder}/a.bin"
    assert main(["image", "--fabric", manifest, "3", "alltoall", "-o", image]) == 0
    return ["--fabric", manifest, "--image", image]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("simulate 3 allgather", "TOPOLOGY"),
        ("simulate --width 9", "--width"),
        ("simulate --op max", "--op"),
        ("simulate --top stream", "--top"),
        ("simulate --broken-link 0:+0", "--broken-link"),
        ("prove 4x4 alltoall", "TOPOLOGY"),
        ("prove --plan plan.json", "--plan"),
        ("prove --max-flits 3", "--max-flits"),
    ],
)
def test_the_manifest_says_what_a_fabric_is(capsys, fabric, line, name):
    """Options that describe a fabric are refused beside a manifest."""
    command, *words = line.split()
    capsys.readouterr()
    assert main([command, *fabric, *words]) == 1
    reason = (
        "; plan around the fault by `image --broken-link` or by `repair`, and give the image to "
        "--image"
        if name == "--broken-link"
        else f", because the manifest and the image decide it; leave {name} out"
    )
    assert capsys.readouterr().err == (
        f"torusfabric: {name} and --fabric exclude each other{reason}\n"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--flits", "3", "--jobs", "2"],
            "--jobs and --flits exclude each other for an existing fabric, because --flits runs "
            "each mode once; leave one of them out",
        ),
        (["--flits", "0"], "Length must be from 1 to 4 flits, not 0"),
    ],
)
def test_runs_of_a_fabric_that_exists(capsys, fabric, words, message):
    """Options for the runs of an existing fabric are checked."""
    capsys.readouterr()
    assert main(["simulate", *fabric, *words]) == 1
    assert capsys.readouterr().err == f"torusfabric: {message}\n"


def test_what_is_loaded_lies_on_one_board(capsys):
    """`load` has no option for several boards."""
    assert main(["load", "a.bin", "--port", "sim", "--boards", "2x1", "--block", "0,0"]) == 1
    assert "load has no option --boards; it is for verilog" in capsys.readouterr().err
