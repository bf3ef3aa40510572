"""`check_model` finds each mistake in a table of wrong models, and nothing in models that are right."""

import time

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from bookkit import data, digits, models
from hbnn.checking import check_model
from hbnn.checking._findings import MENDS
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.type import RandomType

N = 60
RNG = np.random.default_rng(1)
X, Y = RNG.normal(size=(N, 3)), RNG.normal(size=N)
LABELS, CLASSES, COUNTS = (X[:, 0] > 0).astype("int32"), RNG.integers(0, 4, N), RNG.poisson(3, N)
G = np.arange(N) % 5
EFFECT, ERROR = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
TEN = np.arange(10.0)[:, None]
MANY, SOME = RNG.normal(size=(18, 50, 3)), RNG.integers(0, 2, (18, 50)).astype("int32")


def normal(name, *shape, sd=1.0):
    return pm.Normal(name, 0, sd, shape=shape)


def net(x=X, n_out=(), sd=1.0, n_in=3):
    h = pm.math.tanh(x @ normal("w1", n_in, 5, sd=sd) + normal("b1", 5, sd=sd))
    return pm.math.tanh(h @ normal("w2", 5, 5, sd=sd)) @ normal("w3", 5, *n_out, sd=sd)


def bern(logit, y=LABELS, **kwargs):
    return pm.Bernoulli("y", logit_p=logit, observed=y, **kwargs)


def gauss(mu, sd=None, y=Y):
    return pm.Normal("y", mu, pm.HalfNormal("e", 1) if sd is None else sd, observed=y)


def skip_layer():
    h = pm.math.tanh(X @ normal("w1", 3, 5))
    pm.Deterministic("h2", pm.math.tanh(h @ normal("w2", 5, 5)))
    bern(h @ normal("w3", 5))


def batches(together, n_rows=None):
    if together:
        x, y = pm.Minibatch(X, LABELS, batch_size=20)
    else:
        x, y = pm.Minibatch(X, batch_size=20), pm.Minibatch(LABELS, batch_size=20)
    bern(net(x), y, total_size=n_rows)


def join_axes():
    mu = X @ normal("w", 3, 1)  # (n, 1)
    pm.Potential("y", -((Y - mu) ** 2).sum())


def groups(index=G, n=5, form="offsets"):
    mu, sd = normal("mu", 3), pm.HalfNormal("sd", 1)
    w = mu + sd * normal("z", n, 3) if form == "offsets" else pm.Normal("w", mu, sd, shape=(n, 3))
    gauss((X * w[index]).sum(axis=-1))


def eight_schools(centred):
    mu, tau = normal("mu", sd=5), pm.HalfCauchy("tau", 5)
    theta = pm.Normal("theta", mu, tau, shape=8) if centred else mu + tau * normal("z", 8)
    gauss(theta, ERROR, EFFECT)


def crossed():
    w = normal("w", 2, 3, 3)
    gauss((X * w[np.arange(N) % 2, np.where(np.arange(N) % 2, G % 3, G % 2)]).sum(axis=-1))


def batched_groups(of_rows):
    """Eighteen groups of fifty rows, and batches of eighteen groups, or of rows and their groups' numbers."""
    if of_rows:
        x, y, g = pm.Minibatch(MANY.reshape(-1, 3), SOME.ravel(), np.repeat(np.arange(18), 50), batch_size=18)
        w = normal("mu", 3, 4) + pm.HalfNormal("sd", 1) * normal("z", 18, 3, 4)
        bern(pm.math.tanh((x[:, :, None] * w[g]).sum(1)) @ normal("w2", 4), y, total_size=900)
    else:
        x, y = pm.Minibatch(MANY, SOME, batch_size=18)
        w = normal("mu", 3, 4) + pm.HalfNormal("sd", 1) * normal("z", 18, 3, 4)
        bern(pm.math.tanh(pm.math.matmul(x, w)) @ normal("w2", 4), y, total_size=(18, 50))


