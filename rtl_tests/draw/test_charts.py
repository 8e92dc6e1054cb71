"""Charts of comparisons: labels of the axes, and curves that can be told apart."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from torusfabric.cli import main
from torusfabric.draw.charts import COLOURS, curve_chart

SPACE = "{http://www.w3.org/2000/svg}"


def texts_of(svg):
    """Return the words of a picture with their positions and alignment."""
    return [
        (each.text, float(each.get("x")), float(each.get("y")), each.get("text-anchor"))
        for each in ElementTree.fromstring(svg).iter(f"{SPACE}text")
    ]


def shape_of(path):
    """Return the form of a marker, independent of its position, and True if it is not filled."""
    if path.tag == f"{SPACE}circle":
        return "circle", path.get("fill") == "none"
    numbers = [float(n) for n in re.findall(r"-?[\d.]+", path.get("d"))]
    away = (round(n - numbers[k % 2]) for k, n in enumerate(numbers))
    return tuple(away), path.get("fill") == "none"


@pytest.mark.parametrize(
    "lengths", [[1], [7], [5, 7], [1, 2, 4, 8], [3, 10, 100], [2**k for k in range(31)], [10**9]]
)
@pytest.mark.parametrize("count", [1, 12])
def test_curves_of_any_lengths(lengths, count):
    """Ticks do not overlap, axes have labels, and every value has a marker, for any lengths."""
    curves = {f"a{k}": [n + k for n in lengths] for k in range(count)}
    svg = curve_chart("title", lengths, curves, lengths)
    words = texts_of(svg)
    assert {"flits of a message", "cycles from start to done", "cycle limit", *curves} <= {
        text for text, *_ in words
    }
    below = [(x, 0.66 * 12 * len(text)) for text, x, _, at in words
             if at == "middle" and text.isdecimal()]  # fmt: skip
    assert below
    for (x, wide), (after, other) in pairwise(below):
        assert x + wide / 2 < after - other / 2
    beside = [y for text, _, y, at in words if at == "end" and text.isdecimal()]
    assert len(beside) >= 2
    assert all(y - after > 12 for y, after in pairwise(beside))
    root = ElementTree.fromstring(svg)
    wide, high = float(root.get("width")), float(root.get("height"))
    assert all(0 <= x <= wide and 0 <= y <= high for _, x, y, _ in words)
    markers = [*root.iter(f"{SPACE}circle"), *(
        path for path in root.iter(f"{SPACE}path") if path.get("d").endswith("z"))]  # fmt: skip
    assert len(markers) == count * (len(lengths) + 1)


def test_curves_differ_without_their_colours():
    """Ten curves have markers of ten different forms."""
    svg = curve_chart("title", [4], {f"a{k}": [5 * k + 9] for k in range(10)}, [4])
    root = ElementTree.fromstring(svg)
    markers = [*root.iter(f"{SPACE}circle"), *(
        path for path in root.iter(f"{SPACE}path") if path.get("d").endswith("z"))]  # fmt: skip
    assert {marker.get("stroke") for marker in markers} == {*COLOURS}
    assert len({*map(shape_of, markers)}) == 10


def test_lengths_may_be_a_list(tmp_path, capsys):
    """`--flits` accepts lists and ranges.

    A range means its ends and the powers of two between them.
    """
    path = tmp_path / "table.csv"
    words = ["compare", "3x3", "broadcast", "--flits", "100,1:5,7", "--table", str(path)]
    assert main(words) == 0
    rows = path.read_text().splitlines()[1:]
    assert [int(row.split(",")[0]) for row in rows] == [1, 2, 4, 5, 7, 100]
    for wrong in ("1,", "0,3", "1:2:3", "a,2", "5:1,2", ",", "1,,2"):
        assert main(["compare", "3x3", "broadcast", "--flits", wrong]) == 1
        assert "--flits must be" in capsys.readouterr().err
