"""The scorer of reference posteriors: right draws pass as often as it says, wrong ones are seen, mistakes are told."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hbnn.reference import posteriors, scoring
from hbnn.reference.posteriors import CURVES, FLAT, HIERARCHICAL, NAMES

N = 40  # functionals


def make_truth(seed, shape, shifts=None):
    """Correlated functionals of several shapes: normal, skewed, bounded like a probability near 1."""
    z = np.random.default_rng(seed).normal(size=(*shape, N))
    z[..., 1:] = np.sqrt(0.5) * (z[..., 1:] + z[..., :1])
    for k, shift in (shifts or {}).items():
        z[..., k] += shift
    z[..., 10:20] = np.exp(z[..., 10:20])
    z[..., 20:30] = 1 / (1 + np.exp(-4 - 2 * z[..., 20:30]))
    return z


@pytest.fixture(scope="module")
def truth():
    return scoring.make_reference([f"f[{k + 1}]" for k in range(N)], make_truth(0, (10, 1000)))


# --- the verdict


def test_right_draws_pass_nearly_always():
    """One false alarm in a hundred is promised; three in 25 runs would come by chance once in 500 tests."""
    words = []
    for seed in range(25):  # references of their own, no larger than the runs: its errors count as much
        own = scoring.make_reference(list(map(str, range(N))), make_truth(2 * seed, (4, 500)))
        words.append(scoring.compare_draws(make_truth(2 * seed + 1, (4, 500)), own).verdict)
    assert words.count(scoring.WRONG) <= 2
    assert words.count(scoring.FEW) == 0


def test_slow_chains_pass_too_their_errors_being_larger():
    words = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        own = scoring.make_reference(list(map(str, range(N))), rng.normal(size=(4, 1000, N)))
        values = rng.normal(size=(4, 1500, N))
        for i in range(1, 1500):  # an autoregression
            values[:, i] = 0.7 * values[:, i - 1] + np.sqrt(1 - 0.7**2) * values[:, i]
        words.append(scoring.compare_draws(values, own).verdict)
    assert words.count(scoring.WRONG) <= 1
    assert words.count(scoring.FEW) == 0


def test_right_draws_that_mostly_round_to_one_pass():
    """Stored probabilities are rounded, and a sampler's are not: both must be alike where they are near 1."""

    def draw(seed, size):
        return 1 / (1 + np.exp(-10 - 5 * np.random.default_rng(seed).normal(size=(*size, N))))

    own = scoring.make_reference(list(map(str, range(N))), scoring.round_digits(draw(0, (10, 1000))))
    assert (own.draws == 1).mean() > 0.3
    for seed in range(1, 6):
        found = scoring.compare_draws(draw(seed, (4, 1000)), own)
        assert found.verdict == scoring.RIGHT
        np.testing.assert_allclose(found.spread, 1, atol=0.08)


@pytest.mark.parametrize("k", [0, 12, 25])
def test_a_shift_of_a_fifth_of_an_sd_is_seen(truth, k):
    z = make_truth(1, (4, 1000), {k: 0.2})
    found = scoring.compare_draws(z, truth)
    assert found.verdict == scoring.WRONG
    assert found.distance.argmax() == k
    assert found.bias[k] == pytest.approx(0.2, abs=4 * found.bias_error[k])
    assert "WRONG: 1 functional is farther" in str(found)


def test_too_narrow_a_spread_is_seen(truth):
    values = make_truth(1, (4, 1000))
    values[..., 5] = 0.8 * values[..., 5]
    found = scoring.compare_draws(values, truth)
    assert found.verdict == scoring.WRONG
    assert found.distance.argmax() == 5
    assert found.spread[5] == pytest.approx(0.8, abs=4 * found.spread_error[5])
    assert abs(found.bias[5]) < 4 * found.bias_error[5]


