"""Eighteen rotated moons: a network 2-12-12-1 for each category, whose weights share normals that are learned."""

import pymc as pm


def model(data):
    n, n_groups, W = int(data["H"]), int(data["G"]), []
    with pm.Model() as bnn:
        X = pm.Data("X", data["X"])
        for k, shape in enumerate([(2, n), (n, n), (n,)], 1):
            mu = pm.Normal(f"mu{k}", 0, 1, shape=shape)
            sd = pm.HalfNormal(f"sd{k}", 1)
            z = pm.Normal(f"z{k}", 0, 1, shape=(n_groups, *shape))
            W.append(mu + sd * z)
        h1 = pm.math.tanh(X @ W[0])
        h2 = pm.math.tanh(h1 @ W[1])
        logit = (h2 @ W[2][..., None])[..., 0]
        pm.Bernoulli("y", logit_p=logit, observed=data["y"])
    return bnn
