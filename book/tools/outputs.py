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

A table that ArviZ prints (``az.summary``) is read as if it were written so, too. On the machine that wrote the notebook
every letter and every pixel is equal: that is the *strict* mode.

All functions here are pure: they take outputs as nbformat stores them and return lists of complaints.
"""

import base64
import html
import io
import json
import math
import operator
import re
from collections import Counter
from decimal import Decimal
from functools import cache
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
from PIL import Image
from scipy import ndimage, special

RISK = 1e-3  # of a false alarm, in one run of the whole book; and, of a number from few seeds, by itself
# two-sided, of one test: some 2,000 estimates of the book share RISK, half for values, half for errors (Bonferroni)
LEVEL = RISK / 2 / 2000
DEFAULT_NU = 30  # degrees of freedom of an error that does not say how many seeds it comes from
SUMMARY = ["mean", "sd", "eti89_lb", "eti89_ub", "ess_bulk", "ess_tail", "r_hat", "mcse_mean", "mcse_sd"]
MIN_ESS = 400  # by which a summary is judged, `hbnn.diagnostics.ESS_LIMIT`
BLANK_SHARE = 0.999  # a picture with this share of one colour shows nothing
# what two pictures may differ by elsewhere, as `measure_distance` sees them: 142 of 148 pictures of the book differ by
# less when samplers get other seeds; nearly all differ by more when they are mirrored or another figure is there
SIMILAR_PICTURE = 0.6
SIZE_SLACK = 4  # pixels: a picture is cut around its tick labels, which move with the numbers
PICTURES = ("image/png", "image/jpeg")

NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][-+−]?\d+)?"
SIGNED = rf"(?<![\w.])[-+−]?{NUMBER}"
WORD = r"[^\s\d()±~]{1,12}"
UNITS = rf"(?: ?{WORD}(?: {WORD}){{0,3}})?"
TOKEN = re.compile(
    rf"(?P<measured>{SIGNED}(?: ?± ?{NUMBER})?{UNITS} ?\(measured\))"
    rf"|~(?P<figure>[-+−]?(?:{NUMBER}|nan|inf))(?P<verdict> ?\([^():\n]+: ?[^():\n]+\))"
    rf"|(?P<value>{SIGNED}) ?± ?(?P<error>{NUMBER})(?![\d.]*\d)(?=(?:(?: ?{WORD})? ?\(n=(?P<n>\d+)\))?)"
    # PyMC's words and our verdict's; how many divergences there were is a diagnostic, that there were some is text
    r"|(?P<free>(?<=There were )\d+(?= divergences)"
    r"|(?<=chains agree: )R-hat at most [\d.]+ [^;\n]+; (?:no|[\d,]+) divergences?(?= in ))"
)
# what was meant as a diagnostic or an estimate; `mean ± 2 sd` is text
LOOSE = re.compile(
    rf"~[-+−]?(?:[\d.]*\d|nan\b|inf\b)|(?:{SIGNED}|(?<!\w)(?:nan|inf))[.%]? ?%? ?±[^\n]{{0,12}}"
    r"|(?<![^\W\d])(?<![^\W\d] )± ?[-+−]?\.?\d[\d.]*"
)
CRITERION = re.compile(rf" ?\((below|above|at least|at most|within|all) ([-−]?{NUMBER})(?: of \d+)?[^:]*: ?(yes|no)\)")
MEETS = {"below": operator.lt, "at most": operator.le, "above": operator.gt, "at least": operator.ge,
         "within": lambda figure, limit: abs(figure) < limit, "all": operator.eq}  # fmt: skip
TAG = re.compile(r"<style.*?</style>|<[^>]*>", re.DOTALL)
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
    """Take a text apart (Reading) into what must be equal and what may move."""
    estimates, malformed = [], []

    def mark(match):
        if match["measured"]:
            return match[0]
        if match["value"]:
            estimates.append(_read_estimate(match))
            return ESTIMATE_MARK
        if match["figure"] and _is_contradiction(match["figure"], match["verdict"]):
            malformed.append(f"`{match[0]}` contradicts itself")
        return FIGURE_MARK + (match["verdict"] or "")

    text = _normalize(text)
    skeleton = TOKEN.sub(mark, text)
    malformed += [
        f"`{match[0].strip()}` is neither an estimate nor a diagnostic: write `0.971 ± 0.012`, `0.971 ± 0.012 (n=20)`, "
        "with units after it, or `~1532 (above 400: yes)`"
        for match in LOOSE.finditer(TOKEN.sub("\n", text))
    ]
    return Reading(skeleton, tuple(estimates), tuple(malformed))


def _normalize(text):
    """A text without what moves with the width of its numbers: runs of spaces and of rules; no summary is left."""
    text = re.sub(r"[ \t\xa0]+", " ", _rewrite_summary(text))
    text = re.sub(r"([-=─━])\1{2,}", r"\1\1\1", text)
    return "\n".join(line.strip() for line in text.splitlines())


def _read_estimate(match):
    (value, value_half), (error, error_half), n = *map(_read_number, match.group("value", "error")), match["n"]
    nu = max(int(n) - 1, 1) if n else DEFAULT_NU
    return Estimate(value, error, value_half, error_half, nu, match[0] + (f" (n={n})" if n else ""))


def _read_number(text):
    """Value of a printed number, and half a unit of its last digit."""
    number = Decimal(text.replace(",", "").replace("−", "-"))
    return float(number), 0.5 * 10.0 ** number.as_tuple().exponent if number.is_finite() else 0.0


def _is_contradiction(figure, verdict):
    """Whether a diagnostic's figure contradicts its verdict; one that is not a number meets no criterion."""
    criterion = CRITERION.match(verdict)
    if not criterion:
        return False
    (figure, half), (limit, _) = _read_number(figure), _read_number(criterion[2])
    # the figure is rounded, the verdict is not
    possible = {MEETS[criterion[1]](figure + step, limit) for step in (-half, 0, half)}
    return (criterion[3] == "yes") not in possible


