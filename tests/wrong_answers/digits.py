"""Typical wrong answers to the exercises of chapter digits: each must be refused by its check."""

import numpy as np
from bnn import digits

REFUSED = "I don't know"
GOOD = [(3, 0.51, 0.065, "answers"), (4, 0.38, 0.069, "answers"), (0, 2.31, 0.051, REFUSED), (2, 1.73, 0.06, REFUSED)]
OTHER_SEED = [
    (3, 0.5, 0.063, "answers"),
    (4, 0.54, 0.07, "answers"),
    (5, 2.37, 0.05, REFUSED),
    (2, 1.54, 0.065, REFUSED),
]
NAMES = ("digits, these fonts", "digits, other fonts", "letters, other fonts")
CHOSE, OTHER, LETTERS = (6.0, 0.0, 28.0, 7.7), (6.0, 0.0, 36.0, 10.1), (34 / 1.2, 12.5, 67.5, 15.1)


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
        lambda: [(*a[:3], "answers" if a[3] != "answers" else REFUSED) for a in GOOD],
        # never refused
        lambda: [(*a[:3], "answers") for a in GOOD],
        # never answered
        lambda: [(*a[:3], REFUSED) for a in GOOD],
        # not all of the drawings
        lambda: GOOD[:2],
        # the ignorance in nats
        lambda: [(a[0], np.log(2) * a[1], *a[2:]) for a in GOOD],
        # the entropy of all draws, noise and ignorance together
        lambda: [(a[0], a[1] + 0.4, *a[2:]) for a in GOOD],
        # the sd of the draws, not the error of what they say together
        lambda: [(*a[:2], 10 * a[2], a[3]) for a in GOOD],
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
        lambda: refuse(letters=(25.0, 50.0, 98.0, 12.0)),
        # an error that is none
        lambda: refuse(letters=(25.0, 5.0, 50.0, 1e-9)),
        # images drawn one by one, not character by character
        lambda: refuse((6.0, 0.0, 20.0, 4.9), (6.0, 0.0, 28.0, 7.0), (34 / 1.2, 16.7, 50.0, 8.3)),
        # a standard deviation in place of a bootstrap's error
        lambda: refuse(letters=(34 / 1.2, 12.5, 67.5, 45.0)),
        # ignorance below a limit from the wrong end
        lambda: refuse(letters=(86 / 1.2, 40.0, 90.0, 14.0)),
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


def miss(p):
    """The same, wrong about the first twenty images."""
    return np.concatenate([np.roll(p[:, :20], 1, axis=2), p[:, 20:]], axis=1)


ALSO_RIGHT = {
    "check_answers": [
        lambda: GOOD,
        lambda: OTHER_SEED,
        lambda: tuple([np.int64(a[0]), np.float32(a[1]), np.float64(a[2]), a[3]] for a in GOOD),
    ],
    "check_refused": [
        lambda: refuse(),
        lambda: {name: list(parts) for name, parts in refuse().items()},
        lambda: {name: np.array(parts, dtype=np.float32) for name, parts in refuse().items()},
        # of two other seeds
        lambda: refuse(other=(2.0, 0.0, 37.0, 10.6), letters=(31 / 1.2, 12.5, 65.8, 13.8)),
        lambda: refuse((6.0, 0.0, 27.0, 7.4), (12.0, 4.0, 34.0, 7.4), (43 / 1.2, 24.2, 63.3, 10.2)),
    ],
    "check_ensemble": [
        lambda: miss(predict()),
        lambda: miss(predict())[::-1].astype(np.float32),
        lambda: miss(predict()).tolist(),
    ],
}
