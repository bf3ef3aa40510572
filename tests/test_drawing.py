"""The pad: strokes become an image, and the classifier is asked when the pen comes up. Unwatched, it shows nothing."""

import ipywidgets
import numpy as np
import pytest
from bnn import drawing, inference


@pytest.fixture
def heard():
    """What the pad asked its classifier, and the pad."""
    images = []

    def describe(image):
        images.append(image)
        return f"<b>{len(images)}</b>"

    return images, drawing.Pad(describe)


def draw_bar(pad):
    """A vertical bar, from the top down."""
    pad.press(140, 40)
    for y in range(60, 260, 20):
        pad.move(140, y)
    pad.lift()


def test_the_classifier_is_asked_when_the_pen_comes_up(heard):
    images, pad = heard
    pad.press(140, 40)
    pad.move(140, 200)
    assert images == []
    pad.lift()
    assert len(images) == 1
    assert np.array_equal(images[0], pad.image)


def test_a_vertical_bar_is_a_column_of_ink(heard):
    _, pad = heard
    draw_bar(pad)
    image = pad.image.reshape(8, 8)
    assert (image[:, 3:5].sum(axis=1) > 0.5).all()
    assert image[:, :2].sum() == image[:, 6:].sum() == 0


def test_moving_without_pressing_draws_nothing(heard):
    images, pad = heard
    pad.move(10, 10)
    pad.lift()
    assert images == []
    with pytest.raises(ValueError, match="nothing is drawn yet; wanted: at least one stroke"):
        _ = pad.image


def test_clearing_takes_all_strokes_away(heard):
    _, pad = heard
    draw_bar(pad)
    pad.clear()
    with pytest.raises(ValueError, match="nothing is drawn yet"):
        _ = pad.image


def test_what_is_no_function_is_refused():
    with pytest.raises(ValueError, match="describe='3'; wanted: a function"):
        drawing.Pad("3")


def test_nothing_is_shown_where_nobody_watches(heard, monkeypatch):
    monkeypatch.setattr(inference, "is_watched", lambda: False)
    assert heard[1].show() is None


def test_the_widget_shows_the_words_as_text_and_clears(heard, monkeypatch):
    monkeypatch.setattr(inference, "is_watched", lambda: True)
    _, pad = heard
    box = pad.show()
    assert isinstance(box, ipywidgets.HBox)
    left, words = box.children
    draw_bar(pad)
    assert words.value == "<pre>&lt;b&gt;1&lt;/b&gt;</pre>"
    left.children[1].click()
    assert "Draw a digit" in words.value
