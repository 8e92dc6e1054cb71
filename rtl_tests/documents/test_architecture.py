"""The picture of the architecture is true."""

import ast
import re
import runpy
import subprocess
import sys
import tokenize
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import networkx

from torusfabric.adapters import ADAPTERS
from torusfabric.contract.options import option_names

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "torusfabric"
PICTURE = runpy.run_path(str(ROOT / "scripts" / "architecture.py"))
ROOMS = [name for name, _, _ in PICTURE["ROOMS"]]


#: Circles that are left: a topology is proved when it is made, by what has to know topologies.
CIRCLES = [
    {"topology.arrowhead", "topology.cayley", "topology.registry", "topology.torus",
     "topology.validate"},
]  # fmt: skip


@cache
def imports(path, *, types=True):
    """Names, with dots, that a module imports from the package; those for types alone on demand."""
    here, found = path.relative_to(PACKAGE).parent.parts, set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in node.body
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level and (types or node not in for_types):
            above = here[: len(here) + 1 - node.level]
            target = [*above, *filter(None, (node.module or "").split("."))]
            found |= {".".join([*target, alias.name]) for alias in node.names}
    return found


def imported_rooms(path):
    """The rooms that a module imports from."""
    return {name.partition(".")[0] for name in imports(path)} & set(ROOMS)


def modules():
    """All modules of the package, by their names in it; the package itself is ``""``."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


def test_picture_shows_the_rooms():
    """Every folder of the package is in the picture."""
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders <= set(ROOMS)


def test_picture_is_drawn_anew():
    """The picture in the documents is what the script draws."""
    drawn = PICTURE["architecture"]()
    assert drawn == (ROOT / "docs" / "project" / "architecture.svg").read_text(encoding="utf-8")


def test_imports_point_down():
    """A room imports only from those below it."""
    upward = [
        f"{path.relative_to(ROOT)} imports {other}"
        for room in ROOMS
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for other in imported_rooms(path)
        if ROOMS.index(other) < ROOMS.index(room)
    ]
    assert upward == []


#: Words of adapters that no room below them says, whatever it is about.
WORDS_OF_ADAPTERS = ("boards",)


def test_only_fabric_reads_the_adapters():
    """What others need of an adapter, they ask it for."""
    readers = {
        name.partition(".")[0]
        for name, path in modules().items()
        if any(f"{found}.".startswith("adapters.") for found in imports(path))
    }
    assert readers <= {"fabric", "adapters"}


def test_no_room_below_the_adapters_names_one():
    """Neither in code nor in docstrings; a board of its own is what `fpga` builds for."""
    below = ROOMS[ROOMS.index("fpga") + 1 : ROOMS.index("draw")]
    assert {"simulation", "proof", "verilog", "rtl", "contract"} == {*below}
    named = {
        str(path.relative_to(ROOT))
        for room in ("fabric", *below, "program")
        for path in (PACKAGE / room).rglob("*.*")
        if path.suffix in (".py", ".cc", ".h")
        and any(re.search(rf"\b{word}\b", path.read_text("utf-8")) for word in WORDS_OF_ADAPTERS)
    }
    assert named == set()


#: Signals of streams of nodes, and what reads the manifest of a fabric that has them.
SIGNALS_OF_NODES, READERS = r"\b([sm]_axis|tvalid|tready|tlast)", {"litex.py"}


def test_engines_and_writers_know_no_stream():
    """They get ports, drivers and files from the interface of the adapter."""
    named = {
        str(path.relative_to(ROOT))
        for room in ("simulation", "verilog")
        for path in (PACKAGE / room).rglob("*.*")
        if path.suffix in (".py", ".cc", ".h") and path.name not in READERS
        if re.search(SIGNALS_OF_NODES, path.read_text("utf-8"))
    }
    assert named == set()


#: Words that no name has in the rooms below the adapters, and who reads manifests that have them.
FOREIGN = {"axi", "wishbone", "boards", "loaded", "image"}


def test_no_name_below_the_adapters_has_their_words():
    named = {
        (str(path.relative_to(PACKAGE)), token.string)
        for room in ("rtl", "program", "simulation", "proof", "verilog")
        for path in (PACKAGE / room).rglob("*.py")
        if path.name not in READERS
        for token in tokenize.generate_tokens(
            iter(path.read_text("utf-8").splitlines(True)).__next__
        )
        if token.type == tokenize.NAME and FOREIGN & {*token.string.lower().split("_")}
    }
    # The name of an error that users read.
    assert named == {("rtl/run_choices.py", "IMAGE")}


def test_no_command_names_an_option_of_an_adapter():
    """The options come from the adapters' folders; a picture may show where a torus is cut."""
    text = "".join(options.text for adapter in ADAPTERS for options in adapter.options)
    names = {name.strip("-").replace("-", "_") for name in option_names(text)}
    assert {"boards", "link_errors"} <= names
    named = {
        (path.name, node.attr)
        for path in (PACKAGE / "cli").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in names
        if isinstance(node.value, ast.Name) and node.value.id == "arguments"
    }
    assert named == {("planning.py", "boards")}
    said = {path.name for path in (PACKAGE / "cli").glob("*.py")
            if re.search(r"--(boards|link-errors)\b", path.read_text("utf-8"))}  # fmt: skip
    assert said == {"planning.py"}


