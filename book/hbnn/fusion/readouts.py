"""Groups with the same hidden units and read-outs of their own, under a Normal outcome: the read-outs integrated out.

Given hidden units, an outcome with Normal noise is linear in its group's read-outs. If these are normal over groups,
they can be integrated exactly, so a sampler walks over what the groups share only; and once a draw of that is known,
the read-outs of any group, a new one included, follow in closed form from what was observed of it.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import ArrayLike
from pytensor.gradient import DisconnectedType, disconnected_type
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_and_cache_key
from pytensor.tensor.variable import TensorVariable

from hbnn._types import Array, Floats
from hbnn.fusion import _layers
from hbnn.fusion._activations import njit
from hbnn.fusion._rows import SortRows


@njit
def _factorise(A, sd, v, L, log_det):  # type: ignore[no-untyped-def]
    """Cholesky's L of M = v I + S A S, written; the logarithm of its determinant, added to what is given."""
    size = len(sd)
    for j in range(size):
        for k in range(j + 1):
            x = sd[j] * A[j, k] * sd[k]
            if j == k:
                x += v
            for q in range(k):
                x -= L[j, q] * L[k, q]
            if j == k:
                L[j, j] = np.sqrt(x)
                log_det += 2.0 * np.log(L[j, j])
            else:
                L[j, k] = x / L[k, k]
    return log_det


@njit
def _invert(L, sd, t, P):  # type: ignore[no-untyped-def]
    """P = S M⁻¹ S, written column by column; t is room to compute in."""
    size = len(sd)
    for q in range(size):
        for j in range(size):
            x = sd[q] if j == q else 0.0
            for k in range(j):
                x -= L[j, k] * t[k]
            t[j] = x / L[j, j]
        for j in range(size - 1, -1, -1):
            x = t[j]
            for k in range(j + 1, size):
                x -= L[k, j] * t[k]
            t[j] = x / L[j, j]
        for j in range(size):
            P[j, q] = sd[j] * t[j]


@njit
def _add_slopes(A, P, t, sd, v, d_mu, d_sd):  # type: ignore[no-untyped-def]
    """A group's share of the gradients of mu and sd, added to them; the trace of P A."""
    size, trace = len(sd), 0.0
    for j in range(size):
        x = A[j, j]
        for k in range(size):  # (A P A)_jj
            inner = 0.0
            for q in range(size):
                inner += P[k, q] * A[q, j]
            x -= A[j, k] * inner
            if j == k:
                trace += inner
        d_mu[j] += t[j]
        d_sd[j] += sd[j] * (t[j] * t[j] - x / v)
    return trace


@lru_cache
def make_kernel() -> Callable:
    """The log likelihood and its gradient, compiled: a function of units (row, unit), y (row,), order (row,), first
    (group + 1,), mu (unit,), sd (unit,), sigma, and of the arrays that gradients (units, y, mu, sd) are written to.

    With A = H'H of a group's units and S = diag(sd), all is said by M = sigma² I + S A S, one small matrix a group:
    the posterior covariance of its read-outs is sigma² P with P = S M⁻¹ S, by the matrix inversion lemma.

    References
    ----------
    Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, sections 2.1 and A.3.
    """

    @njit
    def kernel(units, y, order, first, mu, sd, sigma, d_units, d_y, d_mu, d_sd):  # type: ignore[no-untyped-def]
        size, v = units.shape[1], sigma * sigma
        A, L, P = np.empty((size, size)), np.empty((size, size)), np.empty((size, size))
        c, readout, t = np.empty(size), np.empty(size), np.empty(size)
        total, d_sigma = 0.0, 0.0
        d_mu[:] = 0.0
        d_sd[:] = 0.0
        for g in range(first.shape[0] - 1):
            n = first[g + 1] - first[g]
            A[:] = 0.0
            c[:] = 0.0
            square = 0.0
            for place in range(first[g], first[g + 1]):  # A = H'H, c = H'(y - H mu)
                i = order[place]
                rest = y[i]
                for j in range(size):
                    rest -= units[i, j] * mu[j]
                square += rest * rest
                for j in range(size):
                    c[j] += units[i, j] * rest
                    for k in range(j + 1):
                        A[j, k] += units[i, j] * units[i, k]
            for j in range(size):
                for k in range(j):
                    A[k, j] = A[j, k]
            log_det = (n - size) * np.log(v)
            log_det = _factorise(A, sd, v, L, log_det)
            _invert(L, sd, t, P)
            for j in range(size):  # the mean of the read-outs, given the group's rows
                x = 0.0
                for k in range(size):
                    x += P[j, k] * c[k]
                readout[j] = mu[j] + x
                square -= x * c[j]
                t[j] = 0.0
            total -= 0.5 * (log_det + square / v + n * np.log(2.0 * np.pi))
            alpha_square = 0.0
            for place in range(first[g], first[g + 1]):  # alpha = (y - H readout) / sigma², t = H' alpha
                i = order[place]
                alpha = y[i]
                for j in range(size):
                    alpha -= units[i, j] * readout[j]
                alpha /= v
                alpha_square += alpha * alpha
                d_y[i] = -alpha
                for j in range(size):
                    x = alpha * readout[j]
                    for k in range(size):
                        x -= units[i, k] * P[k, j]
                    d_units[i, j] = x
                    t[j] += units[i, j] * alpha
            trace = _add_slopes(A, P, t, sd, v, d_mu, d_sd)
            d_sigma += sigma * (alpha_square - (n - trace) / v)
        return total, d_sigma

    return kernel


