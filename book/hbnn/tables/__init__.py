"""From a table with groups to predictions: read it, fit a network and its rivals, compare, and advise.

A table goes one way: `_read`, `_predict` (what a fit says), `_fit`, `_compare`, `_write` and `_answer`, each of which
imports only those before it, and hands on one object: Table, Prediction, Fit, Comparison, Answer.
"""

try:
    import sklearn as _  # noqa: F401
except ImportError as e:
    raise ImportError('tables need scikit-learn: pip install "hbnn[tables]"') from e

from hbnn.tables._answer import answer
from hbnn.tables._compare import Comparison, compare_rivals
from hbnn.tables._fit import (
    NETWORK,
    RIVALS,
    SHORT_SAMPLER,
    build_network,
    compile_network,
    fit_network,
    fit_rival,
)
from hbnn.tables._predict import (
    Prediction,
    predict,
    predict_new_group,
    predict_rows,
    score_rows,
    tabulate_predictions,
)
from hbnn.tables._read import Table, example_frame, make_folds, read_table, split_rows
from hbnn.tables._write import load_fit, save_fit, write_predictions

__all__ = [
    "NETWORK", "RIVALS", "SHORT_SAMPLER", "Comparison", "Prediction", "Table", "answer", "build_network",
    "compare_rivals", "compile_network", "example_frame", "fit_network", "fit_rival", "load_fit", "make_folds",
    "predict", "predict_new_group", "predict_rows", "read_table", "save_fit", "score_rows", "split_rows",
    "tabulate_predictions", "write_predictions",
]  # fmt: skip
