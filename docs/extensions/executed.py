"""Sphinx: runs the blocks of every page when the page is read, and shows their output.

The output of a page is kept under a digest of its blocks and of the package. A page therefore runs
again only after a change of either.
"""

import hashlib
import json
import shutil
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from docutils import nodes
from pages import Block, ShownFile, blocks_of, parts_of
from session import BlockError, run_blocks_in
from shown import MADE, alternative, render_shown, with_pairs
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

__all__ = ["setup"]

ROOT = Path(__file__).parents[2]

#: Start method of the process that runs a page. Why fork: the process begins with all imports done.
START = "fork" if sys.platform == "linux" else "spawn"

#: Folder, beside the built pages, of the kept output and files of pages.
KEPT = "executed"


def digest_of_package() -> str:
    """Return a digest of all code that pages may run."""
    digest = hashlib.sha256()
    names = ("torusfabric", "boards", "docs/figures", "sim",
             "docs/extensions/pages.py", "docs/extensions/session.py")  # fmt: skip
    for path in (ROOT / name for name in names):
        for each in [path] if path.is_file() else sorted(path.rglob("*")):
            if each.is_file() and "__pycache__" not in each.parts:
                digest.update(each.name.encode() + each.read_bytes())
    return digest.hexdigest()


def run_page(page: str, text: str, kept: Path, package: str) -> tuple[Path, list[Any]]:
    """Run the blocks of a page, unless their output is kept.

    Parameters
    ----------
    page, text : str
        Name and text of the page.
    kept : Path
        Folder of the kept output of all pages.
    package : str
        Digest of the package.

    Returns
    -------
    folder : Path
        Folder of the files that the page shows.
    printed : list
        Output of each block, as `run_blocks_in` returns it.
    """
    blocks = [block.as_json() for block in blocks_of(text)]
    names = [part.name for _, part in parts_of(text) if isinstance(part, ShownFile)]
    key = "\n".join([package, json.dumps(blocks), *names])
    folder = kept / hashlib.sha256(key.encode()).hexdigest()[:24]
    if not (folder / "printed.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        _fill_folder(page, blocks, names, folder)
    return folder, json.loads((folder / "printed.json").read_text())


def _fill_folder(page: str, blocks: list[dict[str, Any]], names: list[str], folder: Path) -> None:
    """Run blocks in a temporary folder; copy the files `names` and the output into `folder`."""
    with (
        tempfile.TemporaryDirectory() as work,
        ProcessPoolExecutor(1, mp_context=get_context(START)) as pool,
    ):
        try:
            printed = pool.submit(run_blocks_in, work, blocks).result()
        except BlockError as failed:
            raise ExtensionError(f"{page} does not run as it stands:\n{failed}") from None
        missing = [name for name in names if not (Path(work) / name).exists()]
        if missing:
            raise ExtensionError(f"{page} shows what no block has written: {', '.join(missing)}")
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(work) / name, folder / name)
    (folder / "printed.json").write_text(json.dumps(printed))


def read(app: Sphinx, page: str, source: list[str]) -> None:
    """Insert the output of blocks, and the pictures that they make, into the text of a page."""
    text = source[0] = with_pairs(source[0], page, Path(app.srcdir))
    if not any(isinstance(part, ShownFile) or part.runs for _, part in parts_of(text)):
        return
    kept = Path(app.outdir).parent / KEPT
    folder, printed = run_page(page, text, kept, app.config.package_digest)
    outputs = iter(printed)
    pieces, end = [], 0
    for (first, last), part in parts_of(text):
        shown = _block(part, next(outputs)) if isinstance(part, Block) else None
        if isinstance(part, ShownFile):
            shown = render_shown(part, page, folder, Path(app.srcdir))
        if shown is not None:
            pieces += [text[end:first], shown]
            end = last
    source[0] = "".join([*pieces, text[end:]])


def _block(block: Block, printed: list[tuple[str, str]]) -> str | None:
    """Return a block with its output, or None to leave the block as it is."""
    if not block.runs:
        return None
    if block.language == "python":
        ((_, said),) = printed
        code = f"```python\n{block.text}```\n"
        return code + (f"\n```{{code-block}} text\n:class: output\n\n{_cut(said, block.lines)}```\n"
                       if said else "")  # fmt: skip
    session = "".join(f"$ {line}\n{_cut(said, block.lines)}" for line, said in printed)
    return f"```{{code-block}} console\n{session}```\n"


def _cut(said: str, lines: int | None) -> str:
    """Return the first lines of an output, without blanks at the ends of lines."""
    rows = [row.rstrip() for row in said.splitlines()]
    if lines is not None and len(rows) > lines:
        rows = [*rows[:lines], ".."] if lines else []
    return "".join(f"{row}\n" for row in rows)


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Copy the animations into the built pages."""
    made = Path(app.srcdir) / MADE
    if exception is None:
        for path in made.rglob("*.html"):
            target = Path(app.outdir) / MADE / path.relative_to(made)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def describe(app: Sphinx, doctree: nodes.document) -> None:
    """Give each picture that a notebook has made its title as alternative text."""
    for image in doctree.findall(nodes.image):
        path = Path(app.srcdir) / image["uri"].lstrip("/")
        if "alt" not in image and path.suffix == ".svg" and path.exists():
            image["alt"] = alternative(path.read_text(encoding="utf-8"), "").strip()


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the extension; Sphinx calls this."""
    # Most pages need these. A process that is forked later has them imported.
    for name in ("planning", "rtl", "simulation.simulate", "verilog", "cli"):
        import_module(f"torusfabric.{name}")
    app.add_config_value("package_digest", digest_of_package(), "env")
    app.connect("source-read", read)
    app.connect("doctree-read", describe)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
