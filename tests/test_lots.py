"""What is drawn by lot: as many as wanted, others at another commit, none never."""

import lots

CASES = [f"case {i}" for i in range(20)]


def list_quick(params):
    return [param.values[0] for param in params if not param.marks]


def test_as_many_are_quick_as_wanted_and_all_are_there(monkeypatch):
    monkeypatch.setattr(lots, "find_head", lambda: "a")
    params = lots.draw(CASES, 3, always=["case 7"])
    assert [param.values[0] for param in params] == CASES
    assert len(list_quick(params)) == 4
    assert "case 7" in list_quick(params)
    assert {mark.name for param in params for mark in param.marks} == {"slow"}


def test_every_case_has_its_turn(monkeypatch):
    drawn = []
    for commit in map(str, range(60)):
        monkeypatch.setattr(lots, "find_head", lambda commit=commit: commit)
        drawn.append(list_quick(lots.draw(CASES, 3)))
        assert drawn[-1] == list_quick(lots.draw(CASES, 3))
    assert {case for cases in drawn for case in cases} == set(CASES)
    assert len(set(map(tuple, drawn))) > 50
