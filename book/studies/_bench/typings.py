"""Networks as other people have typed them, and microseconds of a gradient as they stand and fused.

Each is typed anew from a public program, page or table, named at its head, with its structure, sizes like its own and
invented data.
"""

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from studies._bench.gradients import MODES, compile_forms, draw_values, time_forms

FORMS = {form: MODES[form] for form in ("stock, Numba", "stock, JAX, called", "fuse")}
tanh, relu, sigmoid = pm.math.tanh, lambda z: pm.math.maximum(0, z), pm.math.sigmoid


def time_typing(typing, rounds, seconds):
    """One typing: dict of "is_left", whether `fuse` leaves it as typed, "rows" as `time_rows`, and "compile"."""
    model = build(typing)
    forms = compile_forms(model, FORMS)
    stock, fast = (forms[form] for form in ("stock, Numba", "fuse"))
    if fast[0] is model:
        del forms["fuse"]
    values = draw_values(model)
    for a, b in zip(stock[1](*values), fast[1](*values), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-6 * np.abs(a).max())
    return {
        "is_left": fast[0] is model,
        "unknowns": sum(value.size for value in values),
        "rows": time_forms(forms, {}, rounds, seconds),
        "compile": {form: seconds for form, (_, _, seconds) in forms.items()},
    }


def build(typing):
    """The model of one of `TYPINGS`."""
    with pm.Model() as model:
        TYPINGS[typing](np.random.default_rng(0))
    return model


def normal(name, *shape, sd=1.0):
    return pm.Normal(name, 0, sd, shape=shape)


def dense(name, x, n_in, n_out, sd=1.0):
    """A layer with biases, as many people type it."""
    return pm.math.dot(x, normal(f"w_{name}", n_in, n_out, sd=sd)) + normal(f"b_{name}", n_out, sd=sd)


def draw_labels(rng, *shape):
    return rng.integers(0, 2, shape).astype("int32")


def type_moons(rng):
    """pymc-devs/pymc-examples, bayesian_neural_network_advi."""
    X, y = pm.Data("ann_input", rng.normal(size=(500, 2))), pm.Data("ann_output", draw_labels(rng, 500))
    h = tanh(pm.math.dot(X, normal("w_in_1", 2, 5)))
    h = tanh(pm.math.dot(h, normal("w_1_2", 5, 5)))
    pm.Bernoulli("out", sigmoid(pm.math.dot(h, normal("w_2_out", 5))), observed=y, total_size=500)


def type_categories(rng):
    """The two articles that this book replicates."""
    X, y = rng.normal(size=(18, 50, 2)), draw_labels(rng, 18, 50)

    def vary(name, *shape):
        return normal(f"{name}_grp", *shape) + pm.HalfNormal(f"{name}_grp_sd", 1) * normal(name, 18, *shape)

    h = tanh(pt.matmul(tanh(pt.matmul(X, vary("w_in_1", 2, 5))), vary("w_1_2", 5, 5)))
    pm.Bernoulli("out", sigmoid(pt.matmul(h, vary("w_2_out", 5, 1))[..., 0]), observed=y)


def type_sites(rng):
    """predictive-clinical-neuroscience/PCNtoolkit, "nn" of hbr.py: a loop over sex and site, each put in its rows."""
    cells = [(i, j) for i in range(2) for j in range(5)]
    cell = rng.choice(10, 250)
    age, y = rng.normal(size=(250, 1)), rng.normal(size=(250, 1))

    def vary(name, *shape):
        mean, scale = normal(f"{name}_grp", *shape), pm.HalfCauchy(f"{name}_grp_sd", 1, shape=shape)
        return normal(name, 2, 5, *shape) * scale + mean

    w1, w2, w3, n1, n3 = vary("w1", 1, 2), vary("w2", 2, 2), vary("w3", 2), vary("n1", 1, 2), vary("n3", 2)
    mean, noise = pt.zeros((250, 1)), pt.zeros((250, 1))
    for k, where in enumerate(cells):
        rows = np.flatnonzero(cell == k)
        h = tanh(pt.dot(tanh(pt.dot(age[rows], w1[where])), w2[where]))
        mean = pt.set_subtensor(mean[rows, 0], pt.dot(h, w3[where]))
        h = sigmoid(pt.dot(age[rows], n1[where]))
        noise = pt.set_subtensor(noise[rows, 0], pm.math.log1pexp(pt.dot(h, n3[where])) + 1e-5)
    pm.SkewNormal("y_like", mu=mean, sigma=noise, alpha=0, observed=y)


