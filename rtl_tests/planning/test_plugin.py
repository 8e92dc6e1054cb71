"""Plugins: torusfabric finds algorithms and topologies of other packages by their entry points."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import few

PLUGIN = Path(__file__).parent / "plugin"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder of packages that contains the plugin."""
    folder = tmp_path_factory.mktemp("site")
    name = "circulant_fabrics"
    shutil.copytree(PLUGIN / name, folder / name)
    shutil.copytree(PLUGIN / f"{name}.dist-info", folder / f"{name}-1.0.dist-info")
    return folder


def run(site, *words, cwd=None, status=0):
    """Return the output of a Python command with the plugin installed."""
    paths = [str(site), *filter(None, sys.path)]
    done = subprocess.run(
        [sys.executable, *words],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        cwd=cwd,
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def run_json(site, *words, cwd=None):
    """Return the JSON object that a command prints."""
    return json.loads(run(site, "-m", "torusfabric", *words, "--json", cwd=cwd))


def test_the_catalogue_lists_the_algorithm(site):
    """The catalogue lists an algorithm of a plugin after the built-in ones."""
    names = [entry["name"] for entry in run_json(site, "algorithms")["algorithms"]]
    assert names[-1] == "march"


def test_the_topology_is_planned_saved_and_simulated(site, tmp_path):
    """A topology of a plugin can be planned, saved to a file and simulated from the file."""
    planned = run_json(
        site, "plan", "chorded:7:3", "allgather", "--algorithm", "march", "-o", "p.json",
        cwd=tmp_path,
    )  # fmt: skip
    assert (planned["rounds"], planned["checked"]) == (6, True)
    report = run_json(site, "simulate", "--plan", "p.json", "--width", "8", cwd=tmp_path)
    assert (report["passed"], report["rounds"], report["algorithm"]) == (True, 6, "march")


@pytest.mark.parametrize(
    ("command", "more"),
    few(2, [("draw", ()), ("draw", ("--moving", "2")), ("draw", ("--links",)), ("animate", ())]),
)
def test_the_topology_is_drawn(site, tmp_path, command, more):
    """Pictures and animations work for a topology that is no torus."""
    words = (command, "chorded:7:3", "allgather", *more, "-o", "out")
    assert run_json(site, *words, cwd=tmp_path)["topology"] == "chorded:7:3"
    assert "chorded:7:3" in (tmp_path / "out").read_text()


def test_algorithms_for_any_topology_serve_it(site):
    """An algorithm for every Cayley graph serves the topology of a plugin."""
    planned = run_json(site, "plan", "chorded:13:5", "alltoall")
    assert planned["checked"] is True


def test_registration_takes_no_entry_point(site):
    """A script can register topologies and algorithms without an entry point."""
    script = """if True:
        import torusfabric as tf
        from dataclasses import replace
        from circulant_fabrics import MARCH, Circulant

        class Named(Circulant):
            kind = "named"

        tf.register_topology(Named)
        tf.register_algorithm(replace(MARCH, name="parade"))
        print(tf.plan("chorded:5:2", "allgather", algorithm="parade").steps)
    """
    assert run(site, "-c", script) == "4\n"


def test_a_broken_entry_point_is_named(site, tmp_path):
    """A plugin that cannot be imported is named in one line when a topology is not found."""
    broken = tmp_path / "broken-1.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (broken / "entry_points.txt").write_text("[torusfabric.topologies]\nbad = nowhere:Bad\n")
    words = ("-m", "torusfabric", "plan", "nowhere:4", "allgather")
    message = run(tmp_path, *words, status=1)
    assert "Entry point bad of torusfabric.topologies must name a class of topologies" in message
