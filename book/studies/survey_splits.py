"""The survey of `own_data` on five splits: what the hierarchical network gains over five rivals.

One split is one accident of which rows were for training. Settings and the three lines were chosen when scores of two
splits were known; squares and trees came later, as everybody gets them (`hbnn.tables.fit_rival`).
"""

from functools import lru_cache

import numpy as np
import pandas as pd
import statsmodels.api as sm
from bookkit import models
from hbnn import diagnostics, fuse, sampling, tables
from sklearn.linear_model import LogisticRegression

MEASURED = False
CASES = [{"split": seed, "seed": seed} for seed in (1, 2, 3, 4, 5)]
FEATURES = ["rate_marriage", "age", "yrs_married", "children", "religious", "educ"]
JOBS = {1: "student", 2: "manual or farm", 3: "white-collar", 4: "teacher, nurse, skilled", 5: "managerial",
        6: "professional"}  # fmt: skip
NETWORK = {"n_hidden": (8,), "bias": True}
SAMPLER = {"draws": 2500, "tune": 1000, "target_accept": 0.9}
MAX_TRAIN = 100  # rows of a group
THIN = 10  # of the draws, for predictions
RIVALS = {"quadratic": "squares and products", "trees": "boosted trees"}  # of `tables.fit_rival`
FIRST = 15  # CPU-seconds: the model is compiled


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 25


@lru_cache
def read_rows():
    """The survey as a table of groups: `hbnn.tables.Table`."""
    survey = sm.datasets.fair.load_pandas().data
    survey["occupation"] = survey["occupation"].map(JOBS)
    survey["affair"] = np.where(survey["affairs"] > 0, "yes", "no")
    survey = survey.rename_axis("respondent").reset_index()
    columns = {"group": "occupation", "features": FEATURES, "outcome": "affair", "ids": ["respondent"]}
    return tables.read_table(pd.DataFrame(survey), **columns, classes=("no", "yes"))


@lru_cache
def compile_network():
    """The network of the rows of a first split, and compiled; others have other rows, and as many."""
    split = tables.split_rows(read_rows(), seed=1, max_train=MAX_TRAIN)
    model = models.hierarchical_bnn(split.X_train, split.y_train, **NETWORK)
    return model, sampling.compile_nuts(fuse(model))


def add_columns(X):
    """Points of all groups with a column of 0 and 1 for each group."""
    return np.column_stack([np.concatenate(X), np.repeat(np.eye(len(X)), [len(points) for points in X], axis=0)])


def predict_lines(split):
    """Test probabilities of three logistic regressions: dict of name to (row,)."""

    def predict(X, y, X_test):
        return LogisticRegression(max_iter=1000).fit(X, y).predict_proba(X_test)[:, 1]

    X, y, X_test = split.X_train, np.concatenate(split.y_train), split.X_test
    own = [predict(*each) for each in zip(X, split.y_train, X_test, strict=True)]
    return {
        "one line for all": predict(np.concatenate(X), y, np.concatenate(X_test)),
        "one line, groups as columns": predict(add_columns(X), y, add_columns(X_test)),
        "a line for each group": np.concatenate(own),
    }


def predict_rivals(split, seed):
    """Test probabilities of the other rivals, their settings tuned within the training rows: as `predict_lines`."""
    train, test = np.concatenate(split.rows_train), np.concatenate(split.rows_test)
    found = {text: tables.fit_rival(name, read_rows(), train, test, seed=seed) for name, text in RIVALS.items()}
    return {text: predicted.draws[0] for text, predicted in found.items()}


def judge(tree, split):
    """The verdict on a run: group sds, probabilities at the training rows, their log likelihood."""
    train = read_rows().take(np.concatenate(split.rows_train))
    p = tables.predict_rows(compile_network()[0], tree, split, train)
    loglik = np.log(np.where(train.y == 1, p, 1 - p)).sum(axis=-1)
    sds = np.stack([tree["posterior"][name].values for name in ("sd1", "sd2")], axis=-1)
    return diagnostics.verdict({"group sds": sds, "data": p[:, :, ::3], "log likelihood": loglik}, tree)


def compute(split, seed):
    """Diagnostics of the run, and by how much it beats each rival: nats per test row, and the error over rows."""
    rows = read_rows()
    new = tables.split_rows(rows, seed=split, max_train=MAX_TRAIN)
    X, y, _ = models.stack_groups(new.X_train, new.y_train)
    tree = sampling.sample_nuts(compile_network()[1].with_data(X=X, labels=y), seed=seed, **SAMPLER)
    verdict = judge(tree, new)
    row = {name: float(getattr(verdict, name)) for name in ("rhat", "ess", "ess_tail")}
    row |= {"divergences": int(verdict.divergences)}
    row |= {name: bool(getattr(verdict, name)) for name in ("explained", "converged")}
    unseen = rows.take(np.concatenate(new.rows_test))
    thin = tree["posterior"].isel(draw=slice(None, None, THIN))
    p = tables.predict_rows(compile_network()[0], thin, new, unseen).mean(axis=(0, 1))
    for name, q in (predict_lines(new) | predict_rivals(new, seed)).items():
        gain = np.log(np.where(unseen.y == 1, p, 1 - p)) - np.log(np.where(unseen.y == 1, q, 1 - q))
        row[f"gain over {name}"] = float(gain.mean())
        row[f"gain over {name}, error"] = float(gain.std(ddof=1) / np.sqrt(len(gain)))
    return row
