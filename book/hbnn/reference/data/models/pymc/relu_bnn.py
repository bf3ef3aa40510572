"""Two bumps: three ReLU units with biases on one feature, standard normal weights, normal outcomes of known noise."""

import pymc as pm


def model(data):
    n = int(data["H"])
    with pm.Model() as bnn:
        w, b = pm.Normal("w", 0, 1, shape=n), pm.Normal("b", 0, 1, shape=n)
        v, c = pm.Normal("v", 0, 1, shape=n), pm.Normal("c", 0, 1)
        h = pm.math.maximum(0, data["x"][:, None] * w + b)
        pm.Normal("y", h @ v + c, data["sigma"], observed=data["y"])
    return bnn
