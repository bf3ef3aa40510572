"""What the site shows that comes from chapters and boxes, in one list, `MADE`: sliders, stills, packed posteriors, …

    python -m tools.pictures                    makes what is stale
    python -m tools.pictures group_sd digits    makes these

A chapter's own cells are run, so that each shows the fit of its page. `book/made.json` keeps what each was made
under, as `bookkit.versions.stamp` tells it, and digests of its files; tests/tools/test_pictures.py compares both.
Stills are taken from the built site, and need a Chromium.
"""

import base64
import hashlib
import inspect
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from unittest import mock

import jupytext
import matplotlib
import nbformat
import numpy as np
import pymc as pm
import xarray as xr
from PIL import Image

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from bookkit import data, kernel, plots, versions
from bookkit.repo import BOOK
from hbnn import diagnostics, metrics, prediction, sampling
from studies import camps

from tools import packing
from tools.browser import launch_chromium, serve

STATIC, KEPT, SITE = BOOK / "_static", BOOK / "made.json", BOOK.parent / "_build" / "html"
FILES = {  # of each kind, in `STATIC`
    "slider": ("frames/{}.png", "frames/{}.json"),  # all its frames in one sheet, cut where the site is built
    "still": ("live/{}.png",),  # of a live box, for who touches nothing, for print, and for where no script runs
    "stored": ("live/{}.bin", "live/{}.json"),  # a posterior that a page asks, and how to read it
    "figure": ("{}.png",),
    "handout": ("handouts/{}.svg",),  # axes and points, for a pencil
}


@dataclass(frozen=True)
class Made:
    """Something made: from the cells of a chapter up to one (`list_cells`), or of a still the page that has the box."""

    kind: str
    chapter: str
    last: str
    make: Callable
    shows: tuple[str, ...] = ()  # figures of the chapter that it copies, or lies on


# --- a chapter's cells


def list_cells(chapter, last):
    """The code cells of a chapter up to the first one with `last` in its source or as the name of its figure."""
    cells = []
    for cell in jupytext.read(BOOK / f"{chapter}.md").cells:
        if cell.cell_type == "code":
            cells.append(cell)
            if last in cell.source or last == name_figure(cell):
                return cells
    raise SystemExit(f"{chapter} has no cell with {last!r}")


def name_figure(cell):
    """The name of a cell's figure, or None."""
    return cell.metadata.get("mystnb", {}).get("figure", {}).get("name")


def run_cells(chapter, last, change=(), **given):
    """What cells define (dict), and under "figures" what they draw, by name.

    `change` are pairs of code in these cells and what is run in its place; `given` is defined beforehand.
    """
    defined, figures, left = dict(given), {}, dict(change)
    for cell in list_cells(chapter, last):
        source = cell.source
        for old in [old for old in left if old in source]:
            source = source.replace(old, left.pop(old))
        with mock.patch.multiple(pm, **kernel.WAYS):  # as in a notebook
            exec(compile(source, chapter, "exec"), defined)
        if name_figure(cell) and plt.get_fignums():
            figures[name_figure(cell)] = plt.gcf()
        plt.close("all")
    if left:
        raise SystemExit(f"{chapter} has no cell with {list(left)}, which is to be run in another way")
    return defined | {"figures": figures}


@lru_cache(1)  # of entries one after the other that need the same cells
def run_page(chapter, last):
    """What a chapter's cells define, as they stand."""
    return run_cells(chapter, last)


def read_figure(chapter, name):
    """A figure as the chapter's notebook stores it: bytes of a PNG."""
    for cell in nbformat.read(BOOK / f"{chapter}.ipynb", as_version=4).cells:
        if name_figure(cell) == name:
            return base64.b64decode(next(o.data["image/png"] for o in cell.outputs if "image/png" in o.get("data", {})))
    raise SystemExit(f"{chapter}.ipynb has no figure {name}")


# --- files


def list_files(name):
    """The files of an entry, as paths in `STATIC`."""
    return [path.format(name) for path in FILES[MADE[name].kind]]


def write_json(name, content):
    """Write what a page reads of an entry."""
    (STATIC / list_files(name)[1]).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_json(name):
    """What a page reads of an entry (dict)."""
    return json.loads((STATIC / list_files(name)[1]).read_text(encoding="utf-8"))


