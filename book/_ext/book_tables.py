"""Tables as pages show them: what every cell of a column says is said once, in the heading.

Notebooks keep each number complete, ``1.6 s (measured)`` or ``~1532 (above 400: yes)``: tests compare them, and in
JupyterLab a table stands alone. A page has room for the number alone.
"""

import re

from book_pages import CLAIMS_HEADING
from bs4 import BeautifulSoup

TABLE = re.compile(r'(?P<output><div class="output text_html">)?(?P<table><table class="bnn">.*?</table>)', re.DOTALL)
PLAIN = re.compile(  # of Markdown, and of pandas
    r'<div class="pst-scrollable-table-container">(?P<written><table class="(?:plan )?table">.*?</table>)\s*</div>'
    r'|(?P<frame><table border="1" class="dataframe">.*?</table>)',
    re.DOTALL,
)
MINUS = re.compile(r"(?<![\w.−-])-(?=[\d.])")
NOTHING = re.compile(r"−(0\.0+)(?![\d.])")  # rounded to zero, it has no sign
NUMBER = re.compile(r"[~<>−+]?[\d,]+(?:\.(?P<decimals>\d+))?(?: ± [\d.]+)?")
BRACKET = re.compile(r"(?P<start>.*\S)\s*\((?P<words>[^()]*[a-z][^()]*)\)", re.DOTALL)
FIGURE = re.compile(r"(?P<figure>.*\d)\s*(?P<unit>\D*)", re.DOTALL)
JOINERS = {"of", "to", "and", "e"}  # words within a figure: "4 of 5", "54 to 68", "1.1e+03"
VERDICT = re.compile(r"(?P<criterion>.+): (?P<verdict>yes|no)")
SENTENCE = 60  # characters; a table with a cell this long, or of verdicts, is read as cards on a phone
FIGURES = 24  # characters; what is longer may break
WIDE = 2  # columns of a Markdown table that a phone shows side by side


def split_cell(text):
    """Split a cell into its figure, its unit and what stands in brackets behind them; None for a cell of words.

    >>> split_cell("3.26 s (measured)")
    ('3.26', 's', 'measured')
    """
    bracket = BRACKET.fullmatch(text.strip())
    start, words = (bracket["start"], bracket["words"]) if bracket else (text.strip(), "")
    if not any(character.isdigit() for character in start):
        return None
    figure, unit = FIGURE.fullmatch(start).groups()
    is_plain = set(re.findall(r"[^\W\d_]+", figure)) <= JOINERS
    return (figure, unit.strip(), words) if is_plain else (start, "", words)


def find_shared(values):
    """The one value that all share, or an empty text."""
    values = set(values)
    return values.pop() if len(values) == 1 else ""


def lift_column(soup, heading, cells):
    """Move what all figures of a column share into its heading: unit, bracket, or a bracket's criterion."""
    parts = [(cell, *split) for cell in cells if (split := split_cell(cell.get_text()))]
    unit, words = (find_shared(part[k] for part in parts) for k in (2, 3))
    verdicts = [VERDICT.fullmatch(part[3]) for part in parts]
    criterion = find_shared(verdict["criterion"] for verdict in verdicts) if all(verdicts) and not words else ""
    for (cell, figure, its_unit, its_words), verdict in zip(parts, verdicts, strict=True):
        shown = figure if unit else f"{figure} {its_unit}".strip().replace(" ,", ",")
        cell.clear()
        cell.append(write_span(soup, "figures", shown) if len(shown) <= FIGURES else shown)
        if criterion:
            cell.extend([" ", write_span(soup, f"verdict {verdict['verdict']}", verdict["verdict"])])
        elif its_words and not words:
            cell.append(f" ({its_words})")
    said = re.findall(r"[^\s(),]+", heading.get_text())
    lifted = [text for text in (unit, words, criterion) if text and not set(text.split()) <= set(said)]
    if lifted:
        heading.extend([" ", write_span(soup, "shared", f"({', '.join(lifted)})")])


def write_span(soup, name, text):
    """A span of this class."""
    span = soup.new_tag("span", attrs={"class": name})
    span.string = text
    return span