class IntegratedReadouts(Op):
    """`integrate_readouts` as a PyTensor Op.

    Inputs are units (row, unit), y (row,), order (row,), first (group + 1,), mu (unit,), sd (unit,), sigma; outputs
    the log likelihood and its gradient with respect to units, y, mu, sd and sigma.
    """

    __props__ = ()

    def make_node(self, units: Any, y: Any, order: Any, first: Any, mu: Any, sd: Any, sigma: Any) -> Apply:
        order, first = (pt.cast(pt.as_tensor(value), "int64") for value in (order, first))
        units, y, mu, sd, sigma = (pt.cast(pt.as_tensor(v), "float64") for v in (units, y, mu, sd, sigma))
        wanted = {"units": (units, 2), "y": (y, 1), "mu": (mu, 1), "sd": (sd, 1), "sigma": (sigma, 0)}
        for name, (value, n_axes) in wanted.items():
            if value.ndim != n_axes:
                raise TypeError(f"{name} has {value.ndim} axes; wanted: {n_axes}")
        outputs = [pt.dscalar(), units.type(), y.type(), mu.type(), sd.type(), pt.dscalar()]
        return Apply(self, [units, y, order, first, mu, sd, sigma], outputs)

    def perform(self, node: Apply, inputs: Sequence[Array], outputs: Sequence[list[Array]]) -> None:
        units, y, order, first, mu, sd, sigma = (np.ascontiguousarray(value) for value in inputs)
        _check_shapes(units, y, order, mu, sd)
        slopes = np.empty_like(units), np.empty_like(y), np.empty_like(mu), np.empty_like(sd)
        total, d_sigma = make_kernel()(units, y, order, first, mu, sd, sigma.item(), *slopes)
        for output, value in zip(outputs, (total, *slopes, d_sigma), strict=True):
            output[0] = np.asarray(value)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[i not in (2, 3)] * 6 for i in range(7)]

    def pullback(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], cotangents: Sequence[Variable]
    ) -> list[Variable]:
        if not all(isinstance(other.type, DisconnectedType) for other in cotangents[1:]):
            raise NotImplementedError("second derivatives of integrated read-outs; wanted: first ones")
        d_units, d_y, d_mu, d_sd, d_sigma = (cotangents[0] * slope for slope in outputs[1:])
        return [d_units, d_y, disconnected_type(), disconnected_type(), d_mu, d_sd, d_sigma]


def _check_shapes(units: Array, y: Array, order: Array, mu: Array, sd: Array) -> None:
    """In Python and in Numba."""
    if y.shape[0] != units.shape[0]:
        raise ValueError("y has another length than units; wanted: one outcome for each row")
    if order.shape[0] != units.shape[0]:
        raise ValueError("group has another length than units; wanted: one group for each row")
    if mu.shape[0] != units.shape[1] or sd.shape[0] != units.shape[1]:
        raise ValueError("mu or sd has another length than units has columns; wanted: one for each unit")


