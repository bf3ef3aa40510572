"""Compare the stored outputs of a cell with fresh ones.

Every number that a chapter prints is one of four kinds, told apart in the output itself:

===============================  =======================  ====================================================
written                          kind                     on another machine
===============================  =======================  ====================================================
``0.971``                        exact                    equal
``0.971 ± 0.012``, ``… (n=20)``  estimate                 no further apart than their errors explain
``~1532 (above 400: yes)``     diagnostic               another figure, the same criterion, the same verdict
``31 s (measured)``              measured                 equal: it was read from a data file
===============================  =======================  ====================================================

A table that ArviZ prints (``az.summary``) is read as if it were written so, too: see `read_summaries`. On the machine
that wrote the notebook all numbers, and every pixel, are equal: that is the *strict* mode.

All functions here are pure: they take outputs as nbformat stores them and return lists of complaints.
"""

import base64
import html
import io
import json
import math
import re
from collections import Counter
from decimal import Decimal
from functools import cache
from itertools import zip_longest
from typing import NamedTuple

import nbformat
import numpy as np
from PIL import Image
from scipy import ndimage, special

RISK = 1e-3  # of a false alarm, in one run of the whole book; and, of a number from few seeds, by itself
DEFAULT_NU = 30  # degrees of freedom of an error that does not say how many seeds it comes from
# what two pictures may differ by, as `measure_distance` sees them: 142 of 148 pictures of the book differ by less when
# samplers get other seeds; nearly all differ by more when they are mirrored, and 43 % when their largest series is gone
SIMILAR_PICTURE = 0.6
SIZE_SLACK = 4  # pixels by which a picture may be larger: it is cut around its tick labels, which move with the numbers
BLANK_SHARE = 0.999  # a picture with this share of one colour shows nothing
PICTURES = ("image/png", "image/jpeg")

NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][-+−]?\d+)?"
SIGNED = rf"(?<![\w.])[-+−]?{NUMBER}"
WORD = r"[^\s\d()±~]{1,12}"
UNITS = rf"(?: ?{WORD}(?: {WORD}){{0,3}})?"
TOKEN = re.compile(
    rf"(?P<measured>{SIGNED}(?: ?± ?{NUMBER})?{UNITS} ?\(measured\))"
    rf"|~(?P<figure>[-+−]?(?:{NUMBER}|nan|inf))(?P<verdict> ?\([^():\n]+: ?[^():\n]+\))"
    rf"|(?P<value>{SIGNED}) ?± ?(?P<error>{NUMBER})(?![\d.]*\d)"
    # PyMC's own words; how many there were is a diagnostic, that there were some is text
    r"|(?<=There were )(?P<divergences>\d+)(?= divergences)"
)
SEEDS = re.compile(rf"(?: ?{WORD})? ?\(n=(\d+)\)")
LOOSE_DIAGNOSTIC = re.compile(r"~[-+−]?(?:[\d.]*\d|nan\b|inf\b)")
# what a diagnostic must lie between whatever was sampled; looked for in the words before it, and in its criterion
BOUNDS = [
    (re.compile(r"R-hat|r_hat|\((?:below|above) 1\.0\d*:"), 0.99, math.inf),
    (re.compile(r"\bESS\b|effective draws|divergen|\((?:at least|above) \d{2,}:"), 0, math.inf),
    (re.compile(r"%"), 0, 100),
    (re.compile(r"^(?!.*%).*\bshare\b|\((?:at least|above) 0\.9\d*:"), 0, 1),
]
CRITERION = re.compile(
    rf"\((?P<words>below|above|at least|at most|within|all) (?P<limit>[-−]?{NUMBER})(?: of (?P<all>\d+))?"
    r"[^:]*: ?(?P<answer>yes|no)\)"
)
MEETS = {
    "below": lambda figure, limit: figure < limit,
    "at most": lambda figure, limit: figure <= limit,
    "above": lambda figure, limit: figure > limit,
    "at least": lambda figure, limit: figure >= limit,
    "within": lambda figure, limit: abs(figure) < limit,
    "all": lambda figure, limit: figure == limit,
}
COUNT = re.compile(r"(?<![\w.,±~-])(\d+) of (\d+)(?![\d.,]*\d)")
# a ± after a number, or before one; `mean ± 2 sd` is text
LOOSE_ESTIMATE = re.compile(
    rf"(?:{SIGNED}|(?<!\w)(?:nan|inf))[.%]? ?%? ?±[^\n]{{0,12}}|(?<![^\W\d])(?<![^\W\d] )± ?[-+−]?\.?\d[\d.]*"
)
INLINE_TAG = re.compile(r"</?(?:b|i|em|strong|span|sup|sub|code|small|abbr)\b[^>]*>", re.IGNORECASE)
TAG = re.compile(r"<[^>]*>")
# columns of `az.summary`, those that can be compared with what they are judged by, and a cell
COLUMN = re.compile(r"mean|sd|median|mad|(?:eti|hdi)\d+_[lu]b|r_hat|(?:ess|mcse)_\w+|min_ss|\.\.\.")
NEEDED = {
    "mean": ["mcse_mean"], "sd": ["mcse_sd"], "eti": ["sd", "ess_tail"], "ess_bulk": [], "ess_tail": [], "r_hat": [],
    "mcse_mean": ["mean"], "mcse_sd": ["sd"],
}  # fmt: skip
CELL = re.compile(r"-?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|inf)|nan")
TABLE, ROW = re.compile(r"<table\b.*?</table>", re.DOTALL), re.compile(r"<tr\b.*?</tr>", re.DOTALL)
HTML_CELL = re.compile(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", re.DOTALL)
MIN_ESS = 400  # of the verdict, `hbnn.diagnostics.ESS_LIMIT`
VERDICT = re.compile(
    r"^(The \w+ chains agree: )R-hat at most [\d.]+ \(.+?\), at least ([\d,]+) effective draws \(.+?\); "
    r"(no|[\d,]+) divergences?( in [\d,]+ draws)",
    re.MULTILINE,
)
# stand for a token in the text that must be equal
ESTIMATE_MARK, FIGURE_MARK = "\ue000", "\ue001"


class Estimate(NamedTuple):
    """A number with its Monte Carlo error, half a unit of the last printed digit of each, and degrees of freedom."""

    value: float
    error: float
    value_half: float
    error_half: float
    nu: int
    text: str


class Reading(NamedTuple):
    """A text taken apart: with marks for numbers that may move, the estimates, and what looks like one and is not."""

    skeleton: str
    estimates: tuple
    malformed: tuple


# --- reading -----------------------------------------------------------------------------------------------


def read_text(text):
    """Take a text apart (Reading) into what must be equal and what may move.

    Runs of spaces and of rules count as one, because the columns of a table move with the width of its numbers.
    """
    skeleton, estimates, malformed, end = [], [], read_summaries(text)[1], 0
    text = _collapse(text)
    for match in TOKEN.finditer(text):
        between = text[end : match.start()]
        malformed += _find_loose(between)
        skeleton.append(between)
        end = match.end()
        if match["value"]:
            seeds = SEEDS.match(text, end)
            estimates.append(_read_estimate(match, seeds))
            if seeds and int(seeds[1]) < 2:
                malformed.append(f"`{match[0]}{seeds[0]}`: a spread needs at least two seeds")
            skeleton.append(ESTIMATE_MARK)
        elif match["figure"]:
            skeleton.append(FIGURE_MARK + match["verdict"])
            malformed += _find_impossible(match, between.rpartition("\n")[2])
        else:
            skeleton.append(FIGURE_MARK if match["divergences"] else match[0])
    malformed += _find_loose(text[end:])
    counts = [match for match in COUNT.finditer(text) if int(match[1]) > int(match[2])]
    malformed += [f"`{match[0]}` cannot be: wanted: a part of the whole" for match in counts]
    skeleton.append(text[end:])
    return Reading("".join(skeleton), tuple(estimates), tuple(malformed))


def _collapse(text):
    text = re.sub(r"[ \t\xa0]+", " ", text)
    text = re.sub(r"([-=─━])\1{2,}", r"\1\1\1", text)
    return read_summaries("\n".join(line.strip() for line in text.splitlines()))[0]


def _read_estimate(match, seeds):
    value, value_half = _read_number(match["value"])
    error, error_half = _read_number(match["error"])
    nu = max(int(seeds[1]) - 1, 1) if seeds else DEFAULT_NU
    return Estimate(value, error, value_half, error_half, nu, match[0] + (seeds[0] if seeds else ""))


def _read_number(text):
    """Value of a printed number, and half a unit of its last digit."""
    number = Decimal(text.replace(",", "").replace("−", "-"))
    return float(number), 0.5 * 10.0 ** number.as_tuple().exponent


def _find_loose(text):
    """Find what was meant as a diagnostic or an estimate and cannot be read as one."""
    return [
        f"`{match[0]}` is a diagnostic without a verdict: write `~1532 (above 400: yes)`"
        for match in LOOSE_DIAGNOSTIC.finditer(text)
    ] + [
        f"`{match[0].strip()}` is not a number with its error: write `0.971 ± 0.012` or `0.971 ± 0.012 (n=20)`, "
        "and units after it"
        for match in LOOSE_ESTIMATE.finditer(text)
    ]


def _find_impossible(match, label):
    """Find out whether the figure of a diagnostic contradicts its verdict, or is none that can be.

    It is a match of TOKEN; `label` is what stands before it in its line.
    """
    figure, half = _read_number(match["figure"]) if match["figure"][-1].isdigit() else (float(match["figure"]), 0.0)
    for words, low, high in BOUNDS:
        concerned = words.search(label) or words.search(match["verdict"])
        if concerned and (figure + half < low or figure - half > high):  # nan is what it is
            return [f"`{match[0]}` cannot be: wanted: between {low} and {high}"]
    criterion = CRITERION.search(match["verdict"])
    if not criterion:
        return []
    if criterion["all"] and not 0 <= figure <= int(criterion["all"]):
        return [f"`{match[0]}` cannot be: {match['figure']} of {criterion['all']}"]
    limit, meets = _read_number(criterion["limit"])[0], MEETS[criterion["words"]]
    # the figure is rounded, the verdict is not; a figure that is not a number meets nothing
    possible = {meets(figure + step, limit) for step in (-half, 0, half)}
    return [] if (criterion["answer"] == "yes") in possible else [f"`{match[0]}` contradicts itself"]


def read_html(text):
    """Turn HTML into the text a reader sees: markup inside a line is gone, every other tag is a new line, and a row of
    a summary is one line."""
    return html.unescape(TAG.sub("\n", INLINE_TAG.sub("", TABLE.sub(_flatten, text))))


def _flatten(table):
    """Write a summary, as HTML (a match), as plain text prints it, a line for each row; another table stays."""
    rows = [" ".join(HTML_CELL.findall(row)).strip() for row in ROW.findall(table[0])]
    return "\n".join(rows) if rows and _is_header(rows[0].split()) else table[0]


def list_texts(output):
    """List the texts of one output that may hold numbers, as (mime type and path inside JSON, text) pairs."""
    if output["output_type"] == "stream":
        return [(output["name"], output["text"])]
    texts = []
    for mime, content in sorted(output.get("data", {}).items(), reverse=True):  # plain text first
        if _is_json(mime):
            texts += [(f"{mime} {where}", leaf) for where, leaf in _list_leaves(content) if isinstance(leaf, str)]
        elif mime.startswith("text/"):
            texts.append((mime, read_html(content) if mime == "text/html" else content))
    return texts


def _is_json(mime):
    return mime.startswith("application/") and mime.endswith("json")


def _list_leaves(content, where=""):
    """Walk through JSON content, as (path, leaf) pairs; an entry with an id is named by it."""
    if isinstance(content, dict) and content:
        for key in sorted(content):
            yield from _list_leaves(content[key], f"{where}.{key}".lstrip("."))
    elif isinstance(content, list) and content:
        for i, entry in enumerate(content):
            name = entry.get("id", i) if isinstance(entry, dict) else i
            yield from _list_leaves(entry, f"{where}[{name}]")
    else:
        yield where, content


def list_copies(output):
    """List the estimates and diagnostics of one output as written, for each mime type that shows any: dict of lists.

    A table is text and HTML; the numbers of the first count, others only repeat them.
    """
    copies = {}
    for where, text in list_texts(output):
        found = [m[0] for m in TOKEN.finditer(_collapse(text)) if not m["divergences"]]
        copies.setdefault(where.split(" ")[0], []).extend(found)
    return {mime: found for mime, found in copies.items() if found}


def list_counted(output):
    """List the texts of an output whose numbers count."""
    first = next(iter(list_copies(output)), None)
    return [text for where, text in list_texts(output) if where.split(" ")[0] == first]


def list_estimates(outputs):
    """List every `value ± error` in some outputs once, as Estimates."""
    return [estimate for output in outputs for text in list_counted(output) for estimate in read_text(text).estimates]


def count_estimates(paths):
    """Count the estimates of some notebooks (Paths): they share the risk of a false alarm."""
    cells = [cell for path in paths for cell in nbformat.read(path, as_version=4).cells]
    return sum(len(list_estimates(cell.get("outputs", []))) for cell in cells)


def find_disagreeing(outputs):
    """Find numbers that one copy of an output shows and another does not."""
    complaints = []
    for output in outputs:
        (first, shown), *others = list(list_copies(output).items()) or [("", [])]
        for mime, found in others:
            if odd := Counter(shown) - Counter(found) | Counter(found) - Counter(shown):
                complaints.append(f"{first} and {mime} disagree about `{'`, `'.join(odd)}`")
    return complaints


def find_malformed(outputs):
    """Find numbers that look like an estimate or a diagnostic and cannot be read as one, with how to write them."""
    readings = [read_text(text) for output in outputs for _, text in list_texts(output)]
    return [complaint for reading in readings for complaint in reading.malformed]


def find_coarse(outputs):
    """Find estimates printed with so few digits that a move of ten errors could hide in the rounding.

    ArviZ rounds the numbers of a summary by their errors, as it sees fit.
    """
    return [
        f"`{e.text}` is printed too coarsely: give the error two digits, and the value as many decimals as the error"
        for output in outputs
        for text in list_counted(output)
        for e in read_text("\n".join(read_summaries(text)[2])).estimates
        if e.error > 0 and (e.error_half > 0.1001 * e.error or e.value_half > 1.001 * e.error_half)
    ]


# --- summaries of ArviZ ------------------------------------------------------------------------------------


def read_summaries(text):
    """Read the rows of `az.summary` and our verdict (`str` of `diagnostics.Verdict`) as numbers of the four kinds.

    A row becomes the line ``a: mean -0.356 ± 0.0048, sd 0.35 ± 0.0052, ess_bulk ~5376 (above 400: yes)``. Of R-hat
    nothing is left, which judges nothing, nor of the names of the worst quantities, which are the sampler's luck.

    Returns
    -------
    str, list of str, list of str
        The text so rewritten; complaints about what cannot be, or not be compared; the lines that are no rows.
    """
    lines, complaints, others = VERDICT.sub(_rewrite_verdict, text).splitlines(), [], []
    columns, misfits, told = [], [], False
    for at, words in enumerate(map(str.split, lines)):
        if _is_header(words):
            columns, misfits, told = words, _find_misfits(words), False
        label, cells = " ".join(words[: -len(columns)]), words[-len(columns) :]
        if not label or not any(map(CELL.fullmatch, cells)):
            others.append(lines[at])
            columns = columns if words == columns else []
            continue
        complaints += [] if told else misfits
        told, row = True, dict(zip(columns, cells, strict=True))
        odd = [cell for cell in cells if not CELL.fullmatch(cell)]
        complaints += [f"`{cell}` in the row `{label}` of a summary is no number" for cell in odd]
        if row.get("sd", "").startswith("-"):
            complaints.append(f"`sd {row['sd']}` in the row `{label}` cannot be: wanted: at least 0")
        if not misfits and not odd:
            shown = [name for name in columns if name != "r_hat" and not name.startswith("mcse_")]
            lines[at] = f"{label}: " + ", ".join(f"{name} {_rewrite_cell(name, row)}" for name in shown)
    return "\n".join(lines), complaints, others


def _is_header(words):
    """Whether these are columns of a summary; `mean` alone is a word."""
    return all(map(COLUMN.fullmatch, words)) and (len(words) > 1 or any("_" in word for word in words))


def _find_misfits(columns):
    """Find the columns that cannot be compared, because nothing here knows them or their error is missing."""
    needed = {column: NEEDED.get("eti" if column.startswith("eti") else column) for column in columns}
    unknown = [column for column, names in needed.items() if names is None]
    return [f"a summary shows `{c}`, which cannot be compared: show some of {', '.join(NEEDED)}" for c in unknown] + [
        f"a summary shows `{column}` without the column `{name}`, which it is judged by: show that one, too"
        for column, names in needed.items()
        for name in names or ()
        if name not in columns
    ]


def _rewrite_verdict(found):
    start, ess, divergences, end = found.groups()
    return (
        f"{start}effective draws ~{ess} (above {MIN_ESS}: yes), "
        f"divergences ~{'0' if divergences == 'no' else divergences} (few: yes){end}"
    )


def _rewrite_cell(column, row):
    number = row[column]
    if column.startswith("ess_"):
        return f"~{number} (above {MIN_ESS}: {'yes' if float(number) > MIN_ESS else 'no'})"
    if column.startswith("eti"):
        share = float(re.search(r"\d+", column)[0]) / 100
        error = find_quantile_error(float(row["sd"]), float(row["ess_tail"]), (1 - share) / 2)
        return f"{spell(number)} ± {spell(f'{error:.2g}')}"
    # of the sd of a constant ArviZ knows no error
    error = "0" if column == "sd" and float(number) == 0 else row[f"mcse_{column}"]
    twice = 2 * float(error)  # ArviZ keeps the digit of a number in which twice its error begins
    return f"{spell(number, math.floor(math.log10(twice)) if 0 < twice < math.inf else 0)} ± {spell(error)}"


def find_quantile_error(sd, ess, share):
    """Standard error of the quantile at `share` of a normal with this sd, from as many draws."""
    density = math.exp(-(special.ndtri(share) ** 2) / 2) / math.sqrt(2 * math.pi)
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


# --- numbers -----------------------------------------------------------------------------------------------


def set_level(count):
    """Two-sided level of one test, where all `count` estimates of a book share RISK, half of it for the values and half
    for the errors (Bonferroni)."""
    return RISK / 2 / max(count, 1)


@cache
def limit_move(level, nu):
    """How many combined errors a value may move between two honest runs.

    A number of many seeds is granted what a normal one needs for the whole book to stay quiet. One of few seeds is
    granted what keeps its own risk at RISK, if that is more; for the whole book's sake it would need ten times that,
    and nothing would be seen. This is enough because most printed errors are spreads over data, splits or seeds that
    stay the same when a chapter is run elsewhere, and only samplers draw anew: in 49 runs of 33 chapters with other
    seeds 617 of 2,478 numbers moved at all, and at most one of them by more than this.
    """
    return max(-float(special.ndtri(level / 2)), -float(special.stdtrit(nu, RISK / 2)))


@cache
def limit_ratio(level, nu_above, nu_below):
    """How many times an error may exceed the other, by the F distribution, with risks shared out as in `limit_move`."""
    many = special.fdtri(max(nu_below, DEFAULT_NU), max(nu_above, DEFAULT_NU), level / 2)
    few = special.fdtri(nu_below, nu_above, RISK / 2)
    # the reciprocal of the lower tail, which is exact where 1 - level would round
    return float(min(many, few)) ** -0.5


def compare_estimates(stored, fresh, level):
    """Compare two runs of one Estimate, their values and their errors: a list of complaints.

    Half a unit of the last printed digit is granted to every number, since rounding may have moved it.
    An error printed as zero means that the number is exact.
    """
    contrast = f"stored `{stored.text}`, came `{fresh.text}`"
    if stored.error == 0 or fresh.error == 0:
        same = (stored.value, stored.error) == (fresh.value, fresh.error)
        return [] if same else [f"{contrast}: an error of zero means exact, and it is not equal"]
    complaints = []
    combined = math.hypot(stored.error + stored.error_half, fresh.error + fresh.error_half)
    # a hair of slack, for 0.3 - 0.2 is not 0.1
    move = abs(stored.value - fresh.value) - stored.value_half - fresh.value_half
    if move > limit_move(level, stored.nu + fresh.nu) * combined * (1 + 1e-9):
        complaints.append(f"{contrast}: the value {describe_move(stored, fresh)}")
    above, below = sorted([stored, fresh], key=lambda estimate: estimate.error, reverse=True)
    ratio = max(above.error - above.error_half, 0.0) / (below.error + below.error_half)
    if ratio > limit_ratio(level, above.nu, below.nu) * (1 + 1e-9):
        complaints.append(f"{contrast}: one error is {above.error / below.error:.2g} times the other")
    return complaints


def describe_move(stored, fresh):
    """Say by how many combined errors an Estimate moved between two runs, as a str."""
    combined = math.hypot(stored.error, fresh.error)
    if combined == 0:
        return f"moved by {abs(stored.value - fresh.value):.3g}, with an error of zero"
    return f"moved by {abs(stored.value - fresh.value) / combined:.2g} combined errors"


# --- texts -------------------------------------------------------------------------------------------------


def compare_text(stored, fresh, level, strict=False):
    """Compare two texts, number by number, or letter by letter if `strict`: a list of complaints."""
    before, now = read_text(stored), read_text(fresh)
    complaints = list(dict.fromkeys(before.malformed + now.malformed))
    if strict and stored != fresh:
        complaints.append(_describe_text(stored, fresh))
        if before.skeleton == now.skeleton:
            moves = [pair for pair in zip(before.estimates, now.estimates, strict=True) if pair[0].text != pair[1].text]
            complaints += [f"stored `{a.text}`, came `{b.text}`: the value {describe_move(a, b)}" for a, b in moves]
    elif before.skeleton != now.skeleton:
        complaints.append(_describe_text(_collapse(stored), _collapse(fresh), by=lambda line: read_text(line).skeleton))
    elif not strict:
        for a, b in zip(before.estimates, now.estimates, strict=True):
            complaints += compare_estimates(a, b, level)
    return complaints


def _describe_text(stored, fresh, by=str):
    """Show the first line that differs, as seen through `by`."""
    for number, (a, b) in enumerate(zip_longest(stored.splitlines(), fresh.splitlines()), 1):
        if a is None or b is None or by(a) != by(b):
            shown = ["(nothing)" if line is None else line for line in (a, b)]
            return f"line {number} differs:\n    stored: {shown[0]}\n    came:   {shown[1]}"
    return f"differs in line breaks: stored {len(stored)} characters, came {len(fresh)}"


def compare_html(stored, fresh, level, strict=False):
    """Compare two pieces of HTML: their tags letter by letter, their text as `compare_text` does."""
    if strict:
        return compare_text(stored, fresh, level, strict=True) if stored != fresh else []
    complaints = compare_text(read_html(stored), read_html(fresh), level)
    if not complaints and TAG.findall(stored) != TAG.findall(fresh):
        complaints = [_describe_text("\n".join(TAG.findall(stored)), "\n".join(TAG.findall(fresh)))]
    return complaints


def compare_json(stored, fresh, level, strict=False):
    """Compare two JSON contents, such as the claims of a chapter: texts as `compare_text` does, the rest equal."""
    before, now = list(_list_leaves(stored)), list(_list_leaves(fresh))
    if [where for where, _ in before] != [where for where, _ in now]:
        return [_describe_text(*("\n".join(f"{where}: {leaf}" for where, leaf in leaves) for leaves in (before, now)))]
    complaints = []
    for (where, a), (_, b) in zip(before, now, strict=True):
        if isinstance(a, str) and isinstance(b, str):
            complaints += [f"{where}: {complaint}" for complaint in compare_text(a, b, level, strict)]
        # True == 1, but a verdict is not a number
        elif json.dumps(a) != json.dumps(b):
            complaints.append(f"{where}: stored `{a}`, came `{b}`")
    return complaints


# --- pictures ----------------------------------------------------------------------------------------------


def read_picture(content):
    """Decode a picture in base64: array of uint8, shape (height, width, 4), of red, green, blue and opacity."""
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(content))).convert("RGBA"))


