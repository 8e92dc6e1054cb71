"""What pages show of what their blocks have written: pictures, animations, and other pages."""

import re
import shutil
from pathlib import Path, PurePosixPath

from dark import dark, light
from pages import Shown

__all__ = ["MADE", "files_of", "text_of"]

#: The folder, beside the pages, of pictures and animations that pages have made.
MADE = "_made"

#: A picture in a page that a block has written, which lies beside it.
PICTURE = re.compile(r"^!\[(?P<caption>[^\]]*)\]\((?P<name>[^)]+\.svg)\)$", re.MULTILINE)

#: What such a page says of itself, which the page that shows it says once.
OWN = re.compile(
    r"^# [^\n]*\n|^Made by [^\n]*\n|^## In time\n.*?(?=^### )", re.MULTILINE | re.DOTALL
)


def files_of(part: Shown, folder: Path) -> list[str]:
    """The files in a folder that a part shows; those that a page shows, too."""
    names = [part.name]
    if part.what == "page" and (folder / part.name).exists():
        text = (folder / part.name).read_text(encoding="utf-8")
        names += [_beside(part.name, match["name"]) for match in PICTURE.finditer(text)]
    return names


def text_of(part: Shown, page: str, folder: Path, docs: Path) -> str:
    """The text that shows something on a page, from a folder; pictures go beside the pages."""
    target = docs / MADE / page
    target.mkdir(parents=True, exist_ok=True)
    if part.what == "animation":
        return _animation(part, page, folder, target)
    if part.what == "page":
        return _page(part, page, folder, target)
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


def _page(part: Shown, page: str, folder: Path, target: Path) -> str:
    """The tables and pictures of a page."""
    text = OWN.sub("", (folder / part.name).read_text(encoding="utf-8"))

    def picture(match: re.Match[str]) -> str:
        name = _beside(part.name, match["name"])
        return _picture(name, match["caption"], page, folder, target)

    return PICTURE.sub(picture, text).strip() + "\n"


def _beside(name: str, other: str) -> str:
    """The name of a file that lies beside another one."""
    return (PurePosixPath(name).parent / other).as_posix()
