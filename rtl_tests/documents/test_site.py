"""The documentation as a whole: its blocks run, its links work, and its lists are complete."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import command_list, command_section, parsers
from dark import dark, light
from pages import Block, ShownFile, blocks_of, parts_of
from session import BlockError, run_blocks
from written_text import DOCS, ROOT, written_pages

import torusfabric as tf
from torusfabric.cli import make_parser
from torusfabric.cli.purposes import PURPOSES

PAGES = written_pages()
OUTSIDE = [*ROOT.glob("*.md"), *ROOT.glob("boards/*.md"), *ROOT.glob("examples/*/*.md")]

PAGE = """\
# A page

<!-- test: first -->
```sh
torusfabric algorithms    # all
```

<!-- file: small.py -->
```python
print(6 * 7)
```

<!-- not run: takes a board -->
```sh
torusfabric monitor --board icebreaker
```

<!-- status: 1 -->
<!-- output: 2 lines -->
```sh
torusfabric plan 4x4 nothing
```

```sh
torusfabric draw 3x3 allgather \\
    -o net.svg
python small.py | tr 4 5
```

<!-- figure: net.svg A net. -->
<!-- figure: net.svg A net. | Two rings. -->
"""


def test_parts_of_a_page():
    """Blocks of a page run unless a comment says otherwise, and figures stay in place."""
    parts = [part for _, part in parts_of(PAGE)]
    blocks = [part for part in parts if isinstance(part, Block)]
    assert [block.runs for block in blocks] == [True, False, False, True, True]
    assert [block.file for block in blocks] == ["", "small.py", "", "", ""]
    assert (blocks[3].status, blocks[3].lines, blocks[4].lines) == (1, 2, None)
    assert parts[-2:] == [
        ShownFile("figure", "net.svg", "A net."),
        ShownFile("figure", "net.svg", "A net.", alt="Two rings."),
    ]


def test_blocks_of_a_page_run(tmp_path, monkeypatch):
    """All blocks of a page run, with the expected errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    printed = run_blocks([block.as_json() for block in blocks_of(PAGE)])
    ((first, said),) = printed[0]
    assert first.startswith("torusfabric algorithms")
    assert "hamiltonian" in said
    assert printed[1] == printed[2] == []
    assert printed[3][0][1].startswith("torusfabric: ")
    assert [said for _, said in printed[4]][1] == "52\n"
    assert (tmp_path / "net.svg").exists()


@pytest.mark.parametrize(
    ("language", "text", "message"),
    [
        ("sh", "torusfabric plan 4x4 nothing\n", "ended with status 1, not 0"),
        ("sh", "false | cat; exit 3\n", "ended with status 3, not 0"),
        ("python", "assert 1 > 2\n", "AssertionError"),
    ],
)
def test_a_failing_block_is_named(language, text, message):
    """A block that fails stops the build, with its text in the message."""
    with pytest.raises(BlockError, match=message) as found:
        run_blocks([block.as_json() for block in blocks_of(f"```{language}\n{text}```\n")])
    assert text.strip() in str(found.value)