def shrink(picture, path, dpi=(220, 220)):
    """Keep the 256 colours that `plots` would, a third of the bytes; a still has two pixels to the CSS pixel."""
    pixels = np.asarray(Image.open(picture).convert("RGB")) if not isinstance(picture, np.ndarray) else picture
    plots._reduce_colors(pixels).save(path, optimize=True, dpi=dpi)


def write_slider(name, label, frames):
    """Write the frames of a slider, one below another: `frames` are tuples (value as text, figure, alt text)."""
    texts, pictures = [], []
    for value, figure, alt in frames:
        whole = BytesIO()
        figure.savefig(whole, dpi=2 * figure.dpi)  # as `plots.draw_png`; not cut, so that all have one size
        plt.close(figure)
        pictures.append(np.asarray(Image.open(whole).convert("RGB")))
        texts.append({"value": value, "alt": alt})
    height, width, _ = pictures[0].shape
    shrink(np.concatenate(pictures), STATIC / "frames" / f"{name}.png", dpi=None)
    write_json(name, {"label": label, "width": width // 2, "height": height // 2, "frames": texts})


# --- sliders


def draw_growth_curve(name, made):
    """One chick after 0 to 10 weighings, with the bands of the page."""
    page = run_page(made.chapter, made.last)
    if not page["verdict"].converged:
        raise SystemExit(f"{page['verdict']}; a fit that fails is not shown")
    own, draws, frames = page["own"], page["draws"], []
    for k in range(len(own) - 1):
        figure, ax = plt.subplots(figsize=(5.6, 3.8))
        page["draw_old"](ax)
        page["draw_chick"](own, k, ax, draws)
        ax.set(xlabel="age (days)", ylabel="weight (g)")
        low, high = page["find_quantiles"](*page["predict_chick"](own[:k], [21], draws), (0.05, 0.95))[:, 0]
        after = "before any weighing" if k == 0 else f"after {k} weighing{'s' * (k > 1)}"
        alt = (
            f"The curve of one chick {after}, among the grey curves of forty others. The band of 90 percent ends on "
            f"day 21 between {low:.0f} and {high:.0f} grams; the chick is to weigh {own['grams'].iloc[-1]} there."
        )
        frames.append((str(k), figure, alt))
    write_slider(name, "Weighings so far", frames)


def draw_group_sd(name, made):
    """Eighteen networks whose group sds are not learned but fixed, at a factor times their posterior means.

    At 1 it is the page's own fit; at other factors its cell is run with the sds fixed, and with nothing else changed.
    """
    page, frames = run_page(made.chapter, made.last), []
    learned = {f"sd{k}": float(page["posterior"][f"sd{k}"].mean()) for k in (1, 2, 3)}
    change = {
        "model = build()": "model = pm.do(build(), fixed)",
        'posterior = trace["posterior"]': 'posterior = trace["posterior"].dataset.assign(sds)',
    }
    for factor in (0, 0.25, 0.5, 1, 4, 16):
        fixed = {sd: np.float64(factor * value) for sd, value in learned.items()}
        sds = {sd: xr.full_like(page["posterior"][sd], value) for sd, value in fixed.items()}
        fit = page if factor == 1 else run_cells(made.chapter, made.last, change, fixed=fixed, sds=sds)
        posterior, patients = fit["posterior"], fit["patients"]
        asked = prediction.predict_groups(posterior, data.grid(8), activation="tanh")
        verdict = diagnostics.verdict({"grid": asked}, fit["trace"])
        p_test = prediction.predict_groups(posterior, patients.X_test, activation="tanh").mean(axis=(0, 1))
        right = metrics.score(p_test.ravel(), patients.y_test.ravel())["accuracy"]
        print(factor, right, verdict)
        surface = fit["p_grid"].mean(axis=(0, 1))
        figure, _ = plots.plot_groups(surface, patients.X_train, patients.y_train)
        figure.suptitle(f"group sds times {factor:g}: {right:.0f} % of the test points right")
        kind = {0: "All eighteen are one and the same. ", 1: "This is what the data ask for. "}.get(factor, "")
        alt = (
            f"Eighteen class probability surfaces, group sds fixed at {factor:g} times their posterior means. "
            f"{kind}{right:.0f} percent of the test points are right."
        )
        note, doubt = ("", "") if verdict.converged else (" (misses our limit)", " Its chains miss our limit.")
        frames.append((f"{factor:g}{note}", figure, alt + doubt))
    write_slider(name, "Group standard deviations, times", frames)


def draw_new_category(name, made):
    """The page's newcomer with 0 to 50 labelled moments: N(0, 1) beside the learned prior.

    Its cell is run with 1,000 draws in place of 250, and with nothing else changed: 250 do for the five moments of the
    page, but for a single one the learned prior has 271 effective draws in its tails, and the limit is 400.
    """
    page = run_cells(made.chapter, made.last, {"pm.sample(250, ": "pm.sample(1000, "})
    new, seed, frames = page["new"], page["SEED"], []
    known = {"N(0, 1)": page["plain"], "the learned prior": page["learned"]}
    for n in (0, 1, 2, 5, 10, 20, 50):
        figure, axes = plt.subplots(1, 2, figsize=(7.1, 4.1), sharex=True, sharey=True)
        found = {}
        for ax, (prior, (mean, cholesky)) in zip(axes, known.items(), strict=True):
            if n == 0:
                normal = np.random.default_rng(seed).normal(size=(1000, len(mean)))
                weights = page["cut"](mean + normal @ cholesky.T)
            else:
                tree = page["fit"]((mean, cholesky), new.X_train[:n], new.y_train[:n])
                verdict = page["judge"](tree, data.grid(20))
                print(n, prior, verdict)
                if not verdict["converged"]:
                    raise SystemExit(f"{prior}, {n} points: {verdict}; a fit that fails is not shown")
                weights = prediction.flatten_chains(tree["posterior"])
            p_test = prediction.predict_probability(weights, new.X_test, activation="tanh").mean(axis=0)
            found[prior] = metrics.score(p_test, new.y_test)["accuracy"]
            plots.plot_surface(
                prediction.predict_probability(weights, data.grid(40), activation="tanh").mean(axis=0), ax
            )
            if n:
                plots.plot_points(new.X_train[:n], new.y_train[:n], ax, size=26, label=False)
            ax.set_title(f"{prior}: {found[prior]:.0f} % right" if n else f"{prior}, before any moment")
        figure.supxlabel("first measurement (scaled)")
        figure.supylabel("second measurement (scaled)")
        frames.append((str(n), figure, describe_newcomer(n, found, len(new.y_test))))
    write_slider(name, "Labelled moments of the newcomer", frames)


def describe_newcomer(n, found, n_test):
    """Alternative text of one frame of `draw_new_category`."""
    maps = "Two maps of the probability of an attack, for a newcomer"
    if n == 0:
        return (
            f"{maps} without a labelled moment. N(0, 1) has no opinion anywhere; the learned prior is pale, with an "
            "S-shaped boundary."
        )
    right = " and ".join(f"{value:.0f} percent with {prior}" for prior, value in found.items())
    moments = "one labelled moment" if n == 1 else f"{n} labelled moments"
    return f"{maps} with {moments}. Of {n_test:,} other moments {right} are right."


# --- stills of the live boxes

STILLS = {
    "moons": """.live-sliders, .live-more { display: none !important; }
        .live-draws > div { grid-template-columns: repeat(4, minmax(0, 1fr)) !important; }
        .live-stage { grid-template-columns: 1fr 1.1fr !important; }""",
    "tie": """.tie-slider { display: none !important; }
        .tie-others { grid-template-columns: repeat(3, minmax(0, 1fr)) !important; }
        .live-stage { grid-template-columns: 1fr 1.2fr !important; }""",
    "funnel": ".funnel-slider { visibility: hidden; }",
    "names": "",
    "layers": "",
}  # what in a box is a button goes; both sides of a large one are made as high


def take_still(name, made):
    """What a reader sees who touches nothing and waits for the verdict, without buttons. Draws depend on the seed
    alone, so it is the same picture on every machine, but for its edges.
    """
    pairs = [(SITE / path, BOOK / path) for path in list_scripts(name)]
    if not all(built.exists() and built.read_bytes() == ours.read_bytes() for built, ours in pairs):
        raise SystemExit(f"the still of {name} is taken from the site, which is older than the box; `make site` first")
    with serve(SITE) as address, launch_chromium() as chromium:
        page = chromium.new_page(viewport={"width": 1440, "height": 1200}, device_scale_factor=2)
        page.set_default_timeout(300_000)
        page.goto(f"{address}book/{made.chapter}.html")
        page.locator(f"figure.live-{name}").scroll_into_view_if_needed()
        box = page.locator(f"figure.live-{name} .live-box")
        box.scroll_into_view_if_needed()
        box.dispatch_event("keydown")  # somebody is there: the moons' box puts no point of its own
        page.wait_for_selector(".live-box:is([data-state=agree], [data-state=done])", timeout=300_000)
        page.add_style_tag(content=f".live-verdict, .live-readout {{ display: none !important; }} {STILLS[name]}")
        page.wait_for_timeout(1000)  # maps are painted at their new size
        shrink(BytesIO(page.locator(".live-stage").screenshot()), STATIC / "live" / f"{name}.png")


def list_scripts(name):
    """The scripts and the style of a live box, as paths in `BOOK`: its own, and what they name, and so on."""
    found, new = set(), {f"{name}.js"}
    while new:
        found |= new
        texts = [(STATIC / "live" / script).read_text(encoding="utf-8") for script in new]
        new = set(re.findall(r'"\./(\w+\.js)"', "\n".join(texts))) - found
    return ["_static/live.css", *(f"_static/live/{script}" for script in sorted(found))]


# --- posteriors that pages ask

LAYERS = ("w1", "b1", "w2", "b2", "w3", "b3")
MAPS = {  # figures of flat_advi, and whose networks each of their panels shows
    "fig-flat-advi-probability": ["ADVI"],
    "fig-flat-advi-prior": ["prior"] * 6,
    "fig-flat-advi-uncertainty": ["ADVI", "ADVI"],
    "fig-flat-advi-missed": ["ADVI", "NUTS"],
}


def store_digits(name, made):
    """The chapter's two hundred networks of nine thousand weights, its limit, and images to try."""
    page = run_page(made.chapter, made.last)
    weights = {layer: page["w"][layer] for layer in LAYERS}
    n_draws = len(weights["w1"])
    flat = np.hstack([values.reshape(n_draws, -1) for values in weights.values()])
    levels, mean, sd, code = packing.round_draws(flat)
    (means, step_mean), (sds, step_sd) = packing.pack_whole(mean), packing.pack_whole(sd)
    (STATIC / "live" / f"{name}.bin").write_bytes(means + sds + packing.pack_codes(code))
    about = {
        "script": "digit_pad.js",
        "draws": n_draws,
        "shapes": {layer: list(values.shape[1:]) for layer, values in weights.items()},
        "digits": packing.DIGITS,
        "levels": levels.tolist(),
        "steps": {"mean": step_mean, "sd": step_sd},
        "side": page["data"].shape[0],
        "limit": float(page["limit"]),
        "marks": packing.find_marks(page),
        "examples": packing.list_examples(page),
    }
    write_json(name, about)


def store_flat_advi(name, made):
    """The networks of 40 weights behind the maps of the chapter, and where in their pictures the maps are."""
    page = run_page(made.chapter, made.last)
    figures = [
        {"figure": label, "panels": packing.find_panels(page["figures"][label], methods, read_figure(name, label))}
        for label, methods in MAPS.items()
    ]
    few = page["prior"].isel(draw=slice(MAPS["fig-flat-advi-prior"].count("prior")))
    methods, content = {}, b""
    for method, networks in {"ADVI": page["posterior"], "NUTS": page["thinned"], "prior": few}.items():
        weights = packing.flatten(networks)
        packed, step = packing.pack_whole(weights)
        methods[method] = {"draws": len(weights), "step": step, "first": len(content) // 2}
        content += packed
    (STATIC / "live" / f"{name}.bin").write_bytes(content)
    about = {
        "script": "hover.js",
        "shapes": {layer: list(page["posterior"][layer].shape[2:]) for layer in ("w1", "w2", "w3")},
        "methods": methods,
        "colors": {method: plots.METHOD_COLORS[method] for method in ("ADVI", "NUTS")},
        "crosses": {cross: list(point) for cross, point in page["CROSSES"].items()},
        "figures": figures,
    }
    write_json(name, about)


def store_camps(name, made):
    """Two chains of the chapter's eight, one in each camp, as they know six patients whose angles go round.

    Of each draw the group means, the weights of the six, and how read-outs go with the angles of all eighteen: of each
    weight a cosine and a sine, by least squares.
    """
    moons, model = camps.make_model(*camps.ALONE)
    compiled = sampling.compile_nuts(model)
    tree = sampling.sample_nuts(compiled, seed=1, draws=120, tune=300, chains=2, target_accept=0.9)
    draws = tree["posterior"].isel(draw=slice(None, None, 15)).dataset
    around = np.radians(moons.angle[:, None] - np.arange(0, 360, 60))
    six = np.cos(around).argmax(axis=0)  # patients, the nearest to each sixth of a turn
    angle, weights, parts, chains = np.radians(moons.angle), prediction.combine_weights(draws), [], []
    basis = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    for chain in draws.chain.values:
        sds = [float(draws[f"sd{k}"].sel(chain=chain).mean()) for k in (1, 2, 3)]
        chains.append({"differs": "readout" if np.argmax(sds) == 2 else "hidden", "sds": np.round(sds, 3).tolist()})
        for draw in range(draws.sizes["draw"]):
            parts += [draws[f"mu{k}"].values[chain, draw].ravel() for k in (1, 2, 3)]
            parts += [weights[layer][chain, draw, g].ravel() for g in six for layer in ("w1", "w2", "w3")]
            parts.append(np.linalg.lstsq(basis, weights["w3"][chain, draw], rcond=None)[0].ravel())
    if {chain["differs"] for chain in chains} != {"readout", "hidden"}:
        raise SystemExit(f"the chains are {chains}; wanted: one in each camp")
    content, step = packing.pack_whole(np.concatenate(parts))
    (STATIC / "live" / f"{name}.bin").write_bytes(content)
    moments = [np.column_stack([np.rint(100 * moons.X_test[g]), moons.y_test[g]]).astype(int) for g in six]
    about = {
        "draws": draws.sizes["draw"],
        "hidden": list(weights["w2"].shape[-2:]),
        "step": step,
        "chains": chains,
        "angles": np.round(moons.angle[six], 1).tolist(),
        "moments": [flat.ravel().tolist() for flat in moments],
    }
    (STATIC / list_files(name)[1]).write_text(json.dumps(about) + "\n", encoding="utf-8")  # numbers in one line each


# --- the front page and the handouts


def draw_cover(name, made):
    """Noise and ignorance of chapter 2's network, as its four chains of NUTS know them."""
    page, extent = run_page(made.chapter, made.last), 4
    weights = prediction.flatten_chains(page["thinned"])
    p = prediction.predict_probability(weights, data.grid(100, extent=extent), activation="tanh")
    doubt, patient = metrics.split_uncertainty(p), page["patient"]
    fig, axes = plt.subplots(1, 2, figsize=(7.4, 3.4), sharey=True)
    for ax, (part, vmax) in zip(axes, {"noise": 1, "ignorance": 0.6}.items(), strict=True):
        image = plots.plot_surface(doubt[part], ax, kind="uncertainty", extent=extent, vmax=vmax)
        plots.plot_points(patient.X_train, patient.y_train, ax, size=5, label=False)
        ax.set(title=part, xlabel="first measurement (scaled)")
        fig.colorbar(image, ax=ax, label="bits", shrink=0.8)
    look = {"extent": (-extent, extent) * 2, "colors": "k", "linewidths": 0.6, "alpha": 0.3}
    for one in p[:: len(p) // 50]:  # fifty, of all chains
        axes[1].contour(one.reshape(100, 100), [0.5], **look)
    axes[1].plot(*page["CROSSES"]["C"], "kx", markersize=8, markeredgewidth=2)
    axes[1].annotate("C", page["CROSSES"]["C"], (-14, 5), textcoords="offset points", weight="bold")
    axes[0].set_ylabel("second measurement (scaled)")
    (STATIC / f"{name}.png").write_bytes(plots.draw_png(fig)[0])


def copy_figure(name, made):
    """A figure of a chapter, as its notebook has it."""
    (STATIC / f"{name}.png").write_bytes(read_figure(made.chapter, *made.shows))


def draw_handout(name, made):
    """Axes of 7 by 7 centimetres and points without a colour, to be drawn on with a pencil."""
    page = run_page(made.chapter, made.last)
    if name == "places":
        X, y, crosses = page["patient"].X_train[::2], page["patient"].y_train[::2], page["CROSSES"]
    elif name == "patient":
        X, y, crosses = page["patients"].X_train[2], page["patients"].y_train[2], {}
    else:
        X, y, crosses = page["new"].X_train[:5], page["new"].y_train[:5], {}
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "box", "font.family": "sans-serif"})
    fig, ax = plt.subplots(figsize=(7 / 2.54, 7 / 2.54))
    size = 9 if len(X) > 100 else 22
    ax.scatter(*X[y == 0].T, s=size, marker="o", facecolor="none", edgecolor="#555555", linewidth=0.6)
    ax.scatter(*X[y == 1].T, s=size, marker="^", facecolor="#555555", linewidth=0)
    for cross, place in crosses.items():
        ax.plot(*place, "kx", markersize=7, markeredgewidth=1.6)
        ax.annotate(cross, place, (5, 4), textcoords="offset points", weight="bold", fontsize=10)
    ax.set(xlim=(-3, 3), ylim=(-3, 3), aspect="equal", xticks=(-2, 0, 2), yticks=(-2, 0, 2))
    ax.set_xlabel("first measurement", fontsize=8)
    ax.set_ylabel("second measurement", fontsize=8)
    ax.tick_params(labelsize=8)
    fig.savefig(STATIC / "handouts" / f"{name}.svg", metadata={"Date": None})


# --- the list

MADE = {
    "growth_curve": Made("slider", "growth_curves", "fig-growth-curves-result", draw_growth_curve),
    "group_sd": Made("slider", "hierarchical_trust", "p_grid = predict(", draw_group_sd),
    "new_category": Made("slider", "informed_priors", "def cut(flat)", draw_new_category),
    "moons": Made("still", "flat_advi", "", take_still),
    "tie": Made("still", "hierarchical_nuts", "", take_still),
    "funnel": Made("still", "hierarchical_trust", "", take_still),
    "names": Made("still", "weight_correlations", "", take_still),
    "layers": Made("still", "group_sd", "", take_still),
    "digits": Made("stored", "digits", "STROKES", store_digits),
    "camps": Made("stored", "group_sd", "", store_camps),
    "flat_advi": Made("stored", "flat_advi", "fig-flat-advi-missed", store_flat_advi, tuple(MAPS)),
    "cover": Made("figure", "flat_advi", "fig-flat-advi-missed", draw_cover),
    "lonely": Made("figure", "unpooled", "fig-unpooled-surfaces", copy_figure, ("fig-unpooled-surfaces",)),
    "together": Made("figure", "hierarchical_nuts", "fig-hierarchical-nuts-before-after", copy_figure,
                     ("fig-hierarchical-nuts-before-after",)),
    "places": Made("handout", "flat_advi", "CROSSES", draw_handout),
    "patient": Made("handout", "informed_priors", "fig-informed-priors-question", draw_handout),
    "newcomer": Made("handout", "informed_priors", "fig-informed-priors-question", draw_handout),
}  # fmt: skip


def stamp(name):
    """What an entry is made under (dict): the code of its cells and of what makes it, figures, scripts, and so on."""
    made = MADE[name]
    cells = [cell.source for cell in list_cells(made.chapter, made.last)] if made.last else []
    shown = [hashlib.sha256(read_figure(made.chapter, figure)).hexdigest() for figure in made.shows]
    source = "\n".join([*cells, inspect.getsource(made.make), *shown])
    return versions.stamp(source, list_scripts(name) if made.kind == "still" else ())


def digest_files(name):
    """SHA-256 of each file of an entry (dict), None of one that is not there."""
    paths = {path: STATIC / path for path in list_files(name)}
    return {path: hashlib.sha256(at.read_bytes()).hexdigest() if at.exists() else None for path, at in paths.items()}


def read_made():
    """What each entry was made under, and which files it made (dict)."""
    return json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}


def list_stale():
    """The entries that are not what their cells would make now, or whose files somebody else wrote."""
    kept = read_made()
    return [name for name in MADE if kept.get(name) != {"stamp": stamp(name), "files": digest_files(name)}]


def main(names):
    unknown = set(names) - set(MADE)
    if unknown:
        raise SystemExit(f"nothing of the name {sorted(unknown)} is made; there are: {', '.join(MADE)}")
    for name in names or list_stale():
        with matplotlib.rc_context():
            plots.use_style()
            MADE[name].make(name, MADE[name])
        kept = read_made() | {name: {"stamp": stamp(name), "files": digest_files(name)}}
        ordered = {each: kept[each] for each in MADE if each in kept}
        KEPT.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
        print(", ".join(list_files(name)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
