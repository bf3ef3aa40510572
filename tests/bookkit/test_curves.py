"""The curves of the literature: the files are those that were published, whole, ordered, and say their units."""

import numpy as np
import pytest
from bookkit import curves

SIZES = {"theophylline": (12, 132), "chicks": (50, 578), "soybean": (48, 412), "dialysers": (20, 140)}  # as published
# a row of each as R prints it: individual, where, what
KNOWN = {"theophylline": (1, 1.12, 10.5), "chicks": (1, 21, 205), "soybean": ("1988F1", 14, 0.106),
         "dialysers": (1, 0.505, 20.115)}  # fmt: skip


@pytest.mark.parametrize("name", curves.SOURCES)
def test_a_file_holds_the_published_measurements_in_order_with_their_units(name):
    frame, source = curves.load_curves(name), curves.SOURCES[name]
    group, x, y = frame[source.group], frame[source.x], frame[source.y]
    assert (group.nunique(), len(frame)) == SIZES[name]
    who, where, what = KNOWN[name]
    np.testing.assert_allclose(y[(group == who) & (x == where)], [what])
    assert np.isfinite(frame.select_dtypes("number").to_numpy()).all()
    assert list(source.units) == list(frame.columns)
    along = frame[[source.group, source.x]]
    assert along.equals(along.sort_values([source.group, source.x]))
    assert (frame.groupby(source.group)[source.more].nunique() == 1).all()


def test_a_file_that_was_changed_is_refused(tmp_path, monkeypatch):
    text = (curves.FOLDER / "chicks.csv").read_text()
    (tmp_path / "chicks.csv").write_text(text.replace("205", "206", 1))
    monkeypatch.setattr(curves, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match="changed since it was published"):
        curves.load_curves("chicks")
