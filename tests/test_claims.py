"""The claims of a chapter: shown to a reader, and stored as data."""

import json

import numpy as np
import outputs
import pytest
from bnn.claims import MIME, Claims


def add(claims, **changes):
    claim = {"name": "learns", "claim": "It learns", "value": "0.50 ± 0.10", "criterion": "above 0.4", "holds": True}
    claims.add(**claim | changes)


@pytest.fixture
def claims():
    claims = Claims("moons")
    add(claims)
    add(claims, name="wins", claim="It wins <always>", value="3", holds=np.bool_(False))
    return claims


def test_claims_are_stored_as_data(claims):
    stored = json.loads(json.dumps(claims._repr_mimebundle_()[MIME]))
    assert stored == [
        {"id": "learns", "claim": "It learns", "value": "0.50 ± 0.10", "criterion": "above 0.4", "holds": True},
        {"id": "wins", "claim": "It wins <always>", "value": "3", "criterion": "above 0.4", "holds": False},
    ]


def test_claims_are_shown_as_a_table_with_their_verdicts(claims):
    bundle = claims._repr_mimebundle_()
    assert bundle["text/plain"].splitlines()[2].endswith("holds")
    assert bundle["text/plain"].splitlines()[3].endswith("does not hold")
    assert "It wins &lt;always&gt;" in bundle["text/html"]


def test_claims_can_be_compared(claims):
    output = {"output_type": "display_data", "data": claims._repr_mimebundle_(), "metadata": {}}
    assert outputs.find_malformed([output]) == []
    assert outputs.compare_outputs([output], [output], outputs.set_level(3)) == []
    assert len(outputs.list_estimates([output])) == 1  # as text; the table and the data repeat it


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, r"claim 'learns' is there already; wanted: another name"),
        ({"name": "b", "holds": 1}, r"holds=1 for claim 'b'; wanted: True or False"),
        ({"name": "b", "holds": "yes"}, r"holds='yes' for claim 'b'; wanted: True or False"),
        ({"name": "b", "value": 0.5}, r"value=0.5 for claim 'b'; wanted: text, as `bnn.report` prints numbers"),
    ],
)
def test_a_claim_that_is_no_claim_is_refused(claims, changes, message):
    with pytest.raises(ValueError, match=message):
        add(claims, **changes)
    assert len(claims.claims) == 2
