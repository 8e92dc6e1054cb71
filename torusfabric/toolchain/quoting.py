"""Quoting: one function for each language in which the package writes text with foreign words.

Foreign words are names of files, algorithms and commands, and may contain any characters. Quoting
keeps such a word a word, a comment or a table cell when it becomes a part of a program, a script or
a page.
"""

import json
import re
import shlex
from collections.abc import Iterable, Mapping

__all__ = ["facts_table", "fill_template", "line_comment", "markdown_code",
           "script_json", "shell_command", "tcl_text", "escape_unprintable", "xml_attribute",
           "xml_text"]  # fmt: skip

#: Characters that XML 1.0 forbids, even when escaped.
_NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escape_unprintable(text: str, keep: str = "") -> str:
    r"""Return a text with all unprintable characters replaced by Python's escapes.

    Parameters
    ----------
    text : str
        The text; its printable characters stay as they are.
    keep : str
        Unprintable characters that stay as they are.

    Examples
    --------
    >>> print(escape_unprintable("a\x1b[31mb\n"))
    a\x1b[31mb\n
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode()
        for char in text
    )


def line_comment(text: str, mark: str = "//") -> str:
    r"""Return a comment that ends with its line, in Verilog, C++, Tcl, shell or Make.

    A full stop is added after a final backslash, which some of these languages take for a
    continuation.

    Parameters
    ----------
    text : str
        The words of the comment; unprintable characters, such as line breaks, are escaped.
    mark : str
        Mark with which a comment of the language begins, such as ``#``.

    Examples
    --------
    >>> print(line_comment("a\nmodule b; \\"))
    // a\nmodule b; \.
    """
    line = f"{mark} {escape_unprintable(text)}"
    return f"{line}." if line.endswith("\\") else line


def shell_command(words: Iterable[str]) -> str:
    r"""Return words as a shell command on one printable line, which can be copied.

    Examples
    --------
    >>> print(shell_command(["cat", "my file", "a\nb"]))
    cat 'my file' $'a\nb'
    """
    return " ".join(
        shlex.quote(word) if word.isprintable() else f"$'{_dollar_quote(word)}'" for word in words
    )


def _dollar_quote(word: str) -> str:
    r"""Return a word for a shell's quotes ``$'..'``, with unprintable characters escaped.

    A line break becomes ``\n``, and other unprintable characters become octal bytes such as
    ``\033``.
    """
    return "".join(
        ("\\" if char in "\\'" else "") + char
        if char.isprintable()
        else {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char)
        or "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))
        for char in word
    )


def markdown_code(text: str) -> str:
    """Return a text as inline code in Markdown.

    The fence has one backquote more than the longest run of backquotes in the text.

    Examples
    --------
    >>> markdown_code("a"), markdown_code("a `b`")
    ('`a`', '`` a `b` ``')
    """
    text = escape_unprintable(text)
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, space = "`" * (longest + 1), " " * (longest > 0)
    return f"{fence}{space}{text}{space}{fence}"


def xml_text(text: str) -> str:
    r"""Return a text escaped for XML, SVG or HTML, in an element or in a quoted attribute.

    Examples
    --------
    >>> print(xml_text("a < b\x00"))
    a &lt; b\x00
    """
    import html  # here, because few texts are XML

    return html.escape(_NO_XML.sub(lambda found: escape_unprintable(found[0]), text))


def xml_attribute(text: str) -> str:
    """Return a text as the value of an XML attribute, with quotes around it.

    Examples
    --------
    >>> print(xml_attribute('say "a"'))
    "say &quot;a&quot;"
    """
    return f'"{xml_text(text)}"'


def tcl_text(text: str) -> str:
    """Return a text for a braced word of Tcl, in which nothing is substituted or executed.

    Braces and backslashes are removed, because they could end the word or hide its end.

    Examples
    --------
    >>> tcl_text("} ; exit [x] $y")
    ' ; exit [x] $y'
    """
    return escape_unprintable(text).translate(dict.fromkeys(map(ord, "{}\\")))


def script_json(value: object) -> str:
    r"""Return a value as JSON that is safe within a script element of an HTML page.

    Examples
    --------
    >>> print(script_json(["</script><!--", "\u2028"]))
    ["\u003c/script>\u003c!--","\u2028"]
    """
    return json.dumps(value, separators=(",", ":")).replace("<", r"\u003c")


def fill_template(template: str, values: Mapping[str, str]) -> str:
    """Return a template with each ``@NAME@`` replaced by its value.

    All names are replaced in one pass, so a ``@NAME@`` within a value stays. Unknown names stay
    too.

    Parameters
    ----------
    template : str
        The text with names in capital letters between ``@`` signs.
    values : mapping of str to str
        Replacement for each name.

    Examples
    --------
    >>> fill_template("@A@ @B@", {"A": "@B@", "B": "b"})
    '@B@ b'
    """
    return re.sub("@([A-Z]+)@", lambda found: values.get(found[1], found[0]), template)


#: The style of all cells: names and values are aligned to the left and to the top.
_CELL = "text-align:left;vertical-align:top"


def facts_table(title: str, facts: Mapping[str, object]) -> str:
    """Return an HTML table of names and values, with a title above.

    Parameters
    ----------
    title : str
        Caption of the table, plain text.
    facts : mapping of str to object
        Value of each row, by the name in its first column.

    Examples
    --------
    >>> facts_table("net", {"nodes": "<16>"}).count("<tr>")
    1
    >>> "&lt;16&gt;" in facts_table("net", {"nodes": "<16>"})
    True
    """
    rows = "".join(
        f'<tr><th style="{_CELL}">{xml_text(name)}</th>'
        f'<td style="{_CELL}">{xml_text(str(value))}</td></tr>'
        for name, value in facts.items()
    )
    head = f'<caption style="{_CELL};font-weight:bold">{xml_text(title)}</caption>'
    return f"<table>{head}{rows}</table>"
