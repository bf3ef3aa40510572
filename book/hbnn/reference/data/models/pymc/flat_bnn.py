"""Two moons: a network 2-5-5-1 of tanh units without biases, standard normal weights, Bernoulli labels."""

import pymc as pm


def model(data):
    n = int(data["H"])
    with pm.Model() as bnn:
        X = pm.Data("X", data["X"])
        w1 = pm.Normal("w1", 0, 1, shape=(2, n))
        w2 = pm.Normal("w2", 0, 1, shape=(n, n))
        w3 = pm.Normal("w3", 0, 1, shape=n)
        h1 = pm.math.tanh(X @ w1)
        h2 = pm.math.tanh(h1 @ w2)
        pm.Bernoulli("y", logit_p=h2 @ w3, observed=data["y"])
    return bnn
