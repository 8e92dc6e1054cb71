"""The player in a browser: keys, colours, following a node, and the width of a phone."""

import json
import re
from dataclasses import replace

import networkx as nx
import pytest
from browser import CHROMIUM, checked_pages, launch_chromium
from helpers import few, program_of

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.draw import draw
from torusfabric.draw.animate import animation_page
from torusfabric.draw.notebook import schedule_html
from torusfabric.rtl.word_path import stage_code, word_path

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="no Playwright: pip install playwright (extra test)"
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def browser():
    """A Chromium without a window."""
    with launch_chromium() as chromium:
        yield chromium


@pytest.fixture
def opened(browser, tmp_path):
    """A function that opens the player of a program; any error of the page fails the test."""
    with checked_pages(browser) as open_address:

        def open_player(program, *, address="", width=1100, height=800, stages=()):
            path = tmp_path / "play.html"
            text = animation_page(program, stages, stage_code(stages))
            path.write_text(text, encoding="utf-8")
            return open_address(
                f"{path.as_uri()}{address}", viewport={"width": width, "height": height}
            )

        yield open_player


def test_keys(opened):
    """Keys move through the steps, and choose colours and links like the controls."""
    page = opened(program_of("4x5", "allgather", "hamiltonian"))
    now = lambda: page.inner_text("#now")
    assert now() == "before step 1 of 10"
    page.keyboard.press("ArrowRight")
    assert now().startswith("after step 1 of 10, cycle ")
    page.keyboard.press("End")
    assert now().startswith("after step 10 of 10")
    page.keyboard.press("ArrowLeft")
    assert now().startswith("after step 9 of 10")
    page.keyboard.press("Home")
    assert now() == "before step 1 of 10"
    page.keyboard.press("c")
    page.keyboard.press("l")
    assert page.input_value("#colour") == "origin"
    assert page.input_value("#links") == "use"


def test_it_plays_to_the_end(opened):
    """The space bar starts the player, which stops at the last step."""
    page = opened(program_of("3x3", "allgather", "matching"))
    for _ in range(12):
        page.keyboard.press("+")
    page.keyboard.press(" ")
    sync_api.expect(page.locator("#now")).to_have_text(re.compile("^after step 2"))
    assert page.inner_text("#play") == "Play"


def test_a_node_and_a_block_are_followed(opened):
    """The player follows a node, or one block of it; Escape ends following."""
    page = opened(program_of("3x3", "scatter", "matching"), address="#0,progress,0")
    assert page.input_value("#follow") == "0"
    assert "node 0 (0,0)" in page.inner_text("#tip")
    choices = page.locator("#block option").all_inner_texts()
    assert choices[0] == "all its blocks"
    assert "(0,0) for (2,2)" in choices
    page.select_option("#block", label="(0,0) for (2,2)")
    moves = page.evaluate("followed.moves.flat().length")
    assert moves == 2
    page.locator("h1").click()
    page.keyboard.press("Escape")
    assert page.input_value("#follow") == ""
    assert page.evaluate("followed") is None
    x, y = page.evaluate("at(nodes[4])")
    page.locator("#canvas").click(position={"x": x, "y": y})
    assert page.input_value("#follow") == "4"


@pytest.mark.parametrize("address", ["#3.5,age,,use", "#2,origin,7"])
def test_use_of_links_and_age(opened, address):
    """The use of links counts the rounds that are over, also after steps backwards."""
    page = opened(program_of("4x4", "allgather", "hamiltonian"), address=address)
    place = float(re.search(r"#([\d.]+)", address)[1])
    carried = "rounds.slice(0, Math.floor(place)).flat().reduce((n, m) => n + m[1].length, 0)"
    total = "used.reduce((a, b) => a + b)"
    assert page.evaluate("place") == place
    assert page.evaluate(total) == page.evaluate(carried) > 0
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(total) == page.evaluate(carried)