@register_funcify_and_cache_key(IntegratedReadouts)
def _dispatch(op: IntegratedReadouts, node: Apply, **kwargs: Any) -> tuple[Callable, str]:
    kernel, check = make_kernel(), njit(_check_shapes)

    def integrated_readouts(
        units: Array, y: Array, order: Array, first: Array, mu: Array, sd: Array, sigma: Array
    ) -> tuple[Array, ...]:
        check(units, y, order, mu, sd)
        d_units, d_y, d_mu, d_sd = np.empty(units.shape), np.empty(y.shape), np.empty(mu.shape), np.empty(sd.shape)
        total, d_sigma = kernel(units, y, order, first, mu, sd, sigma.item(), d_units, d_y, d_mu, d_sd)
        return np.asarray(total), d_units, d_y, d_mu, d_sd, np.asarray(d_sigma)

    return numba_njit(integrated_readouts), _layers.make_cache_key(__file__)


def integrate_readouts(units: Any, y: Any, group: Any, mu: Any, sd: Any, sigma: Any) -> TensorVariable:
    """Symbolic log likelihood of all outcomes, the read-outs of the groups integrated out.

    The model is y_i ~ N(units_i · w[group_i], sigma) with w[g] ~ N(mu, diag(sd²)): each group has read-outs of its own,
    which need not be sampled. The sum of the groups' multivariate normal log densities, to rounding error, at the
    cost of one matrix (unit, unit) a group.

    Parameters
    ----------
    units : tensor, shape (row, unit)
        What the read-outs are applied to: hidden units, and a column of ones for a level.
    y : tensor, shape (row,)
        The outcome.
    group : tensor of int, shape (row,)
        From 0 to the number of groups - 1, in any order; a negative one counts from the end.
    mu, sd : tensor, shape (unit,)
        Mean and standard deviation over groups of each read-out.
    sigma : tensor, scalar or shape (row,)
        Above 0: the noise's standard deviation, in the unit of y.

    Returns
    -------
    TensorVariable
        A scalar, in nats, for `pm.Potential`, with first derivatives.

    Raises
    ------
    TypeError
        When an input has another number of axes than wanted, naming it.
    ValueError
        When lengths do not fit together; at run time.
    NotImplementedError
        For second derivatives.

    References
    ----------
    Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, section 2.1 (Bayesian linear regression).

    Examples
    --------
    Two groups of two rows, and the same by their normal distributions:

    >>> import numpy as np
    >>> from scipy.stats import multivariate_normal
    >>> from hbnn.fusion.readouts import integrate_readouts
    >>> rng = np.random.default_rng(1)
    >>> units, y, group = rng.normal(size=(4, 2)), rng.normal(size=4), [0, 0, 1, 1]
    >>> mu, sd, sigma = np.array([0.5, -0.5]), np.array([1.0, 2.0]), 0.3
    >>> found = integrate_readouts(units, y, group, mu, sd, sigma).eval()
    >>> wanted = 0
    >>> for h, seen in zip(units.reshape(2, 2, 2), y.reshape(2, 2)):
    ...     covariance = h @ np.diag(sd**2) @ h.T + sigma**2 * np.eye(2)
    ...     wanted += multivariate_normal.logpdf(seen, h @ mu, covariance)
    >>> bool(np.isclose(found, wanted))
    True
    """
    group = pt.as_tensor(group)
    if group.ndim != 1:
        raise TypeError(f"group has {group.ndim} axes; wanted: 1")
    units, y, sigma = (pt.as_tensor(value) for value in (units, y, sigma))
    order, first, _ = SortRows()(group, group.max() + 1, group.shape[0])
    change = 0.0
    if (sigma.ndim, units.ndim, y.ndim) == (1, 2, 1):  # a row divided by its own sigma is a row with a noise of 1
        units, y, change, sigma = units / sigma[:, None], y / sigma, -pt.log(sigma).sum(), pt.as_tensor(1.0)
    return IntegratedReadouts()(units, y, order, first, mu, sd, sigma)[0] + change


