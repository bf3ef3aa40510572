"""Relabelling changes no prediction, and alignment takes it back."""

import itertools

import numpy as np
import pytest
from hbnn import prediction, symmetry
from hypothesis import given, settings
from hypothesis import strategies as st

N_DRAWS = 40
POINTS = np.random.default_rng(9).normal(size=(15, 2))


def draw_network(n_draws, n_hidden, *, seed, spread=0.05, group=()):
    """Draws around one network, so near to it that their labelling is beyond doubt."""
    rng = np.random.default_rng(seed)
    shapes = [(2, n_hidden[0]), *itertools.pairwise(n_hidden), (n_hidden[-1],)]
    shapes = [(*group, *shape) for shape in shapes]
    centers = [rng.normal(size=shape) for shape in shapes]
    return {f"w{k}": c + spread * rng.normal(size=(n_draws, *c.shape)) for k, c in enumerate(centers, 1)}


def move(weights, seed):
    widths = [w.shape[-1] for w in list(weights.values())[:-1]]
    return symmetry.relabel(symmetry.draw_labelling(N_DRAWS, widths, seed=seed), weights)


def measure_spread(weights):
    return np.sqrt(sum(w.var(axis=0).sum() for w in weights.values()))


# --- apply


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10_000), n_hidden=st.tuples(st.integers(1, 6), st.integers(1, 6)))
def test_relabelling_changes_no_prediction(seed, n_hidden):
    weights = draw_network(N_DRAWS, n_hidden, seed=seed, spread=1)
    before, after = (
        prediction.predict_probability(w, POINTS, activation="tanh") for w in (weights, move(weights, seed))
    )
    np.testing.assert_allclose(after, before, atol=1e-12)


def test_relabelling_changes_the_weights():
    weights = draw_network(N_DRAWS, (4, 4), seed=0)
    assert any((move(weights, 1)[name] != w).any() for name, w in weights.items())


def test_every_category_of_a_draw_is_relabelled_alike():
    weights = draw_network(N_DRAWS, (3, 4), seed=0, group=(5,))
    moved = move(weights, 2)
    labelling = symmetry.draw_labelling(N_DRAWS, (3, 4), seed=2)
    for g in range(5):
        one = symmetry.relabel(labelling, {name: w[:, g] for name, w in weights.items()})
        for name in one:
            np.testing.assert_array_equal(moved[name][:, g], one[name])


def test_all_labellings_are_drawn_equally_often():
    labelling = symmetry.draw_labelling(8000, (2,), seed=1)
    places = labelling.order[0][:, 0] * 4 + (labelling.sign[0] > 0) @ [1, 2]
    counts = np.unique(places, return_counts=True)[1]
    assert len(counts) == 8  # 2^2 2!
    assert (abs(counts - 1000) < 5 * np.sqrt(1000)).all()


# --- align


@settings(deadline=None, max_examples=15, derandomize=True)
@given(seed=st.integers(0, 10_000), n_hidden=st.lists(st.integers(2, 7), min_size=1, max_size=3))
def test_a_randomly_relabelled_posterior_comes_back(seed, n_hidden):
    """Up to one relabelling that all draws share: which of the equivalent networks is the reference is arbitrary.

    With many starts: layers that take turns can end in a local optimum, in narrow deep networks above all.
    """
    weights = draw_network(N_DRAWS, n_hidden, seed=seed)
    moved = move(weights, seed + 1)
    labelling, _ = symmetry.align(moved, seed=seed, n_starts=10)
    aligned = symmetry.relabel(labelling, moved)
    # never further apart; a unit whose weights are lost in the noise may even find a name that is a little nearer
    assert 0.98 * measure_spread(weights) < measure_spread(aligned) < (1 + 1e-9) * measure_spread(weights)


