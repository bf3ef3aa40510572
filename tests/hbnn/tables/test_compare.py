"""Advice: who is taken, how sure that is, and what it is about."""

import numpy as np
import pandas as pd
import pytest
from hbnn import tables


def make_comparison(means, sd=0.05, n_groups=20):
    """A comparison with these mean scores on 200 rows; differences have this standard deviation."""
    rng = np.random.default_rng(0)
    lpd = pd.DataFrame({name: -1 + mean + sd * rng.normal(size=200) for name, mean in means.items()})
    return tables.Comparison({"rows": lpd, "groups": lpd.copy()}, {}, np.resize(np.arange(n_groups), 200), "binary", {})


@pytest.mark.parametrize(
    ("means", "chosen"),
    [
        ({"line": 0, "quadratic": 0.1, "trees": 0.1, "network": 0.3}, "network"),
        ({"line": 0, "quadratic": 0.1, "trees": 0.1, "network": 0.1}, "quadratic"),
        ({"line": 0, "smooth": 0.1, "trees": 0.3, "network": 0.2}, "trees"),
        ({"line": 0, "quadratic": 0, "smooth": 0, "trees": 0, "network": 0}, "line"),
        ({"line": 0, "hierarchical line": 0.2, "smooth": 0.2, "network": 0.1}, "hierarchical line"),
    ],
)
def test_the_network_is_advised_only_where_it_clearly_leads_else_the_simplest_that_keeps_up(means, chosen):
    assert make_comparison(means).choose() == chosen


@pytest.mark.parametrize(("lead", "chosen"), [(2.7, "line"), (2.9, "network")])
def test_a_lead_within_its_errors_is_no_lead_and_advice_is_about_what_is_predicted(lead, chosen):
    """The network's scores of rows are moved until its lead is so many standard errors; of groups it has none."""
    found = make_comparison({"line": 0, "network": 0}, sd=0.2)
    gain, error = found.gain("network", "line")
    found.lpd["rows"]["network"] += lead * error - gain
    assert (found.choose(), found.choose("groups")) == (chosen, "line")


@pytest.mark.parametrize(("n_groups", "n"), [(5, 200), (20, 20)])
def test_the_error_of_a_lead_is_over_groups_or_over_rows_where_groups_are_few(n_groups, n):
    found = make_comparison({"line": 0, "network": 0.3}, n_groups=n_groups)
    each = found.lpd["rows"]["network"] - found.lpd["rows"]["line"]
    each = each if n == 200 else each.groupby(found.group).mean()
    assert found.gain("network", "line")[1] == pytest.approx(each.std(ddof=1) / np.sqrt(n))


def test_where_one_group_decides_it_is_named():
    """Nineteen groups gain half a nat, one loses forty: by itself it makes the lead unclear."""
    found = make_comparison({"line": 0, "network": 0.5}, sd=0.01)
    assert "one group" not in found.advise()
    found.lpd["rows"]["network"] -= np.where(found.group == 7, 40.0, 0.0)
    assert found.choose() == "line"
    assert "one group decides: without '7' the network's lead is 0.499" in found.advise()


def test_what_was_said_with_so_much_probability_is_counted_and_what_was_wrong_is_said():
    """Of rows said with 10 % and 30 % as many came; of those with 90 %, half of them."""
    rng, p = np.random.default_rng(0), np.resize([0.1, 0.3, 0.9], 600)
    came = rng.random(600) < np.where(p == 0.9, 0.5, p)
    levels, loss = ({"rows": pd.DataFrame({"line": x})} for x in (p, came != (p > 0.5)))
    found = tables.Comparison({}, loss, np.arange(600) // 6, "binary", levels)
    said = found.say_promise("rows", "line").split("; ")
    shares = [f"200 had a probability of {k}0%, and {came[p == k / 10].mean():.0%} came" for k in (1, 3, 9)]
    assert all(share in one for share, one in zip(shares, said, strict=True))
    assert ["not as promised" in one for one in said] == [False, False, True]
