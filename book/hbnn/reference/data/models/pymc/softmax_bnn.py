"""Iris: tanh units with biases, three classes by softmax, standard normal weights."""

import pymc as pm


def model(data):
    n, n_classes, size = int(data["H"]), int(data["K"]), data["X"].shape[1]
    with pm.Model() as bnn:
        w1, b1 = pm.Normal("w1", 0, 1, shape=(size, n)), pm.Normal("b1", 0, 1, shape=n)
        w2, b2 = pm.Normal("w2", 0, 1, shape=(n, n_classes)), pm.Normal("b2", 0, 1, shape=n_classes)
        h = pm.math.tanh(data["X"] @ w1 + b1)
        pm.Categorical("y", logit_p=h @ w2 + b2, observed=data["y"] - 1)
    return bnn