@pytest.mark.parametrize(
    ("kind", "whole"), few(2, [("reduce", 9), ("allreduce", 9), ("allreduce@0", 3)])
)
def test_how_much_of_a_sum_is_there(opened, kind, whole):
    """The player counts the contributions of a sum, and says where partial sums meet."""
    page = opened(program_of("3x3", kind), address="#0,progress,0")
    assert page.inner_text("#tip").count(f"1 of {whole} summed") > 0
    assert page.evaluate("fullness(0)") == f"1/{whole}"
    first = page.evaluate("meetings(0)")
    assert first
    page.evaluate("go(0.5)")
    assert "partial sums meet at" in page.inner_text("#now")
    page.evaluate("go(1)")
    for met in first:
        assert met["before"] < len(met["after"]) <= whole
        held = page.evaluate(f"[...held[{met['node']}].keys()]")
        assert set(met["after"]) <= set(held)
    page.keyboard.press("End")
    assert page.evaluate("fullness(0)") == f"{whole}/{whole}"
    assert f"{whole} of {whole} summed" in page.inner_text("#tip")


def test_sums_of_groups_are_apart(opened):
    """The player counts the contributions of each group, also where two groups pass one node."""
    page = opened(program_of("3x3", "allreduce@{0,1}{4,5,8}"), address="#0,progress,0")
    assert "sum of group 0" in page.inner_text("#tip")
    assert "1 of 2 summed" in page.inner_text("#tip")
    page.keyboard.press("End")
    full = page.evaluate("[...Array(9).keys()].map(fullness)")
    assert [full[node] for node in (0, 1, 4, 5, 8)] == ["2/2", "2/2", "3/3", "3/3", "3/3"]
    page = opened(program_of("mesh:5", "allreduce@{0,4}{1,2,3}"))
    groups = "s => new Set(s.ids.map(id => blocks[id][3])).size"
    for place in range(page.evaluate("last") + 1):
        page.evaluate(f"go({place})")
        counts = page.evaluate(f"held.flatMap(ids => sums(ids.keys()).map({groups}))")
        assert set(counts) == {1}


def test_blocks_are_not_sums(opened):
    """In a collective without sums nothing is summed."""
    page = opened(program_of("3x3", "allgather"), address="#0.5,progress,0")
    assert page.evaluate("meetings(0)") == []
    assert "summed" not in page.inner_text("#tip")


def test_stages_of_a_word(opened):
    """Keys and clicks choose a stage of a word.

    The page shows its code, and the picture its cycle.
    """
    program = program_of("3x3", "allgather", "matching")
    stages = word_path(program, 0, 4)
    page = opened(program, stages=stages)
    chosen = page.locator("[aria-current]")
    assert page.locator("#stages li").count() == len(stages)
    assert stages[0].what in chosen.inner_text()
    for stage in stages[1:]:
        page.keyboard.press("]")
        said = chosen.inner_text()
        assert stage.what in said
        assert f"{stage.file}:{stage.line}" in said
        shown = page.inner_text("#stages pre").splitlines()[0]
        assert shown.split()[0] == str(stage.line)
        assert f"def {stage.code.rpartition('.')[2]}(" in shown
        ended = page.evaluate("place")
        assert ended == sum(cycle <= stage.cycle for cycle in page.evaluate("cycles"))
        assert page.evaluate("isShown()")
        top = chosen.bounding_box()["y"]
        header = page.locator("#word .group").bounding_box()
        assert header["y"] + header["height"] - 1 <= top
        assert top < page.evaluate("canvas.getBoundingClientRect().bottom")
    page.keyboard.press("]")
    assert page.evaluate("stage") == len(stages) - 1
    page.keyboard.press("Home")
    assert not page.evaluate("isShown()")
    page.locator("#stages li button").nth(5).click()
    assert page.evaluate("stage") == 5
    page.keyboard.press("[")
    assert page.evaluate("stage") == 4


#: A script that returns name and outline of the focused element, or null at the end of the page.
FOCUSED = """() => {
  const at = document.activeElement, style = getComputedStyle(at);
  if (at === document.body) return null;
  const label = at.labels && at.labels[0] && at.labels[0].firstChild.textContent;
  return [at.id || at.textContent, at.ariaLabel || label || at.textContent.trim(),
    style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2];
}"""


def focused_by_tab(page):
    """Return the focused element after each press of Tab, to the end of the page."""
    found = []
    while True:
        page.keyboard.press("Tab")
        at = page.evaluate(FOCUSED)
        if at is None or len(found) > 200:
            return found
        found.append(at)


