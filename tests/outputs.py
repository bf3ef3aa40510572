"""Compare the stored outputs of a cell with fresh ones.

Every number that a chapter prints is one of four kinds, told apart in the output itself:

===============================  =======================  ====================================================
written                          kind                     on another machine
===============================  =======================  ====================================================
``0.971``                        exact                    equal
``0.971 ± 0.012``, ``… (n=20)``  estimate                 no further apart than honest runs are
``~1.004 (below 1.01: yes)``     diagnostic               another figure, the same criterion, the same verdict
``31 s (measured)``              measured                 equal: it was read from a data file
===============================  =======================  ====================================================

A table that ArviZ prints (``az.summary``) is read as if it were written so, too: see `summaries.py`.

On the machine that wrote the notebook all of them, and every pixel, are equal: that is the *strict* mode.

How far apart are honest runs? ``tests/honest_runs.json`` knows it of each number and each picture, from chapters that
were executed again with other seeds and other last bits (`calibrate_outputs.py`). Most numbers move by far less than
their errors, which are spreads over data that stay the same. A number that is not in the record, because its output is
new, may move by a few of its printed errors.
All functions here are pure: they take outputs as nbformat stores them and return lists of complaints.
"""

import base64
import hashlib
import html
import io
import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import zip_longest

import numpy as np
import summaries
from PIL import Image
from scipy import ndimage, special

RISK = 1e-3  # of a false alarm, in one run of the whole book
# how RISK is shared out: all values together, all errors together, all tests of drift together
SHARES = {"values": 0.45, "errors": 0.45, "drift": 0.1}
DEFAULT_NU = 30  # degrees of freedom of an error that does not say how many seeds it comes from
NOTHING = {"numbers": {}, "pictures": {}}  # the record of a chapter of which no honest runs are known
# of two pictures, `measure_distance` and `measure_colours`: what edges and letters may differ by; and what a picture
# may differ by that is not in the record
SAME_PICTURE, SIMILAR_PICTURE = (0.002, 0.3), (0.06, 1.2)
CLIP = 9.0  # a square move counts as no more, for one number that jumps is no drift
TURNS = {
    "mirrored": lambda pixels: pixels[:, ::-1],
    "upside down": lambda pixels: pixels[::-1],
    "in exchanged colours": lambda pixels: pixels[..., [2, 1, 0, 3]],
}
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
# stand for a token in the text that must be equal
ESTIMATE_MARK, FIGURE_MARK = "\ue000", "\ue001"


@dataclass(frozen=True)
class Estimate:
    """A number with a Monte Carlo error, as printed.

    Attributes
    ----------
    value, error : float
        What was printed.
    value_half, error_half : float
        Half a unit of the last printed digit of each: what rounding may have moved.
    nu : int
        Degrees of freedom of the error.
    text : str
        The number as it stands in the output.
    """

    value: float
    error: float
    value_half: float
    error_half: float
    nu: int
    text: str


@dataclass(frozen=True)
class Reading:
    """A text taken apart.

    Attributes
    ----------
    skeleton : str
        The text with a mark where an estimate or the figure of a diagnostic stood.
    estimates : tuple of Estimate
        In their order.
    malformed : tuple of str
        Numbers that look like one of the kinds and are not, each with how to write it.
    """

    skeleton: str
    estimates: tuple
    malformed: tuple


# --- reading -----------------------------------------------------------------------------------------------


def read_text(text):
    """Take a text apart into what must be equal and what may move.

    Parameters
    ----------
    text : str
        Plain text; runs of spaces and of rules count as one, because the columns of a table move with
        the width of its numbers.

    Returns
    -------
    Reading
    """
    skeleton, estimates, malformed, end = [], [], summaries.find_malformed(text), 0
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
        elif match["divergences"]:
            skeleton.append(FIGURE_MARK)
        else:
            skeleton.append(match[0])
    malformed += _find_loose(text[end:])
    counts = [match for match in COUNT.finditer(text) if int(match[1]) > int(match[2])]
    malformed += [f"`{match[0]}` cannot be: wanted: a part of the whole" for match in counts]
    skeleton.append(text[end:])
    return Reading("".join(skeleton), tuple(estimates), tuple(malformed))


