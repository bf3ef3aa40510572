"""The pad: strokes become an image, and the classifier is asked when the pen comes up. Unwatched, it shows nothing."""

import numpy as np
import pytest
from bookkit import drawing
from hbnn import sampling


@pytest.fixture
def heard():
    """What the pad asked its classifier, and the pad."""
    images = []

    def describe(image):
        images.append(image)
        return f"<b>{len(images)}</b>"

    return images, drawing.Pad(describe)


def test_the_classifier_is_asked_when_the_pen_comes_up_and_nothing_is_drawn_before_it_goes_down(heard):
    images, pad = heard
    pad.move(10, 10)
    pad.lift()
    pad.press(140, 40)
    pad.move(140, 200)
    assert images == []
    pad.lift()
    assert np.array_equal(images, [pad.image])
    pad.clear()
    with pytest.raises(ValueError, match="nothing is drawn yet; wanted: at least one stroke"):
        _ = pad.image


def test_the_widget_shows_the_words_as_text_and_clears(heard, monkeypatch):
    _, pad = heard
    monkeypatch.setattr(sampling, "is_watched", lambda: False)
    assert pad.show() is None  # where nobody watches
    monkeypatch.setattr(sampling, "is_watched", lambda: True)
    left, words = pad.show().children
    pad.press(140, 40)
    pad.move(140, 240)
    pad.lift()
    assert words.value == "<pre>&lt;b&gt;1&lt;/b&gt;</pre>"
    left.children[1].click()
    assert "Draw a digit" in words.value
