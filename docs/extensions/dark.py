"""Pictures for dark pages: every colour by its lightness turned round, its hue kept."""

import colorsys
import re

__all__ = ["dark"]

#: Black on a dark page, of which white becomes this; furo's background.
DARKEST = 0.08


def dark(svg: str) -> str:
    """The text of a picture, for a dark page; words without a colour are bright.

    Examples
    --------
    >>> dark('fill="#ffffff"'), dark('fill="#000000"')
    ('fill="#141414"', 'fill="#ffffff"')
    """
    inked = svg.replace("<svg ", '<svg fill="#000000" ', 1)
    return re.sub(r"#[0-9a-f]{6}\b", lambda match: _turned(match[0]), inked)


def _turned(colour: str) -> str:
    """A colour whose lightness is turned round."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, light, saturation = colorsys.rgb_to_hls(red, green, blue)
    turned = DARKEST + (1 - DARKEST) * (1 - light)
    parts = colorsys.hls_to_rgb(hue, turned, saturation)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)