def linear(x=X, n_hidden=5):
    return x @ normal("w1", 3, n_hidden) @ normal("w2", n_hidden)


def trained(sd):
    rng = np.random.default_rng(0)
    w, v = pm.Normal("w", rng.normal(size=(3, 4)), sd), pm.Normal("v", rng.normal(size=4), 1)
    gauss(pm.math.tanh(X @ w) @ v, 1)


def yes_or_no(of_classes):
    out, several = net(n_out=(4,)), (X @ RNG.normal(size=(3, 4)) > 0).astype("int32")
    if of_classes:
        pm.Categorical("y", logit_p=out, observed=several.T)
    else:
        bern(out, several)


def process(size):
    gp = pm.gp.Marginal(cov_func=pm.HalfNormal("eta", 1) ** 2 * pm.gp.cov.Matern52(1, pm.Gamma("ell", 2, 1)))
    gp.marginal_likelihood("y", X=TEN, y=size * np.sin(TEN[:, 0]), sigma=pm.HalfNormal("s", 1))


def with_sd(name, prior):
    gauss(normal("theta", 6)[np.arange(N) % 6], prior(name))


WRONG = {
    "a layer is skipped": ("leads nowhere", "w2", skip_layer),
    "an intercept is declared only": ("leads nowhere", "a", lambda: (normal("a"), bern(net()))),
    "sigmoid into logit_p": ("probability as logit", "y", lambda: bern(pm.Deterministic("p", pm.math.sigmoid(net())))),
    "softmax into logit_p": (
        "probability as logit",
        "y",
        lambda: pm.Categorical("y", logit_p=pm.math.softmax(net(n_out=(4,)), axis=-1), observed=CLASSES),
    ),
    "logit into p": ("logit as probability", "y", lambda: pm.Bernoulli("y", p=net(), observed=LABELS)),
    "sigmoids of classes": (
        "not normalised",
        "y",
        lambda: pm.Categorical("y", p=pm.math.sigmoid(net(n_out=(4,))), observed=CLASSES),
    ),
    "softmax over rows": (
        "softmax axis",
        "y",
        lambda: pm.Categorical("y", p=pm.math.softmax(net(n_out=(4,)), axis=0), observed=CLASSES),
    ),
    "classes from 1": (
        "label out of range",
        "1 to 4, and 4",
        lambda: pm.Categorical("y", logit_p=net(n_out=(4,)), observed=CLASSES + 1),
    ),
    "two minibatches": ("separate minibatches", "y", lambda: batches(False, N)),
    "no total size": ("total_size", "None", lambda: batches(True)),
    "size of a batch": ("total_size", "total_size=20", lambda: batches(True, 20)),
    "a square": ("variance as sd", "y", lambda: gauss(normal("a"), pm.HalfNormal("s", 1) ** 2)),
    "a square by its name": ("variance as sd", "y", lambda: gauss(normal("a"), pm.math.sqr(pm.HalfNormal("s", 1)))),
    "an sd times itself": ("variance as sd", "y", lambda: gauss(normal("a"), (s := pm.HalfNormal("s", 1)) * s)),
    "a named variance": ("variance as sd", "sigma2", lambda: gauss(normal("a"), pm.InverseGamma("sigma2", 2, 1))),
    "mean times sd": (
        "only a product",
        "a and s",
        lambda: gauss(normal("z", 5)[G] + normal("a", sd=10) * pm.HalfCauchy("s", 5)),
    ),
    "weights of sd 10": ("prior too sure", "y", lambda: bern(net(sd=10.0))),
    "vague in the exponent": (
        "prior too wide",
        "y",
        lambda: pm.Poisson("y", pm.math.exp(net(sd=30.0)), observed=COUNTS),
    ),
    "vague": ("prior too wide", "y", lambda: gauss(X @ normal("b", 3, sd=1e4))),
    "outcome in grams": ("outcome not scaled", "y", lambda: gauss(net(), y=3500 + 200 * Y)),
    "counts of thousands": (
        "outcome not scaled",
        "y",
        lambda: pm.Poisson("y", pm.math.exp(net()), observed=10_000 + COUNTS),
    ),
    "no link": ("below zero", "y", lambda: pm.Poisson("y", net(), observed=COUNTS)),
    "inputs in grams": ("inputs not scaled", "column 1", lambda: bern(net(X * [1, 2000, 1]))),
    "one input in grams": (
        "inputs not scaled",
        "X",
        lambda: bern(pm.math.tanh(pm.Data("X", 3e3 + X[:, 0])[:, None] * normal("w1", 5)) @ normal("w2", 5)),
    ),
    "(n,) and (n, 1)": ("broadcast", "(60, 60)", join_axes),
    "a column of outcomes": ("broadcast", "(60, 1)", lambda: gauss(net(), 1.0, pm.Data("outcome", Y[:, None]))),
    "lengths that differ": ("cannot be computed", "(7,)", lambda: bern(net() + pm.Data("b", np.ones(7)))),
    "a bias of all rows": ("bias for each row", "b", lambda: bern(net() + normal("b", N))),
    "counted from 1": ("index out of range", "1 to 5", lambda: groups(pm.Data("g", G + 1))),
    "missing is -1": ("index out of range", "-1", lambda: groups(np.where(G == 0, -1, G))),
    "a group too many": ("group without rows", "group 5 of 6 in z", lambda: groups(n=6)),
    "an empty cell": ("group without rows", "(0, 2)", crossed),
    "eight schools": ("funnel", "theta", lambda: eight_schools(True)),
    "few rows": ("funnel", "w", lambda: groups(np.arange(N) % 20, 20, "centred")),
    "batches of groups": ("minibatch of groups", "z", lambda: batched_groups(False)),
    "no activation": ("no activation", "w1 and w2", lambda: gauss(linear())),
    "tau, with a gamma prior": (
        "precision as sd",
        "tau",
        lambda: with_sd("tau", lambda name: pm.Gamma(name, 2, 2)),
    ),
    "a sum over all": (
        "one value for all rows",
        "60 rows",
        lambda: gauss(pm.math.sum(pm.math.tanh(X @ normal("w1", 3, 5)) * normal("w2", 5))),
    ),
    "five yes or no": ("yes and no as classes", "(4, 60)", lambda: yes_or_no(True)),
    "trained weights": ("prior too narrow", "w", lambda: trained(1e-3)),
    "sigmoid before a normal": ("out of reach", "0 to 1", lambda: gauss(pm.math.sigmoid(net()))),
    "relu before a normal": ("out of reach", "0 to inf", lambda: gauss(pm.math.maximum(0, net()))),
    "scaled too little": ("out of reach", "0.1 to 0.3", lambda: gauss(0.2 * pm.math.sigmoid(net()) + 0.1)),
    "turned round": ("out of reach", "-0.2 to", lambda: gauss(-0.2 * pm.math.sigmoid(net()))),
    "a column of a sigmoid": ("out of reach", "0 to 1", lambda: gauss(pm.math.sigmoid(net(n_out=(2,)))[:, 0])),
    "a process in grams": ("outcome not scaled", "y", lambda: process(3500)),
    "noise of all rows": (
        "noise for each row",
        "s has an sd for each of 60 rows",
        lambda: gauss(net(), pm.HalfNormal("s", 1, shape=N)),
    ),
    "weights of a mixture": (
        "out of domain",
        "sum(weights)",
        lambda: pm.NormalMixture("y", pm.math.sigmoid(normal("a", 2)), normal("m", 2, sd=5), 1, observed=Y),
    ),
    "an sd of the prior": ("below zero", "sd", lambda: gauss(pm.Normal("a", 0, normal("sd"), shape=5)[G], 1)),
} | {
    f"a network as {kind}": ("below zero", f"{kind.split()[-1]} of y, Dot of w3", typed)
    for kind, typed in {
        "Gamma's mu, beta": lambda: pm.Gamma("y", mu=net(), sigma=1, observed=np.exp(Y)),
        "Beta's mu, alpha": lambda: pm.Beta("y", mu=net(), sigma=0.1, observed=1 / (1 + np.exp(Y))),
        "kappa": lambda: pm.VonMises("y", normal("m"), net(), observed=Y),
        "nu": lambda: pm.StudentT("y", nu=net(), mu=0, sigma=1, observed=Y),
        "n": lambda: pm.NegativeBinomial("y", mu=3, alpha=net(), observed=COUNTS),
        "alpha": lambda: pm.InverseGamma("y", alpha=net(), beta=1, observed=np.exp(Y)),
        "beta": lambda: pm.Weibull("y", alpha=1, beta=net(), observed=np.exp(Y)),
        "mu": lambda: pm.ZeroInflatedPoisson("y", psi=0.5, mu=net(), observed=COUNTS),
    }.items()
}