def type_stars(rng):
    """errai34/BINGO: inputs with noise are unknowns, biases of each class, known noise of the outcome."""
    X, group, y = rng.normal(size=(200, 6)), rng.integers(0, 3, 200), rng.normal(size=200)
    noise = rng.uniform(0.05, 0.2, 200)
    true = pm.Normal("true", X, 0.1, shape=X.shape)
    h = relu(pm.math.dot(true, normal("w1", 6, 10)) + (normal("b", 10) + 0.5 * normal("z", 3, 10))[group])
    h = relu(dense("2", h, 10, 10))
    pm.Normal("age", pm.math.dot(h, normal("w3", 10)) + normal("b3"), noise, observed=y)


def type_myeloma(rng):
    """evenmm/mm-predict-bnn, BNN_model.py: three leaky networks in a curve of each patient."""
    X, patient = rng.normal(size=(30, 5)), np.repeat(np.arange(30), 7)
    t, y, theta = rng.uniform(0, 2, 210), rng.normal(size=210), []
    spread = pm.math.exp(pm.Normal("log_sd_in", -2, 1, shape=(5, 1)))
    for k, start in enumerate((-1.0, -1.5, 0.0)):
        z = pm.math.dot(X, pm.Normal(f"w_in_{k}", 0, spread, shape=(5, 3))) + normal(f"b_{k}", 1, 3)
        out = pm.math.dot(pm.math.switch(z > 0, z, z * 0.01), pm.HalfNormal(f"w_out_{k}", 0.5, shape=3))
        theta.append(pm.Normal(f"theta_{k}", start + out, pm.HalfNormal(f"omega_{k}", 1)))
    dies, grows, share = -pm.math.exp(theta[0]), pm.math.exp(theta[1]), sigmoid(theta[2])
    curve = share[patient] * pm.math.exp(grows[patient] * t) + (1 - share[patient]) * pm.math.exp(dies[patient] * t)
    pm.Normal("Y_obs", curve, pm.HalfNormal("sigma", 1), observed=y)


def type_wildfire(rng):
    """PLUS-ZGIS-GeoAI/ignite-bayesian-ml, bayesian_models.py: three layers, Cauchy weights."""
    X, y = rng.normal(size=(400, 12)), draw_labels(rng, 400)
    h, n = pm.Data("ann_input", X), 12
    for k in range(3):
        h, n = tanh(pm.math.dot(h, pm.Cauchy(f"w_{k}", 0, 1, shape=(n, 10)))), 10
    pm.Bernoulli("y_pred", pm.Deterministic("p", sigmoid(pm.math.dot(h, normal("w_out", 10)))), observed=y)


def type_gestures(rng):
    """imitrob/teleop_gesture_toolbox, pymc_lib.py: 57 angles, eight classes."""
    X, y = pm.Data("ann_input", rng.normal(size=(600, 57))), rng.integers(0, 8, 600)
    out = pm.math.dot(tanh(pm.math.dot(X, normal("w_in_1", 57, 20))), normal("w_2_out", 20, 8))
    pm.Categorical("out", p=pm.math.softmax(out, axis=-1), observed=y)


def type_process(rng):
    """A public notebook: a network of 128 and 64 units gives the inputs of a Gaussian process."""
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    h = tanh(pm.math.dot(tanh(pm.math.dot(X, normal("w1", 3, 128, sd=0.5))), normal("w2", 128, 64, sd=0.1)))
    u = pm.math.dot(h, normal("w3", 64, 2, sd=0.1))
    far = ((u[:, None] - u[None]) ** 2).sum(-1)
    cov = pm.HalfNormal("eta", 1) ** 2 * pm.math.exp(-far / 2) + pm.HalfNormal("s", 1) ** 2 * np.eye(60)
    pm.MvNormal("y", np.zeros(60), cov + 0.01 * np.eye(60), observed=y)


