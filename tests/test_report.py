"""Numbers as the book prints them: each is read back as what it was printed as."""

from html.parser import HTMLParser

import numpy as np
import pytest
from bnn import report
from hypothesis import given
from hypothesis import strategies as st
from tools import outputs

VALUES = st.floats(-1e6, 1e6)
ERRORS = st.floats(1e-12, 1e4)


def print_text(text):
    """An output that shows this text."""
    return [{"output_type": "stream", "name": "stdout", "text": text}]


# --- the four kinds


@given(VALUES, ERRORS, st.none() | st.integers(2, 1000))
def test_a_monte_carlo_number_is_read_back_with_its_error_and_seeds(value, error, n):
    text = report.monte_carlo(value, error, n)
    reading = outputs.read_text(f"accuracy {text} %")
    assert reading.malformed == ()
    (found,) = reading.estimates
    assert abs(found.value - value) <= 1.001 * found.value_half + 1e-9 * abs(value)
    assert abs(found.error - error) <= 1.001 * found.error_half
    assert found.nu == (n - 1 if n else outputs.DEFAULT_NU)


@given(VALUES, ERRORS)
def test_a_monte_carlo_number_has_digits_enough_to_be_compared(value, error):
    assert outputs.find_coarse(print_text(report.monte_carlo(value, error))) == []


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


@pytest.mark.parametrize("value", [1.004, 0, -3.2, 1e5, np.nan, np.inf])
@pytest.mark.parametrize(("holds", "verdict"), [(True, "yes"), (np.bool_(False), "no")])
def test_a_diagnostic_is_read_back_with_its_verdict_alone(value, holds, verdict):
    reading = outputs.read_text(report.diagnostic(value, "good enough", holds))
    assert reading.malformed == ()
    assert reading.skeleton == f"{outputs.FIGURE_MARK} (good enough: {verdict})"


@pytest.mark.parametrize("unit", ["s", "MB", "CPU-seconds", "s per step"])
def test_a_measured_number_is_read_back_as_text(unit):
    text = report.measured(31.5, unit)
    reading = outputs.read_text(text)
    assert (reading.skeleton, reading.estimates, reading.malformed) == (text, (), ())
    assert outputs.TOKEN.fullmatch(text)["measured"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: report.monte_carlo(1, -1), r"value=1, error=-1; wanted: finite numbers, error not below 0"),
        (lambda: report.monte_carlo(np.nan, 1), r"value=nan, error=1; wanted: finite numbers"),
        (lambda: report.monte_carlo(1, np.inf), r"value=1, error=inf; wanted: finite numbers"),
        (lambda: report.monte_carlo(1, 1, n=1), r"n=1; wanted: at least 2 seeds"),
        (lambda: report.spread([1.0]), r"values has shape \(1,\); wanted: \(seed,\) with at least 2"),
        (lambda: report.diagnostic(1, "below (1)", True), r"criterion='below \(1\)'; wanted: words without"),
        (lambda: report.diagnostic(1, "R-hat: 1", True), r"criterion='R-hat: 1'; wanted: words without"),
    ],
)
def test_a_number_that_could_not_be_read_back_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- tables


class Tags(HTMLParser):
    """The tags of some HTML, with attributes, and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture
def table():
    return report.Table(["Model", "Accuracy, %"], [["forest <script>", "84.80 ± 0.31"], ["a & b", 97]], "Scores < 100")


def test_a_table_escapes_what_looks_like_html(table):
    page = Tags(table._repr_html_())
    assert {tag for tag, _ in page.tags} == {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert {"Scores < 100", "forest <script>", "a & b"} <= set(page.text)


def test_a_table_has_a_caption_and_heads_with_scopes(table):
    tags = Tags(table._repr_html_()).tags
    assert tags[1][0] == "caption"
    assert [attrs["scope"] for tag, attrs in tags if tag == "th"] == ["col", "col", "row", "row"]


def test_a_tables_numbers_are_the_same_in_text_and_in_html(table):
    text, html = outputs.read_text(repr(table)), outputs.read_text(outputs.read_html(table._repr_html_()))
    assert text.estimates == html.estimates
    assert len(text.estimates) == 1
    assert text.malformed == html.malformed == ()


def test_the_columns_of_a_text_table_stand_below_each_other(table):
    caption, head, first, second = repr(table).splitlines()
    assert caption == "Scores < 100"
    assert head.index("Accuracy") == first.index("84.80") == second.index("97")


def test_rows_may_come_one_by_one():
    assert len(report.Table(["a", "b"], ((i, i) for i in range(3)), "c").rows) == 3


@pytest.mark.parametrize("row", [["a"], ["a", "b", "c"]])
def test_a_row_of_the_wrong_length_is_refused(row):
    with pytest.raises(ValueError, match=rf"has {len(row)} cells; wanted: 2, as there are columns"):
        report.Table(["x", "y"], [["a", "b"], row], "caption")


# --- data files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "DATA", tmp_path)
    return tmp_path


def test_data_are_read_as_written(folder):
    (folder / "speed.json").write_text('{"rows": [1]}')
    assert report.read_data("speed") == {"rows": [1]}


def test_a_missing_file_says_what_to_run(folder):
    with pytest.raises(FileNotFoundError, match=r"book/data/speed.json is missing; `make studies` writes it"):
        report.read_data("speed")