@pytest.mark.parametrize("with_word", [False, True])
def test_tab_reaches_every_control_and_leaves_the_page(opened, with_word):
    """Tab reaches every control, each with a name and a visible focus, and then leaves the page."""
    program = program_of("3x3", "scatter", "matching")
    stages = word_path(program, 0, 4) if with_word else ()
    page = opened(program, stages=stages, address="#0,progress,0")
    controls = page.locator("button, input, select, summary, canvas:not([aria-hidden])")
    every = controls.evaluate_all(
        "all => all.filter(each => each.checkVisibility()).map(each => each.id || each.textContent)"
    )
    found = focused_by_tab(page)
    assert [name for name, _, _ in found if name in every] == every
    assert all(named and outlined for _, named, outlined in found), found


@pytest.mark.parametrize(
    "fault",
    [
        "document.getElementById('next').tabIndex = -1",
        "document.getElementById('play').style.outline = 'none'",
        "document.getElementById('place').ariaLabel = ''",
    ],
)
def test_a_control_without_keyboard_is_found(opened, fault):
    """A control that Tab skips, without a name or without a visible focus, is found."""
    page = opened(program_of("3x3", "allgather"))
    page.evaluate(fault)
    found = focused_by_tab(page)
    ids = page.locator("button, input, select").evaluate_all("all => all.map(each => each.id)")
    shown = {name for name, named, outlined in found if named and outlined}
    assert {*ids} - shown - {"block", "earlier", "later"}


def test_a_node_is_followed_by_keys(opened):
    """Shift and an arrow key follow the next node, around the border."""
    page = opened(program_of("3x4", "allgather", "hamiltonian"))
    followed = []
    for key in ("Right", "Right", "Down", "Left", "Left", "Up", "Up"):
        page.keyboard.press(f"Shift+Arrow{key}")
        followed.append(int(page.input_value("#follow")))
    assert followed == [0, 1, 5, 4, 7, 3, 11]
    assert page.evaluate("place") == 0
    page.keyboard.press("Escape")
    assert page.input_value("#follow") == ""


def test_help_lists_every_key(opened):
    """A key opens the list of all keys; Escape closes the list first, and later ends following."""
    page = opened(program_of("3x3", "allgather"), address="#0,progress,4")
    assert page.locator("#help dl").is_hidden()
    page.keyboard.press("?")
    assert page.locator("#help dl").is_visible()
    shown = page.locator("#help kbd").all_text_contents()
    names = {" ": "Space", "ArrowLeft": "\u2190", "ArrowRight": "\u2192", "Escape": "Esc"}
    keys = page.evaluate("Object.keys(KEYS)")
    assert sorted(shown) == sorted(["Shift", *(names.get(key, key) for key in keys)])
    page.keyboard.press("Escape")
    assert page.locator("#help dl").is_hidden()
    assert page.input_value("#follow") == "4"


@pytest.mark.parametrize("system", ["light", "dark"])
def test_an_embedding_page_chooses_light_or_dark(opened, system):
    """A page that embeds the player chooses light or dark.

    Otherwise the player follows the system.
    """
    page = opened(program_of("3x3", "allgather"))
    page.emulate_media(color_scheme=system)
    ground = lambda: page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator(f"html[data-theme={system}]").wait_for()
    found = {}
    for wanted in ("dark", "light"):
        page.evaluate(f"postMessage({{ theme: '{wanted}' }}, '*')")
        page.locator(f"html[data-theme={wanted}]").wait_for()
        found[wanted] = ground()
    assert found["dark"] != found["light"]
    page.evaluate("postMessage({ theme: '<b>' }, '*')")
    page.locator(f"html[data-theme={system}]").wait_for()


def test_no_word_is_followed(opened):
    """A page without stages shows no word."""
    page = opened(program_of("3x3", "allgather"))
    page.keyboard.press("]")
    assert page.locator("#word").is_hidden()
    assert page.evaluate("canvas.clientWidth") == 1100


def test_stages_on_a_phone(opened):
    """On a phone the stages are below the network, and both have room."""
    program = program_of("3x3", "allgather", "matching")
    page = opened(program, stages=word_path(program, 0, 4), width=360, height=640)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.evaluate("canvas.clientHeight") > 120
    assert page.evaluate("$('word').clientHeight") > 120