def _type_bandit(rng, n, activation):
    X, y, n_in = rng.normal(size=(n, 6)), draw_labels(rng, n), 6
    below = pm.Data("bnn_input", X)
    for k, n_out in enumerate((8, 8, 1)):
        weight = pm.StudentT(f"weight_{k}", nu=5, mu=np.zeros((n_in, n_out)), sigma=np.ones((n_in, n_out)))
        z = pm.math.dot(below, weight) + pm.StudentT(f"bias_{k}", nu=5, mu=np.zeros(n_out), sigma=np.ones(n_out))
        below = activation(z) + below if n_in == n_out else activation(z)
        n_in = n_out
    pm.Bernoulli("out", logit_p=z.squeeze(), observed=y)


def type_bandit(rng):
    """PlaytikaOSS/pybandits: Student-t weights from arrays, a residual layer, a day of contexts."""
    _type_bandit(rng, 150, tanh)


def type_bandit_gelu(rng):
    """The same, as its pull request 116 has it: GELU, more rows."""
    _type_bandit(rng, 2000, lambda z: 0.5 * z * (1 + pt.erf(z / np.sqrt(2))))


def type_words(rng):
    """vb690/bayesian_ANN, embedding of words: a table, laid flat, and three layers."""
    texts, y = rng.integers(0, 61, (300, 12)), draw_labels(rng, 300)
    table = normal("offset", 61, 8) * pm.HalfCauchy("scale", 2) + normal("mean", 8)
    h, n_in = sigmoid(table)[texts].reshape((300, 96)), 96
    for n_out in (20, 10, 5):
        h, n_in = tanh(dense(str(n_out), h, n_in, n_out, 0.1)), n_out
    pm.Bernoulli("y", p=sigmoid(pm.math.dot(h, normal("w_theta", 5)) + normal("b_theta", 1)), observed=y)


def type_dense(rng):
    """vb690/bayesian_ANN, its README: 10,000 rows of 100 columns, three ReLU layers."""
    h, n_in = rng.random((10_000, 100)), 100
    for n_out in (100, 50, 25):
        h, n_in = relu(dense(str(n_out), h, n_in, n_out, 0.1)), n_out
    mu = pm.math.dot(h, normal("w_mu", 25)) + normal("b_mu", 1)
    pm.Normal("y", mu, pm.HalfCauchy("sigma", 5), observed=rng.random(10_000))


def type_seats(rng):
    """A public program for an airline: two counts of seats and a price of one ReLU network."""
    X, n_own, n_other, price = rng.normal(size=(250, 4)), *rng.poisson(5, (2, 250)), rng.normal(size=250)
    h = relu(pm.math.dot(relu(pm.math.dot(X, normal("w_in_1", 4, 10))), normal("w_1_2", 10, 10)))
    pm.Poisson("own", pm.math.log1pexp(pm.math.dot(h, normal("w_own", 10)) + normal("b_own")), observed=n_own)
    pm.Poisson("other", pm.math.log1pexp(pm.math.dot(h, normal("w_other", 10)) + normal("b_other")), observed=n_other)
    pm.Normal("price", pm.math.dot(h, normal("w_price", 10, sd=5)), 5, observed=price)


def type_several_labels(rng):
    """A public program, its likelihood mended: five labels a row."""
    X, y = rng.normal(size=(300, 10)), draw_labels(rng, 300, 5)
    out = pm.math.dot(tanh(pm.math.dot(X, normal("w1", 10, 16))), normal("w2", 16, 5))
    pm.Bernoulli("y", logit_p=out, observed=y)


