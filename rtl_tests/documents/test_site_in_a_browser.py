"""A small site with the configuration of the documentation: sidebar, search and pictures."""

import html
import os
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from browser import checked_pages, launch_chromium

import torusfabric as tf

pytest.importorskip("furo", reason="no Sphinx: extra docs")

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

PAGES = {
    "index": """\
# Front

```{toctree}
:caption: Start
:hidden:

start/guide
```

```{toctree}
:caption: Reference
:hidden:

reference/python
```
""",
    "start/guide": """\
# A guide

The digest of a fabric is a number. A link of *A guide*: [Front](../index.md).

```sh
torusfabric draw 2x2 allgather -o net.svg
torusfabric animate 2x2 allgather -o play.html
```

<!-- figure: net.svg Two rings. -->
<!-- figure: net.svg The same. | An alternative text of its own. -->
<!-- animation: play.html Two rings, "played". -->
""",
    "reference/python": """\
# Python

```{eval-rst}
.. currentmodule:: torusfabric
.. autosummary::
   :toctree: api

   Fabric
   Job
   Switching
   Torus
   plan
```
""",
}


def build(source, target):
    """Build a site from a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-q", "-c", DOCS, source, target,
         "-d", target.parent / "doctrees"],
        capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of a small built site."""
    source = tmp_path_factory.mktemp("site") / "source"
    for name, text in PAGES.items():
        path = source / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    shutil.copytree(DOCS / "_templates", source / "_templates")
    build(source, source.parent / "html")
    return source.parent / "html"


