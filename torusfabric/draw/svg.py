"""Text of scalable vector graphics, put together from shapes."""

from xml.sax.saxutils import escape, quoteattr

__all__ = ["Svg", "mix", "ramp"]

FONT = "font-family:'DejaVu Sans',Verdana,Helvetica,sans-serif"


def _number(value):
    """A number with one decimal at most."""
    return f"{round(float(value), 1):g}"


def mix(first, second, share):
    """The colour between two colours ``#rrggbb``, ``share`` of the way."""
    pairs = [(int(first[i : i + 2], 16), int(second[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def ramp(stops, share):
    """The colour ``share`` of the way along evenly spaced colours."""
    at = min(max(share, 0.0), 1.0) * (len(stops) - 1)
    index = min(int(at), len(stops) - 2)
    return mix(stops[index], stops[index + 1], at - index)


class Svg:
    """Shapes in the order in which they are painted."""

    def __init__(self):
        self._parts = []

    def add(self, tag, text=None, **attributes):
        """Add an element; an underscore in an attribute's name stands for a dash."""
        written = "".join(
            f" {name.replace('_', '-')}="
            + quoteattr(value if isinstance(value, str) else _number(value))
            for name, value in attributes.items()
            if value is not None
        )
        end = "/>" if text is None else f">{escape(text)}</{tag}>"
        self._parts.append(f"<{tag}{written}{end}")

    def text(self, x, y, text, size, **attributes):
        """Add a line of words."""
        self.add("text", text, x=x, y=y, font_size=size, **attributes)

    def lines(self, lines, **attributes):
        """Add open lines of one style, each a sequence of points."""
        if lines:
            self.add("path", d="".join(map(_line, lines)), fill="none", **attributes)

    def areas(self, areas, **attributes):
        """Add closed areas of one style, each a sequence of corners."""
        if areas:
            self.add("path", d="".join(_line(area) + "z" for area in areas), **attributes)

    def disc(self, x, y, radius, title, **attributes):
        """Add a disc that says what it is where the mouse rests on it."""
        place = f'cx="{_number(x)}" cy="{_number(y)}" r="{_number(radius)}"'
        style = "".join(
            f" {name.replace('_', '-')}={quoteattr(str(value))}"
            for name, value in attributes.items()
        )
        self._parts.append(f"<circle {place}{style}><title>{escape(title)}</title></circle>")

    def render(self, width, height, title):
        """The whole document."""
        size = f'width="{_number(width)}" height="{_number(height)}"'
        view = f'viewBox="0 0 {_number(width)} {_number(height)}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} style="{FONT}">',
                f"<title>{escape(title)}</title>",
                '<rect width="100%" height="100%" fill="#ffffff"/>',
                *self._parts,
                "</svg>\n",
            ]
        )


def _line(points):
    """A line as path data."""
    return "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in points)
