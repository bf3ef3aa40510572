"""From a table with groups to predictions: read it, fit a network and its rivals, compare, and advise."""

try:
    import sklearn as _  # noqa: F401
except ImportError as e:
    raise ImportError('tables need scikit-learn: pip install "hbnn[tables]"') from e

from hbnn.tables._answer import answer as answer
from hbnn.tables._compare import Comparison as Comparison
from hbnn.tables._compare import compare_rivals as compare_rivals
from hbnn.tables._example import example_frame as example_frame
from hbnn.tables._keep import load_fit as load_fit
from hbnn.tables._keep import save_fit as save_fit
from hbnn.tables._model import build_network as build_network
from hbnn.tables._network import compile_network as compile_network
from hbnn.tables._network import fit_network as fit_network
from hbnn.tables._network import predict as predict
from hbnn.tables._network import predict_new_group as predict_new_group
from hbnn.tables._predictions import Precision as Precision
from hbnn.tables._predictions import Prediction as Prediction
from hbnn.tables._predictions import measure_precision as measure_precision
from hbnn.tables._predictions import predict_rows as predict_rows
from hbnn.tables._predictions import score_rows as score_rows
from hbnn.tables._predictions import tabulate_predictions as tabulate_predictions
from hbnn.tables._predictions import write_predictions as write_predictions
from hbnn.tables._read import read_table as read_table
from hbnn.tables._rivals import NETWORK as NETWORK
from hbnn.tables._rivals import RIVALS as RIVALS
from hbnn.tables._rivals import SHORT_SAMPLER as SHORT_SAMPLER
from hbnn.tables._rivals import fit_rival as fit_rival
from hbnn.tables._splits import Split as Split
from hbnn.tables._splits import make_folds as make_folds
from hbnn.tables._splits import split_rows as split_rows
from hbnn.tables._table import Schema as Schema
from hbnn.tables._table import Table as Table