def test_what_the_score_says_it_would_have_seen_it_sees(truth):
    """A bias of `visible` in the functional that moves slowest is found in nine of ten runs."""
    found, seen = scoring.compare_draws(make_truth(1, (4, 300)), truth), 0
    for seed in range(2, 42):
        values = make_truth(seed, (4, 300))
        values[..., 0] += found.visible
        seen += scoring.compare_draws(values, truth).distance[0] > found.limit
    assert 30 <= seen <= 40


def test_few_effective_draws_are_not_judged(truth):
    found = scoring.compare_draws(make_truth(1, (4, 90)) + 1, truth)
    assert found.verdict == scoring.FEW
    assert str(found).endswith(f"TOO FEW draws to judge: {', '.join(found.lacking)}.")
    assert [reason.split(" (")[0] for reason in found.lacking] == [
        "chains of 90 draws",
        f"{found.ess.min():.0f} effective draws",
        f"{found.ess_spread.min():.0f} effective draws in the spread",
        f"{found.ess_tail.min():.0f} effective draws in the tails",
    ]


def test_many_short_chains_are_not_judged_and_no_more_draws_count_than_there_are(truth):
    """Exact draws in 64 chains of 7 seem to be worth 1,000, and half of such runs would be called wrong."""
    for seed in range(1, 6):
        found = scoring.compare_draws(make_truth(seed, (64, 7)), truth)
        assert max(found.ess.max(), found.ess_tail.max()) <= 448
        assert found.lacking[0] == "chains of 7 draws (wanted: at least 250)"
        assert found.verdict == scoring.FEW
    long = scoring.compare_draws(make_truth(1, (16, 250)), truth)
    assert (long.verdict, long.lacking) == (scoring.RIGHT, ())
    assert (truth.ess <= 10_000).all()


def test_the_reference_has_errors_of_its_own(truth):
    """Five times as many draws, and the error stays above that of the reference."""
    found = scoring.compare_draws(make_truth(1, (4, 5000)), truth)
    assert (found.bias_error > 1 / np.sqrt(truth.ess)).all()


def test_ranks_become_the_quantiles_of_a_normal(truth):
    own = scoring.to_normal(np.sort(truth.draws, axis=0), truth)
    np.testing.assert_allclose(own.mean(axis=0), 0, atol=1e-4)  # what rounds to the same digits shares a rank
    np.testing.assert_allclose(own.std(axis=0), 1, atol=2e-3)
    ends = scoring.to_normal(np.array([[-1e9] * N, [1e9] * N]), truth)
    assert (abs(ends) < 4.1).all()
    assert (ends[1] > own.max(axis=0)).all()


# --- what is handed in


def make_unknowns(name, shape=(4, 100), seed=0):
    rng = np.random.default_rng(seed)
    positive = ("sd1", "sd2", "sd3", "tau_shape", "tau_level", "sigma")
    return {
        key: np.exp(0.3 * rng.normal(size=(*shape, *size))) if key in positive else rng.normal(size=(*shape, *size))
        for key, size in posteriors.load_posterior(name).unknowns.items()
    }


def stack(name, unknowns):
    return scoring.to_functionals(unknowns, posteriors.load_posterior(name))


@pytest.mark.parametrize("name", NAMES)
def test_unknowns_and_functionals_are_the_same_to_it(name):
    unknowns = make_unknowns(name, (2, 8))
    functionals = posteriors.load_posterior(name).compute(unknowns)
    np.testing.assert_array_equal(stack(name, unknowns), stack(name, functionals))
    assert stack(name, unknowns).shape == (2, 8, len(posteriors.load_posterior(name).names))
    assert scoring.find_posterior(unknowns) == scoring.find_posterior(functionals) == name