def test_no_two_modules_import_each_other():
    """Neither at once, nor in a function, nor by way of others; types may refer to each other."""
    known = modules()
    graph = networkx.DiGraph()
    for name, path in known.items():
        for found in imports(path, types=False):
            target = found if found in known else found.rpartition(".")[0]
            if target in known and target != name:
                graph.add_edge(name, target)
    circles = [part for part in networkx.strongly_connected_components(graph) if len(part) > 1]
    assert [part for part in circles if not any(part <= circle for circle in CIRCLES)] == []


#: Notes the modules of the package in which a function is called, from a schedule to the text.
ROAD = """
import sys
import torusfabric as tf
schedule = tf.plan("4x4", "allgather")
# Imports on demand are not counted.
tf.compile, tf.Fabric, tf.emit
import torusfabric.adapters.host.front, torusfabric.adapters.host.interface
found = set()
sys.setprofile(lambda frame, event, _: event == "call" and found.add(
    (frame.f_code.co_filename, frame.f_code.co_name == "<module>")))
tf.emit(tf.Fabric(tf.compile(schedule, flits=2), width=32))
sys.setprofile(None)
print(*{name for name, imported in found if not imported and "torusfabric" in name}, sep="\\n")
"""


def test_road_of_the_simplest_fabric_is_short():
    """Wires, planned before, enter few modules on their way to text; the number may fall."""
    command = [sys.executable, "-c", ROAD]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    road = {Path(name) for name in run.stdout.splitlines() if PACKAGE in Path(name).parents}
    assert 0 < len(road) <= 61


def test_no_script_hides_a_package(pytestconfig):
    """Else what asks for a package such as Verilator's finds a script, and is skipped unseen."""
    scripts = [path for folder in pytestconfig.getini("pythonpath") for path in folder.glob("*.py")]
    assert len(scripts) > 20
    assert {path.stem for path in scripts} & packages_distributions().keys() == set()


def is_private(name):
    """True of ``_x``; a named tuple gives ``_replace`` and the like to all."""
    public = {"_asdict", "_fields", "_make", "_replace"}
    return name.startswith("_") and not name.endswith("__") and name not in public


def private_uses(text):
    """The private names of the package that a module imports, reads or replaces."""
    tree, known = ast.parse(text), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("torusfabric."):
            known |= {alias.asname or alias.name for alias in node.names}
            whole = ".".join([f"{node.module}", *(alias.name for alias in node.names)])
            yield from filter(is_private, whole.split("."))
        elif isinstance(node, ast.Import):
            ours = (a for a in node.names if f"{a.name}.".startswith("torusfabric."))
            known |= {alias.asname or "torusfabric" for alias in ours}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner, name = node.value, node.attr
        elif isinstance(node, ast.Call) and node.args[1:]:  # as in setattr(module, "_name", value)
            owner, name = node.args[0], str(getattr(node.args[1], "value", ""))
        else:
            continue
        while isinstance(owner, ast.Attribute):
            owner = owner.value
        if isinstance(owner, ast.Name) and owner.id in known and is_private(name):
            yield name


def test_no_test_uses_a_private_name():
    """Tests hold what rooms promise, so that rooms may change within."""
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "rtl_tests").rglob("*.py"))
        for name in private_uses(path.read_text(encoding="utf-8"))
    }
    assert found == set()


def test_private_names_are_found():
    """By import, as an attribute, and where one is replaced."""
    text = """
import torusfabric as tf
from torusfabric.proof import _secret, solver
tf._one, solver.inner._two, solver.public
monkeypatch.setattr(solver, "_three", None)
monkeypatch.setattr(solver, "public", None)
job._replace(length=1), tf.Job._fields, self._own
"""
    assert {*private_uses(text)} == {"_secret", "_one", "_two", "_three"}


def test_table_of_packages_is_in_the_order_of_the_picture():
    """The page lists every package once, from the top down."""
    text = (ROOT / "docs/project/architecture.md").read_text(encoding="utf-8")
    table = text.partition("| package | content |\n|---|---|\n")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.M) == ROOMS
