"""Code whose long lines wrap with a hanging indent, so that no box has to scroll and none is cut off."""

import re

from pygments.formatters import HtmlFormatter

TAG = re.compile(r"<[^>]+>")


def wrap_line(line):
    """Put a line of highlighted code into a box of its own, which knows how far the line is indented.

    The line break stays outside: between boxes as wide as the page it shows as nothing, and whoever copies the code
    gets each line once.
    """
    text = line.rstrip("\n")
    shown = TAG.sub("", text)
    if not shown.strip():
        return line
    indent = len(shown) - len(shown.lstrip(" "))
    style = f' style="--indent: {indent}"' if indent else ""
    return f'<span class="line"{style}>{text}</span>{line[len(text) :]}'


class HangingFormatter(HtmlFormatter):
    """Pygments' own HTML, in which every line is an element that a style sheet can indent."""

    def wrap(self, source):
        """Wrap the lines, then what Pygments puts around them."""
        return super().wrap((is_code, wrap_line(line) if is_code else line) for is_code, line in source)


def hang_lines(app):
    """Let pages be highlighted with lines that hang."""
    if app.builder.format == "html":
        app.builder.highlighter.formatter = HangingFormatter


def setup(app):
    """Connect to Sphinx."""
    app.connect("builder-inited", hang_lines)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
