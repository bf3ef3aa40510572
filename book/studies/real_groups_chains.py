"""Do the chains agree on the two real tables of `real_groups`, and if not, what makes them?

Chosen before any of these fits was seen, but for the first line, which a draft had found refused on contraception: the
fit that everybody gets, the longer chains of the page (on the smaller table; on the other they take ten minutes and
more), and read-outs alone that differ between groups.
"""

from functools import lru_cache

from bnn import grouped

from studies.real_groups import SOURCES, read_rows

MEASURED = False
OPTIONS = {"default": {}, "longer": {}, "readout": {"vary": "readout"}}
SAMPLERS = {"longer": {"draws": 5000, "tune": 1500}}
CASES = [
    {"data": data, "how": how, "seed": 1} for data in SOURCES for how in OPTIONS
    if (data, how) != ("aggression", "longer")
]  # fmt: skip
SECONDS = {"contraception": 100, "aggression": 220}
FIRST = 15  # CPU-seconds: a network is compiled


def block(case):
    """Every row is a task of its own."""
    return tuple(case.values())


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return SECONDS[case["data"]] * {"longer": 2.2, "readout": 0.6}.get(case["how"], 1)


@lru_cache
def compile_network(data, how):
    """A network, compiled once a process."""
    return grouped.compile_network(read_rows(data), **OPTIONS[how])


def compute(data, how, seed):
    """The verdict on a fit to all rows."""
    network = compile_network(data, "default" if how == "longer" else how)
    found = grouped.fit(read_rows(data), seed=seed, network=network, sampler=SAMPLERS.get(how)).verdict
    return {
        "converged": bool(found.converged), "rhat": float(found.rhat), "ess": float(min(found.ess, found.ess_tail)),
        "divergences": int(found.divergences),
    }  # fmt: skip