def predict_group(
    units_seen: ArrayLike,
    y_seen: ArrayLike,
    units: ArrayLike,
    mu: ArrayLike,
    sd: ArrayLike,
    sigma: ArrayLike,
    *,
    sigma_seen: ArrayLike | None = None,
) -> tuple[Floats, Floats, Floats]:
    """What is known of a group's outcomes after some of them were observed: for each draw, a normal with a weight.

    Parameters
    ----------
    units_seen : array_like, shape (draw, seen, unit)
        The units at what was observed of this group; seen may be 0.
    y_seen : array_like, shape (seen,)
        What was observed.
    units : array_like, shape (draw, row, unit)
        At the rows to predict.
    mu, sd : array_like, shape (draw, unit)
        Draws of what the groups share, which this group has not yet informed.
    sigma : array_like, shape (draw,)
        As these; (draw, row), at `units`, with `sigma_seen`.
    sigma_seen : array_like, shape (draw, seen), optional
        Where the noise is not the same everywhere.

    Returns
    -------
    log_weight : array, shape (draw,)
        The log density of y_seen under a draw; normalised it is the draw's weight for this group.
    mean, sd : array, shape (draw, row)
        Of the outcome, noise included.

    Raises
    ------
    ValueError
        For shapes that do not fit together, naming the array.

    References
    ----------
    Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, section 2.1. Geweke (1989), Econometrica 57,
    for the weights: importance sampling from the posterior of the other groups to the one with this group.

    Examples
    --------
    Levels are N(0, 1) over groups. This group was seen once, with noise 1: half of it is believed.

    >>> import numpy as np
    >>> from hbnn.fusion.readouts import predict_group
    >>> unit, mu, sd, sigma = np.ones((1, 1, 1)), np.zeros((1, 1)), np.ones((1, 1)), np.ones(1)
    >>> log_weight, mean, spread = predict_group(unit, [2.0], unit, mu, sd, sigma)
    >>> mean.round(3), spread.round(3)
    (array([[1.]]), array([[1.225]]))
    """
    units_seen, units = np.asarray(units_seen, float), np.asarray(units, float)
    y_seen, mu = np.asarray(y_seen, float), np.asarray(mu, float)
    sd, sigma = np.asarray(sd, float), np.asarray(sigma, float)
    if mu.ndim != 2:
        raise ValueError(f"mu has shape {mu.shape}; wanted: (draw, unit)")
    (n_draws, size), rows = mu.shape, units.shape[1:2]
    checked = {
        "y_seen": (y_seen, (y_seen.size,)),
        "units_seen": (units_seen, (n_draws, y_seen.size, size)),
        "units": (units, (n_draws, *rows, size)),
        "sd": (sd, mu.shape),
        "sigma": (sigma, (n_draws,) if sigma_seen is None else (n_draws, *rows)),
    }
    if sigma_seen is not None:
        sigma_seen = np.asarray(sigma_seen, float)
        checked["sigma_seen"] = sigma_seen, (n_draws, y_seen.size)
    for name, (value, wanted) in checked.items():
        if value.shape != wanted:
            raise ValueError(f"{name} has shape {value.shape}; wanted: {wanted}, by mu and y_seen")
    noise_seen = np.broadcast_to(sigma[:, None], units_seen.shape[:2]) if sigma_seen is None else sigma_seen
    noise = sigma[:, None] if sigma_seen is None else sigma
    readout, cov = mu, sd[:, :, None] * np.eye(size) * sd[:, None, :]
    log_weight = np.zeros(n_draws)
    if len(y_seen):
        cross = units_seen @ cov  # (draw, seen, unit)
        total = cross @ units_seen.swapaxes(1, 2) + noise_seen[:, :, None] ** 2 * np.eye(len(y_seen))
        rest = (y_seen - np.einsum("dsu,du->ds", units_seen, mu))[..., None]
        solved = np.linalg.solve(total, np.concatenate([rest, cross], axis=2))
        square = (rest * solved[..., :1]).sum(axis=(1, 2))
        log_weight = -0.5 * (np.linalg.slogdet(total)[1] + square + len(y_seen) * np.log(2 * np.pi))
        readout = mu + np.einsum("dsu,ds->du", cross, solved[..., 0])
        cov = cov - cross.swapaxes(1, 2) @ solved[..., 1:]
    mean = np.einsum("dru,du->dr", units, readout)
    variance = np.einsum("dru,duv,drv->dr", units, cov, units) + noise**2
    return log_weight, mean, np.sqrt(variance)
