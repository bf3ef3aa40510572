"""Is the network worth it on two real tables with groups and a yes or no? What six models score on what was left out.

Contraception: 1,934 women in 60 districts of Bangladesh. Verbal aggression: 24 questions to 316 people, of whom every
third is taken. The figures are facts, and stored as small CSV files with their sources, units and digests.

Chosen before any score was seen (of the first table, scores of a draft with one seed were known, and changed nothing):
- units, priors, samplers and rivals are those that everybody gets; 3 folds as on the page, two partitions (seeds);
- features are what the tables hold; of a question its three properties as 0 and 1 (situation, mode, behaviour);
- aggression is asked of every third person (1, 4, 7, …): a pilot run on all 316, timed and not scored, said 24
  minutes and 6.6 GB for a fit, on a third 5 minutes;
- the hierarchical line, which took longest of all, is asked over rows alone, which advice is made from.
Three choices came later: the hierarchical line was first asked in one partition, and as it was the best rival of the
second table there, it was asked in the other as well; it was Bambi's then, typed in PyMC now, with the same priors; and
the smooth, as the one call has it, came last, when a referee had missed it.
A row is one model in one fold, and keeps the scores group by group: errors are taken over groups.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from bookkit.report import DATA
from hbnn import tables

MEASURED = False
FOLDER = DATA / "real_groups"
N_FOLDS, N_BINS, SEEDS = 3, 5, (1, 2)
MODELS = (*tables.RIVALS, tables.NETWORK)
OVER = ("rows", "groups")
BAMBI = "hierarchical line"


@dataclass(frozen=True)
class Source:
    """Where a file comes from, and what its columns are.

    Attributes
    ----------
    units : dict of column to what it holds, with its unit
    origin : str, the survey, and the article
    cite : str, its key in references.bib
    sha256 : str, of the file, in hexadecimal
    group, features, outcome : of the table that is made of the file
    """

    units: dict
    origin: str
    cite: str
    sha256: str
    group: str
    features: tuple
    outcome: str


SITUATIONS = {
    "s1": "a bus fails to stop for me", "s2": "I miss a train because a clerk told me something wrong",
    "s3": "the grocery closes just as I am about to enter",
    "s4": "the operator cuts me off as I have used up my last coins",
}  # fmt: skip
OWN_FAULT = ("s3", "s4")
MODES, BEHAVIOURS = ("want", "do"), ("curse", "scold", "shout")
ITEMS = [f"{s}_{mode}_{what}" for mode in MODES for s in SITUATIONS for what in BEHAVIOURS]  # as they were asked
SOURCES = {
    "contraception": Source(
        {"woman": "number of the woman, 1 to 1,934", "district": "number of the district, 1 to 61; there is no 54",
         "age": "age less its mean over all women, years, to a hundredth",
         "children": "living children: 0, 1, 2, or 3 for three and more", "urban": "1 in a town, 0 in the country",
         "uses": "yes where she used contraception at the time, no where not"},
        "Bangladesh Fertility Survey 1988, in Steele, Diamond and Amin (1996); R: mlmRev::Contraception",
        "steele1996",
        "a36df19baaa543dd38984da460f906dfd00ebf20d2e40ea7f3c7591bc313d721",
        "district", ("age", "children", "urban"), "uses",
    ),
    "aggression": Source(
        {"person": "number of the person, 1 to 316", "anger": "trait anger, score of the STAXI questionnaire, points",
         "gender": "F or M"}
        | {item: f"no, perhaps or yes to: {SITUATIONS[item[:2]]}; I {item[3:].replace('do_', '').replace('_', ' to ')}"
           for item in ITEMS},
        "Vansteelandt (2000), in De Boeck and Wilson (2004), Explanatory Item Response Models; R: lme4::VerbAgg",
        "deboeck2004",
        "313556b59e07b4bc94b42fbcbdf4ef8fd02e85922054cefd3c3e0ca94cfd4dc3",
        "person", ("anger", "male", "own_fault", "scold", "shout", "do"), "agrees",
    ),
}  # fmt: skip
FILES = {"contraception": "contraception.csv", "aggression": "verbal_aggression.csv"}
EVERY = 3  # of the people who were asked


def load_table(name):
    """One of the files as a DataFrame.

    Raises
    ------
    ValueError
        For a file that is not the one that was published with this book.
    """
    path = FOLDER / FILES[name]
    if hashlib.sha256(path.read_bytes()).hexdigest() != SOURCES[name].sha256:
        raise ValueError(f"{path} was changed since it was published; wanted: the file of this book (git checkout)")
    return pd.read_csv(path)


def unfold(wide):
    """A row for each answer: person, anger, male, the question's three properties as 0 and 1, and "agrees".

    Who says "perhaps" agrees, as in the literature (the column r2 of R's table).
    """
    long = wide.melt(["person", "anger", "gender"], ITEMS, "item", "answer")
    parts = long["item"].str.split("_", expand=True)
    properties = {
        "male": long["gender"] == "M", "own_fault": parts[0].isin(OWN_FAULT), "scold": parts[2] == "scold",
        "shout": parts[2] == "shout", "do": parts[1] == "do",
    }  # fmt: skip
    long = long.assign(**{name: column.astype(int) for name, column in properties.items()})
    long["agrees"] = np.where(long["answer"] == "no", "no", "yes")
    return long.sort_values("person", kind="stable", ignore_index=True)


def read_rows(name, every=EVERY):
    """A table as a `tables.Table`; of the people who were asked about aggression, one in so many."""
    frame, source = load_table(name), SOURCES[name]
    if name == "aggression":
        frame = unfold(frame[frame["person"] % every == 1 % every])
    columns = {"group": source.group, "features": list(source.features), "outcome": source.outcome}
    return tables.read_table(frame, **columns)


# --- scores


SECONDS = {"line": 1, "quadratic": 1, "smooth": 2, "trees": 3, "hierarchical line": 20, "network": 15}
CASES = [
    {"data": data, "over": over, "model": model, "fold": fold, "seed": seed}
    for data in SOURCES for over in OVER for model in MODELS
    if (model, over) != (BAMBI, "groups")
    for seed in SEEDS for fold in range(N_FOLDS)
]  # fmt: skip
FIRST = 15  # CPU-seconds: a network is compiled


def block(case):
    """Every row is a task of its own."""
    return tuple(case.values())


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return SECONDS[case["model"]]


@lru_cache
def compile_network(data):
    """The network for a table, compiled once a process."""
    return tables.compile_network(read_rows(data))


def compute(data, over, model, fold, seed):
    """Scores of one model on the rows of one fold, group by group, and how often its probabilities came true.

    The network is fitted as `compare_rivals` fits it. Of the second class, in bins of equal width: "expected", the sum
    of probabilities, "came", and "squares", the sum over groups of (came - expected)^2, whose root is the error of
    their sum where groups were left out whole.
    """
    rows = read_rows(data)
    folds = tables.make_folds(rows, seed=seed, n_folds=N_FOLDS)[over]
    train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
    held = rows.take(test)
    if model == tables.NETWORK:
        network = compile_network(data)
        fit = tables.fit_network(rows, seed=seed, network=network, index=train, sampler=tables.SHORT_SAMPLER)
        predicted = tables.predict(fit, held, seed=seed)
    else:
        predicted = tables.fit_rival(model, rows, train, test, seed=seed, new_groups=over == "groups")
    scores, n_groups = tables.score_rows(predicted, held), len(rows.groups)
    p, y = predicted.draws.mean(axis=0), held.y
    place = np.minimum((p * N_BINS).astype(int), N_BINS - 1)
    off = np.zeros((n_groups, N_BINS))
    np.add.at(off, (rows.group[test], place), y - p)
    return {
        "n": len(test), "lpd": cut(scores.mean()), "accuracy": cut(100 * np.mean((p > 0.5) == y)),
        "sums": [cut(value) for value in np.bincount(rows.group[test], scores, n_groups)],
        "rows": np.bincount(place, minlength=N_BINS).tolist(),
        "expected": [cut(value) for value in np.bincount(place, p, N_BINS)],
        "came": np.bincount(place, y, N_BINS).astype(int).tolist(),
        "squares": [cut(value) for value in (off**2).sum(axis=0)],
    }  # fmt: skip


def cut(value):
    """Seven digits of a number, for the file."""
    return float(f"{value:.7g}")


# --- for the pages


def gather(table, data, seeds=SEEDS):
    """The rows of this study on one table as a `tables.Comparison`, with gains, errors and advice; mean of `seeds`.

    Each observation has its group's mean, which leaves means, gains and errors over groups as they are; there is
    nothing in `loss` and `levels`. The hierarchical line is there for rows alone.
    """
    rows = read_rows(data)
    sizes, lpd = np.bincount(rows.group), {}
    own = [row for row in table if row["data"] == data and row["seed"] in seeds]
    for over in OVER:
        names = [name for name in MODELS if (name, over) != (BAMBI, "groups")]
        sums = {name: np.zeros(len(sizes)) for name in names}
        for row in own:
            if row["over"] == over:
                sums[row["model"]] += np.array(row["sums"]) / len(seeds)
        lpd[over] = pd.DataFrame({name: np.repeat(values / sizes, sizes) for name, values in sums.items()})
    return tables.Comparison(lpd, {}, np.repeat(np.arange(len(sizes)), sizes), rows.kind, {})


def calibrate(table, data, model=tables.NETWORK, seeds=SEEDS):
    """Of rows of groups that were left out, in bins of the probability: mean probability, share, error, rows.

    Returns
    -------
    dict of "p", "share", "error" (standard error of share - p, over groups) and "n", (bin,) each; the mean of the
    partitions, and the error of one of them, as they predict the same rows. Empty bins are left out.
    """
    own = [row for row in table if (row["data"], row["over"], row["model"]) == (data, "groups", model)]
    own = [row for row in own if row["seed"] in seeds]
    n, p, came, squares = (
        np.sum([row[name] for row in own], axis=0) for name in ("rows", "expected", "came", "squares")
    )
    there = n > 0
    n, p, came, squares = n[there], p[there], came[there], squares[there]
    return {"p": p / n, "share": came / n, "error": np.sqrt(len(seeds) * squares) / n, "n": n / len(seeds)}
