"""A second pair of eyes for a network typed in PyMC: what in a model is probably not meant?

Some mistakes stand in the graph: a variable that no outcome depends on, a sigmoid inside a sigmoid. Most show only in
numbers. So the model is also run: at draws of its prior, and with parts of a variable replaced, which tells which rows
depend on them, however the model was typed. All of it by NumPy, without compiling. Each check says in its docstring
where its limit comes from.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pymc as pm
import pytensor

from hbnn._checks import check_seed
from hbnn.checking import _domains, _drawn, _rows, _typed
from hbnn.checking._findings import Finding, Findings, make_finding
from hbnn.checking._model import Graph, PriorRun

__all__ = ["Finding", "Findings", "check_model"]

TYPED: list[Callable[[Graph], Iterator[Finding]]] = [
    _typed.find_unused_variables,
    _typed.find_batches,
    _typed.find_variances,
    _typed.find_products,
    _typed.find_linear_layers,
    _typed.find_narrow_priors,
    _typed.find_indices,
]
DRAWN: list[Callable[[Graph, PriorRun], Iterator[Finding]]] = [
    _drawn.find_broadcasts,
    _drawn.find_collapsed_rows,
    _drawn.find_probabilities,
    _drawn.find_outcomes,
    _drawn.find_ranges,
    _drawn.find_inputs,
    _rows.find_groups,
    _rows.find_batched_groups,
]
FAILURES = (ValueError, TypeError, IndexError, AssertionError, ArithmeticError, np.linalg.LinAlgError)


def check_model(model: pm.Model, *, for_next_prior: bool = False, seed: int = 0) -> Findings:
    """Say in sentences what in a model is probably not meant.

    Parameters
    ----------
    model : pm.Model
        Neither it nor its random generators are changed.
    for_next_prior : bool
        Whether means and sds of weights are to become the prior of another model. The units of a hidden layer can be
        exchanged in every network, which harms only then.
    seed : int
        Of the prior draws.

    Returns
    -------
    Findings
        Each with a name, a sentence and a mend. None is no proof: it says what a graph and 50 draws of the prior show.
        A model without an outcome has none.

    Raises
    ------
    TypeError
        Where `model` is no `pm.Model`.
    ValueError
        For a seed that is no integer of at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from hbnn.checking import check_model
    >>> X = np.random.default_rng(1).normal(size=(50, 2))
    >>> with pm.Model() as model:
    ...     w1, w2 = pm.Normal("w1", 0, 1, shape=(2, 5)), pm.Normal("w2", 0, 1, shape=(5, 5))
    ...     w3 = pm.Normal("w3", 0, 1, shape=5)
    ...     h1 = pm.math.tanh(X @ w1)
    ...     h2 = pm.math.tanh(h1 @ w2)
    ...     y = pm.Bernoulli("y", logit_p=h1 @ w3, observed=X[:, 0] > 0)  # h1 where h2 was meant
    >>> check_model(model)
    leads nowhere: no outcome depends on w2, so that posterior and prior are the same
        use it, or take it out; a layer computed from the wrong one below leaves another one unused
    """
    if not isinstance(model, pm.Model):
        raise TypeError(f"model is a {type(model).__name__}; wanted: a pm.Model")
    check_seed(seed)
    if not (model.observed_RVs or model.potentials):
        return Findings()
    with pytensor.config.change_flags(cxx="", mode="FAST_COMPILE"), np.errstate(all="ignore"):
        return _collect_findings(Graph(model), for_next_prior, seed)


def _collect_findings(graph: Graph, for_next_prior: bool, seed: int) -> Findings:
    found = Findings(finding for find in TYPED for finding in find(graph))
    if for_next_prior:
        found += _typed.find_symmetry(graph)
    if any(finding.name == "index out of range" for finding in found):
        return found  # NumPy refuses such an index
    try:
        run = PriorRun(graph, seed)
    except NotImplementedError:  # a distribution without draws
        return found
    except FAILURES as error:
        said = str(error).splitlines()[0]
        reasons = list(_domains.find_prior_domains(graph, seed))
        found += reasons or [make_finding("cannot be computed", f"at a draw of the prior: {said}")]
        return found
    found += [finding for look in DRAWN for finding in look(graph, run)]
    return found
