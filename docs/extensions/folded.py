"""Sphinx: the sidebar shows the pages of one section, the section of the present page.

Each caption of the contents becomes a heading that folds its pages. The fold is an HTML element,
which needs no script and can be reached by keyboard.
"""

from typing import Any

from bs4 import BeautifulSoup
from sphinx.application import Sphinx

__all__ = ["fold_sections", "setup"]


def fold_sections(tree: str) -> str:
    """Return the navigation tree of a page with a folding section for each caption.

    The section of the present page is open; on a page outside of all sections, such as the front
    page, the first section is open.

    Examples
    --------
    >>> page = '<li class="current"><a href="#">A</a></li>'
    >>> fold_sections(f'<p class="caption"><span>Start</span></p><ul class="current">{page}</ul>')
    '<details open=""><summary class="caption"><span>Start</span></summary>\
<ul class="current"><li class="current"><a href="#">A</a></li></ul></details>'
    """
    soup = BeautifulSoup(tree, "html.parser")
    sections = []
    for caption in soup.find_all("p", class_="caption"):
        pages = caption.find_next_sibling("ul")
        if pages is None:
            continue
        section = soup.new_tag("details")
        caption.replace_with(section)
        caption.name = "summary"
        section.extend([caption, pages])
        sections.append(section)
    present = [each for each in sections if each.find("li", class_="current")]
    for section in present or sections[:1]:
        section["open"] = ""
    return str(soup)


def fold(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: Any) -> None:
    """Fold the navigation tree that the theme has made for a page."""
    if context.get("furo_navigation_tree"):
        context["furo_navigation_tree"] = fold_sections(context["furo_navigation_tree"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the extension; Sphinx calls this."""
    # After the theme, which has the priority 500.
    app.connect("html-page-context", fold, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