def test_phone(opened):
    """On a phone nothing is wider than the screen, and the network has room."""
    page = opened(program_of("6x8", "allgather"), width=360, height=640)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.evaluate("canvas.clientHeight") > 250


#: Names that would run a script, load a file, or end their element.
HOSTILE = (
    "<img src=//localhost:9/x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "<!--<script>",
    "\u2028'\"`${alert(3)}\\",
    '<svg onload="alert(4)"><a href=javascript:alert(5)>&amp;',
)


def hostile_schedule(kind):
    """Return a schedule on a ring whose nodes, ports and algorithm have hostile names."""
    graph = nx.MultiDiGraph()
    for tail, head in zip(HOSTILE, HOSTILE[1:] + HOSTILE[:1], strict=True):
        graph.add_edge(tail, head, port="<img/src=x/onerror=alert(6)>")
        graph.add_edge(head, tail, port="@DATA@</style></script>")
    return replace(tf.plan(tf.Graph(graph), kind), algorithm="".join(HOSTILE[:2]))


@pytest.mark.parametrize("address", few(2, ["#0,,0", "#1.5,age,1,use", "#9,<img>,<b>,x,y", "#,,9"]))
@pytest.mark.parametrize("kind", ["allgather", "reduce-scatter"])
def test_names_in_a_schedule_file_are_text(browser, tmp_path, kind, address):
    """A page shows hostile names of a schedule file as text, and sends no request."""
    plan, path = tmp_path / "<b>' onload=alert(7) .json", tmp_path / "play.html"
    hostile_schedule(kind).save(plan)
    assert main(["animate", "--plan", str(plan), "--cycles", "-o", str(path), "--quiet"]) == 0
    page, seen = browser.new_page(), []
    page.on("dialog", lambda dialog: (seen.append(dialog.message), dialog.dismiss()))
    for event in ("pageerror", "console", "popup"):
        page.on(event, lambda value: seen.append(str(value)))
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(f"{path.as_uri()}{address}")
    for number, name in enumerate(HOSTILE):
        page.evaluate(f"choose({number})")
        page.evaluate(f"hovered = {number}; draw()")
        assert name.strip() in page.locator("#tip").text_content()
        assert name in page.evaluate("names.join()")
        page.keyboard.press("]")
    page.keyboard.press("End")
    algorithm = json.loads(plan.read_text())["algorithm"]
    assert page.title().endswith(algorithm)
    assert page.locator("h1").text_content().endswith(algorithm)
    assert not page.locator("img, svg, a").count()
    assert page.locator("script").count() == 2
    assert requests == [page.url.split("#")[0]]
    assert seen == []
    page.close()


def test_names_in_pictures_and_notebooks_are_text(browser, tmp_path):
    """Pictures and notebooks show hostile names as text."""
    schedule, path = hostile_schedule("allgather"), tmp_path / "net.svg"
    path.write_text(draw(schedule), encoding="utf-8")
    shown = tmp_path / "shown.html"
    shown.write_text(f'<meta charset="utf-8">{schedule_html(schedule)}', encoding="utf-8")
    for opened in (path, shown):
        page, dialogs, requests = browser.new_page(), [], []
        page.on("dialog", lambda dialog, seen=dialogs: (seen.append(dialog), dialog.dismiss()))
        page.on("request", lambda request, seen=requests: seen.append(request.url))
        page.goto(opened.as_uri())
        titles = page.locator("title").all_text_contents()
        assert all(any(name in title for title in titles) for name in HOSTILE)
        assert not page.locator("img, script, a").count()
        assert (dialogs, requests) == ([], [opened.as_uri()])
        page.close()


def test_the_page_admits_nothing_but_its_own_script(browser, tmp_path):
    """Planted markup in a page runs no script and loads no file."""
    path, planted = tmp_path / "play.html", "<img src=x onerror=alert(1)><script>alert(2)</script>"
    text = animation_page(program_of("3x3", "allgather"))
    path.write_text(text.replace("<main>", f"<main>{planted}<style>body {{ color: red }}</style>"))
    page, dialogs, requests = browser.new_page(), [], []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.on("requestfinished", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    assert page.inner_text("#now").startswith("before step 1 of ")
    assert page.evaluate("getComputedStyle(document.body).color") != "rgb(255, 0, 0)"
    assert (dialogs, requests) == ([], [path.as_uri()])
    page.close()