def test_netcdf_csv_and_arrays_are_the_same_to_it(tmp_path):
    unknowns = make_unknowns(CURVES, (2, 5))
    dataset = xr.Dataset({
        key: (("chain", "draw", *(f"{key}_{k}" for k in range(value.ndim - 2))), value)
        for key, value in unknowns.items()
    })  # fmt: skip
    xr.DataTree.from_dict({"posterior": dataset}).to_netcdf(tmp_path / "draws.nc")
    for brackets in ("[{}]", ".{}"):
        columns = {"chain": np.repeat([1, 2], 5), "draw": np.tile(range(5), 2)}
        for key, value in unknowns.items():
            for index in np.ndindex(*value.shape[2:]):
                end = brackets.format(",".join(str(i + 1) for i in index)) if index else ""
                columns[key + end] = value[(..., *index)].ravel()
        pd.DataFrame(columns).sample(frac=1, random_state=1).to_csv(tmp_path / f"draws{len(brackets)}.csv", index=False)
    wanted = stack(CURVES, unknowns)
    for source in (dataset, tmp_path / "draws.nc", str(tmp_path / "draws4.csv"), tmp_path / "draws3.csv"):
        np.testing.assert_allclose(stack(CURVES, scoring.read_draws(source)), wanted, rtol=1e-12)


def test_weights_of_each_category_do_in_place_of_means_and_offsets():
    unknowns = make_unknowns(HIERARCHICAL, (2, 4))
    weights = {f"sd{k}": unknowns[f"sd{k}"] for k in (1, 2, 3)}
    for k in (1, 2, 3):
        sd = unknowns[f"sd{k}"].reshape(2, 4, *[1] * (unknowns[f"z{k}"].ndim - 2))
        weights[f"w{k}"] = unknowns[f"mu{k}"][:, :, None] + sd * unknowns[f"z{k}"]
    np.testing.assert_allclose(stack(HIERARCHICAL, weights), stack(HIERARCHICAL, unknowns), rtol=1e-10)
    del weights["sd2"]
    with pytest.raises(ValueError, match=r"sd2\[\] is missing"):
        stack(HIERARCHICAL, weights)


def test_mistakes_are_told():
    unknowns = make_unknowns(FLAT, (2, 8))
    functionals = posteriors.load_posterior(FLAT).compute(unknowns)
    p, log_lik = functionals["p"], functionals["log_lik"]
    for source, name, why in (
        (unknowns, "flat", r"no posterior called 'flat'.*wanted: one of"),
        ({"p": p}, FLAT, "log_lik missing; wanted: p and log_lik, or all unknowns: w1, w2 and w3"),
        (unknowns | {"w3": np.zeros((2, 8, 6))}, FLAT, r"w3 has shape \(2, 8, 6\)"),
        ({"p": p[:1], "log_lik": log_lik[:1]}, FLAT, "one chain cannot tell"),
        ({"p": p, "log_lik": np.full((2, 8), np.nan)}, FLAT, r"log_lik: NaN or infinite"),
        ({"theta": np.zeros((2, 8))}, None, "fit no posterior alone"),
        ({"w1": np.zeros(8)}, FLAT, r"w1 has shape \(8,\); wanted: \(chain, draw"),
    ):
        with pytest.raises(ValueError, match=why):
            scoring.score_draws(source, name)
    with pytest.raises(ValueError, match=r"no posterior called 'flat'.*wanted: one of"):
        posteriors.build_posterior("flat")


def test_files_that_cannot_be_read_are_told_and_the_list_names_what_is_asked(tmp_path, capsys):
    def say(name, text=""):
        (tmp_path / name).write_text(text)
        assert scoring.main([str(tmp_path / name)]) == 2
        return capsys.readouterr().err

    assert scoring.main(["--list"]) == 0
    assert f"{CURVES}, unknowns: w[4], b[4], mu[5], tau_shape, tau_level, sigma" in capsys.readouterr().out
    assert scoring.main([str(tmp_path / "nowhere.csv")]) == 2
    assert "there is no file" in capsys.readouterr().err
    assert "wanted: a netCDF file (.nc) or a CSV" in say("draws.txt")
    assert "wanted: chains of one length" in say("b.csv", "chain,p[1]\n1,0.5\n1,0.5\n2,0.5\n")
    assert "p[1] hold other things than numbers" in say("c.csv", "chain,p[1]\n1,a\n2,b\n")
    assert "2 columns do not fill an array" in say("d.csv", "chain,p[1],p[3]\n1,0.1,0.2\n2,0.1,0.2\n")
