"""Pictures for light and dark pages: a dark picture has inverted lightness and the same hues."""

import colorsys
import re

__all__ = ["dark", "light"]

#: Lightness of the background of dark pages in the theme furo. White becomes this grey.
DARKEST = 0.08

#: A colour of six or three digits; not the name of a part of the picture.
COLOUR = re.compile(r"(?<!href=\")#(?:[0-9a-f]{6}|[0-9a-f]{3})\b")

#: A style that follows the reader's system. It is removed because the page has a switch of its own.
BY_SYSTEM = re.compile(r"<style>@media\(prefers-color-scheme.*?</style>")


def light(svg: str) -> str:
    """Return the text of a picture for a light page, independent of the reader's system."""
    return BY_SYSTEM.sub("", svg)


def dark(svg: str) -> str:
    """Return the text of a picture for a dark page; texts without a colour become bright.

    Examples
    --------
    >>> dark('fill="#ffffff"'), dark('fill="#000"'), dark('href="#000"')
    ('fill="#141414"', 'fill="#ffffff"', 'href="#000"')
    """
    inked = light(svg).replace("<svg ", '<svg fill="#000000" ', 1)
    return COLOUR.sub(lambda match: _invert_lightness(match[0]), inked)


def _invert_lightness(colour: str) -> str:
    """Return a colour with inverted lightness."""
    if len(colour) == 4:
        colour = "#" + "".join(2 * digit for digit in colour[1:])
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, light, saturation = colorsys.rgb_to_hls(red, green, blue)
    turned = DARKEST + (1 - DARKEST) * (1 - light)
    parts = colorsys.hls_to_rgb(hue, turned, saturation)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)