def _rewrite_summary(text):
    """Write what `az.summary` prints, with the columns that it has of itself, as the book writes numbers.

    A row becomes ``a : mean -0.356 ± 0.0048, sd 0.35 ± 0.0052, …, bulk ~5376 (above 400: yes), …``. R-hat, which judges
    nothing, is left out. Any other text stays.
    """
    columns, *rows = [line.split() for line in text.strip().splitlines()] or [[]]
    return "\n".join([" ".join(columns), *map(_rewrite_row, rows)]) if columns == SUMMARY else text


def _rewrite_row(words):
    try:
        *label, mean, sd, low, high, bulk, tail, _, mean_error, sd_error = words
        bound_error = f"{2.06 * float(sd) / math.sqrt(float(tail)):.2g}"  # of a normal's 5.5 % quantile
        bounds = [f"{_pad(bound, float(bound) / 10)} ± {bound_error}" for bound in (low, high)]
        mean, sd = (_pad(number, 2 * float(error)) for number, error in ((mean, mean_error), (sd, sd_error)))
        bulk, tail = (f"~{ess} (above {MIN_ESS}: {'yes' if float(ess) > MIN_ESS else 'no'})" for ess in (bulk, tail))
    except (ArithmeticError, ValueError):  # no row of numbers
        return " ".join(words)
    name, interval = " ".join(label), " to ".join(bounds)
    return f"{name} : mean {mean} ± {mean_error}, sd {sd} ± {sd_error}, eti {interval}, bulk {bulk}, tail {tail}"


def _pad(number, unit):
    """Write a number (str) with the zeros that ArviZ drops, to the digit in which `unit` begins."""
    if not unit or "e" in number:
        return number
    return f"{float(number):.{max(-math.floor(math.log10(abs(unit))), len(number.partition('.')[2]), 0)}f}"


def list_contents(output):
    """What an output shows: dict from stream or mime type to text, or to a picture in base64; JSON becomes text."""
    if output["output_type"] == "stream":
        return {output["name"]: output["text"]}
    return {
        mime: content if isinstance(content, str) else json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True)
        for mime, content in sorted(output.get("data", {}).items())
    }


# --- what is wrong with outputs by themselves ---------------------------------------------------------------


