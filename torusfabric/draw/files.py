"""Picture files: SVG, and PDF or PNG, which the library CairoSVG makes from SVG."""

from pathlib import Path

from ..errors import MissingTool
from ..toolchain.extras import name_missing_extra
from ..toolchain.files import AnyPath, open_for_writing, write_text_file

__all__ = ["FILE_SIGNATURES", "picture_format", "require_converter", "write_picture"]

#: First characters of a picture file, by the ending of its name.
FILE_SIGNATURES: dict[str, str | bytes] = {
    ".svg": '<svg xmlns="http://www.w3.org/2000/svg"',
    ".svgz": '<svg xmlns="http://www.w3.org/2000/svg"',
    ".pdf": b"%PDF-",
    ".png": b"\x89PNG\r\n\x1a\n",
}

#: Pixels of a PNG per unit of the SVG; enough for a column of a printed paper.
PNG_SCALE = 3.0


def picture_format(path: AnyPath) -> str:
    """Return the ending of a picture's file name without ``.gz``; ``.svg`` if there is none.

    Parameters
    ----------
    path : path
        The file of the picture, which need not exist.

    Examples
    --------
    >>> picture_format("curves.pdf"), picture_format("curves"), picture_format("a.svg.gz")
    ('.pdf', '.svg', '.svg')
    """
    return Path(str(path).removesuffix(".gz")).suffix or ".svg"


def require_converter(path: AnyPath) -> None:
    """Check that the converter for the format of a picture file is installed.

    Parameters
    ----------
    path : path
        The file to be written later.

    Raises
    ------
    MissingTool
        If CairoSVG, or the library cairo of the system, is not installed.
    """
    if picture_format(path) not in (".pdf", ".png"):
        return
    with name_missing_extra():
        try:
            import cairosvg  # noqa: F401 (here, since few pictures need it)
        except OSError:
            raise MissingTool(
                "Library cairo was not found: install the package libcairo2 of your system, or "
                "write the picture to a file such as picture.svg"
            ) from None


def write_picture(path: AnyPath, svg: str) -> None:
    """Write a picture file completely or not at all, in the format of its name.

    Parameters
    ----------
    path : path
        The file: ``.svg``, ``.svgz``, ``.pdf`` or ``.png``.
    svg : str
        The picture as SVG.

    Raises
    ------
    InputError
        If the file cannot be written.
    MissingTool
        If the format is PDF or PNG, and CairoSVG or the system library cairo is not installed.
    """
    ending = picture_format(path)
    require_converter(path)
    if ending not in (".pdf", ".png"):
        write_text_file(path, svg)
        return
    import cairosvg

    convert = cairosvg.svg2pdf if ending == ".pdf" else cairosvg.svg2png
    scale = 1.0 if ending == ".pdf" else PNG_SCALE
    with open_for_writing(path) as file:
        file.write(convert(bytestring=svg.encode(), scale=scale))