def lay_out(soup, table, is_wide=False):
    """Prepare a table for narrow pages: a heading that stays in view, row labels with room, cards of long texts."""
    headings = [heading.get_text() for heading in table.select("thead tr > *")]
    rows = [row.find_all(["th", "td"], recursive=False) for row in table.select("tbody tr:not(.part)")]
    if table.caption:
        title = write_span(soup, "title", "")
        title.extend(list(table.caption.contents))
        table.caption.append(title)
    lengths = [len(cell.get_text()) for row in rows for cell in row]
    table["style"] = f"--label: {max((len(row[0].get_text()) for row in rows), default=0)}"
    if not is_wide and max(lengths, default=0) < SENTENCE and not table.select("td.verdict"):
        return
    table["class"] = [*table["class"], "cards"]
    for row in rows:
        for heading, cell in zip(headings[1:], row[1:], strict=True):
            cell["data-label"] = heading


def write_minus(table):
    """Write a minus where notebooks have a hyphen, and a zero without one."""
    for text in table.find_all(string=MINUS):
        if not text.find_parent("code"):
            text.replace_with(NOTHING.sub(r"\1", MINUS.sub("−", text)))


def align_columns(table):
    """Columns of numbers at the right, decimals below decimals; columns of words at the left."""
    rows = [row.find_all(["th", "td"], recursive=False) for row in table.select("tr:not(.part)")]
    for column in list(zip(*rows, strict=False))[1:]:
        cells = [cell for cell in column if cell.find_parent("tbody")]
        texts = [cell.get_text().strip() for cell in cells]
        numbers = sum(bool(re.match(r"[~<>−+]?\d", text)) and len(text) < SENTENCE for text in texts)
        is_number = 2 * numbers >= sum(map(bool, texts)) > 0
        for cell in column:
            cell["class"] = [
                *(name for name in cell.get("class", []) if name != "text"),
                "number" if is_number else "text",
            ]
        found = {cell: number for cell, text in zip(cells, texts, strict=True) if (number := NUMBER.fullmatch(text))}
        decimals = {cell: len(number["decimals"] or "") for cell, number in found.items()}
        for cell in decimals if is_number else ():
            missing = max(decimals.values()) - decimals[cell]
            if missing:
                point = "" if decimals[cell] else " + 0.25em"
                cell["style"] = f"padding-inline-end: calc(var(--gap, 0.85rem) + {missing}ch{point})"


def mark_verdicts(table):
    """Let a cell that is a verdict, and nothing else, show it by colour and sign as well."""
    for cell in table.select("tbody td"):
        verdict = {"holds": "yes", "does not hold": "no", "falls": "no"}.get(cell.get_text())
        if verdict:
            cell["class"] = [*cell.get("class", []), "verdict", verdict]


def tidy_table(text, is_output=True):
    """A table of ours (HTML), as a page shows it; `is_output`: `bookkit.report` printed it, not a directive."""
    soup = BeautifulSoup(text, "html.parser")
    (table,) = soup.find_all("table")
    if is_output and table.caption.get_text() != CLAIMS_HEADING:
        headings = table.select("thead tr > *")
        rows = [row.find_all(["th", "td"], recursive=False) for row in table.select("tbody tr")]
        for heading, cells in list(zip(headings, zip(*rows, strict=True), strict=True))[1:]:
            lift_column(soup, heading, cells)
    write_minus(table)
    align_columns(table)
    mark_verdicts(table)
    lay_out(soup, table)
    return str(soup)


def tidy_plain(match):
    """A table of Markdown in the style of ours, its first column as labels; of pandas only its numbers change."""
    soup = BeautifulSoup(match["written"] or match["frame"], "html.parser")
    table = soup.table
    write_minus(table)
    if match["frame"]:
        return str(soup)
    table["class"] = ["bnn", *(name for name in table["class"] if name != "table")]
    for paragraph in table.select("p:only-child"):
        paragraph.unwrap()
    for label in table.select("tbody tr > td:first-child"):
        label.name = "th"
        label["scope"] = "row"
    align_columns(table)
    mark_verdicts(table)
    lay_out(soup, table, is_wide=len(table.select("thead tr:first-child > *")) > WIDE)
    return f'<div class="table-scroll">{soup}</div>'


def tidy_tables(app, pagename, templatename, context, doctree):
    """Tidy every table of a page."""
    if "body" in context:
        context["body"] = TABLE.sub(
            lambda match: (match["output"] or "") + tidy_table(match["table"], bool(match["output"])), context["body"]
        )
        context["body"] = PLAIN.sub(tidy_plain, context["body"])


def setup(app):
    """Connect to Sphinx, behind whatever else knows tables by what notebooks hold (`book_pages.mark_claims`)."""
    app.connect("html-page-context", tidy_tables, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