def find_malformed(outputs):
    """Find numbers that look like an estimate or a diagnostic and cannot be read as one, and estimates printed with so
    few digits that a move of ten errors could hide in the rounding (ArviZ rounds its own as it sees fit)."""
    contents = [content for output in outputs for content in list_contents(output).items()]
    complaints = []
    for text in [text for mime, text in contents if mime not in (*PICTURES, "text/html")]:
        reading = read_text(text)
        complaints += reading.malformed
        complaints += [
            f"`{e.text}` is too coarse: give the error two digits, and the value as many decimals as the error"
            for e in reading.estimates
            if e.error > 0 and (e.error_half > 0.1001 * e.error or e.value_half > 1.001 * e.error_half)
            if _rewrite_summary(text) == text
        ]
    return complaints


def find_disagreeing(outputs):
    """Find words of an output's HTML, and numbers of its data, that its text does not show: a table is all three."""
    odd = Counter()
    for contents in map(list_contents, outputs):
        text = contents.get("text/plain", "")
        odd += Counter(html.unescape(TAG.sub(" ", contents.get("text/html", ""))).split()) - Counter(text.split())
        for data in [content for mime, content in contents.items() if mime.endswith("json")]:
            odd += Counter(_list_numbers(data)) - Counter(_list_numbers(text))
    return [f"the text of an output does not show what its HTML or data show: `{'`, `'.join(odd)}`"] if odd else []


def _list_numbers(text):
    return [match[0] for match in TOKEN.finditer(text)]


def read_picture(content):
    """Decode a picture in base64, on white paper: Image of red, green and blue."""
    picture = Image.open(io.BytesIO(base64.b64decode(content))).convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture).convert("RGB")