@settings(deadline=None, max_examples=15, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_with_a_reference_the_weights_themselves_come_back(seed):
    weights = draw_network(N_DRAWS, (4, 5), seed=seed)
    reference = {name: w.mean(axis=0) for name, w in weights.items()}
    labelling, _ = symmetry.align(move(weights, seed), reference=reference, seed=seed, n_starts=40)
    for name, w in symmetry.relabel(labelling, move(weights, seed)).items():
        np.testing.assert_array_equal(w, weights[name])


def test_alignment_finds_the_best_of_all_labellings():
    """Against a search through all 48 x 48 labellings, for networks that have nothing in common: the hardest case."""
    weights = draw_network(N_DRAWS, (3, 3), seed=4, spread=1)
    reference = {name: w[0] for name, w in weights.items()}
    w1, w2, w3 = weights.values()
    signs = [np.array(sign) for sign in itertools.product((-1, 1), repeat=3)]
    layer = list(itertools.product(itertools.permutations(range(3)), signs))
    best = np.full(N_DRAWS, -np.inf)
    for (o1, s1), (o2, s2) in itertools.product(layer, layer):
        gain = (w1[:, :, o1] * s1 * reference["w1"]).sum(axis=(1, 2)) + (w3[:, o2] * s2 * reference["w3"]).sum(axis=1)
        gain += (w2[:, o1][:, :, o2] * s1[:, None] * s2 * reference["w2"]).sum(axis=(1, 2))
        best = np.maximum(best, gain)
    shares = {}
    for n_starts in (3, 40):
        found = symmetry.relabel(symmetry.align(weights, reference=reference, seed=1, n_starts=n_starts)[0], weights)
        gain = sum((w * reference[name]).reshape(N_DRAWS, -1).sum(axis=1) for name, w in found.items())
        assert (gain <= best + 1e-9).all()
        shares[n_starts] = np.isclose(gain, best).mean()
    assert shares[3] < shares[40]
    assert shares[40] > 0.9


def test_what_is_left_after_alignment_is_not_made_smaller_than_it_is():
    """Aligning draws that are symmetric noise shrinks their spread; aligning an identified posterior must not."""
    weights = draw_network(N_DRAWS, (4, 4), seed=5, spread=0.2)
    labelling, _ = symmetry.align(weights, seed=1)
    assert measure_spread(symmetry.relabel(labelling, weights)) == pytest.approx(measure_spread(weights), rel=1e-9)


def test_the_default_reference_is_the_last_draw_then_the_mean_of_aligned_draws():
    weights = draw_network(N_DRAWS, (3, 4), seed=6)
    _, first = symmetry.align(weights, seed=1, n_passes=1)
    for name, w in weights.items():
        np.testing.assert_array_equal(first[name], w[-1])
    labelling, reference = symmetry.align(weights, seed=1)
    for name, w in symmetry.relabel(labelling, weights).items():
        np.testing.assert_allclose(w.mean(axis=0), reference[name], atol=1e-12)


def test_one_seed_gives_the_same_labelling_twice():
    weights = draw_network(N_DRAWS, (4, 4), seed=7, spread=1)
    first, second = (symmetry.align(weights, seed=3)[0] for _ in range(2))
    for a, b in zip([*first.order, *first.sign], [*second.order, *second.sign], strict=True):
        np.testing.assert_array_equal(a, b)


def test_categories_align_together():
    weights = draw_network(N_DRAWS, (4, 4), seed=8, group=(6,))
    moved = move(weights, 3)
    labelling, _ = symmetry.align(moved, seed=1)
    assert measure_spread(symmetry.relabel(labelling, moved)) == pytest.approx(measure_spread(weights), rel=1e-9)


# --- what is refused

GOOD = draw_network(3, (3, 4), seed=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: symmetry.align({"w1": GOOD["w1"]}, seed=1), "weights has 1 layers; wanted: w1"),
        (lambda: symmetry.align([*GOOD.values()], seed=1), r"weights is a list; wanted: a dict, w1 \(draw"),
        (lambda: symmetry.draw_labelling(3, 5, seed=1), "n_hidden=5; wanted: numbers of units, each at least 1"),
        (lambda: symmetry.draw_labelling(3, (4, 0), seed=1), r"n_hidden=\(4, 0\); wanted: numbers of units"),
        (lambda: symmetry.draw_labelling(2.5, (4,), seed=1), "n_draws=2.5; wanted: a whole number of at least 1"),
        (lambda: symmetry.align(GOOD | {"w3": GOOD["w3"][:, :2]}, seed=1), "which do not fit together"),
        (lambda: symmetry.align(GOOD | {"w2": GOOD["w2"][:2]}, seed=1), "which do not fit together"),
        (lambda: symmetry.align(GOOD | {"w3": GOOD["w3"][..., None]}, seed=1), "weights has shapes"),
        (lambda: symmetry.align(GOOD | {"w3": GOOD["w3"] * np.nan}, seed=1), "NaN or infinite"),
        (lambda: symmetry.align({name: w[:0] for name, w in GOOD.items()}, seed=1), "do not fit together"),
        (lambda: symmetry.align(GOOD, seed=None), "seed=None; wanted: an integer"),
        (lambda: symmetry.align(GOOD, seed=1, n_passes=0), "n_passes=0, n_starts=4; wanted"),
        (lambda: symmetry.align(GOOD, seed=1, reference={"w1": GOOD["w1"][0]}), "reference has shapes"),
        (lambda: symmetry.relabel(symmetry.draw_labelling(2, (3, 4), seed=1), GOOD), r"labelling is of 2 draws"),
        (
            lambda: symmetry.relabel(symmetry.draw_labelling(3, (4, 3), seed=1), GOOD),
            r"\[4, 3\] units; wanted: 3 draws",
        ),
        (lambda: symmetry.Labelling((np.zeros((1, 2), int),), (np.ones((1, 2)),)), "order is no permutation"),
        (lambda: symmetry.Labelling((np.array([[0, 1]]),), (np.array([[1, 2]]),)), "sign holds other numbers"),
        (lambda: symmetry.Labelling((np.array([0, 1]),), (np.array([1, 1]),)), r"wanted: \(draw, unit\)"),
    ],
)
def test_a_wrong_argument_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