def _collapse(text):
    text = re.sub(r"[ \t\xa0]+", " ", text)
    text = re.sub(r"([-=─━])\1{2,}", r"\1\1\1", text)
    return summaries.rewrite("\n".join(line.strip() for line in text.splitlines()))


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
        f"`{match[0]}` is a diagnostic without a verdict: write `~1.004 (below 1.01: yes)`"
        for match in LOOSE_DIAGNOSTIC.finditer(text)
    ] + [
        f"`{match[0].strip()}` is not a number with its error: write `0.971 ± 0.012` or `0.971 ± 0.012 (n=20)`, "
        "and units after it"
        for match in LOOSE_ESTIMATE.finditer(text)
    ]


def _find_impossible(match, label):
    """Find out whether the figure of a diagnostic contradicts its verdict, or is none that can be.

    Parameters
    ----------
    match : re.Match of TOKEN
    label : str, what stands before it in its line
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
    """Turn HTML into the text a reader sees, one line for each block, so that numbers can be read in it.

    Parameters
    ----------
    text : str

    Returns
    -------
    str
        The text; markup inside a line (bold, code) is gone, every other tag is a new line. A row of a summary is one.
    """
    return html.unescape(TAG.sub("\n", INLINE_TAG.sub("", summaries.flatten(text))))


def list_texts(output):
    """List the texts of one output that a reader may read numbers in.

    Parameters
    ----------
    output : dict
        A cell output as nbformat stores it.

    Returns
    -------
    list of (str, str)
        Where the text stands (its mime type, and the path inside JSON), and the text itself.
    """
    if output["output_type"] == "stream":
        return [(output["name"], output["text"])]
    texts = []
    for mime, content in sorted(output.get("data", {}).items(), reverse=True):  # plain text first
        if mime == "text/html":
            texts.append((mime, read_html(content)))
        elif _is_json(mime):
            leaves = [(where, leaf) for where, leaf in _list_leaves(content) if isinstance(leaf, str)]
            texts += [(f"{mime} {where}", leaf) for where, leaf in leaves]
        elif mime.startswith("text/"):
            texts.append((mime, content))
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
    """List the numbers that one output shows, once for each mime type that shows any: a table is text and HTML.

    Parameters
    ----------
    output : dict

    Returns
    -------
    dict of str to list of str
        The mime types, and the estimates and diagnostics there as written.
    """
    copies = {}
    for where, text in list_texts(output):
        found = [m[0] for m in TOKEN.finditer(_collapse(text)) if not m["divergences"]]
        copies.setdefault(where.split(" ")[0], []).extend(found)
    return {mime: found for mime, found in copies.items() if found}


def find_disagreeing(outputs):
    """Find numbers that one copy of an output shows and another does not.

    Parameters
    ----------
    outputs : iterable of dict

    Returns
    -------
    list of str
    """
    complaints = []
    for output in outputs:
        (first, shown), *others = list(list_copies(output).items()) or [("", [])]
        for mime, found in others:
            if odd := Counter(shown) - Counter(found) | Counter(found) - Counter(shown):
                complaints.append(f"{first} and {mime} disagree about `{'`, `'.join(odd)}`")
    return complaints


def list_estimates(outputs):
    """List every `value ± error` in some outputs, once: in the first mime type that shows any.

    Parameters
    ----------
    outputs : iterable of dict

    Returns
    -------
    list of Estimate
    """
    return [estimate for output in outputs for text in list_counted(output) for estimate in read_text(text).estimates]


def list_counted(output):
    """List the texts of an output whose numbers count; other texts only repeat them."""
    first = next(iter(list_copies(output)), None)
    return [text for where, text in list_texts(output) if where.split(" ")[0] == first]


def name_text(text):
    """Name a text by what in it does not move, so that the record knows its numbers again, as a str."""
    return hashlib.sha256(read_text(text).skeleton.encode()).hexdigest()[:12]


def find_malformed(outputs):
    """Find numbers that look like an estimate or a diagnostic and cannot be read as one.

    Parameters
    ----------
    outputs : iterable of dict

    Returns
    -------
    list of str
        One complaint for each, with how to write it.
    """
    readings = [read_text(text) for output in outputs for _, text in list_texts(output)]
    return [complaint for reading in readings for complaint in reading.malformed]


def find_coarse(outputs):
    """Find estimates printed with so few digits that a move of ten errors could hide in the rounding.

    ArviZ rounds the numbers of a summary by their errors, as it sees fit.

    Parameters
    ----------
    outputs : iterable of dict

    Returns
    -------
    list of str
    """
    return [
        f"`{e.text}` is printed too coarsely: give the error two digits, and the value as many decimals as the error"
        for output in outputs
        for text in list_counted(output)
        for e in read_text(summaries.drop(text)).estimates
        if e.error > 0 and (e.error_half > 0.1001 * e.error or e.value_half > 1.001 * e.error_half)
    ]


# --- numbers -----------------------------------------------------------------------------------------------


def set_level(count):
    """Share the risk of a false alarm out among all estimates of the book.

    Parameters
    ----------
    count : int
        Estimates in the whole book, each counted once.

    Returns
    -------
    float
        The two-sided level of one test (Bonferroni).
    """
    return SHARES["values"] * RISK / max(count, 1)


@cache
def limit_move(level, nu):
    """How many combined errors a value may move that is not in the record.

    A number of many seeds is granted what a normal one needs for the whole book to stay quiet, one of few seeds at
    least what keeps its own risk below 1 in 1,000.
    """
    return max(-float(special.ndtri(level / 2)), -float(special.stdtrit(nu, RISK / 2)))


@cache
def limit_ratio(level, nu_above, nu_below):
    """How many times an error may exceed the other where neither is in the record."""
    quantiles = [
        # the reciprocal of the lower tail, which is exact where 1 - level would round
        special.fdtri(below, above, risk / 2)
        for risk, above, below in [
            (level, max(nu_above, DEFAULT_NU), max(nu_below, DEFAULT_NU)),
            (RISK, nu_above, nu_below),
        ]
    ]
    return float(min(quantiles)) ** -0.5


def compare_estimates(stored, fresh, level, known=None):
    """Compare two runs of one estimate: their values, then their errors.

    Half a unit of the last printed digit is granted to every number, since rounding may have moved it.
    An error printed as zero means that the number is exact.

    Parameters
    ----------
    stored, fresh : Estimate
    level : float
        From `set_level`, for a number that is not in the record.
    known : (float, float, float), optional
        Of the record: the standard deviation of the difference of two honest runs, how far they may lie apart, and
        how many times one error may be the other.

    Returns
    -------
    list of str
        Empty if they agree.
    """
    if stored.error == 0 or fresh.error == 0:
        same = (stored.value, stored.error) == (fresh.value, fresh.error)
        return [] if same else [f"{_contrast(stored, fresh)}: an error of zero means exact, and it is not equal"]
    complaints = []
    combined = math.hypot(stored.error + stored.error_half, fresh.error + fresh.error_half)
    limit = known[1] if known else limit_move(level, stored.nu + fresh.nu) * combined
    # a hair of slack, for 0.3 - 0.2 is not 0.1
    if _measure_move(stored, fresh) > limit * (1 + 1e-9):
        honest = f"; honest runs of it differ by {known[0]:.2g}, at most {known[1]:.2g}" if known else ""
        complaints.append(f"{_contrast(stored, fresh)}: the value {describe_move(stored, fresh)}{honest}")
    above, below = sorted([stored, fresh], key=lambda estimate: estimate.error, reverse=True)
    ratio = max(above.error - above.error_half, 0.0) / (below.error + below.error_half)
    if ratio > (known[2] if known else limit_ratio(level, above.nu, below.nu)) * (1 + 1e-9):
        complaints.append(f"{_contrast(stored, fresh)}: one error is {above.error / below.error:.2g} times the other")
    return complaints


def _measure_move(stored, fresh):
    """How far two values lie apart, beyond what rounding may have moved them."""
    return max(abs(stored.value - fresh.value) - stored.value_half - fresh.value_half, 0.0)


def list_moves(stored, fresh, record=NOTHING):
    """List by how many standard deviations of honest runs the numbers of a cell moved, for the test of drift.

    Parameters
    ----------
    stored, fresh : list of dict
        Outputs of one cell.
    record : dict
        Of the chapter.

    Returns
    -------
    list of float
        One for each number in the record that moves between honest runs at all.
    """
    moves = []
    for before, now in zip(stored, fresh, strict=False):
        for a, b in zip(list_counted(before), list_counted(now), strict=False):
            known = record["numbers"].get(name_text(a), [])
            pairs = zip(read_text(a).estimates, read_text(b).estimates, known, strict=False)
            moves += [(x.value - y.value) / scale for x, y, (scale, _, _) in pairs if scale]
    return moves


def measure_drift(moves):
    """Mean square of moves, none counted above CLIP; about 1 between honest runs, and 0 where there are no moves."""
    return float(np.minimum(np.square(moves), CLIP).mean()) if len(moves) else 0.0


def find_drift(moves, limit):
    """Find out whether many numbers of a chapter, or of the book, moved at once, each within its own limit.

    Parameters
    ----------
    moves : list of float, from `list_moves`
    limit : float or None, of the record; None: not known

    Returns
    -------
    list of str
    """
    drift = measure_drift(moves)
    if limit is None or drift <= limit:
        return []
    return [f"{len(moves)} numbers drifted: mean square move {drift:.1f}, between honest runs at most {limit:.1f}"]


def _contrast(stored, fresh):
    return f"stored `{stored.text}`, came `{fresh.text}`"


def describe_move(stored, fresh):
    """Say by how many combined errors an estimate moved between two runs, as a str."""
    combined = math.hypot(stored.error, fresh.error)
    if combined == 0:
        return f"moved by {abs(stored.value - fresh.value):.3g}, with an error of zero"
    return f"moved by {abs(stored.value - fresh.value) / combined:.2g} combined errors"


# --- texts -------------------------------------------------------------------------------------------------


def compare_text(stored, fresh, level, strict=False, record=NOTHING):
    """Compare two texts, number by number.

    Parameters
    ----------
    stored, fresh : str
    level : float or None
        From `set_level`; None for a copy of numbers that are compared elsewhere.
    strict : bool
        Whether every character must be equal.
    record : dict
        Of the chapter.

    Returns
    -------
    list of str
        Empty if they agree.
    """
    before, now = read_text(stored), read_text(fresh)
    complaints = list(dict.fromkeys(before.malformed + now.malformed))
    if strict and stored != fresh:
        complaints.append(_describe_text(stored, fresh))
        if before.skeleton == now.skeleton:
            moves = zip(before.estimates, now.estimates, strict=True)
            complaints += [f"{_contrast(a, b)}: the value {describe_move(a, b)}" for a, b in moves if a.text != b.text]
    elif before.skeleton != now.skeleton:
        complaints.append(_describe_text(_collapse(stored), _collapse(fresh), by=lambda line: read_text(line).skeleton))
    elif not strict and level is not None:
        known = record["numbers"].get(name_text(stored)) or [None] * len(before.estimates)
        for a, b, limits in zip(before.estimates, now.estimates, known, strict=True):
            complaints += compare_estimates(a, b, level, limits)
    return complaints


def _describe_text(stored, fresh, by=str):
    """Show the first line that differs, as seen through `by`."""
    for number, (a, b) in enumerate(zip_longest(stored.splitlines(), fresh.splitlines()), 1):
        if a is None or b is None or by(a) != by(b):
            return f"line {number} differs:\n    stored: {_show_line(a)}\n    came:   {_show_line(b)}"
    return f"differs in line breaks: stored {len(stored)} characters, came {len(fresh)}"


def _show_line(line):
    return "(nothing)" if line is None else line


def compare_html(stored, fresh, level, strict=False, record=NOTHING):
    """Compare two pieces of HTML: their tags letter by letter, their text as `compare_text` does."""
    if strict:
        return compare_text(stored, fresh, level, strict=True) if stored != fresh else []
    complaints = compare_text(read_html(stored), read_html(fresh), level, record=record)
    if not complaints and TAG.findall(stored) != TAG.findall(fresh):
        complaints = [_describe_text("\n".join(TAG.findall(stored)), "\n".join(TAG.findall(fresh)))]
    return complaints


def compare_json(stored, fresh, level, strict=False, record=NOTHING):
    """Compare two JSON contents, such as the claims of a chapter: texts as `compare_text` does, the rest equal."""
    before, now = list(_list_leaves(stored)), list(_list_leaves(fresh))
    if [where for where, _ in before] != [where for where, _ in now]:
        return [_describe_text(*("\n".join(f"{where}: {leaf}" for where, leaf in leaves) for leaves in (before, now)))]
    complaints = []
    for (where, a), (_, b) in zip(before, now, strict=True):
        if isinstance(a, str) and isinstance(b, str):
            complaints += [f"{where}: {complaint}" for complaint in compare_text(a, b, level, strict, record)]
        # True == 1, but a verdict is not a number
        elif json.dumps(a) != json.dumps(b):
            complaints.append(f"{where}: stored `{a}`, came `{b}`")
    return complaints


# --- pictures ----------------------------------------------------------------------------------------------


def read_picture(content):
    """Decode a picture.

    Parameters
    ----------
    content : str
        The file in base64, as notebooks store it.

    Returns
    -------
    array of uint8, shape (height, width, 4)
        Red, green, blue and opacity.
    """
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(content))).convert("RGBA"))


def is_blank(pixels):
    """Tell whether (almost) all of a picture, shape (height, width, 4), has one colour."""
    # the colour of a pixel that cannot be seen does not count
    seen = np.where(pixels[..., 3:] == 0, 0, pixels).astype(np.uint8)
    codes = np.ascontiguousarray(seen).view(np.uint32).ravel()
    return np.unique(codes, return_counts=True)[1].max() >= BLANK_SHARE * codes.size


def sketch(pixels):
    """Draw a picture as a short-sighted reader sees it: brightness and two colours, blurred over a 64th of its width.

    Parameters
    ----------
    pixels : array of uint8, shape (height, width, 4)

    Returns
    -------
    array, shape (3, rows, columns)
    """
    picture = Image.new("RGBA", pixels.shape[1::-1], "white")
    picture.alpha_composite(Image.fromarray(np.ascontiguousarray(pixels)))
    small = picture.convert("RGB").reduce(max(max(pixels.shape[:2]) // 128, 1))
    red, green, blue = np.moveaxis(np.asarray(small) / 255, -1, 0)
    opponents = np.stack([(red + green + blue) / 3, red - green, (red + green) / 2 - blue])
    return ndimage.gaussian_filter(opponents, (0, 2, 2))


def measure_distance(stored, fresh):
    """Root mean square difference of two pictures of one size, as `sketch` has them: 1 for black against white."""
    return float(np.sqrt(np.square(sketch(stored) - sketch(fresh)).sum(axis=0).mean()))


def measure_colours(stored, fresh):
    """Largest log ratio of what two pictures have of a colour, greys apart: 1 or more if a series is gone."""
    return float(np.abs(np.log(_count_colours(stored) / _count_colours(fresh))).max())


def _count_colours(pixels):
    """Share of a picture that each of 512 colours has, spread a little over its neighbours; 1 in 5,000 is granted."""
    colours = pixels[..., :3].astype(int)
    counts = np.histogramdd(colours[np.ptp(colours, axis=-1) >= 40], bins=8, range=[(0, 256)] * 3)[0]
    return ndimage.gaussian_filter(counts / colours[..., 0].size, 0.6, mode="constant") + 2e-4


def compare_pictures(stored, fresh, strict=False, limits=None):
    """Compare two pictures: pixel by pixel if `strict`, else by what they show.

    Parameters
    ----------
    stored, fresh : str
        The files in base64.
    strict : bool
    limits : (float, float), optional
        Of the record: how far honest runs may lie apart, in distance and in colours.

    Returns
    -------
    list of str
        Empty if they agree.
    """
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
    elif not complaints and differs.any():
        complaints += compare_shown(before, now, limits or SIMILAR_PICTURE)
    return complaints


def _fit(pixels, other):
    """Pad a picture with white, at the right and below, to the larger of two shapes."""
    return np.pad(pixels, [(0, max(b - a, 0)) for a, b in zip(pixels.shape, other, strict=True)], constant_values=255)


def compare_shown(before, now, limits):
    """Compare what two pictures of one size show.

    Parameters
    ----------
    before, now : array of uint8, shape (height, width, 4)
    limits : (float, float), how far honest ones may lie apart, in distance and in colours

    Returns
    -------
    list of str
        Empty if they agree.
    """
    distance, colours = measure_distance(before, now), measure_colours(before, now)
    if distance <= SAME_PICTURE[0] and colours <= SAME_PICTURE[1]:
        return []
    turned = [how for how, turn in TURNS.items() if measure_distance(before, turn(now)) < distance / 2]
    if turned:
        return [f"the picture came {turned[0]}"]
    found = [("distance", distance, limits[0]), ("change of colours", colours, limits[1])]
    return [
        f"the picture shows something else: {what} {value:.3f}, wanted: at most {limit:.3f}"
        for what, value, limit in found
        if value > limit
    ]


def find_blank(outputs):
    """Find the pictures among some outputs that show nothing, as a list of complaints."""
    return [
        f"output {i}: the picture is blank"
        for i, output in enumerate(outputs, 1)
        for mime in PICTURES
        if mime in output.get("data", {}) and is_blank(read_picture(output["data"][mime]))
    ]


# --- cells -------------------------------------------------------------------------------------------------


def compare_outputs(stored, fresh, level, strict=False, record=NOTHING, figure=None):
    """Compare all outputs of one cell.

    Parameters
    ----------
    stored, fresh : list of dict
        Outputs as nbformat stores them, consecutive streams joined.
    level : float
        From `set_level`.
    strict : bool
        Whether everything must be equal, as on the machine that wrote the notebook.
    record : dict
        What is known of honest runs of the chapter: ``numbers``, and ``pictures`` by the name of their figure.
    figure : str, optional
        The name of the figure that the cell shows.

    Returns
    -------
    list of str
        Complaints, each saying which output it is about; empty if all agree.
    """
    kinds = [describe_kind(output) for output in stored], [describe_kind(output) for output in fresh]
    if kinds[0] != kinds[1]:
        return [f"other outputs:\n    stored: {_list_kinds(kinds[0])}\n    came:   {_list_kinds(kinds[1])}"]
    return [
        f"output {i} ({where}): {complaint}"
        for i, (a, b) in enumerate(zip(stored, fresh, strict=True), 1)
        for where, complaint in _compare_output(a, b, level, strict, record, figure)
    ]


def describe_kind(output):
    """Say what kind of output it is: its type, and the stream or the mime types, as a str."""
    return f"{output['output_type']} {output.get('name', '')}{', '.join(sorted(output.get('data', {})))}".strip()


def _list_kinds(kinds):
    return "; ".join(kinds) or "(none)"


def _compare_output(stored, fresh, level, strict, record, figure):
    """Compare two outputs of one kind, as (mime type, complaint) pairs."""
    if stored["output_type"] == "stream":
        return [(stored["name"], c) for c in compare_text(stored["text"], fresh["text"], level, strict, record)]
    found = [("copies", complaint) for complaint in dict.fromkeys(find_disagreeing([stored, fresh]))]
    counted = next(iter(list_copies(stored)), None)
    for mime, content in sorted(stored.get("data", {}).items()):
        if mime in PICTURES:
            complaints = compare_pictures(content, fresh["data"][mime], strict, record["pictures"].get(figure))
        else:
            own = level if mime == counted or strict else None
            complaints = _compare_content(mime, content, fresh["data"][mime], own, strict, record)
        found += [(mime, complaint) for complaint in complaints]
    if not _is_same_metadata(stored.get("metadata", {}), fresh.get("metadata", {}), strict):
        found.append(("metadata", f"stored `{stored['metadata']}`, came `{fresh['metadata']}`"))
    return found


def _is_same_metadata(stored, fresh, strict):
    """Whether metadata are equal; elsewhere a picture may be shown larger by as much as it may be larger."""
    if strict or stored.keys() != fresh.keys():
        return dict(stored) == dict(fresh)
    sizes = [(stored[mime], fresh[mime]) for mime in stored if mime in PICTURES]
    near = all(a.keys() == b.keys() and all(abs(a[side] - b[side]) <= SIZE_SLACK for side in a) for a, b in sizes)
    return near and all(stored[key] == fresh[key] for key in stored if key not in PICTURES)


def _compare_content(mime, stored, fresh, level, strict, record):
    if mime == "text/html":
        return compare_html(stored, fresh, level, strict, record)
    if _is_json(mime):
        return compare_json(stored, fresh, level, strict, record)
    if mime.startswith("text/"):
        return compare_text(stored, fresh, level, strict, record)
    return [] if stored == fresh else [_describe_text(str(stored), str(fresh))]
