"""The claims of a chapter: shown to a reader, and stored as data."""

import json

import numpy as np
import pytest
from bookkit.claims import MIME, Claims, find_error, find_p, find_verdicts, is_above, judge_together
from scipy import stats
from tools import outputs


def add(claims, **changes):
    claim = {"name": "learns", "claim": "It learns", "value": "0.50 ± 0.10", "criterion": "above 0.4", "holds": True}
    claims.add(**claim | changes)


@pytest.fixture
def claims():
    claims = Claims("moons")
    add(claims)
    add(claims, name="wins", claim="It wins <always>", value="3", holds=np.bool_(False))
    return claims


def test_claims_are_stored_as_data_and_hold_where_they_were_found_to(claims):
    add(claims, name="asks nothing", criterion="", holds=False, against=0, family="a")
    stored = json.loads(json.dumps(claims._repr_mimebundle_()[MIME]))
    one = {"id": "learns", "claim": "It learns", "value": "0.50 ± 0.10", "criterion": "above 0.4", "holds": True}
    assert stored[0] == one
    assert [claim["holds"] for claim in stored] == [True, False, False]
    assert (stored[2]["against"], stored[2]["family"]) == (0.0, "a")


def test_claims_are_shown_as_a_table_with_their_verdicts(claims):
    bundle = claims._repr_mimebundle_()
    assert bundle["text/plain"].splitlines()[2].endswith("holds")
    assert bundle["text/plain"].splitlines()[3].endswith("does not hold")
    assert "It wins &lt;always&gt;" in bundle["text/html"]


def test_a_claim_says_whose_it_is_and_when_its_criterion_was_set(claims):
    add(claims, name="theirs", whose="an article's", stated="after")
    assert (claims.claims[2]["whose"], claims.claims[2]["stated"]) == ("an article's", "after")
    assert not {"whose", "stated"} & claims.claims[0].keys()  # ours, and nobody knows
    assert "above 0.4; set after the result" in repr_table(claims).splitlines()[4]


def test_a_claim_that_holds_alone_and_not_together_falls(claims):
    weak = {"value": "2.10 ± 1.00", "against": 0}
    add(claims, name="weak", **weak)
    assert repr_table(claims).splitlines()[4].endswith(" holds")
    add(claims, name="weak, too", **weak)
    assert [line.split()[-1] for line in repr_table(claims).splitlines()[4:]] == ["falls", "falls"]


def test_a_page_may_judge_more_than_it_claims(claims):
    add(claims, name="weak", value="9.0 ± 1.0", against=0, stands=False)
    add(claims, name="strong", value="2.1 ± 1.0", against=0, stands=np.bool_(True))
    add(claims, name="none", value="0.1 ± 1.0", holds=False, stands=True)
    verdicts = find_verdicts([{"chapter": "a"} | claim for claim in claims.claims[2:]])
    assert verdicts == ["falls", "holds", "does not hold"]


def repr_table(claims):
    """What the claims print."""
    return claims._repr_mimebundle_()["text/plain"]


def test_claims_can_be_compared(claims):
    output = {"output_type": "display_data", "data": claims._repr_mimebundle_(), "metadata": {}}
    assert outputs.find_malformed([output]) == []
    assert outputs.compare_outputs([output], [output]) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "'learns' is there already"),
        ({"name": "b", "holds": 1}, "holds=1 for claim 'b'; wanted: True or False"),
        ({"name": "b", "value": "12 of 20", "against": 10}, "'12 of 20' .*; wanted: a number with its error"),
        ({"name": "b", "value": 0.5}, "value=0.5 for claim 'b'; wanted: text"),
        ({"name": "b", "whose": "nobody's"}, "whose=\"nobody's\" for claim 'b'; wanted: one of .*'lore'"),
        ({"name": "b", "stated": "late"}, "stated='late' for claim 'b'; wanted: one of .*'after'"),
    ],
)
def test_a_claim_that_is_no_claim_is_refused(claims, changes, message):
    with pytest.raises(ValueError, match=message):
        add(claims, **changes)
    assert len(claims.claims) == 2


# --- a mean of few values, and many claims at once


@pytest.mark.parametrize("n", [3, 8])
def test_a_mean_is_above_zero_where_a_t_test_says_so(n):
    values = np.random.default_rng(n).normal(size=(400, n)) + 0.8
    said = [is_above(row) for row in values]
    assert said == [bool(p < 0.025) for p in stats.ttest_1samp(values, 0, axis=1, alternative="greater").pvalue]
    assert 0 < sum(said) < 400
    assert [is_above(row, 5) for row in values + 5] == said


def test_splits_of_one_table_have_a_larger_error():
    """Scores of splits that test a third of what they train on correlate by a quarter: the mean of five shows it."""
    rng = np.random.default_rng(2)
    common = np.sqrt(0.25) * rng.normal(size=(20_000, 1))
    values = common + np.sqrt(0.75) * rng.normal(size=(20_000, 5))
    found = np.sqrt(np.mean([find_error(row, 1 / 3) ** 2 for row in values[:4000]]))
    assert found == pytest.approx(values.mean(axis=1).std(), rel=0.03)
    assert find_error([1.0, 2.0, 3.0]) == pytest.approx(np.sqrt(1 / 3))
    assert is_above([1.0, 1.5, 2.0])
    assert not is_above([1.0, 1.5, 2.0], overlap=1 / 3)


@pytest.mark.parametrize("values", [[1.0], [1.0, np.nan], [[1.0, 2.0]]])
def test_what_has_no_spread_is_refused(values):
    with pytest.raises(ValueError, match="at least two finite numbers"):
        is_above(values)


def tell(value, against=0, holds=True, chapter="a", **more):
    return {"chapter": chapter, "value": value, "holds": holds, "against": against} | more


def test_the_p_of_a_claim_is_that_of_its_printed_value():
    assert find_p(tell("1.96 ± 1.00 nats")) == pytest.approx(0.025, abs=1e-4)
    assert find_p(tell("2.78 ± 1.00 (n=5) %")) == pytest.approx(0.025, abs=1e-4)
    assert find_p(tell("48.0 ± 1.0 %", against=50)) == pytest.approx(stats.norm.sf(2))
    assert find_p(tell("9.0 ± 1.0 and 2.0 ± 1.0")) == pytest.approx(stats.norm.sf(2))  # both must
    assert find_p(tell("2.0 ± 1.0", holds=False)) == 1
    assert find_p({"chapter": "a", "value": "2.0 ± 1.0", "holds": True}) is None


def test_many_claims_are_judged_by_holms_rule():
    """At 0.025 in all: of three, 0.0062 is below 0.025 / 3, 0.0107 below 0.025 / 2, and 0.0228 below 0.025."""
    three = [tell(f"{z} ± 1.0") for z in (2.0, 2.5, 2.3)]
    assert judge_together(three) == [True, True, True]
    assert judge_together([*three, tell("0.1 ± 1.0", holds=False)]) == [False, True, False, False]
    below = [tell("3.5 ± 1.0"), tell("2.0 ± 1.0"), tell("1.98 ± 1.00")]  # the last is below 0.025, its turn never comes
    assert judge_together(below) == [True, False, False]
    assert judge_together([*three, {"chapter": "a", "value": "9 of 9", "holds": True}]) == [True, True, True, None]


def test_a_family_may_span_pages_and_a_page_is_one_otherwise():
    weak, lost = tell("2.0 ± 1.0"), {"value": "0.1 ± 1.0", "holds": False}
    assert judge_together([weak, tell(chapter="b", **lost)]) == [True, False]
    assert judge_together([weak, tell(chapter="b", family="a", **lost)]) == [False, False]
