"""Typical wrong answers to the exercises of chapter digits: each must be refused by its check."""

import numpy as np
from bnn import digits

GOOD = [(3, 0.57, 0.06, "answers"), (4, 0.38, 0.06, "answers"), (2, 1.96, 0.06, "I don't know")]
NAMES = ("digits, these fonts", "digits, other fonts", "letters, other fonts")
CHOSE, OTHER, LETTERS = (4.0, 0.0, 10.0, 3.0), (6.0, 0.0, 20.0, 7.0), (25.0, 5.0, 50.0, 12.0)


def refuse(chose=CHOSE, other=OTHER, letters=LETTERS):
    """An answer to the second exercise: value, interval and error of three sets of images."""
    return dict(zip(NAMES, (chose, other, letters), strict=True))


def scale(parts, factor):
    return tuple(factor * part for part in parts)


def predict(n_members=5, sure=0.91):
    """Probabilities of networks that are right about every test image, each with another confidence."""
    y = digits.load(seed=0).y_test
    p = np.empty((n_members, len(y), 10))
    for k in range(n_members):
        p[k] = (1 - sure + 0.02 * k) / 9
        p[k, np.arange(len(y)), y] = sure - 0.02 * k
    return p


WRONG = {
    "check_answers": [
        lambda: None,
        lambda: [],
        lambda: np.zeros((3, 4)),
        # the comparison the wrong way round
        lambda: [(*a[:3], "answers" if a[3] != "answers" else "I don't know") for a in GOOD],
        # never refused
        lambda: [(*a[:3], "answers") for a in GOOD],
        # never answered
        lambda: [(*a[:3], "I don't know") for a in GOOD],
        # no error
        lambda: [(*a[:2], 0.0, a[3]) for a in GOOD],
        # probabilities in place of the best guess
        lambda: [(0.85, *a[1:]) for a in GOOD],
        # the entropies of all draws, summed
        lambda: [(a[0], 200 * a[1], *a[2:]) for a in GOOD],
    ],
    "check_refused": [
        lambda: None,
        lambda: CHOSE,
        # values without errors
        lambda: {name: found[0] for name, found in refuse().items()},
        # shares in place of percent
        lambda: refuse(*(scale(parts, 0.01) for parts in (CHOSE, OTHER, LETTERS))),
        # an interval that is not around the value
        lambda: refuse(letters=(25.0, 50.0, 80.0, 12.0)),
        # an error that is none
        lambda: refuse(letters=(25.0, 5.0, 50.0, 1e-9)),
        # judged on all ten fonts
        lambda: refuse(other=(5.0, 0.0, 15.0, 5.0)),
        # judged on the fonts that chose
        lambda: refuse(other=CHOSE),
        # 5 % answered in place of 95 %
        lambda: refuse(chose=(94.0, 80.0, 98.0, 4.0)),
        # answered in place of refused
        lambda: refuse(letters=(95.0, 80.0, 99.0, 4.0)),
    ],
    "check_ensemble": [
        lambda: None,
        # the mean over members
        lambda: predict().mean(axis=0),
        # one network five times
        lambda: np.repeat(predict(1), 5, axis=0),
        # logarithms of probabilities
        lambda: np.log(predict()),
        # the axes of members and images exchanged
        lambda: predict().swapaxes(0, 1),
        # classes in place of probabilities
        lambda: np.eye(10)[predict().argmax(axis=2)],
        # trained on the test images
        lambda: predict(),
        # labels in another order
        lambda: predict()[:, ::-1],
    ],
}