@pytest.mark.parametrize("page", [*PAGES, *OUTSIDE], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """Relative links lead to existing files."""
    text = re.sub(r"^```.*?^```\n", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text):
        path = DOCS / target[1:] if target.startswith("/") else page.parent / target
        assert path.exists(), target


#: The extra that each command needs, from the table of the page on installation.
EXTRA_OF_COMMAND = {
    command: extra
    for extra, brings in re.findall(
        r"^\| `(\w+)` \| (.*) \|$", (DOCS / "start/install.md").read_text(encoding="utf-8"), re.M
    )
    for command in re.findall(r"`(\w+)`", brings.partition(", and with")[0])
} | {"Fabric": "hardware", "synthesize": "synthesis", "connect": "boards"}

GUIDES = [
    *(
        page
        for page in PAGES
        if page.parent.name in ("tutorials", "start", "how-to") and page.stem != "install"
    ),
    *ROOT.glob("examples/*/README.md"),
]


def with_included(extras):
    """Return extras and all extras that they include."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    brings = dict(re.findall(r'^(\w+) = \[\s*"?(?:torusfabric\[([\w,]+)\])?', text, re.M))
    found = {*extras}
    for extra in extras:
        found |= with_included([name for name in brings[extra].split(",") if name])
    return found


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_guides_name_the_extras_that_they_need(page):
    """The extras of the line "You need" suffice for all commands of a guide."""
    text = page.read_text(encoding="utf-8")
    named = re.search(r"^You need: (.*?)\n\n", text, re.S | re.M)
    extras = re.findall(r"`(\w+)`", named[1]) if named else []
    used = re.findall(r"\btorusfabric (\w+)|\btf\.(Fabric|synthesize|connect)\b", text)
    needed = {EXTRA_OF_COMMAND[a or b] for a, b in used if (a or b) in EXTRA_OF_COMMAND}
    assert needed <= with_included(extras)


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("Torus", "(*sides, link_latency=1)"),
        ("Mesh", "(sides, wraps=None)"),
        ("Topology", ""),
        ("Fabric", "(program, *, width=32, "),
    ],
)
def test_pages_of_classes_show_how_they_are_called(name, called):
    """The page of a class shows the parameters of its constructor.

    Why: Autodoc finds a metaclass, or a constructor of Amaranth, which accept any arguments.
    """
    signatures = pytest.importorskip("signatures", reason="no Sphinx: extra docs")
    found, _ = signatures.signature_of(
        None, "class", name, getattr(tf, name), None, "(*args, **kwargs)", ""
    )
    assert found.startswith(called)


def test_every_page_is_in_the_contents():
    """The contents list every page once."""
    listed = []
    for page in PAGES:
        for body in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.S | re.M):
            names = [line for line in body.splitlines() if line and not line.startswith(":")]
            listed += [(page.parent / name).resolve() for name in names]
    pages = [page.with_suffix("") for page in (*PAGES, *DOCS.glob("*.ipynb"))]
    assert sorted(listed) == sorted(page for page in pages if page != DOCS / "index")


def test_commands_have_a_purpose():
    """The help lists each command once, under its purpose."""
    named = [name for names in PURPOSES.values() for name in names]
    assert len({*named}) == len(named)
    assert parsers().keys() <= {*named}
    text = make_parser().format_help()
    for name in parsers():
        assert len(re.findall(rf"^  {name} ", text, re.M)) == 1


COMMON_OPTIONS = {"-h", "--help", "--json", "--quiet", "--verbose"}


def test_reference_lists_all_parsers():
    """The page of commands lists each command once, with an anchor and a link to its page."""
    text, page = command_list(), (DOCS / "reference/commands.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\(commands/(\w+)\.md\)\{#(\w+)-command\}", text) == [
        (name, name) for names in PURPOSES.values() for name in names
    ]
    in_contents = re.findall(r"^commands/(\w+)$", page, re.M)
    assert in_contents == [name for names in PURPOSES.values() for name in names]
    assert "<!-- commands -->\n" in page
    for option in COMMON_OPTIONS:
        assert f"`{option}`" in page


@pytest.mark.parametrize("name", parsers())
def test_page_of_a_command_has_all_its_options(name):
    """The page of a command has each option once, with an anchor of its own."""
    text = command_section(name)
    page = (DOCS / f"reference/commands/{name}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# torusfabric {name}\n")
    assert page.count(f"<!-- command: {name} -->\n") == 1
    named = re.findall(r"^\| `(.*?)`\{#", text, re.M)
    for action in parsers()[name]._actions:
        rows = [row for row in named if {*action.option_strings} & {*re.split(r"[ ,]+", row)}]
        assert len(rows) == (
            bool(action.option_strings) and action.option_strings[-1] not in COMMON_OPTIONS
        )
    anchors = re.findall(r"`\{#(\S+)\}", text)
    assert len({*anchors}) == len(anchors)
    for line in text.splitlines():
        if line.startswith("| "):
            assert line.count("`") % 2 == 0, line
            assert len(re.findall(r"(?<!\\)\|", line)) == 3, line


def test_texts_of_options_are_plain():
    """Text of options is escaped for Markdown, except code."""
    text = command_section("plan")
    assert "allgather\\@1" in text
    assert "8\\|x8" in text
    assert "cycles at `--flits`" in text


def test_reference_has_all_public_names():
    """The reference of Python lists each public name once."""
    text = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    named = re.findall(r"^   (\w+)$", text, re.M)
    assert sorted(named) == sorted({*tf.__all__} - {"__version__"})


def test_dark_pictures_keep_hues():
    """Dark pictures have bright ink and a dark background, and red stays red."""
    turned = dark("#ffffff #202124 #c8324a")
    paper, ink, red = [[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in turned.split()]
    assert max(paper) < 40
    assert min(ink) > 200
    assert red[0] > 150 > max(red[1:])


def test_pictures_follow_the_page_alone():
    """Pictures follow the colours of the page, not of the system.

    Names of parts are not changed.
    """
    rule = "<style>@media(prefers-color-scheme:dark){:root{filter:invert(1)}}</style>"
    picture = f'<svg >{rule}<g id="000"/><use href="#000" fill="#000"/></svg>'
    assert light(picture) == picture.replace(rule, "")
    assert dark(picture).endswith('<g id="000"/><use href="#000" fill="#ffffff"/></svg>')


def faults_of(text):
    """Return the faults of a built page that affect readers without sight or without a mouse."""
    found = []
    for image in re.findall(r"<img [^>]*>", text):
        alt = re.search(r'alt="([^"]*)"', image)
        if not alt or len(alt[1].split()) < 4 or alt[1].endswith((".svg", ".png")):
            found.append(image)
    found += [frame for frame in re.findall(r"<iframe [^>]*>", text) if "title=" not in frame]
    found += re.findall(r'<a [^>]*href="[^"]*"[^>]*>\s*</a>', text)
    if 'rel="shortcut icon"' not in text:
        found.append("no icon")
    return found


@pytest.mark.parametrize(
    "planted",
    [
        '<img src="a.svg">',
        '<img alt="" src="a.svg">',
        '<img alt="_images/6f3e.svg" src="_images/6f3e.svg">',
        '<img alt="A ring." src="a.svg">',
        '<iframe src="play.html"></iframe>',
        '<a class="x" href="b.html"> </a>',
    ],
)
def test_faults_of_a_built_page_are_found(planted):
    """Each planted fault of a built page is found."""
    page = (
        '<link rel="shortcut icon" href="i.svg"><img alt="Picture of a ring of nodes." src="a.svg">'
        '<iframe src="play.html" title="Animation: a ring."></iframe><a href="b.html">b</a>'
    )
    assert faults_of(page) == []
    assert len(faults_of(page + planted)) == 1


@pytest.mark.long
def test_site_is_built_without_a_warning(tmp_path):
    """The site is built without a warning, and its pages have no fault of accessibility."""
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-q", "-E", "-b", "html", DOCS, tmp_path / "html"],
        capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "html" / "index.html").read_text()
    assert 'class="animation"' in page
    pages = sorted((tmp_path / "html").rglob("*.html"))
    faults = {
        str(path): faults_of(path.read_text("utf-8"))
        for path in pages
        if not {"_made", "_static", "_downloads"} & {*path.parts}
    }
    assert {path: found for path, found in faults.items() if found} == {}
