"""ArviZ's table of a posterior, and our verdict in a sentence, as the kinds of numbers that `outputs` compares.

A row of what `az.summary` prints,

           mean    sd eti89_lb eti89_ub ess_bulk ess_tail r_hat mcse_mean mcse_sd
    a    -0.356  0.35    -0.92     0.21     5376     3086  1.00    0.0048  0.0052

is read as the line

    a: mean -0.356 ± 0.0048, sd 0.350 ± 0.0052, eti89_lb -0.92 ± 0.013, eti89_ub 0.21 ± 0.013,
       ess_bulk ~5376 (above 400: yes), ess_tail ~3086 (above 400: yes)

A table may show some of these columns, but none without what it is judged by. Of a verdict (`str` of
`diagnostics.Verdict`) R-hat and the names of the worst quantities are left out: R-hat judges nothing, and which
quantities are worst is the sampler's luck.
"""

import math
import re
from decimal import Decimal

from scipy import stats

READABLE = re.compile(r"mean|sd|eti\d+_[lu]b|ess_bulk|ess_tail|r_hat|mcse_mean|mcse_sd")
COLUMN = re.compile(rf"{READABLE.pattern}|median|mad|hdi\d+_[lu]b|ess_\w+|mcse_\w+|min_ss|\.\.\.")
NEEDED = {"mean": ["mcse_mean"], "sd": ["mcse_sd"], "mcse_mean": ["mean"], "mcse_sd": ["sd"], "eti": ["sd", "ess_tail"]}
CELL = re.compile(r"-?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|inf)|nan")
TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
HTML_CELL = re.compile(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", re.DOTALL)
MIN_ESS = 400  # of the verdict, `hbnn.diagnostics.ESS_LIMIT`
VERDICT = re.compile(
    r"^(The \w+ chains agree: )R-hat at most [\d.]+ \(.+?\), at least ([\d,]+) effective draws \(.+?\); "
    r"(no|[\d,]+) divergences?( in [\d,]+ draws)",
    re.MULTILINE,
)


def rewrite(text):
    """Rewrite every verdict and the rows of every summary in a text (str); what cannot be read stays as it is."""
    lines = VERDICT.sub(_rewrite_verdict, text).splitlines()
    for columns, rows in find_tables(lines):
        for at, (label, cells) in rows.items():
            if not _find_misfits(columns) and all(map(CELL.fullmatch, cells)):
                lines[at] = _rewrite_row(label, dict(zip(columns, cells, strict=True)))
    return "\n".join(lines)


def drop(text):
    """Leave the rows of every summary out of a text (str)."""
    lines = text.splitlines()
    rows = {at for _, rows in find_tables(lines) for at in rows}
    return "\n".join(line for at, line in enumerate(lines) if at not in rows)


def flatten(text):
    """Write each summary in some HTML as plain text prints it, a line for each row; the rest stays HTML."""

    def flatten_table(table):
        rows = [" ".join(HTML_CELL.findall(row)).strip() for row in ROW.findall(table[0])]
        return "\n".join(rows) if rows and _is_header(rows[0].split()) else table[0]

    return TABLE.sub(flatten_table, text)


def find_tables(lines):
    """Find the summaries among some lines: a list of (columns, {number of the line: (label, cells)})."""
    tables, next_row = [], None
    for at, words in enumerate(map(str.split, lines)):
        if _is_header(words):
            tables.append((words, {}))
            next_row = at + 1
        elif at == next_row:
            n = len(tables[-1][0])
            label, cells = " ".join(words[:-n]), words[-n:]
            if label and any(map(CELL.fullmatch, cells)):
                tables[-1][1][at] = (label, cells)
                next_row += 1
    return tables


def _is_header(words):
    """Whether these are columns of a summary; `mean` alone is a word."""
    return all(map(COLUMN.fullmatch, words)) and (len(words) > 1 or any("_" in word for word in words))


def find_malformed(text):
    """Find what cannot be compared, or cannot be, in the summaries of a text: a list of complaints."""
    complaints = []
    for columns, rows in find_tables(text.splitlines()):
        complaints += _find_misfits(columns) if rows else []
        for label, cells in rows.values():
            odd = [cell for cell in cells if not CELL.fullmatch(cell)]
            complaints += [f"`{cell}` in the row `{label}` of a summary is no number" for cell in odd]
            sd = dict(zip(columns, cells, strict=True)).get("sd", "")
            if sd.startswith("-"):
                complaints.append(f"`sd {sd}` in the row `{label}` cannot be: wanted: at least 0")
    return complaints


def _find_misfits(columns):
    """Find the columns that cannot be compared, because nothing here knows them or their error is missing."""
    complaints = []
    for column in columns:
        needed = NEEDED.get("eti" if column.startswith("eti") else column, [])
        if not READABLE.fullmatch(column):
            complaints.append(f"a summary shows `{column}`, which cannot be compared: show some of {READABLE.pattern}")
        complaints += [
            f"a summary shows `{column}` without the column `{name}`, which it is judged by: show that one, too"
            for name in needed
            if name not in columns
        ]
    return complaints


def _rewrite_verdict(found):
    start, ess, divergences, end = found.groups()
    return (
        f"{start}effective draws ~{ess} (above {MIN_ESS}: yes), "
        f"divergences ~{'0' if divergences == 'no' else divergences} (few: yes){end}"
    )


def _rewrite_row(label, cells):
    shown = [column for column in cells if column != "r_hat" and not column.startswith("mcse_")]
    return f"{label}: " + ", ".join(f"{column} {_rewrite_cell(column, cells)}" for column in shown)


def _rewrite_cell(column, cells):
    number = cells[column]
    if column.startswith("ess_"):
        return f"~{number} (above {MIN_ESS}: {'yes' if float(number) > MIN_ESS else 'no'})"
    if column.startswith("eti"):
        share = float(re.search(r"\d+", column)[0]) / 100
        error = find_quantile_error(float(cells["sd"]), float(cells["ess_tail"]), (1 - share) / 2)
        return f"{spell(number)} ± {spell(f'{error:.2g}')}"
    # of the sd of a constant ArviZ knows no error
    error = "0" if column == "sd" and float(number) == 0 else cells[f"mcse_{column}"]
    twice = 2 * float(error)  # ArviZ keeps the digit of a number in which twice its error begins
    return f"{spell(number, math.floor(math.log10(twice)) if 0 < twice < math.inf else 0)} ± {spell(error)}"


def find_quantile_error(sd, ess, share):
    """Standard error of the quantile at `share` of a normal with this sd, from as many draws: of a bound of 89 %,
    2.05 sd / sqrt(ess)."""
    density = stats.norm.pdf(stats.norm.ppf(share))
    return math.sqrt(share * (1 - share) / ess) / density * sd if ess > 0 else math.nan


def spell(number, place=None):
    """Write a number (str, as ArviZ prints it) with the zeros that ArviZ drops: they say how far it was rounded.

    `place` is the power of ten of its last digit; default: of a number that is rounded to two digits.
    """
    value = Decimal(number)
    if not value.is_finite():
        return number
    printed = (value if "." in number else value.normalize()).as_tuple().exponent
    if place is None:
        last = value.adjusted() - 1 if value else -6  # nothing is rounded to a zero of two digits
    elif place > 0:
        last = printed  # in scientific notation, with all its digits
    else:
        last = max(place, value.adjusted() - 5) if value else place  # six digits at most
    return str(value.quantize(Decimal(1).scaleb(min(last, printed))))
