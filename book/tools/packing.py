"""How the posteriors that live pages ask are packed, and where on a page the maps are that they answer for.

`tools.pictures` writes them; `book/_static/live` has the scripts that read them.
"""

from io import BytesIO

import matplotlib
import numpy as np
from hbnn import metrics
from PIL import Image
from scipy.stats import norm

LEVELS, DIGITS = 5, 13  # where a weight of one draw may be: 13 of them in 32 bits
WHOLE = np.iinfo(np.int16).max
PRICE = 0.05  # share of validation images above the marks of the scales, as in the chapter


def pack_whole(values):
    """Numbers as 16 bits each, and what one step is worth: (bytes, float)."""
    step = float(np.abs(values).max() / WHOLE)
    return np.rint(values / step).astype("<i2").tobytes(), step


def find_levels(n):
    """The n levels that serve a standard normal best (Lloyd 1982), from its quantiles."""
    quantiles = norm.ppf((np.arange(20_001) + 0.5) / 20_001)
    levels = norm.ppf((np.arange(n) + 0.5) / n)
    for _ in range(300):
        nearest = np.digitize(quantiles, (levels[1:] + levels[:-1]) / 2)
        levels = np.array([quantiles[nearest == k].mean() for k in range(n)])
    return levels


def round_draws(weights, n_levels=LEVELS):
    """Draws (draw, weight) as mean + sd * level, so that each weight keeps its mean and its sd over the draws.

    Returns (levels, mean, sd, code): (n_levels,), (weight,), (weight,), and (draw, weight), the number of its level.
    """
    mean, sd, levels = weights.mean(axis=0), weights.std(axis=0), find_levels(n_levels)
    code = np.digitize((weights - mean) / sd, (levels[1:] + levels[:-1]) / 2)
    told = levels[code]  # coarse levels have another mean and a smaller sd than what they stand for
    sd = sd / told.std(axis=0)
    return levels, mean - sd * told.mean(axis=0), sd, code


def pack_codes(code, n_levels=LEVELS, n=DIGITS):
    """Whole numbers below `n_levels` as digits of words of 32 bits, the first the one that counts least."""
    rows = np.pad(code.ravel(), (0, -code.size % n)).reshape(-1, n)
    return (rows @ n_levels ** np.arange(n)).astype("<u4").tobytes()


def flatten(networks):
    """All weights of each draw, chains one after the other: (draw, weight)."""
    parts = [networks[name].values for name in ("w1", "w2", "w3")]
    return np.hstack([part.reshape(part.shape[0] * part.shape[1], -1) for part in parts])


def find_marks(page):
    """Doubt, noise and ignorance that one validation image in twenty lies above; the last is the limit of `digits`."""
    parts = metrics.split_uncertainty(page["predict"](page["data"].X_validation))
    marks = {name: float(np.quantile(parts[name], 1 - PRICE)) for name in ("total", "noise", "ignorance")}
    if not np.isclose(marks["ignorance"], page["limit"]):
        raise SystemExit(f"the chapter's limit is {page['limit']}, not {marks['ignorance']}; wanted: the same price")
    return marks


def list_examples(page):
    """Things to try on the pad: the chapter's own, and the test digit about which it is most ignorant."""
    data = page["data"]
    doubted = data.X_test[page["find_ignorance"](page["p_test"]).argmax()]
    images = {name: page["asked"][name] for name in ("a 3, by hand", "a letter A", "a letter R")}
    images |= {"random pixels": page["asked"]["noise"], "most doubted digit": doubted}
    known = ("a 3, by hand", "most doubted digit")
    strokes = {name: page["STROKES"][name] for name in ("a face", "a house")}
    examples = [{"name": name, "image": np.round(image, 4).tolist()} for name, image in images.items()] + [
        {"name": name, "strokes": [np.round(np.asarray(line, float), 3).tolist() for line in lines]}
        for name, lines in strokes.items()
    ]
    return [example | {"stranger": example["name"] not in known} for example in examples]


def find_panels(figure, methods, picture):
    """Where the first axes of a drawn figure, one for each of `methods`, are in its picture, and what they show.

    Places are shares of the width and height of `picture`, the PNG on the page, as `bookkit.plots.draw_png` cuts it.
    """
    figure.set_dpi(2 * figure.dpi)
    figure.draw_without_rendering()
    cut = figure.get_tightbbox().padded(matplotlib.rcParams["savefig.pad_inches"])
    wide, high = Image.open(BytesIO(picture)).size
    if max(abs(cut.width * figure.dpi - wide), abs(cut.height * figure.dpi - high)) > 2:
        raise SystemExit(f"the stored picture has {wide} x {high} pixels, this one {cut.size * figure.dpi}")
    panels = []
    for ax, method in zip(figure.axes[: len(methods)], methods, strict=True):
        box = ax.get_window_extent().transformed(figure.dpi_scale_trans.inverted())
        left, top = (box.x0 - cut.x0) / cut.width, (cut.y1 - box.y1) / cut.height
        shares = (left, top, box.width / cut.width, box.height / cut.height)
        panels.append({
            "box": [round(float(share), 5) for share in shares],
            "x": [float(end) for end in ax.get_xlim()], "y": [float(end) for end in ax.get_ylim()],
            "title": ax.get_title(), "method": method,
        })  # fmt: skip
    return panels
