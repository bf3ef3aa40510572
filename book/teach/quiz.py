"""A quiz from the self-checks of chapters, as GIFT, which Moodle and other learning platforms import.

    cd book && python -m teach.quiz unpooled hierarchical_nuts > week-3.gift

Every option keeps its feedback. Links of the page become their words.
"""

import argparse
import html
import re
import sys
from pathlib import Path

BOOK = Path(__file__).resolve().parents[1]
BLOCKS = re.DOTALL | re.MULTILINE
QUESTION = re.compile(r"^:{4,}\{admonition\} Check yourself\n:class: selfcheck\n(.*?)^:{4,}$", BLOCKS)
OPTION = re.compile(
    r"^:::\{admonition\} [A-Z]\. ([^\n]+)\n:class: dropdown answer\n\n(Right|Not this): (.*?)^:::$", BLOCKS
)
LINK = re.compile(r"\{[\w:]+\}`([^`<]*?)(?: <[^`>]*>)?`|\[([^\]]*)\]\([^)]*\)")


def write_gift(chapter, folder=BOOK):
    """The self-checks of a chapter as GIFT.

    Parameters
    ----------
    chapter : str, such as "unpooled"
    folder : Path, of the chapters' md

    Returns
    -------
    str, a question a paragraph

    Raises
    ------
    ValueError
        For a chapter that is not there, or that has no self-check.

    Examples
    --------
    >>> from teach import quiz
    >>> print(quiz.write_gift("unpooled")[:61])
    ::unpooled 1::[html]A network has 180 weights and its patient
    """
    path = Path(folder) / f"{chapter}.md"
    found = QUESTION.findall(path.read_text(encoding="utf8")) if path.exists() else []
    if not found:
        have = [p.stem for p in sorted(Path(folder).glob("*.md")) if QUESTION.search(p.read_text(encoding="utf8"))]
        raise ValueError(f"no self-check of {chapter!r}; wanted: one of {', '.join(have)}")
    written = []
    for k, question in enumerate(found, 1):
        asked = _write(question[: question.index(":::{admonition}")])
        options = [f"{'=' if is_right == 'Right' else '~'}{_write(text)}#{_write(feedback)}"
                   for text, is_right, feedback in OPTION.findall(question)]  # fmt: skip
        written.append("\n".join([f"::{chapter} {k}::[html]{asked} {{", *options, "}"]))
    return "\n\n".join(written) + "\n"


def _write(text):
    """A piece of MyST as GIFT has it: words for links, HTML for code and emphasis, Moodle's marks for mathematics."""
    text = html.escape(LINK.sub(lambda m: m[1] or m[2] or "", " ".join(text.split())), quote=False)
    for mark, how in (
        (r"\$([^$]+)\$", r"\\(\1\\)"),
        ("`([^`]+)`", r"<code>\1</code>"),
        (r"\*([^*]+)\*", r"<em>\1</em>"),
    ):
        text = re.sub(mark, how, text)
    return re.sub(r"([\\~=#{}:])", r"\\\1", text[:1].upper() + text[1:])


def main(arguments=None):
    """Print the quiz of some chapters. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Print the self-checks of chapters as GIFT.")
    parser.add_argument("chapters", nargs="+", help="such as unpooled")
    try:
        print("\n".join(write_gift(chapter) for chapter in parser.parse_args(arguments).chapters), end="")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
