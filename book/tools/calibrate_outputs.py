"""How far do honest runs lie apart? Execute the chapters again with other seeds, and write down what moves how far.

    python book/tools/calibrate_outputs.py                     20 replicates of every chapter, then the record
    python book/tools/calibrate_outputs.py moons --replicates 3
    python book/tools/calibrate_outputs.py --replicates 0      the record alone, from the runs that are there

Another machine rounds the last bits otherwise, and a sampler turns last bits into other draws. Other seeds of the
samplers, and settings that change last bits, do the same on one machine: data, splits, baselines and tables of studies
stay what they are. So do the seeds of ADVI: its noise is the same on every machine, and last bits stay small in a
fit that settles, so that another seed gives another fit where another machine gives the same. Replicate 0 has the
seeds and the settings of the book: it is the book's own notebook, where a run would repeat it. A run is one executed
notebook, ``<folder>/<chapter>.<replicate>.ipynb``, and is kept: stop this when you like, and go on later.

The record, ``tests/honest_runs.json``, is what `outputs.py` compares by on another machine:

- A number moves between runs by a standard deviation that is some multiple of its printed error. The multiples of all
  numbers of the book have a distribution (estimated without assuming its shape, by maximum likelihood), and with the
  runs of one number it gives a predictive distribution of its move. So the few runs of one borrow strength from
  all. The limit is where that leaves a share of RISK. Its error is treated likewise, by its logarithm. Fewer than
  WIDENING runs may only narrow the limits of a number that is not in the record.
- A chapter drifts if the mean square of its moves, each in its own standard deviations, is larger than chance allows
  for as many independent numbers as its correlations are worth.
- A picture may differ three times as much as honest ones did, root mean square, in place and in colours.
"""

import argparse
import inspect
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections import Counter
from itertools import combinations
from pathlib import Path

import jupytext
import nbformat
import numpy as np
from bnn import claims, report
from nbclient import NotebookClient
from scipy import special

from tools import chapters

sys.path.append(str(chapters.BOOK.parent / "tests"))
import checks
import outputs

FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bnn" / "calibration"
RECORD = chapters.BOOK.parent / "tests" / "honest_runs.json"
# settings that change last bits and nothing else; replicates 1, 2, … take them in turn
SLOW = {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"}
LAST_BITS = [SLOW | {"OPENBLAS_CORETYPE": "Nehalem"}, SLOW, {"OPENBLAS_CORETYPE": "Nehalem"}]
MULTIPLES = np.concatenate([[1e-6], np.geomspace(1e-3, 10, 60)])  # that a standard deviation may be of an error
WIDENING = 4  # runs of a number that may say that it needs more room than one that is not in the record
POWER = 0.9  # with which a shift is caught that the record calls detectable
KINDS = {"n=2 to 5": (1, 4), "n=6 to 19": (5, 18), "n=20 and more": (19, np.inf)}


# --- runs --------------------------------------------------------------------------------------------------


def shift_seeds(replicate):
    """Give every sampler other seeds than it is asked for, but no fit by ADVI. The kernel gets it as source, first."""
    import functools
    import inspect
    import threading

    import numpy as np
    import pymc as pm
    from bnn import inference, priors
    from pymc.variational.opvi import Approximation

    within = threading.local()  # a sampler that calls another one hands on a seed that is shifted already

    def shift(owner, name, argument="seed"):
        function = getattr(owner, name)
        signature = inspect.signature(function)

        @functools.wraps(function)
        def shifted(*args, **kwargs):
            if getattr(within, "sampler", False):
                return function(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            seed = np.random.SeedSequence([bound.arguments[argument], replicate]).generate_state(1)[0]
            bound.arguments[argument] = int(seed)
            within.sampler = True
            try:
                return function(*bound.args, **bound.kwargs)
            finally:
                within.sampler = False

        setattr(owner, name, shifted)

    for name in ("sample_nuts", "sample_groups"):
        shift(inference, name)
    shift(inference.Advi, "draw")
    shift(pm, "sample", "random_seed")
    shift(priors, "draw_new_category")
    shift(Approximation, "sample", "random_seed")


def run_chapter(md, replicate, folder):
    """Execute a chapter with the seeds of a replicate; a cell that fails is kept with its error.

    Replicate 0 is taken from the book, where its notebook is what a run would write here.

    Parameters
    ----------
    md : Path, of the chapter
    replicate : int, 0 for the seeds of the book
    folder : Path, for ``<chapter>.<replicate>.ipynb``; posteriors that chapters share are kept in it meanwhile

    Returns
    -------
    Path of the notebook
    """
    nb, target = jupytext.read(md, fmt="md:myst"), folder / f"{md.stem}.{replicate:02}.ipynb"
    if replicate == 0 and chapters._reuse(nb, md.with_suffix(".ipynb")):
        chapters._settle(nb)
        chapters._write(nb, target)
        return target
    if replicate:
        bits = LAST_BITS[(replicate - 1) % len(LAST_BITS)] if platform.machine() in ("x86_64", "AMD64") else {}
        # before NumPy loads, and after our settings have overruled what a shell says
        first = f"import os, sys\nassert 'numpy' not in sys.modules\nos.environ.update({bits})\n"
        code = f"{first}{inspect.getsource(shift_seeds)}\nshift_seeds({replicate})\ndel shift_seeds, os, sys"
        nb.cells.insert(0, nbformat.v4.new_code_cell(code))
    client = NotebookClient(
        nb, kernel_name="python3", resources={"metadata": {"path": str(md.parent)}}, timeout=None, startup_timeout=600,
        record_timing=False, store_widget_state=False, allow_errors=True,
    )  # fmt: skip
    own = {"PYTHONPATH": str(md.parent), "BNN_CACHE": str(folder / f"posteriors.{replicate:02}")}
    client.execute(env=chapters.kernel_environment() | own)
    if replicate:
        if nb.cells[0].outputs:
            raise RuntimeError(f"seeds could not be shifted: {nb.cells[0].outputs}")
        del nb.cells[0]
    chapters._settle(nb)
    chapters._write(nb, target)
    return target


def run(names, n_replicates, folder):
    """Execute what is missing, replicate after replicate, cheap chapters first."""
    folder.mkdir(parents=True, exist_ok=True)
    seconds = {row["chapter"]: row["cpu_seconds"] for row in report.read_data("run_cost")["rows"]}
    mds = [md for md in chapters.find_chapters() if not names or md.stem in names]
    for replicate in range(n_replicates):
        for md in sorted(mds, key=lambda md: seconds.get(md.stem, 0)):
            if not (folder / f"{md.stem}.{replicate:02}.ipynb").exists():
                start = time.monotonic()
                run_chapter(md, replicate, folder)
                print(f"{md.stem} {replicate}: {time.monotonic() - start:.0f} s", flush=True)
        shutil.rmtree(folder / f"posteriors.{replicate:02}", ignore_errors=True)


def read_runs(folder):
    """Read the runs of each chapter that executed the same code: dict of chapter to list of NotebookNode."""
    runs = {}
    for path in sorted(folder.glob("*.[0-9][0-9].ipynb")):
        runs.setdefault(path.name.split(".")[0], []).append(nbformat.read(path, as_version=4))
    for chapter, found in runs.items():
        most = Counter(nb.metadata.bnn.source for nb in found).most_common(1)[0][0]
        runs[chapter] = [nb for nb in found if nb.metadata.bnn.source == most]
    return runs


# --- what moved --------------------------------------------------------------------------------------------


def collect_texts(runs):
    """Collect the texts with numbers of some runs of a chapter, place by place.

    Parameters
    ----------
    runs : list of NotebookNode

    Returns
    -------
    list of list of outputs.Reading
        For each text of the first run, itself and those runs' that show as many estimates in its place; and how many
        texts of other runs read otherwise.
    """
    places, otherwise = [], 0
    for cells in zip(*[[cell for cell in nb.cells if cell.cell_type == "code"] for nb in runs], strict=True):
        found = [[t for output in cell.outputs for t in outputs.list_counted(output)] for cell in cells]
        for i, text in enumerate(found[0]):
            readings = [outputs.read_text(texts[i]) for texts in found if len(texts) == len(found[0])]
            first = outputs.read_text(text)
            otherwise += len(runs) - sum(reading.skeleton == first.skeleton for reading in readings)
            alike = [reading for reading in readings if len(reading.estimates) == len(first.estimates)]
            places.append((outputs.name_text(text), alike))
    return places, otherwise


def count_flips(runs):
    """Claims whose verdict is not that of the first run: dict of id to how many runs."""
    verdicts = []
    for nb in runs:
        data = [output.get("data", {}) for cell in nb.cells for output in cell.get("outputs", [])]
        verdicts.append({claim["id"]: claim["holds"] for found in data for claim in found.get(claims.MIME, [])})
    flips = Counter(name for other in verdicts[1:] for name, holds in other.items() if verdicts[0].get(name) != holds)
    return dict(sorted(flips.items()))


def fit_multiples(squares, degrees, floors):
    """Distribution of true standard deviations, by maximum likelihood over MULTIPLES (Kiefer and Wolfowitz).

    Parameters
    ----------
    squares : (number,) array, variances of each over runs
    degrees : (number,) array, their degrees of freedom
    floors : (number,) array, variances that rounding adds

    Returns
    -------
    (number, multiple) array, the posterior weights of each number
    """
    variances = MULTIPLES**2 + floors[:, None]
    ratio = squares[:, None] / variances
    log_likelihood = degrees[:, None] / 2 * (np.log(np.maximum(ratio, 1e-300)) - ratio)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    prior = np.full(len(MULTIPLES), 1 / len(MULTIPLES))
    for _ in range(500):
        weights = likelihood * prior
        weights /= weights.sum(axis=1, keepdims=True)
        # one pseudo-number, spread evenly: what no run has shown yet is not impossible
        prior = (weights.sum(axis=0) + 1 / len(MULTIPLES)) / (len(squares) + 1)
    return weights


def find_limits(weights, level):
    """How far two honest runs may lie apart with two-sided risk `level`: (number,) array, by bisection.

    Parameters
    ----------
    weights : (number, multiple) array, from `fit_multiples`
    level : float
    """
    low, high = np.zeros(len(weights)), np.full(len(weights), 1e3)
    for _ in range(60):
        middle = (low + high) / 2
        risk = (weights * 2 * special.ndtr(-middle[:, None] / (np.sqrt(2) * MULTIPLES))).sum(axis=1)
        low, high = np.where(risk > level, middle, low), np.where(risk > level, high, middle)
    return high


def measure_numbers(places):
    """Move of each number over runs, relative to its error; and of the logarithm of its error.

    Parameters
    ----------
    places : list of (str, list of outputs.Reading), of all chapters

    Returns
    -------
    dict of arrays (number,)
    """
    rows = []
    for _, readings in places:
        for estimates in zip(*[reading.estimates for reading in readings], strict=True):
            values, errors = (np.array([getattr(e, key) for e in estimates]) for key in ("value", "error"))
            error = max(np.sqrt(np.mean(errors**2)), estimates[0].error_half)  # ± 0.000: at most half its last digit
            logs = np.log(np.maximum(errors, 1e-300))
            rows.append({
                "error": error,
                "nu": estimates[0].nu,
                "n": "(n=" in estimates[0].text,
                "degrees": len(estimates) - 1,
                "square": values.var(ddof=1) / error**2 if len(values) > 1 else 0.0,
                "floor": (estimates[0].value_half / error) ** 2 / 3,
                "log_square": logs.var(ddof=1) if len(values) > 1 else 0.0,
                "log_floor": (estimates[0].error_half / error) ** 2 / 3,
                "moves": len({e.text for e in estimates}) > 1,
            })  # fmt: skip
    return {key: np.array([row[key] for row in rows]) for key in rows[0]}


def fit_numbers(found):
    """Limits of all numbers, from `measure_numbers`: scale, limit, ratio and detectable shift, (number,) arrays."""
    count = len(found["error"])
    weights = fit_multiples(found["square"] + found["floor"], found["degrees"], found["floor"])
    logs = fit_multiples(found["log_square"] + found["log_floor"], found["degrees"], found["log_floor"])
    root = np.sqrt(2) * np.sqrt((weights * MULTIPLES**2).sum(axis=1))
    limit = find_limits(weights, outputs.SHARES["values"] * outputs.RISK / count)
    ratio = np.exp(find_limits(logs, outputs.SHARES["errors"] * outputs.RISK / count))
    level, few = outputs.set_level(count), found["degrees"] + 1 < WIDENING
    usual = np.sqrt(2) * np.array([outputs.limit_move(level, 2 * nu) for nu in found["nu"]])
    limit = np.where(few, np.minimum(limit, usual), limit)
    usual = np.array([outputs.limit_ratio(level, nu, nu) for nu in found["nu"]])
    ratio = np.where(few, np.minimum(ratio, usual), ratio)
    return {
        "scale": np.where(found["moves"], root, 0.0) * found["error"],
        "limit": limit * found["error"],
        "ratio": ratio,
        # in combined errors; rounding is granted on top
        "detectable": (limit + special.ndtri(POWER) * root) / np.sqrt(2),
    }


def measure_correlation(moves):
    """Mean square correlation of the numbers of a chapter over runs, corrected for the number of runs; 1: unknown.

    Parameters
    ----------
    moves : (run, number) array
    """
    moves = moves[:, moves.std(axis=0) > 0]
    degrees = len(moves) - 1
    if degrees < 2 or moves.shape[1] < 2:
        return 1.0
    square = np.corrcoef(moves.T) ** 2
    other = square[~np.eye(len(square), dtype=bool)].mean()
    other = np.clip((degrees * other - 1) / (degrees - 1), 0, 1)
    return float((1 + (len(square) - 1) * other) / len(square))


def limit_drift(worth, level):
    """Limit of `outputs.measure_drift` for numbers worth as many independent ones; None where it could see nothing."""
    limit = float(special.chdtri(worth, level)) / worth
    return limit if limit < outputs.CLIP else None


def simulate_drift(worth, limit, seed=1):
    """Smallest shift of all numbers at once, in standard deviations of honest moves, that is caught with POWER."""
    z = np.random.default_rng(seed).normal(size=(4000, max(round(worth), 1)))
    for shift in np.arange(0, 20, 0.05):
        caught = np.mean([outputs.measure_drift(row) > limit for row in z + shift])
        if caught >= POWER:
            return round(float(shift), 2)
    return None


# --- pictures ----------------------------------------------------------------------------------------------


def plant_faults(pixels):
    """Spoil a picture in the ways that must be seen: turned, in other colours, without one of its series.

    Parameters
    ----------
    pixels : array of uint8, shape (height, width, 4)

    Yields
    ------
    (str, array)
    """
    for how, turn in outputs.TURNS.items():
        yield how, turn(pixels)
    grey = np.ptp(pixels[..., :3].astype(int), axis=-1) < 40
    colours, counts = np.unique(pixels[~grey][:, :3], axis=0, return_counts=True)
    for colour in colours[np.argsort(counts)[::-1][:1]]:
        series = np.abs(pixels[..., :3].astype(int) - colour).max(axis=-1) < 60
        if series.mean() > 1e-3:
            yield "without its largest series", np.where(series[..., None], np.uint8(255), pixels)


def collect_pictures(runs):
    """Pictures of some runs of a chapter: dict of figure to list of arrays."""
    found = {}
    for nb in runs:
        for cell in nb.cells:
            for output in cell.get("outputs", []):
                name = cell.metadata.get("mystnb", {}).get("figure", {}).get("name")
                if name and "image/png" in output.get("data", {}):
                    found.setdefault(name, []).append(outputs.read_picture(output["data"]["image/png"]))
    return found


def limit_picture(pictures):
    """Three times the root mean square difference of honest pictures: (in distance, in colours)."""
    pairs = [(a, b) for a, b in combinations(pictures, 2) if a.shape == b.shape and (a != b).any()]
    measures = outputs.measure_distance, outputs.measure_colours
    n_pairs = max(len(pictures) * (len(pictures) - 1) / 2, 1)
    honest = [3 * np.sqrt(sum(measure(a, b) ** 2 for a, b in pairs) / n_pairs) for measure in measures]
    return tuple(round(max(float(x), least), 4) for x, least in zip(honest, outputs.SAME_PICTURE, strict=True))


def find_seen(pixels, limits):
    """Which planted faults of a picture are seen: dict of str to bool. A fault that changes nothing is left out."""
    return {
        what: bool(outputs.compare_shown(pixels, spoilt, limits))
        for what, spoilt in plant_faults(pixels)
        if outputs.measure_distance(pixels, spoilt) > outputs.SAME_PICTURE[0]
    }


# --- the record --------------------------------------------------------------------------------------------


def make_record(runs):
    """The record of honest runs, ready for JSON; see the top of this file.

    Parameters
    ----------
    runs : dict of chapter to list of NotebookNode, from `read_runs`

    Returns
    -------
    dict
    """
    runs = {chapter: nbs for chapter, nbs in runs.items() if len(nbs) > 1}
    texts = {chapter: collect_texts(nbs) for chapter, nbs in runs.items()}
    found = measure_numbers([place for places, _ in texts.values() for place in places])
    fitted = fit_numbers(found)
    record, pictures, at = {}, Counter(), 0
    for chapter, (places, otherwise) in texts.items():
        numbers, moves = {}, []
        for name, readings in places:
            count = len(readings[0].estimates)
            rows = zip(*[fitted[key][at : at + count] for key in ("scale", "limit", "ratio")], strict=True)
            rows = [[float(f"{x:.3g}") for x in row] for row in rows]
            before = numbers.get(name, rows)  # one text twice in a chapter: the wider limits
            numbers[name] = [[max(pair) for pair in zip(*both, strict=True)] for both in zip(before, rows, strict=True)]
            if len(readings) == len(runs[chapter]):
                moves += zip(*[[e.value for e in reading.estimates] for reading in readings], strict=True)
            at += count
        shown = {name: (limit_picture(p), p[0]) for name, p in collect_pictures(runs[chapter]).items()}
        for limits, picture in shown.values():
            pictures.update(find_seen(picture, limits).items())
        record[chapter] = {
            "runs": len(runs[chapter]),
            "correlation": measure_correlation(np.array(moves).T) if moves else 1.0,
            "n_moving": len({move for move in moves if len(set(move)) > 1}),
            "other_words": round(otherwise / max(len(places) * (len(runs[chapter]) - 1), 1), 4),
            "flipped": count_flips(runs[chapter]),
            "failed_cells": sum(len(checks.find_errors(nb)) for nb in runs[chapter]),
            "numbers": {name: rows for name, rows in numbers.items() if rows},
            "pictures": {name: limits for name, (limits, _) in shown.items()},
        }  # fmt: skip
    _add_drift(record)
    return {
        "origin": _describe_origin(runs),
        "figures": _summarise(found, fitted, pictures, record),
        "book": {"drift": record.pop("", {}).get("drift")},
        "chapters": record,
    }


def _add_drift(record):
    """Limits of drift of each chapter with numbers that move, and of the book (under the name ""), added in place."""
    moving = {chapter: entry for chapter, entry in record.items() if entry["n_moving"]}
    level = outputs.SHARES["drift"] * outputs.RISK / (len(moving) + 1)
    known = [entry["correlation"] for entry in moving.values() if entry["runs"] > 2]  # two runs cannot tell it
    pooled = np.mean(known) if known else 1.0
    for entry in moving.values():
        own = entry["correlation"] if entry["runs"] > 2 else 0
        worth = 1 / max(own, pooled, 1 / entry["n_moving"])
        entry["drift"] = limit_drift(worth, level)
        entry["detectable_drift"] = simulate_drift(worth, entry["drift"]) if entry["drift"] else None
    # chapters share posteriors: the whole book is granted no more than one of its chapters
    limits = [entry["drift"] for entry in moving.values() if entry["drift"]]
    record[""] = {"drift": max(limits) if len(limits) == len(moving) and limits else None}


def _summarise(found, fitted, pictures, record):
    kinds = {"no n": ~found["n"]}
    kinds |= {kind: found["n"] & (found["nu"] >= low) & (found["nu"] <= high) for kind, (low, high) in KINDS.items()}
    drifts = [entry["detectable_drift"] for entry in record.values() if entry.get("detectable_drift")]
    return {
        "numbers": len(found["error"]),
        "numbers_that_move": int(found["moves"].sum()),
        "caught_with_probability_0.9, combined errors": {
            kind: {
                "numbers": int(which.sum()),
                "median": round(float(np.median(fitted["detectable"][which])), 2),
                "nine of ten": round(float(np.quantile(fitted["detectable"][which], 0.9)), 2),
                "largest": round(float(fitted["detectable"][which].max()), 2),
                "share below 6.5": round(float(np.mean(fitted["detectable"][which] <= 6.5)), 3),
            }
            for kind, which in kinds.items()
            if which.any()
        },
        "drift caught with probability 0.9, standard deviations of a move": [min(drifts), max(drifts)]
        if drifts
        else None,
        "planted faults of pictures seen": {
            what: f"{pictures[what, True]} of {pictures[what, True] + pictures[what, False]}"
            for what in dict.fromkeys(what for what, _ in pictures)
        },
    }


def _describe_origin(runs):
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=chapters.BOOK, capture_output=True, text=True)
    return {
        "tool": "book/tools/calibrate_outputs.py",
        "commit": commit.stdout.strip(),
        "runs": {chapter: len(nbs) for chapter, nbs in sorted(runs.items())},
        "machine": chapters.machine(),
    }


def keep_others(record, old):
    """Keep, in place, what an old record knows of chapters that have no runs here; its figures are then of more."""
    others = {chapter: entry for chapter, entry in old["chapters"].items() if chapter not in record["chapters"]}
    if others:
        record["chapters"] |= others
        record["figures"], record["book"] = old["figures"], old["book"]
        record["origin"]["runs"] |= {chapter: entry["runs"] for chapter, entry in others.items()}


def measure_coverage(record, book=chapters.BOOK):
    """How many numbers of the stored notebooks are in the record: (int, int of all)."""
    known = every = 0
    for path in sorted(book.glob("*.ipynb")):
        numbers = record["chapters"].get(path.stem, outputs.NOTHING)["numbers"]
        for cell in nbformat.read(path, as_version=4).cells:
            for text in [text for output in cell.get("outputs", []) for text in outputs.list_counted(output)]:
                count = len(outputs.read_text(text).estimates)
                every += count
                known += count * (outputs.name_text(text) in numbers)
    return known, every


def main(arguments=None):
    """Run the replicates and write the record. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="chapter", help="default: all")
    parser.add_argument("--replicates", type=int, default=20, help="0: only write the record")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--record", type=Path, default=RECORD)
    asked = parser.parse_args(arguments)
    run(asked.names, asked.replicates, asked.folder)
    record = make_record(read_runs(asked.folder))
    if asked.record.exists():
        keep_others(record, json.loads(asked.record.read_text(encoding="utf-8")))
    record["figures"]["numbers of the book that are in the record"] = "{} of {}".format(*measure_coverage(record))
    asked.record.write_text(json.dumps(record, ensure_ascii=False, separators=(",", ":")).replace("},", "},\n") + "\n")
    print(json.dumps(record["figures"], indent=1, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