def is_blank(pixels):
    """Tell whether (almost) all of a picture, shape (height, width, 4), has one colour."""
    # the colour of a pixel that cannot be seen does not count
    seen = np.where(pixels[..., 3:] == 0, 0, pixels).astype(np.uint8)
    codes = np.ascontiguousarray(seen).view(np.uint32).ravel()
    return np.unique(codes, return_counts=True)[1].max() >= BLANK_SHARE * codes.size


def find_blank(outputs):
    """Find the pictures among some outputs that show nothing."""
    return [
        f"output {i}: the picture is blank"
        for i, output in enumerate(outputs, 1)
        for mime in PICTURES
        if mime in output.get("data", {}) and is_blank(read_picture(output["data"][mime]))
    ]


def sketch(pixels):
    """Draw a picture as a short-sighted reader sees it: brightness and two colours, blurred over 1/64 of its width."""
    picture = Image.new("RGBA", pixels.shape[1::-1], "white")
    picture.alpha_composite(Image.fromarray(np.ascontiguousarray(pixels)))
    small = picture.convert("RGB").reduce(max(max(pixels.shape[:2]) // 128, 1))
    red, green, blue = np.moveaxis(np.asarray(small) / 255, -1, 0)
    opponents = np.stack([(red + green + blue) / 3, red - green, (red + green) / 2 - blue])
    return ndimage.gaussian_filter(opponents, (0, 2, 2))


def measure_distance(stored, fresh):
    """How far two pictures of one size differ, as `sketch` has them, in units of the contrast of the paler one.

    It is 0 for the same picture, and about 1.4 for one that has nothing to do with it.
    """
    before, now = sketch(stored), sketch(fresh)
    drawn = [drawing - drawing.mean(axis=(1, 2), keepdims=True) for drawing in (before, now)]
    difference, *contrasts = [np.sqrt(np.square(x).sum(axis=0).mean()) for x in (before - now, *drawn)]
    return float(difference / min(contrasts))


def compare_pictures(stored, fresh, strict=False):
    """Compare two pictures in base64, pixel by pixel if `strict`, else by what they show: a list of complaints."""
    before, now = read_picture(stored), read_picture(fresh)
    if not strict and max(np.abs(np.subtract(before.shape, now.shape))) <= SIZE_SLACK:
        before, now = _fit(before, now.shape), _fit(now, before.shape)
    if before.shape != now.shape:
        sizes = [f"{width} x {height}" for height, width, _ in (before.shape, now.shape)]
        return [f"the picture has another size: stored {sizes[0]} pixels, came {sizes[1]}"]
    complaints = [f"the {which} picture is blank" for which, p in (("stored", before), ("fresh", now)) if is_blank(p)]
    differs = (before != now).any(axis=-1)
    if strict and differs.any():
        most = int(np.abs(before.astype(int) - now.astype(int)).max())
        complaints.append(f"the picture differs in {differs.mean():.2%} of its pixels, by up to {most} of 255")
    elif not complaints and (distance := measure_distance(before, now)) > SIMILAR_PICTURE:
        complaints.append(
            f"the picture shows something else: distance {distance:.2f}, wanted: at most {SIMILAR_PICTURE}"
        )
    return complaints


def _fit(pixels, other):
    """Pad a picture with white, at the right and below, to the larger of two shapes."""
    return np.pad(pixels, [(0, max(b - a, 0)) for a, b in zip(pixels.shape, other, strict=True)], constant_values=255)


# --- cells -------------------------------------------------------------------------------------------------


def compare_outputs(stored, fresh, level, strict=False):
    """Compare all outputs of one cell, consecutive streams joined: complaints, each saying which output it is about.

    `level` is from `set_level`; `strict` asks for equality, as on the machine that wrote the notebook.
    """
    kinds = ["; ".join(map(_describe_kind, outputs)) or "(none)" for outputs in (stored, fresh)]
    if kinds[0] != kinds[1]:
        return [f"other outputs:\n    stored: {kinds[0]}\n    came:   {kinds[1]}"]
    return [
        f"output {i} ({where}): {complaint}"
        for i, (a, b) in enumerate(zip(stored, fresh, strict=True), 1)
        for where, complaint in _compare_output(a, b, level, strict)
    ]


def _describe_kind(output):
    return f"{output['output_type']} {output.get('name', '')}{', '.join(sorted(output.get('data', {})))}".strip()


def _compare_output(stored, fresh, level, strict):
    """Compare two outputs of one kind, as (mime type, complaint) pairs."""
    if stored["output_type"] == "stream":
        return [(stored["name"], c) for c in compare_text(stored["text"], fresh["text"], level, strict)]
    found = [("copies", complaint) for complaint in dict.fromkeys(find_disagreeing([stored, fresh]))]
    for mime, content in sorted(stored.get("data", {}).items()):
        found += [(mime, c) for c in _compare_content(mime, content, fresh["data"][mime], level, strict)]
    if not _is_same_metadata(stored.get("metadata", {}), fresh.get("metadata", {}), strict):
        found.append(("metadata", f"stored `{stored['metadata']}`, came `{fresh['metadata']}`"))
    return found


def _compare_content(mime, stored, fresh, level, strict):
    if mime in PICTURES:
        return compare_pictures(stored, fresh, strict)
    if mime == "text/html":
        return compare_html(stored, fresh, level, strict)
    if _is_json(mime):
        return compare_json(stored, fresh, level, strict)
    if mime.startswith("text/"):
        return compare_text(stored, fresh, level, strict)
    return [] if stored == fresh else [_describe_text(str(stored), str(fresh))]


def _is_same_metadata(stored, fresh, strict):
    """Whether metadata are equal; elsewhere a picture may be shown larger by as much as it may be larger."""
    if strict or stored.keys() != fresh.keys():
        return dict(stored) == dict(fresh)
    sizes = [(stored[mime], fresh[mime]) for mime in stored if mime in PICTURES]
    near = all(a.keys() == b.keys() and all(abs(a[side] - b[side]) <= SIZE_SLACK for side in a) for a, b in sizes)
    return near and all(stored[key] == fresh[key] for key in stored if key not in PICTURES)
