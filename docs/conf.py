"""How Sphinx builds the documentation; `bash scripts/docs` runs it."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs" / "extensions")]

import torusfabric  # noqa: E402
from torusfabric import __version__  # noqa: E402

#: Public classes, and the names of those with a public base class. Their pages name the base class.
CLASSES = {
    each for name in torusfabric.__all__ if isinstance(each := getattr(torusfabric, name), type)
}
DERIVED = [cls.__name__ for cls in CLASSES if not CLASSES.isdisjoint(cls.__bases__)]

project = "torusfabric"
author = "The torusfabric authors"
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "commands",
    "docstrings",
    "executed",
    "folded",
    "outside",
    "signatures",
]
exclude_patterns = ["_build", "_made", "_templates", "extensions"]
templates_path = ["_templates"]
myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath"]
myst_heading_anchors = 3

#: Single backticks in docstrings: a link to a name of the reference, or the name as code.
default_role = "py:obj"
autosummary_generate = True
autosummary_context = {"derived": sorted(DERIVED)}
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_param = False
# The extension `docstrings` makes tables of these.
napoleon_custom_sections = ["Attributes", "Members"]

nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 120

# The kernel of the notebook warns of the port by which it is spoken to; errors are shown.
os.environ["IPYTHONDIR"] = str(ROOT / "docs" / "_build" / "ipython")
profile = ROOT / "docs" / "_build" / "ipython" / "profile_default"
profile.mkdir(parents=True, exist_ok=True)
(profile / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 'ERROR'\n")

# Why: smart quotes turn the two hyphens of an option into a dash.
smartquotes = False

html_theme = "furo"
html_show_copyright = False
html_title = f"torusfabric {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_favicon = "_static/favicon.svg"
html_search_scorer = str(ROOT / "docs" / "_static" / "scorer.js")
myst_html_meta = {
    "description": "Network-on-chip generator: switch fabrics for collective communication "
    "(all-gather, all-to-all, all-reduce, broadcast) on torus networks, as Verilog for FPGA and "
    "ASIC, time-predictable to the clock cycle",
    "keywords": "network-on-chip, NoC generator, collective communication, all-reduce, torus, "
    "FPGA, time-predictable, Verilog, Amaranth",
}
copybutton_prompt_text = "$ "
pygments_style, pygments_dark_style = "default", "monokai"