def type_line(rng):
    """krasserm/bayesian-machine-learning, as asked for in pymc-devs/pymc-examples #384: five and five ReLU units."""
    X, y = np.linspace(-1, 1, 50)[:, None], rng.normal(size=(50, 1))
    h, n_in = X, 1
    for n_out in (5, 5, 1):
        w, b = normal(f"l{n_in}{n_out}_w", n_in, n_out), normal(f"l{n_in}{n_out}_b", 1, n_out)
        h, n_in = (relu if n_out > 1 else (lambda z: z))(pt.tensordot(h, w, axes=[[1], [0]]) + b), n_out
    pm.Normal("obs", h, 0.1, observed=y)


def type_three_units(rng):
    """davidbp/connectionist, bayesianmlp.py: three ReLU units, a column of outcomes."""
    X, y = rng.normal(size=(200, 2)), rng.normal(size=(200, 1))
    h = relu(dense("in", X, 2, 3, 0.5))
    pm.Normal("Y_obs", pm.math.dot(h, normal("w_1_2", 3, 1)) + normal("b_out", 1), 1, observed=y)


def type_gamma_noise(rng):
    """pyro-ppl/numpyro, examples/bnn.py: five and five tanh units, a gamma precision."""
    x = np.linspace(-1, 1, 100)
    h = tanh(pt.dot(np.stack([x**0, x, x**2], axis=1), normal("w1", 3, 5)))
    h = tanh(pt.dot(h, normal("w2", 5, 5)))
    pm.Normal("Y", pt.dot(h, normal("w3", 5, 1)), tau=pm.Gamma("prec_obs", 3, 1), observed=rng.normal(size=(100, 1)))


def type_angles(rng):
    """pyro-ppl/numpyro #774: angles of a protein, mean and concentration of one network."""
    X, y = rng.normal(size=(200, 8)), rng.uniform(-3, 3, 200)
    out = pt.dot(tanh(dense("1", X, 8, 10)), normal("w2", 10, 2))
    pm.VonMises("phi", mu=3 * tanh(out[:, 0]), kappa=pm.math.exp(out[:, 1]), observed=y)


def type_one_vector(rng):
    """TuringLang/docs, Bayesian neural networks: all twenty weights cut out of one vector."""
    X, y, theta = rng.normal(size=(80, 2)), draw_labels(rng, 80), normal("parameters", 20)
    h = tanh(pt.dot(X, theta[:6].reshape((2, 3))) + theta[6:9])
    h = tanh(pt.dot(h, theta[9:15].reshape((3, 2))) + theta[15:17])
    pm.Bernoulli("y", sigmoid(pt.dot(h, theta[17:19]) + theta[19]), observed=y)


def type_centred_units(rng):
    """A program in Stan: units less their mean before the read-out."""
    X, y = rng.normal(size=(150, 4)), rng.normal(size=150)
    h = tanh(pt.dot(X, normal("hidden_wt", 4, 8)))
    pm.Normal("y", pt.dot(h - h.mean(axis=0), normal("act_wt", 8)), pm.HalfCauchy("sigma", 1), observed=y)


def type_housing(rng):
    """tensorflow/probability #292: mean and softplus sd of a ReLU network, as many rows as Boston has."""
    X, y = rng.normal(size=(506, 13)), rng.normal(size=506)
    h = relu(dense("2", relu(dense("1", X, 13, 10)), 10, 10))
    out = dense("3", h, 10, 2)
    pm.Normal("y", out[:, 0], pm.math.log1pexp(out[:, 1]) + 1e-6, observed=y)


def type_fifty_units(rng):
    """The benchmark of Hernández-Lobato and Adams (2015): fifty ReLU units, as many rows as Boston has."""
    X, y = rng.normal(size=(506, 13)), rng.normal(size=506)
    h = relu(dense("1", X, 13, 50))
    pm.Normal("y", pt.dot(h, normal("w2", 50)) + normal("b2"), tau=pm.Gamma("gamma", 6, 6), observed=y)


def type_images(rng):
    """The digits article that this book replicates: 64 pixels, ten classes."""
    X, y = rng.random((1000, 64)), rng.integers(0, 10, 1000)
    h = tanh(dense("2", tanh(dense("1", X, 64, 12, 0.3)), 12, 12))
    pm.Categorical("y", logit_p=dense("3", h, 12, 10), observed=y)


