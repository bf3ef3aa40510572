"""Store the posteriors that live pages ask: ``book/_static/live/<chapter>.bin``, and ``<chapter>.json`` beside it.

    python -m tools.stored              both: digits, flat_advi
    python -m tools.stored flat_advi

A chapter's own cells are run, so that a page asks the networks of its own fit and keeps its own limit. The json holds
how the numbers are packed, what else the page shows, and digests of the cells, of the pictures and of the bytes.
"""

import base64
import hashlib
import json
import sys
from io import BytesIO

import jupytext
import matplotlib
import nbformat
import numpy as np
from PIL import Image
from scipy.stats import norm

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from bookkit import plots
from bookkit.repo import BOOK
from bookkit.repo import digest as digest_rows
from hbnn import metrics

FOLDER = BOOK / "_static" / "live"
LAYERS = ("w1", "b1", "w2", "b2", "w3", "b3")
LEVELS, DIGITS = 5, 13  # where a weight of one draw may be: 13 of them in 32 bits
WHOLE = np.iinfo(np.int16).max
PRICE = 0.05  # share of validation images above the marks of the scales, as in the chapter
MAPS = {  # figures of flat_advi, and whose networks each of their panels shows
    "fig-flat-advi-probability": ["ADVI"],
    "fig-flat-advi-prior": ["prior"] * 6,
    "fig-flat-advi-uncertainty": ["ADVI", "ADVI"],
    "fig-flat-advi-missed": ["ADVI", "NUTS"],
}


# --- a chapter's cells


def list_cells(name, last):
    """The code cells of a chapter up to the first one with `last` in its source or among its options."""
    cells = []
    for cell in jupytext.read(BOOK / f"{name}.md").cells:
        if cell.cell_type == "code":
            cells.append(cell)
            if last in cell.source or last == name_figure(cell):
                return cells
    raise SystemExit(f"{name} has no cell with {last!r}")


def name_figure(cell):
    """The label of a cell's figure, or None."""
    return cell.metadata.get("mystnb", {}).get("figure", {}).get("name")


def digest_cells(name, last):
    """SHA-256 of the code that a stored posterior comes from."""
    return digest_rows([cell.source for cell in list_cells(name, last)])


def run_cells(name, last, look=lambda label, figure: None):
    """What cells define (dict); `look` is shown each labelled figure before it is closed."""
    defined = {}
    for cell in list_cells(name, last):
        exec(compile(cell.source, name, "exec"), defined)
        if name_figure(cell) and plt.get_fignums():
            look(name_figure(cell), plt.gcf())
        plt.close("all")
    return defined


def write(name, about, content):
    """Write what a page fetches: `content` are bytes, `about` says how to read them."""
    (FOLDER / f"{name}.bin").write_bytes(content)
    about = about | {"bytes": hashlib.sha256(content).hexdigest()}
    (FOLDER / f"{name}.json").write_text(json.dumps(about | {"digest": digest_rows(about)}, indent=1) + "\n")
    print(f"{name}: {len(content) / 1000:.0f} kB")


def pack_whole(values):
    """Numbers as 16 bits each, and what one step is worth: (bytes, float)."""
    step = float(np.abs(values).max() / WHOLE)
    return np.rint(values / step).astype("<i2").tobytes(), step


def read(name):
    """How a posterior is packed, and what else its page shows (dict)."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf8"))


# --- digits: two hundred draws of nine thousand weights


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


def store_digits():
    """The chapter's two hundred networks, its limit, and images to try."""
    page = run_cells("digits", "STROKES")
    weights = {name: page["w"][name] for name in LAYERS}
    n_draws = len(weights["w1"])
    levels, mean, sd, code = round_draws(np.hstack([values.reshape(n_draws, -1) for values in weights.values()]))
    (means, step_mean), (sds, step_sd) = pack_whole(mean), pack_whole(sd)
    about = {
        "script": "digit_pad.js",
        "code": digest_cells("digits", "STROKES"),
        "draws": n_draws,
        "shapes": {name: list(values.shape[1:]) for name, values in weights.items()},
        "digits": DIGITS,
        "levels": levels.tolist(),
        "steps": {"mean": step_mean, "sd": step_sd},
        "side": page["data"].shape[0],
        "limit": float(page["limit"]),
        "marks": find_marks(page),
        "examples": list_examples(page),
    }
    write("digits", about, means + sds + pack_codes(code))


def find_marks(page):
    """Doubt, noise and ignorance that one validation image in twenty lies above; the last is the chapter's limit."""
    parts = metrics.split_uncertainty(page["predict"](page["data"].X_validation))
    marks = {name: float(np.quantile(parts[name], 1 - PRICE)) for name in ("total", "noise", "ignorance")}
    if not np.isclose(marks["ignorance"], page["limit"]):
        raise SystemExit(f"the chapter's limit is {page['limit']}, not {marks['ignorance']}; wanted: the same price")
    return marks


def list_examples(page):
    """Things to try: the chapter's own, and the test digit about which it is most ignorant."""
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


# --- flat_advi: networks of 40 weights, and where its maps are in their pictures


def read_picture(name, label):
    """A figure as the chapter's notebook stores it: bytes of a PNG."""
    for cell in nbformat.read(BOOK / f"{name}.ipynb", as_version=4).cells:
        if name_figure(cell) == label:
            return base64.b64decode(next(o.data["image/png"] for o in cell.outputs if "image/png" in o.get("data", {})))
    raise SystemExit(f"{name}.ipynb has no figure {label}")


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


def store_flat_advi():
    """The networks behind the maps of the chapter, and where in their pictures the maps are."""
    found, last = [], list(MAPS)[-1]

    def look(label, figure):
        if label in MAPS:
            picture = read_picture("flat_advi", label)
            panels = find_panels(figure, MAPS[label], picture)
            found.append({"figure": label, "picture": hashlib.sha256(picture).hexdigest(), "panels": panels})

    page = run_cells("flat_advi", last, look)
    few = page["prior"].isel(draw=slice(MAPS["fig-flat-advi-prior"].count("prior")))
    methods, content = {}, b""
    for name, networks in {"ADVI": page["posterior"], "NUTS": page["thinned"], "prior": few}.items():
        weights = flatten(networks)
        packed, step = pack_whole(weights)
        methods[name] = {"draws": len(weights), "step": step, "first": len(content) // 2}
        content += packed
    about = {
        "script": "hover.js",
        "code": digest_cells("flat_advi", last),
        "shapes": {name: list(page["posterior"][name].shape[2:]) for name in ("w1", "w2", "w3")},
        "methods": methods,
        "colors": {name: plots.METHOD_COLORS[name] for name in ("ADVI", "NUTS")},
        "crosses": {name: list(point) for name, point in page["CROSSES"].items()},
        "figures": found,
    }  # fmt: skip
    write("flat_advi", about, content)


def flatten(networks):
    """All weights of each draw, chains one after the other: (draw, weight)."""
    parts = [networks[name].values for name in ("w1", "w2", "w3")]
    return np.hstack([part.reshape(part.shape[0] * part.shape[1], -1) for part in parts])


STORED = {"digits": store_digits, "flat_advi": store_flat_advi}


def main(names):
    for name in names or STORED:
        if name not in STORED:
            raise SystemExit(f"there is no posterior of {name!r} to store; there are: {', '.join(STORED)}")
        STORED[name]()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