def mediation():
    a, b = normal("a"), normal("b")
    m = pm.Normal("m", a * X[:, 0], pm.HalfNormal("sm", 1), observed=X[:, 1])
    gauss(b * m + normal("c") * X[:, 0])
    pm.Deterministic("indirect", a * b)


def with_gp():
    gp = pm.gp.Marginal(cov_func=pm.HalfCauchy("eta", 5) ** 2 * pm.gp.cov.Matern52(1, pm.Gamma("ell", 2, 1)))
    gp.marginal_likelihood("y", X=TEN, y=np.sin(TEN[:, 0]), sigma=pm.HalfCauchy("s", 5))
    gp.conditional("f_new", Xnew=TEN + 0.5)


def with_ordered():
    cuts = pm.Normal("c", [-1, 0, 1], 2, transform=pm.distributions.transforms.ordered, initval=[-1.0, 0, 1])
    pm.OrderedLogistic("y", eta=X @ normal("b", 3), cutpoints=cuts, observed=CLASSES)


def with_mixture():
    w, mu = pm.Dirichlet("w", np.ones(2)), normal("mu", 2, sd=5)
    pm.NormalMixture("y", w, mu, pm.HalfNormal("s", 1), observed=np.where(LABELS, 4.0, -4.0) + Y)


def with_survival():
    death = pm.Weibull.dist(alpha=pm.HalfNormal("alpha", 5), beta=pm.math.exp(normal("a", sd=10) + X @ normal("b", 3)))
    pm.Censored("y", death, lower=None, upper=np.where(LABELS, 1.0, np.inf), observed=np.minimum(np.exp(Y), 1.0))


