"""Pictures and animations that blocks of a page have written, shown on the page."""

import shutil
from pathlib import Path

from dark import dark, light
from pages import Shown

__all__ = ["MADE", "text_of"]

#: The folder, beside the pages, of pictures and animations that pages have made.
MADE = "_made"


def text_of(part: Shown, page: str, folder: Path, docs: Path) -> str:
    """The text that shows something on a page, from a folder; pictures go beside the pages."""
    target = docs / MADE / page
    target.mkdir(parents=True, exist_ok=True)
    if part.what == "animation":
        return _animation(part, page, folder, target)
    return f"{_picture(part.name, part.caption, page, folder, target)}\n*{part.caption}*\n"


def _animation(part: Shown, page: str, folder: Path, target: Path) -> str:
    """An animation, in a frame."""
    shutil.copy(folder / part.name, target)
    address = f"{'../' * page.count('/')}{MADE}/{page}/{part.name}"
    return (
        f'<iframe class="animation" src="{address}" title="{part.caption}"></iframe>\n\n'
        f'*{part.caption}* <a href="{address}">On a page of its own</a>\n'
    )


def _picture(name: str, caption: str, page: str, folder: Path, target: Path) -> str:
    """A picture, light and dark."""
    svg = (folder / name).read_text(encoding="utf-8")
    stem = name.removesuffix(".svg").replace("/", "-")
    (target / f"{stem}.svg").write_text(light(svg), encoding="utf-8")
    (target / f"{stem}-dark.svg").write_text(dark(svg), encoding="utf-8")
    place = f"/{MADE}/{page}/{stem}"
    return (
        f"![{caption}]({place}.svg){{.only-light}}\n![{caption}]({place}-dark.svg){{.only-dark}}\n"
    )