def measure_distance(*pictures):
    """How far two pictures differ to a short-sighted reader, in units of the contrast of the paler one (float).

    He sees brightness and two colours, blurred over 1/64 of the width. It is 0 for the same picture, and about 1.4 for
    one that has nothing to do with it.
    """
    sketches = []
    for picture in pictures:
        small = picture.resize(pictures[0].size).reduce(max(max(pictures[0].size) // 128, 1))
        red, green, blue = np.moveaxis(np.asarray(small) / 255, -1, 0)
        seen = np.stack([(red + green + blue) / 3, red - green, (red + green) / 2 - blue])
        sketches.append(ndimage.gaussian_filter(seen, (0, 2, 2)))
    drawn = [sketch - sketch.mean(axis=(1, 2), keepdims=True) for sketch in sketches]
    difference, *contrasts = [np.sqrt(np.square(x).sum(axis=0).mean()) for x in (sketches[0] - sketches[1], *drawn)]
    return float(difference / max(min(contrasts), 1e-9))


def find_blank(outputs):
    """Find the pictures among some outputs of which (almost) all has one colour."""
    pictures = [read_picture(o["data"][mime]) for o in outputs for mime in PICTURES if mime in o.get("data", {})]
    counts = [[count for count, _ in picture.getcolors(picture.width * picture.height)] for picture in pictures]
    return ["the picture is blank" for count in counts if max(count) >= BLANK_SHARE * sum(count)]


# --- numbers -----------------------------------------------------------------------------------------------


@cache
def limit_move(nu):
    """How many combined errors a value may move between two honest runs.

    A number of many seeds is granted what a normal one needs for the whole book to stay quiet. One of few seeds is
    granted what keeps its own risk at RISK, if that is more; for the whole book's sake it would need ten times that,
    and nothing would be seen. This is enough because most printed errors are spreads over data, splits or seeds that
    stay the same when a chapter is run elsewhere, and only samplers draw anew: in 49 runs of 33 chapters with other
    seeds 617 of 2,478 numbers moved at all, and at most one of them by more than this.
    """
    return max(-float(special.ndtri(LEVEL / 2)), -float(special.stdtrit(nu, RISK / 2)))


@cache
def limit_ratio(nu_above, nu_below):
    """How many times an error may exceed the other, by the F distribution, with risks shared out as in `limit_move`."""
    many = special.fdtri(max(nu_below, DEFAULT_NU), max(nu_above, DEFAULT_NU), LEVEL / 2)
    few = special.fdtri(nu_below, nu_above, RISK / 2)
    # the reciprocal of the lower tail, which is exact where 1 - level would round
    return float(min(many, few)) ** -0.5


def compare_estimates(stored, fresh):
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
    if move > limit_move(stored.nu + fresh.nu) * combined * (1 + 1e-9):
        complaints.append(_describe_move(stored, fresh))
    above, below = sorted([stored, fresh], key=lambda estimate: estimate.error, reverse=True)
    ratio = max(above.error - above.error_half, 0.0) / (below.error + below.error_half)
    if ratio > limit_ratio(above.nu, below.nu) * (1 + 1e-9):
        complaints.append(f"{contrast}: one error is {above.error / below.error:.2g} times the other")
    return complaints


def _describe_move(stored, fresh):
    moved = abs(stored.value - fresh.value) / (math.hypot(stored.error, fresh.error) or math.nan)
    return f"stored `{stored.text}`, came `{fresh.text}`: the value moved by {moved:.2g} combined errors"


# --- outputs -----------------------------------------------------------------------------------------------


def compare_text(stored, fresh, strict=False):
    """Compare two texts, number by number, or letter by letter if `strict`: a list of complaints."""
    before, now = read_text(stored), read_text(fresh)
    complaints = list(dict.fromkeys(before.malformed + now.malformed))
    if before.skeleton != now.skeleton and not strict:
        seen = [_normalize(text) for text in (stored, fresh)]
        return [*complaints, _describe_difference(*seen, by=lambda line: read_text(line).skeleton)]
    if strict and stored != fresh:
        complaints.append(_describe_difference(stored, fresh))
    if before.skeleton == now.skeleton:
        for a, b in zip(before.estimates, now.estimates, strict=True):
            complaints += [_describe_move(a, b)] * (a.text != b.text) if strict else compare_estimates(a, b)
    return complaints


def _describe_difference(stored, fresh, by=str):
    """Show the first line that differs, as seen through `by`."""
    lines = zip_longest(stored.splitlines(), fresh.splitlines(), fillvalue="(nothing)")
    for number, (a, b) in enumerate(lines, 1):
        if by(a) != by(b):
            return f"line {number} differs:\n    stored: {a}\n    came:   {b}"
    return f"differs in line breaks: stored {len(stored)} characters, came {len(fresh)}"


def compare_outputs(stored, fresh, strict=False):
    """Compare all outputs of one cell, consecutive streams joined: complaints, each saying which output it is about.

    `strict` asks for equality, as on the machine that wrote the notebook.
    """
    kinds = ["; ".join(map(_describe_kind, outputs)) or "(none)" for outputs in (stored, fresh)]
    if kinds[0] != kinds[1]:
        return [f"other outputs:\n    stored: {kinds[0]}\n    came:   {kinds[1]}"]
    complaints = find_disagreeing([*stored, *fresh]) + find_blank([*stored, *fresh])
    for i, (a, b) in enumerate(zip(stored, fresh, strict=True), 1):
        for mime, content in list_contents(a).items():
            found = _compare_content(mime, content, list_contents(b)[mime], strict)
            complaints += [f"output {i} ({mime}): {complaint}" for complaint in found]
        if strict and a.get("metadata") != b.get("metadata"):
            complaints.append(f"output {i}: metadata: stored `{a['metadata']}`, came `{b['metadata']}`")
    return complaints


def _describe_kind(output):
    return f"{output['output_type']} {output.get('name', '')}{', '.join(sorted(output.get('data', {})))}".strip()


def _compare_content(mime, stored, fresh, strict):
    if mime in PICTURES:
        before, now = read_picture(stored), read_picture(fresh)
        near = before.size == now.size if strict else np.abs(np.subtract(before.size, now.size)).max() <= SIZE_SLACK
        distance = measure_distance(before, now) if near else math.inf
        same = before.tobytes() == now.tobytes() if strict else distance <= SIMILAR_PICTURE
        return [] if same else [f"the picture differs: sizes {before.size} and {now.size}, distance {distance:.2f}"]
    if mime != "text/html":
        return compare_text(stored, fresh, strict)
    # its words are those of the text: `find_disagreeing`
    before, now = (content if strict else "\n".join(TAG.findall(content)) for content in (stored, fresh))
    return [] if before == now else [_describe_difference(before, now)]