@pytest.fixture(scope="module")
def browser():
    """A Chromium without a window."""
    with launch_chromium() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def address(site):
    """The address of a server of the site, because a search fetches the pages that it finds."""
    serve = partial(SimpleHTTPRequestHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def opened(browser, address):
    """A function that opens a page of the site; any error of the page fails the test."""
    with checked_pages(browser) as open_address:
        yield lambda name, **options: open_address(f"{address}/{name}", **options)


def signature_on(text):
    """Return the signature of the first object on a page."""
    (found,) = re.findall(r'<dt class="sig sig-object py".*?</dt>', text, re.S)[:1]
    return html.unescape(re.sub(r"<[^>]+>", "", found)).strip().removesuffix("\N{PILCROW SIGN}")


@pytest.mark.parametrize(
    ("page", "open_section"),
    [
        ("index.html", "Start"),
        ("start/guide.html", "Start"),
        ("reference/python.html", "Reference"),
        ("reference/api/torusfabric.Fabric.html", "Reference"),
    ],
)
def test_the_sidebar_shows_the_present_section(site, page, open_section):
    """The sidebar opens the section of the page, and folds the other sections."""
    text = (site / page).read_text(encoding="utf-8")
    sections = re.findall(r"<details( open=\"\")?><summary class=\"caption\".*?>(\w+)</span>", text)
    assert [name for _, name in sections] == ["Start", "Reference"]
    assert [name for is_open, name in sections if is_open] == [open_section]


def test_signatures_show_how_a_class_is_called(site):
    """Signatures show the parameters of a class, and values in place of enumerations."""
    shown = {
        name: signature_on((site / f"reference/api/torusfabric.{name}.html").read_text("utf-8"))
        for name in ("Fabric", "Switching", "Torus", "plan")
    }
    assert shown["Fabric"].startswith(
        "class torusfabric.Fabric(program, *, width=32, top='host', prefix=''"
    )
    assert shown["Switching"] == "class torusfabric.Switching"
    assert shown["Torus"] == "class torusfabric.Torus(*sides, link_latency=1)"
    assert shown["plan"].startswith("torusfabric.plan(topology, collective, *, algorithm=None")


@pytest.mark.parametrize(
    "name", [name for name in tf.__all__ if isinstance(getattr(tf, name), type)]
)
def test_no_class_takes_any_arguments(name):
    """No class is shown with the arguments of its metaclass or its base class."""
    signatures = pytest.importorskip("signatures")
    cls, any_arguments = getattr(tf, name), "(*args, src_loc_at=0, **kwargs)"
    found = signatures.signature_of(None, "class", name, cls, None, any_arguments, "")
    assert found is not None
    assert not found[0].startswith("(*args")


def test_members_of_a_class_are_tables(site):
    """Signals, attributes and methods of a class are in tables, each with its meaning."""
    text = (site / "reference/api/torusfabric.Fabric.html").read_text("utf-8")
    assert "-----" not in text
    for section in ("Attributes", "Members", "Methods and properties"):
        assert f'<p class="rubric">{section}</p>' in text
    rows = [
        re.findall(r"<t[hd]\b.*?</t[hd]>", row, re.S)
        for row in re.findall(r"<tr.*?</tr>", text, re.S)
    ]
    cells = [[html.unescape(re.sub(r"<[^>]+>", "", cell)).strip() for cell in row] for row in rows]
    assert [
        "start",
        "In(1)",
        "A pulse of one cycle starts a run; ignored while busy is high.",
    ] in cells
    names = {row[0] for row in cells}
    assert {"busy, done", "interface", "behind()", "predicted_cycles", "room"} <= names
    assert all(all(row) for row in cells)
    torus = (site / "reference/api/torusfabric.Torus.html").read_text("utf-8")
    assert "FromEntry" not in torus
    job = (site / "reference/api/torusfabric.Job.html").read_text("utf-8")
    assert "torusfabric.Job.inputs" in job
    assert "Alias for field" not in job


def test_a_property_keeps_its_first_sentence():
    """A property keeps a first sentence with a colon, which Napoleon takes for a type."""
    docstrings = pytest.importorskip("docstrings")
    lines = ["A number: it is 3.", "", "More."]
    docstrings.prepare_lines(None, "property", "x.y", None, None, lines)
    assert not any(":" in line for line in lines)
    docstrings.complete_lines(None, "property", "x.y", None, None, lines)
    assert lines == ["A number: it is 3.", "", "More."]


def test_the_favicon_is_for_light_and_dark(site):
    """Every page names the icon, which has colours for light and dark."""
    for page in ("index.html", "reference/api/torusfabric.plan.html"):
        text = (site / page).read_text("utf-8")
        (address,) = re.findall(r'<link rel="shortcut icon" href="([^"]+)"', text)
        path = (site / page).parent / address
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
        assert "prefers-color-scheme: dark" in path.read_text("utf-8")


def test_a_picture_has_two_forms_and_describes_itself(site):
    """A picture has a light and a dark form, with links and alternative texts."""
    text = (site / "start/guide.html").read_text("utf-8")
    pictures = re.findall(
        r'<a class="only-(light|dark)[^"]*" href="([^"]+)"><img alt="([^"]+)"[^>]*src="([^"]+)"',
        text,
    )
    assert [form for form, *_ in pictures] == ["light", "dark"] * 2
    assert all(link == address for _, link, _, address in pictures)
    alternatives = [alt for _, _, alt, _ in pictures[::2]]
    assert alternatives[0].startswith("Picture of 2x2 allgather, ")
    assert alternatives[0].endswith(" Two rings.")
    assert alternatives[1] == "An alternative text of its own."
    light, dark = (
        (site / "start" / address).read_text("utf-8") for _, _, _, address in pictures[:2]
    )
    assert "#ffffff" in light
    assert light != dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_picture_is_enlarged_by_keys(opened, scheme):
    """Enter enlarges a picture, Escape closes it, and the focus returns."""
    page = opened("start/guide.html", color_scheme=scheme)
    links = page.locator("article a:has(> img):visible")
    assert links.count() == 2
    links.first.focus()
    page.keyboard.press("Enter")
    dialog = page.locator("dialog.enlarged")
    assert dialog.is_visible()
    assert (
        dialog.locator("img").get_attribute("src").endswith(f"{'-dark' * (scheme == 'dark')}.svg")
    )
    assert dialog.locator("img").get_attribute("alt").startswith("Picture of ")
    page.keyboard.press("Escape")
    assert dialog.is_hidden()
    assert page.evaluate("document.activeElement.querySelector('img') !== null")
    links.first.click()
    dialog.locator("button").click()
    assert dialog.is_hidden()


def test_keys_go_into_an_animation_and_out_of_it(opened):
    """Tab goes into an animation, through its controls, and out of it; its frame has a title."""
    page = opened("start/guide.html")
    frame = page.locator("iframe.animation")
    assert frame.get_attribute("title") == 'Animation: Two rings, "played".'
    page.locator("article a:has(> img):visible").last.focus()
    inside = 0
    for _ in range(40):
        page.keyboard.press("Tab")
        at = page.evaluate("document.activeElement.tagName")
        if at != "IFRAME":
            break
        inside += 1
    assert inside >= 10
    assert page.evaluate("document.activeElement.textContent").startswith("Open this animation")


@pytest.mark.parametrize("system", ["light", "dark"])
def test_an_animation_is_as_dark_as_its_page(opened, system):
    """An animation is as dark as its page, on any system."""
    page = opened("start/guide.html", color_scheme=system)
    for chosen, shown in (("dark", "dark"), ("light", "light"), ("auto", system)):
        page.evaluate(f"document.body.dataset.theme = '{chosen}'")
        page.frames[1].locator(f"html[data-theme={shown}]").wait_for()


def test_the_search_finds_guides_before_members_of_classes(opened):
    """The search lists a guide before a property of a class with the same word."""
    page = opened("search.html?q=digest")
    page.wait_for_selector("ul.search li a")
    page.wait_for_timeout(500)
    found = page.locator("ul.search li > a").all_text_contents()
    assert found[0] == "A guide"
    assert found[-1].startswith("torusfabric.Fabric.digest")


RESULTS: list[list[Any]] = [
    ["reference/glossary", "flit", "#term-flit", "term", 11, "", "object"],
    ["how-to/load", "Load", "", None, 5, "", "text"],
    ["reference/host", "Host", "", None, 5, "", "text"],
    ["project/trust", "Trust", "", None, 5, "", "text"],
    ["reference/api/torusfabric.plan", "plan", "", None, 2, "", "text"],
    ["reference/api/torusfabric.Job", "Job", "#torusfabric.Job.flit", "", 40, "", "index"],
]


def test_the_order_of_results(opened):
    """Results are in this order: terms, guides, reference, other pages, classes, members."""
    page = opened("index.html")
    page.evaluate(
        (DOCS / "_static" / "scorer.js").read_text("utf-8").replace("var Scorer", "window.Scorer")
    )
    scores = page.evaluate("results => results.map(Scorer.score)", RESULTS)
    assert scores == sorted({*scores}, reverse=True)
    given = [result[4] for result in RESULTS]
    assert given != sorted(given, reverse=True)