def with_correlation():
    chol, *_ = pm.LKJCholeskyCov("chol", n=2, eta=2, sd_dist=pm.Exponential.dist(0.5))
    ab = (chol @ normal("z", 2, 5)).T
    gauss(ab[G, 0] + ab[G, 1] * X[:, 0])


def with_volatility():
    walk = pm.GaussianRandomWalk("v", sigma=pm.Exponential("step", 10), init_dist=pm.Normal.dist(0, 100), shape=N)
    pm.StudentT("y", nu=pm.Exponential("nu", 0.1), lam=pm.math.exp(-2 * walk), observed=0.01 * Y)


MOONS, FLAT = data.legacy_rotated_moons(), data.flat_moons(seed=0)
IMAGES = digits.load(seed=1)
FEW = [MOONS.X_train[k][: 40 - 9 * k] for k in range(4)], [MOONS.y_train[k][: 40 - 9 * k] for k in range(4)]
RIGHT = {
    "gallery network": lambda: batches(True, N),
    "schools": lambda: eight_schools(False),
    "radon": lambda: gauss(
        pm.Normal("a", normal("mu"), pm.Exponential("s", 1), shape=5)[G] + X[:, 0] * normal("b", sd=10)
    ),
    "groups": groups,
    "line": lambda: gauss(normal("a", sd=20) + normal("b", sd=20) * np.linspace(0, 1, N), pm.HalfCauchy("s", 10)),
    "logistic": lambda: bern(normal("a", sd=2.5) + X @ normal("b", 3, sd=2.5)),
    "counts": lambda: pm.NegativeBinomial(
        "y", mu=pm.math.exp(X @ normal("b", 3)), alpha=pm.Exponential("k", 0.5), observed=COUNTS
    ),
    "items": lambda: bern(normal("z", 5)[:, None] - normal("b", 12), G.reshape(5, 12) > 1),
    "missing": lambda: gauss(X @ normal("b", 3), y=np.ma.masked_less(Y, -1)),
    "flat": lambda: gauss(pm.Flat("a"), pm.HalfFlat("s")),
    "no outcome": lambda: normal("a"),
    "an sd for each weight": lambda: gauss(
        pm.math.tanh(X @ (normal("mu", 3, 4) + pm.HalfNormal("sd", 1, shape=(3, 4)) * normal("z", 3, 4)))
        @ normal("v", 4)
    ),
    "horseshoe": lambda: gauss(
        X @ (pm.HalfCauchy("tau", 1) * pm.HalfCauchy("lam", 1, shape=3) * normal("z", 3)), pm.HalfNormal("s", 1)
    ),
    "one bound": lambda: pm.TruncatedNormal("y", net(), pm.HalfNormal("s", 1), lower=0, observed=np.abs(Y)),
    "batches of rows": lambda: batched_groups(True),
    "reduced rank": lambda: gauss(X @ normal("A", 3, 1) @ normal("B", 1, 3), y=X),
    "tau, half-normal": lambda: with_sd("tau", lambda name: pm.HalfNormal(name, 1)),
    "numbered sds": lambda: gauss(
        pm.Normal("a", 0, pm.HalfNormal("sd1", 1), shape=5)[G]
        + pm.Normal("b", 0, pm.HalfNormal("sd2", 1), shape=4)[CLASSES]
    ),
    "two constants that are known": lambda: gauss(pm.Normal("c", [1.0, 5.0], 0.01)[LABELS]),
    "tied weights": lambda: gauss(X @ (w := normal("w", 3, 3)) @ w.T, y=X),
    "trials of groups": lambda: pm.Binomial(
        "y", 45, logit_p=pm.Normal("t", normal("mu"), pm.HalfNormal("sd", 1), shape=18), observed=np.arange(5, 23)
    ),
    "two arms": lambda: gauss(pm.Normal("a", normal("mu"), pm.HalfNormal("sd", 1), shape=2), 1.0, np.array([0.3, -1])),
    "a sum over units": lambda: gauss(pm.math.sum(pm.math.tanh(X @ normal("w1", 3, 5)) * normal("w2", 5), axis=-1)),
    "several labels": lambda: yes_or_no(False),
    "weights around trained ones": lambda: trained(0.1),
    "relu before a positive normal": lambda: gauss(pm.math.maximum(0, net()), y=np.abs(Y)),
    "scaled sigmoid": lambda: gauss(6 * pm.math.sigmoid(net()) - 3),
    "scaled process": lambda: process(1),
    "noise of groups": lambda: gauss(net(), pm.HalfNormal("s", 1, shape=5)[G]),
    "known noise": lambda: gauss(net(), np.exp(X[:, 0])),
    "vague as in BUGS": lambda: pm.Normal("y", normal("a"), tau=pm.Gamma("tau", 0.001, 0.001), observed=Y),
    "counts of groups": lambda: pm.Poisson(
        "y", pm.math.exp(pm.Normal("a", 2, pm.HalfNormal("sd", 1), shape=6)), observed=np.arange(5, 11)
    ),
    "a covariate with gaps": lambda: gauss(
        normal("b") * pm.Normal("x", normal("m"), pm.HalfNormal("sx", 1), observed=np.ma.masked_less(X[:, 0], -1))
    ),
    "rows around a mean": lambda: gauss(normal("a", 3) + 15, y=15 + X),
    "loadings, one of them 1": lambda: gauss(Y[:, None] * pt.set_subtensor(normal("l", 3)[0], 1.0), y=X),
    "mediation": mediation,
    "no draws": lambda: pm.CustomDist("y", normal("a"), logp=lambda y, a: -((y - a) ** 2), observed=Y),
} | {f.__name__: f for f in (with_gp, with_ordered, with_mixture, with_survival, with_correlation, with_volatility)}
BOOK = {
    "flat": lambda: models.flat_bnn(FLAT.X_train, FLAT.y_train),
    "digits": lambda: models.digit_bnn(IMAGES.X_train, IMAGES.y_train),
    "unpooled": lambda: models.unpooled_bnn(MOONS.X_train[0], MOONS.y_train[0], bias=True),
    "hierarchical": lambda: models.hierarchical_bnn(MOONS.X_train, MOONS.y_train),
    "ReLU, unequal": lambda: models.hierarchical_bnn(*FEW, activation="relu", bias=True),
    "informed": lambda: models.informed_bnn(
        X[:5, :2], LABELS[:5], mean=np.zeros(15), cholesky=np.eye(15), n_hidden=(5,)
    ),
}


