"""Options that would change nothing: none is left aside without a word."""

import pytest

from torusfabric.cli import main

SELECTED = "{} must come with TOPOLOGY and COLLECTIVE, or with --plan FILE"
FORMS = (
    "--forms must come with --max-flits and a collective to plan, for lengths of which each has "
    "its form"
)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("boards --width 4", "--width must come with --measure"),
        ("synth 2x2 allgather --target ice40-hx8k --seeds 2", "--seeds must come with --pnr"),
        ("simulate 2x2 allgather --image a.bin", "--image must come with --fabric"),
        ("verilog 2x2 allgather --rows 9 -o out", "--rows must come with --tables ram"),
        ("run --port sim -o words.npy", "--output must come with --data"),
        ("run --port sim --width 8", SELECTED.format("--width")),
        ("monitor --port sim --build build/x --max-flits 4", SELECTED.format("--max-flits")),
        ("run --port sim --boards 2x1", SELECTED.format("--boards")),
        (
            "run 2 allgather --width 8 --port sim --build build/x",
            "--build must be left out where a fabric is selected",
        ),
        ("verilog 3x3 broadcast --forms long -o out", FORMS),
        ("simulate 3x3 broadcast --flits 64 --forms short", FORMS),
        ("simulate 3x3 broadcast,gather --forms all", FORMS),
        (
            "compare 2x4 allgather --map gray",
            "--map must come with --plan and a file of MSCCL, FILE.xml",
        ),
        (
            "compare --plan p.json --topology 2x4",
            "--topology must come with --plan and a file of MSCCL, FILE.xml",
        ),
        (
            "compare 2x2 allgather --flits 1:4 --op max",
            "--op must be left out for allgather, which combines nothing (reduce, reduce-scatter "
            "and allreduce do)",
        ),
        (
            "compare 2x2 allreduce --flits 1:4 --signed",
            "--signed must come with --op min or --op max, not with add",
        ),
        (
            "compare 2x2 allgather --forms long",
            "Unrecognized arguments: --forms (did you mean --ports or --force?) (see torusfabric "
            "compare --help all)",
        ),
        ("simulate 2x2 allgather --boards 2x1 --image a.bin", "--image must come with --fabric"),
        ("prove 2x2 allgather --image a.bin", "--image must come with --fabric"),
    ],
)
def test_what_an_option_needs_is_said(capsys, line, message):
    status, (out, err) = main(line.split()), capsys.readouterr()
    assert (status, out, err) == (1, "", f"torusfabric: {message}\n")


@pytest.fixture(scope="module")
def fabric(tmp_path_factory):
    """The manifest of a fabric that is loaded, and an image for it."""
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
    command, *words = line.split()
    capsys.readouterr()
    assert main([command, *fabric, *words]) == 1
    assert capsys.readouterr().err == (
        f"torusfabric: {name} must be left out with --fabric, whose manifest says it\n"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--flits", "3", "--jobs", "2"],
            "--jobs must be left out with --flits, which runs each mode once",
        ),
        (["--flits", "0"], "Length must be from 1 to 4 flits, not 0"),
    ],
)
def test_runs_of_a_fabric_that_exists(capsys, fabric, words, message):
    capsys.readouterr()
    assert main(["simulate", *fabric, *words]) == 1
    assert capsys.readouterr().err == f"torusfabric: {message}\n"


def test_what_is_loaded_lies_on_one_board(capsys):
    assert main(["load", "a.bin", "--port", "sim", "--boards", "2x1", "--block", "0,0"]) == 1
    assert "--boards must be left out for load; it is for verilog" in capsys.readouterr().err
