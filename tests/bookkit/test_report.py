"""Numbers as the book prints them: each is read back as what it was printed as."""

import re

import numpy as np
import pytest
from bookkit import report
from hypothesis import given
from hypothesis import strategies as st
from tools import outputs

# --- the four kinds


@given(st.floats(-1e6, 1e6), st.floats(1e-12, 1e4), st.none() | st.integers(2, 1000))
def test_a_monte_carlo_number_is_read_back_with_its_error_and_seeds(value, error, n):
    text = report.monte_carlo(value, error, n)
    reading = outputs.read_text(f"accuracy {text} %")
    assert reading.malformed == ()
    (found,) = reading.estimates
    assert abs(found.value - value) <= 1.001 * found.value_half + 1e-9 * abs(value)
    assert abs(found.error - error) <= 1.001 * found.error_half
    assert found.nu == (n - 1 if n else outputs.DEFAULT_NU)
    assert outputs.find_malformed([{"output_type": "stream", "name": "stdout", "text": text}]) == []


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (95.234, 0.3141, "95.23 ± 0.31"),
        (95.234, 31.41, "95 ± 31"),
        (-0.15034, 0.00213, "-0.1503 ± 0.0021"),
        (97.1, 0, "97.100 ± 0.000"),
        (0.5, 3e-10, "0.50000000000 ± 0.00000000030"),
        (0.5, 1e-30, "0.500000000000000 ± 0.000000000000001"),  # more digits than a number has
    ],
)
def test_the_error_has_two_digits_and_the_value_ends_where_it_ends(value, error, text):
    assert report.monte_carlo(value, error) == text


def test_a_spread_is_the_mean_over_seeds_with_its_standard_error():
    values = np.random.default_rng(0).normal(5, 1, size=20)
    (found,) = outputs.read_text(report.spread(values)).estimates
    assert found.value == pytest.approx(values.mean(), abs=found.value_half)
    assert found.error == pytest.approx(values.std(ddof=1) / np.sqrt(20), abs=found.error_half)
    assert found.nu == 19


@pytest.mark.parametrize(
    ("value", "holds", "verdict"), [(-3.2, True, "yes"), (1e5, np.bool_(False), "no"), (np.nan, False, "no")]
)
def test_a_diagnostic_is_read_back_with_its_verdict_alone(value, holds, verdict):
    reading = outputs.read_text(report.diagnostic(value, "good enough", holds))
    assert reading.malformed == ()
    assert reading.skeleton == f"{outputs.FIGURE_MARK} (good enough: {verdict})"


@pytest.mark.parametrize("unit", ["MB", "CPU-seconds", "s per step"])
def test_a_measured_number_is_read_back_as_text(unit):
    text = report.measured(31.5, unit)
    reading = outputs.read_text(text)
    assert (reading.skeleton, reading.estimates, reading.malformed) == (text, (), ())
    assert outputs.TOKEN.fullmatch(text)["measured"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: report.monte_carlo(1, -1), "error=-1; wanted: .* not below 0"),
        (lambda: report.monte_carlo(np.nan, 1), "value=nan"),
        (lambda: report.monte_carlo(1, 1, n=1), "n=1; wanted: at least 2"),
        (lambda: report.spread([1.0]), r"\(1,\); wanted: \(seed,\) with at least 2"),
        (lambda: report.diagnostic(1, "below (1)", True), r"'below \(1\)'; wanted: words without"),
        (lambda: report.Table(["x", "y"], [["a", "b"], ["a", "b", "c"]], "caption"), "3 cells; wanted: 2"),
    ],
)
def test_a_number_that_could_not_be_read_back_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- tables


@pytest.fixture
def table():
    return report.Table(["Model", "Accuracy, %"], [["forest <script>", "84.80 ± 0.31"], ["a & b", 97]], "Scores < 100")


def test_a_table_escapes_what_looks_like_html_and_has_heads_with_scopes(table):
    page = table._repr_html_()
    assert "Scores &lt; 100" in page
    assert "forest &lt;script&gt;" in page
    assert re.findall(r'scope="(\w+)"', page) == ["col", "col", "row", "row"]


def test_a_tables_numbers_are_the_same_in_text_and_in_html(table):
    output = {"output_type": "display_data", "data": {"text/plain": repr(table), "text/html": table._repr_html_()}}
    assert outputs.find_disagreeing([output]) == outputs.find_malformed([output]) == []
    assert len(outputs.read_text(repr(table)).estimates) == 1


def test_the_columns_of_a_text_table_stand_below_each_other(table):
    caption, head, first, second = repr(table).splitlines()
    assert caption == "Scores < 100"
    assert head.index("Accuracy") == first.index("84.80") == second.index("97")


# --- data files


def test_a_missing_file_says_what_to_run(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "DATA", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"book/data/speed.json is missing; `make studies` writes it"):
        report.read_data("speed")