def build(typed):
    with pm.Model() as model:
        typed()
    return model


def test_each_kind_of_finding_has_a_wrong_model():
    assert {kind for kind, *_ in WRONG.values()} == MENDS.keys() - {"symmetric units"}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_found_and_nothing_else(name):
    kind, named, typed = WRONG[name]
    found = check_model(build(typed))
    assert [finding.name for finding in found] == [kind]
    assert named in found[0].sentence
    assert str(found) == f"{kind}: {found[0].sentence}\n    {found[0].mend}"


@pytest.mark.parametrize("typed", [*RIGHT.values(), *BOOK.values()], ids=[*RIGHT, *BOOK])
def test_nothing_is_found_where_nothing_is_wrong(typed):
    model = typed() if typed in BOOK.values() else build(typed)
    found = check_model(model)
    assert found == []
    assert str(found) == "nothing found"


def test_what_cannot_be_standardised_has_another_mend():
    names = ("counts of thousands", "outcome in grams")
    mends = [check_model(build(WRONG[name][2]))[0].mend for name in names]
    assert mends == ["give its mean a prior of its size", MENDS["outcome not scaled"]]


def test_hidden_units_are_symmetric_only_for_the_next_prior():
    for name, n_found in {"flat": 1, "hierarchical": 1, "informed": 0}.items():
        found = check_model(BOOK[name](), for_next_prior=True)
        assert [finding.name for finding in found] == ["symmetric units"] * n_found
    assert not check_model(build(RIGHT["logistic"]), for_next_prior=True)


def test_the_random_generators_of_the_model_stay_as_they_are():
    model = build(lambda: batches(True, N))
    rngs = [v for v in ancestors(model.basic_RVs) if isinstance(v.type, RandomType) and v.owner is None]
    states, graph = [rng.get_value().bit_generator.state for rng in rngs], model.str_repr()
    check_model(model)
    assert len(rngs) == 6
    assert [rng.get_value().bit_generator.state for rng in rngs] == states
    assert model.str_repr() == graph


def test_it_takes_a_second_or_two():
    model = BOOK["hierarchical"]()
    check_model(model)
    start = time.process_time()
    check_model(model)
    assert time.process_time() - start < 4


def test_only_a_model_is_checked():
    with pytest.raises(TypeError, match="model is a dict; wanted"):
        check_model({})
    with pytest.raises(ValueError, match="seed=None"):
        check_model(build(RIGHT["line"]), seed=None)
