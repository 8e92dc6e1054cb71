"""Options that would change nothing: none is left aside without a word."""

import pytest

from torusfabric.cli import main


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("boards --width 4", "--width must come with --measure, whose builds are of that width"),
        (
            "synth 2x2 allgather --target ice40-hx8k --seeds 2",
            "--seeds must come with --pnr, which places as often",
        ),
    ],
)
def test_what_an_option_needs_is_said(capsys, line, message):
    status, (out, err) = main(line.split()), capsys.readouterr()
    assert (status, out, err) == (1, "", f"torusfabric: {message}\n")