def type_hundred_units(rng):
    """A public program in PyMC3: one layer of a hundred tanh units, and a vague prior."""
    X, y = rng.normal(size=(500, 8)), rng.normal(size=500)
    h = tanh(pt.dot(X, normal("w1", 8, 100, sd=100)) + normal("b1", 100, sd=100))
    pm.Normal("y", pt.dot(h, normal("w2", 100, sd=100)) + normal("b2", sd=100), 1, observed=y)


def type_wide(rng):
    """JavierAntoran/Bayesian-Neural-Networks: a curve by one layer of two hundred ReLU units."""
    X, y = rng.normal(size=(100, 1)), rng.normal(size=100)
    pm.Normal("y", pt.dot(relu(dense("1", X, 1, 200)), normal("w2", 200, sd=0.1)) + normal("b2"), 0.1, observed=y)


def type_two_networks(rng):
    """aleximmer/Laplace #153: a network for the mean, and another one for the noise."""
    X, y = rng.normal(size=(200, 1)), rng.normal(size=200)
    mean, noise = (pt.dot(tanh(dense(name, X, 1, 50)), normal(f"r_{name}", 50, sd=0.2)) for name in ("mean", "noise"))
    pm.Normal("y", mean, pm.math.exp(noise), observed=y)


def type_horseshoe(rng):
    """AugustArnstad/shrinkage_priors_in_BNNs: Friedman's ten columns, sixteen units, a regularised horseshoe."""
    X, y = rng.random((100, 10)), rng.normal(size=100)
    tau, lam, c2 = pm.HalfCauchy("tau", 0.1), pm.HalfCauchy("lam", 1, shape=(10, 16)), pm.InverseGamma("c2", 2, 4)
    w = normal("z", 10, 16) * tau * lam * pm.math.sqrt(c2 / (c2 + tau**2 * lam**2))
    h = tanh(pt.dot(X, w) + normal("b1", 16))
    pm.Normal("y", pt.dot(h, normal("w2", 16)) + normal("b2"), pm.InverseGamma("sigma", 3, 2), observed=y)


def type_marks(rng):
    """A part of InstEval of lme4: 7,840 marks, embeddings of students and of lecturers, ordered outcome."""
    student, lecturer, y = rng.integers(0, 320, 7840), rng.integers(0, 1014, 7840), rng.integers(0, 5, 7840)
    u, v = normal("student", 320, 3), normal("lecturer", 1014, 3)
    h = tanh(dense("1", pt.concatenate([u[student], v[lecturer]], axis=1), 6, 8))
    cuts = pm.Normal("cuts", np.arange(4.0), 1, transform=pm.distributions.transforms.ordered, initval=np.arange(4.0))
    pm.OrderedLogistic("mark", eta=pt.dot(h, normal("w2", 8)), cutpoints=cuts, observed=y)


def type_ticks(rng):
    """grouseticks of lme4: counts, a network and a level of each of 118 broods."""
    X, brood, y = rng.normal(size=(403, 3)), rng.integers(0, 118, 403), rng.poisson(3, 403)
    level = pm.HalfNormal("sd", 1) * normal("z", 118)
    rate = pm.math.exp(pt.dot(tanh(dense("1", X, 3, 6)), normal("w2", 6)) + level[brood])
    pm.NegativeBinomial("ticks", mu=rate, alpha=pm.Exponential("alpha", 1), observed=y)


def type_path(rng):
    """What people ask who have sequences: a network is the slope of a path, sixteen steps of Euler."""
    path, w1, w2 = pt.as_tensor(rng.normal(size=(40, 2))), normal("w1", 2, 8), normal("w2", 8, 2)
    for _ in range(16):
        path = path + 0.1 * pt.dot(tanh(pt.dot(path, w1)), w2)
    pm.Normal("end", path, 0.1, observed=rng.normal(size=(40, 2)))


TYPINGS: dict[str, Callable] = {
    name.removeprefix("type_"): typed for name, typed in list(globals().items()) if name.startswith("type_")
}
