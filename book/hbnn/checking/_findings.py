"""What `check_model` says, and what to type instead."""

from dataclasses import dataclass

MENDS = {
    "leads nowhere": "use it, or take it out; a layer computed from the wrong one below leaves another one unused",
    "separate minibatches": "draw all in one call: X, y = pm.Minibatch(X_all, y_all, batch_size=...)",
    "total_size": "say total_size=len(y_all) where the outcome is typed",
    "minibatch of groups": "draw rows, not groups: give pm.Minibatch arrays with a row for each point and its group's "
    "number, and say w[group]",
    "variance as sd": "give pm.math.sqrt(...) of a variance, or tau=... for a precision",
    "precision as sd": "say tau=... where a precision is meant; if it is an sd, another name would tell",
    "only a product": "for a mean and an sd, type mean + sd * z with z = pm.Normal('z', 0, 1, ...)",
    "no activation": "put pm.math.tanh(...) around the units; without it all layers together are one",
    "index out of range": "count groups from 0 and make room for all; pd.factorize gives -1 for a missing value",
    "symmetric units": "line up the draws with hbnn.symmetry.align before they become a prior",
    "cannot be computed": "compare shapes and lengths",
    "broadcast": "take one element of the last axis, as in (X @ w)[:, 0], or give w one axis only",
    "one value for all rows": "say over which axis to sum: pm.math.sum(..., axis=-1)",
    "probability as logit": "say p=... for a probability, or logit_p=... for the network without sigmoid or softmax",
    "logit as probability": "say logit_p=... in place of p=...",
    "label out of range": "count classes from 0, with a column of p or logit_p for each",
    "yes and no as classes": "say pm.Bernoulli for labels of which several may be 1; where each row has one 1, give "
    "pm.Categorical the class, y.argmax(axis=-1)",
    "not normalised": "say logit_p=... with classes last, or pm.math.softmax(..., axis=-1)",
    "softmax axis": "say pm.math.softmax(..., axis=-1), with classes last",
    "prior too sure": "give weights a smaller sd, about 1 / sqrt(units below), and standardise inputs",
    "prior too narrow": "give each weight an sd as large as it may be wrong; for trained weights see hbnn.priors",
    "below zero": "put pm.math.exp(...) or pm.math.log1pexp(...) around it",
    "out of domain": "put pm.math.sigmoid(...) around a probability, and pm.math.softmax(..., axis=-1) around shares",
    "prior too wide": "standardise inputs, and an outcome that may be below 0; weights of about 1, or less in an "
    "exponential",
    "out of reach": "take the last activation off, or scale the outcome to its range",
    "outcome not scaled": "standardise it, (y - y.mean()) / y.std(), or give its mean and sd priors of its size",
    "inputs not scaled": "standardise each column: (X - X.mean(axis=0)) / X.std(axis=0)",
    "bias for each row": "give a bias the length of the units that it is added to, or one value for each group",
    "noise for each row": "give all rows one sd, or compute it from features",
    "group without rows": "make room for groups that have rows only, counted from 0, or know that it keeps its prior",
    "funnel": "use offsets: mu + sd * z with z = pm.Normal('z', 0, 1, ...)",
}


@dataclass(frozen=True)
class Finding:
    """Something in a model that is probably not meant.

    Attributes
    ----------
    name : str
        What kind of mistake.
    sentence : str
        What was seen, with the names of the variables.
    mend : str
        What to type instead.

    Examples
    --------
    >>> from hbnn.checking import Finding
    >>> print(Finding("leads nowhere", "no outcome depends on w2", "use it, or take it out"))
    leads nowhere: no outcome depends on w2
        use it, or take it out
    """

    name: str
    sentence: str
    mend: str

    def __str__(self) -> str:
        return f"{self.name}: {self.sentence}\n    {self.mend}"


class Findings(list[Finding]):
    """A list of `Finding`, empty where nothing was found, that prints as paragraphs."""

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "nothing found"


def make_finding(name: str, sentence: str, mend: str = "") -> Finding:
    return Finding(name, sentence, mend or MENDS[name])
