"""Pictures for light and dark pages: every colour by its lightness turned round, its hue kept."""

import colorsys
import re

__all__ = ["dark", "light"]

#: Black on a dark page, of which white becomes this; furo's background.
DARKEST = 0.08

#: A colour of six or three digits; not the name of a part of the picture.
COLOUR = re.compile(r"(?<!href=\")#(?:[0-9a-f]{6}|[0-9a-f]{3})\b")

#: What follows the reader's system: the page has a choice of its own.
BY_SYSTEM = re.compile(r"<style>@media\(prefers-color-scheme.*?</style>")


def light(svg: str) -> str:
    """The text of a picture, for a light page, whatever the reader's system is."""
    return BY_SYSTEM.sub("", svg)


def dark(svg: str) -> str:
    """The text of a picture, for a dark page; words without a colour are bright.

    Examples
    --------
    >>> dark('fill="#ffffff"'), dark('fill="#000"'), dark('href="#000"')
    ('fill="#141414"', 'fill="#ffffff"', 'href="#000"')
    """
    inked = light(svg).replace("<svg ", '<svg fill="#000000" ', 1)
    return COLOUR.sub(lambda match: _turned(match[0]), inked)


def _turned(colour: str) -> str:
    """A colour whose lightness is turned round."""
    if len(colour) == 4:
        colour = "#" + "".join(2 * digit for digit in colour[1:])
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, light, saturation = colorsys.rgb_to_hls(red, green, blue)
    turned = DARKEST + (1 - DARKEST) * (1 - light)
    parts = colorsys.hls_to_rgb(hue, turned, saturation)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)
