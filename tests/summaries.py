"""ArviZ's table of a posterior, and our verdict in a sentence, rewritten into the book's own kinds of numbers, so that
`outputs.py` can compare them.

A row of what `az.summary` prints,

           mean    sd eti89_lb eti89_ub ess_bulk ess_tail r_hat mcse_mean mcse_sd
    a    -0.356  0.35    -0.92     0.21     5376     3086  1.00    0.0048  0.0052

is read as

    a: mean -0.356 ± 0.0048, sd 0.350 ± 0.0052, eti89_lb -0.92 ± 0.013, eti89_ub 0.21 ± 0.013,
       ess_bulk ~5376 (at least 400: yes), ess_tail ~3086 (at least 400: yes), r_hat ~1.00 (at most 1.01: yes)

in one line. Mean and sd have their error beside them, a bound has that of a quantile (`find_quantile_error`), and the
rest says whether the draws will do. A table may show some of these columns, but none without what it is judged by.
ArviZ drops zeros at the end of a number; they are written out again, because they say how far it was rounded. Of a
verdict (`str` of `diagnose.Verdict`, that the chains agree) the names of the worst quantities are left out: which they
are is the sampler's luck.
"""

import math
import re
from decimal import Decimal

from scipy import special

READABLE = re.compile(r"mean|sd|eti\d+_[lu]b|ess_bulk|ess_tail|r_hat|mcse_mean|mcse_sd")
COLUMN = re.compile(rf"{READABLE.pattern}|median|mad|hdi\d+_[lu]b|ess_\w+|mcse_\w+|min_ss|\.\.\.")
NEEDED = {
    "mean": ("mcse_mean",),
    "sd": ("mcse_sd",),
    "mcse_mean": ("mean",),
    "mcse_sd": ("sd",),
    "eti": ("sd", "ess_tail"),
}
CELL = re.compile(r"-?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|inf)|nan")
TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
HTML_CELL = re.compile(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", re.DOTALL)
MIN_ESS, MAX_RHAT = 400, 1.01
VERDICT = re.compile(
    r"(?P<start>^The \w+ chains agree: )R-hat at most (?P<rhat>[\d.]+) \(.+?\), at least (?P<ess>[\d,]+) effective "
    r"draws \(.+?\); (?P<divergences>no|[\d,]+) divergences?(?P<end> in [\d,]+ draws)",
    re.MULTILINE,
)


def rewrite(text):
    """Rewrite every verdict and the rows of every summary in a text; what cannot be read stays as it is.

    Parameters
    ----------
    text : str

    Returns
    -------
    str
    """
    lines = VERDICT.sub(_rewrite_verdict, text).splitlines()
    for columns, rows in find_tables(lines):
        for at, (label, cells) in rows.items():
            if not find_misfits(columns) and not _list_odd(cells):
                lines[at] = _rewrite_row(label, dict(zip(columns, cells, strict=True)))
    return "\n".join(lines)


def drop(text):
    """Leave the rows of every summary out of a text, as a str."""
    lines = text.splitlines()
    shown = {at for _, rows in find_tables(lines) for at in rows}
    return "\n".join(line for at, line in enumerate(lines) if at not in shown)


def flatten(text):
    """Write each summary in some HTML as plain text prints it, a line for each row; other tables stay.

    Parameters
    ----------
    text : str

    Returns
    -------
    str
        Still HTML: an ampersand is an entity.
    """

    def flatten_table(table):
        rows = [" ".join(HTML_CELL.findall(row)).strip() for row in ROW.findall(table[0])]
        return "\n".join(rows) if rows and _is_header(rows[0].split()) else table[0]

    return TABLE.sub(flatten_table, text)


def find_tables(lines):
    """Find the summaries among some lines.

    Parameters
    ----------
    lines : list of str

    Returns
    -------
    list of (list of str, dict of int to (str, list of str))
        The columns of each, and its rows by the number of their line: label and cells.
    """
    tables, next_row = [], None
    for at, line in enumerate(lines):
        words = line.split()
        if _is_header(words):
            tables.append((words, {}))
            next_row = at + 1
        elif at == next_row and (row := _read_row(words, tables[-1][0])):
            tables[-1][1][at] = row
            next_row += 1
    return tables


def _is_header(words):
    """Whether these are columns of a summary; `mean` alone is a word."""
    known = all(COLUMN.fullmatch(word) for word in words)
    return known and (len(words) > 1 or any("_" in word for word in words))


def _read_row(words, columns):
    """Label and cells of a line, or None where it is no row."""
    label, cells = words[: -len(columns)], words[-len(columns) :]
    return (" ".join(label), cells) if label and len(_list_odd(cells)) < len(cells) else None


def _list_odd(cells):
    """The cells that are no numbers."""
    return [cell for cell in cells if not CELL.fullmatch(cell)]


def find_malformed(text):
    """Find what cannot be compared, or cannot be, in the summaries of a text.

    Parameters
    ----------
    text : str

    Returns
    -------
    list of str
    """
    complaints = []
    for columns, rows in find_tables(text.splitlines()):
        complaints += find_misfits(columns) if rows else []
        for label, cells in rows.values():
            complaints += [f"`{cell}` in the row `{label}` of a summary is no number" for cell in _list_odd(cells)]
            sd = dict(zip(columns, cells, strict=True)).get("sd", "")
            complaints += (
                [f"`sd {sd}` in the row `{label}` cannot be: wanted: at least 0"] if sd.startswith("-") else []
            )
    return complaints


def find_misfits(columns):
    """Find the columns that cannot be compared, because nothing here knows them or their error is missing.

    Parameters
    ----------
    columns : list of str

    Returns
    -------
    list of str
    """
    return [
        f"a summary shows `{column}`, which cannot be compared: show mean, sd, eti89_lb, eti89_ub, ess_bulk, ess_tail, "
        "r_hat, mcse_mean, mcse_sd, or some of them"
        for column in columns
        if not READABLE.fullmatch(column)
    ] + [
        f"a summary shows `{column}` without the column `{needed}`, which it is judged by: show that one, too"
        for column in columns
        for needed in NEEDED.get("eti" if column.startswith("eti") else column, ())
        if needed not in columns
    ]


def _rewrite_verdict(found):
    """A verdict, as a match of VERDICT, as some of the book's kinds of numbers. Its limit of R-hat is not in it."""
    n_divergent = "0" if found["divergences"] == "no" else found["divergences"]
    return (
        f"{found['start']}R-hat ~{found['rhat']} (low enough: yes), "
        f"effective draws ~{found['ess']} (above {MIN_ESS}: yes), divergences ~{n_divergent} (few: yes){found['end']}"
    )


def _rewrite_row(label, cells):
    """A row as a line of the book's kinds of numbers."""
    shown = [column for column in cells if not column.startswith("mcse_")]
    return f"{label}: " + ", ".join(f"{column} {_rewrite_cell(column, cells)}" for column in shown)


def _rewrite_cell(column, cells):
    """A cell of a row, {column: what is printed}, as one of the book's kinds of numbers."""
    number = cells[column]
    if column == "r_hat":
        return f"~{number} (at most {MAX_RHAT}: {'yes' if float(number) <= MAX_RHAT else 'no'})"
    if column.startswith("ess_"):
        return f"~{number} (at least {MIN_ESS}: {'yes' if float(number) >= MIN_ESS else 'no'})"
    if column.startswith("eti"):
        share = float(re.search(r"\d+", column)[0]) / 100
        return f"{spell(number)} ± {spell(find_quantile_error(cells['sd'], cells['ess_tail'], (1 - share) / 2))}"
    error = cells[f"mcse_{column}"]
    if column == "sd" and float(number) == 0:  # of a constant: ArviZ knows no error of its sd
        error = "0"
    return f"{spell(number, find_place(error))} ± {spell(error)}"


def find_quantile_error(sd, ess, share):
    """Standard error of a quantile, as ArviZ would print it.

    The share of n independent draws below the true quantile q_p scatters around p with standard error
    sqrt(p (1 - p) / n). Where the density is f, a share that is off by d moves the quantile by d / f(q_p), so that its
    standard error is sqrt(p (1 - p) / n) / f(q_p). Of a normal, f(q_p) = phi(z_p) / sd, with z_p the quantile of the
    standard normal and phi its density; and n, of draws that are not independent, is the tail ESS. For the bounds of
    89 %, p = 0.055, z_p = -1.60, phi(z_p) = 0.111: 2.05 sd / sqrt(ESS).

    Parameters
    ----------
    sd, ess : str, as printed
    share : float, p

    Returns
    -------
    str
    """
    z = special.ndtri(share)
    density = math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    n = float(ess) if float(ess) > 0 else math.nan
    return f"{math.sqrt(share * (1 - share) / n) / density * float(sd):.2g}"


def find_place(error):
    """Power of ten of the last digit that ArviZ keeps of a number: that of the first digit of twice its error.

    Parameters
    ----------
    error : str, as printed

    Returns
    -------
    int
        Above 0, it writes three digits of the number, in scientific notation.
    """
    twice = 2 * float(error)
    return math.floor(math.log10(twice)) if 0 < twice < math.inf else 0


def spell(number, place=None):
    """Write a number with all digits that rounding has left it, zeros included.

    Parameters
    ----------
    number : str, as ArviZ prints it
    place : int, optional
        From `find_place`; default: of a number that ArviZ rounds to two digits.

    Returns
    -------
    str
    """
    value = Decimal(number)
    if not value.is_finite():
        return number
    printed = (value if "." in number else value.normalize()).as_tuple().exponent
    if place is None:
        last = value.adjusted() - 1 if value else -6  # nothing is rounded to a zero of two digits
    elif place > 0:
        last = printed
    else:
        last = max(place, value.adjusted() - 5) if value else place  # it writes six digits at most
    return str(value.quantize(Decimal(1).scaleb(min(last, printed))))
