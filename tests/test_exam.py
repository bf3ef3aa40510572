"""The arithmetic of the exam bank: each number in an answer is computed here, and marks add up."""

import re
from math import ceil, factorial, log, log2, log10, sqrt
from pathlib import Path

import numpy as np
import pytest
from bnn import diagnose
from scipy.special import expit
from scipy.stats import binom, norm


def entropy(p):
    """Entropy in bits of a label that is 1 with probability p, (…)."""
    p = np.asarray(p, dtype=float)
    terms = [-q * np.log2(np.where(q > 0, q, 1)) for q in (p, 1 - p)]
    return terms[0] + terms[1]


def split_doubt(p):
    """Total, noise and ignorance in bits of the probabilities of some draws."""
    total, noise = float(entropy(np.mean(p))), float(entropy(p).mean())
    return total, noise, total - noise


def answer_1():
    error = 100 * sqrt(0.86 * 0.14 / 900)
    difference = np.repeat([1, -1, 0], [41, 32, 900 - 73])
    return f"{error:.2f}", f"{100 * difference.mean():.2f}", f"{100 * difference.std() / sqrt(900):.2f}"


def answer_2():
    return f"{100 * norm.cdf(1):.1f}", f"{100 * sqrt(0.9 * 0.1 / 100):.1f}", f"{(90 - 100 * norm.cdf(1)) / 3:.1f}"


def answer_3():
    logit = np.array([-2, 0, 4])
    return f"{expit(logit).mean():.2f}", f"{expit(logit.mean()):.2f}"


def answer_4():
    return f"{2 * 5 + 5 * 5 + 5}", f"{2 * 12 + 12 * 12 + 12}", f"{2 * 12 + 12 * 12 + 12 + 12 + 12 + 1}"


def answer_5():
    return [
        f"{part:.2f}" for p in ((0.5, 0.5, 0.5, 0.5), (0, 0, 1, 1), (0.9, 0.7, 0.3, 0.1)) for part in split_doubt(p)
    ]


def answer_6():
    return (f"{500 * log(2):.0f}",)


def answer_7():
    posterior = np.array([[1, 0.9], [0.9, 1]])
    precision = np.linalg.inv(posterior)
    q = np.diag(1 / np.diag(precision))  # the mean-field normal with the least KL(q || p)
    directions = [np.array([1, 1]), np.array([1, -1])]
    widths = [sqrt(d @ cov @ d) for d in directions for cov in (posterior, q)]
    return f"{sqrt(q[0, 0]):.2f}", *(f"{width:.2f}" for width in widths)


def answer_8():
    return f"{30 * 2000 / 50 + 25:,.0f}", f"{2000 // 50}"


def answer_9():
    return f"{14 * 500 / 50:.0f}", f"{14 * 500 / 50 - 129:.0f}"


def answer_10():
    few, many = (3 + 10) / (5 + 20), (60 + 10) / (100 + 20)
    return f"{60 / 100:.1f}", f"{few:.2f}", f"{many:.2f}"


def answer_11():
    gain, control = np.array([0.08, 0.09, 0.07]), np.array([0.04, 0.05, 0.03])
    share = 100 * control / gain
    return f"{share.mean():.0f}", f"{share.std(ddof=1) / sqrt(3):.0f}"


def answer_12():
    return f"{sqrt(1 + 0.5**2):.2f}", f"{1 / (1 + 0.5**2):.1f}"


def answer_13():
    between = np.var([0, 0, 1, 1], ddof=1)
    return f"{between:.2f}", f"{sqrt(1 + between):.2f}"


def answer_14():
    ess = 4000 * (1 - 0.8) / (1 + 0.8)
    assert abs(diagnose.limit_rhat(1000) - (1.02 + 0.01 * log10(1000))) < 1e-9
    return f"{ess:.0f}", f"{0.33 / sqrt(ess):.3f}", f"{diagnose.limit_rhat(1000):.2f}"


def answer_15():
    return f"{0.001 / 0.003:.1f}", f"{0.38 / 0.04:.1f}"


def answer_16():
    return (f"{100 * sqrt(0.97 * 0.03 / 900):.1f}",)


def answer_17():
    one = 2**5 * factorial(5)
    return f"{one:,}", f"{one**2:,}"


def answer_19():
    return (f"{sqrt(0.2**2 + 0.5**2):.2f}",)


def answer_20():
    learned, coin = np.mean([0.02, 0.01, 0.005, 0.005]), 0.5**5
    return f"{learned:.3f}", f"{coin:.3f}", f"{log(learned / coin):.1f}"


def answer_21():
    return f"{log2(10):.2f}", f"{400 * 5 // 100}", f"{100 * sqrt(0.05 * 0.95 / 400):.1f}"


def answer_22():
    digits, letters = [0.1, 0.2, 0.4], [0.3, 0.5]
    auroc = np.mean([letter > digit for letter in letters for digit in digits])
    return f"{auroc:.2f}", f"{ceil(0.95 * (399 + 1))}"


def answer_23():
    return f"{1 / sqrt(1 + 4):.2f}", f"{1 / sqrt(1 + 4 / 0.1):.2f}"


def answer_24():
    return f"{0.020 / 0.014:.1f}", f"{0.009 / 0.011:.1f}"


def answer_25():
    one, z = sqrt(120**2 + 90**2), norm.ppf(0.95)
    return f"{one:.0f}", f"{z * one:.0f}", f"{z * 90:.0f}", f"{z * 120:.0f}"


def answer_26():
    precision = 1 / 30**2 + 1 / 10**2
    return f"{20 / 10**2 / precision:.0f}", f"{1 / sqrt(precision):.1f}"


def answer_27():
    alone = binom.sf(25, 300, 1 / 20)
    return (
        f"{300 / 20:.0f}",
        f"{sqrt(300 * 0.05 * 0.95):.1f}",
        f"{100 * alone:.1f}",
        f"{100 * (1 - (1 - alone) ** 20):.0f}",
        f"{0.1 / sqrt(1 / 4000 + 1 / 10000):.1f}",
    )


def answer_28():
    error = 0.9 / sqrt(20)
    new = norm.cdf(3.0 / sqrt(0.9**2 + error**2))
    lucky = norm.cdf(0.5 / 0.9)
    return f"{error:.2f}", f"{100 * new:.1f}", f"{100 * lucky:.0f}", f"{0.9 / 0.4:.2f}"


def answer_29():
    return f"{400 * 1.5 * 31 * 20e-6:.2f}", f"{(2.1 - 1.9) / 0.5:.1f}"


def answer_30():
    return f"{1000 * 8.05 / 16:.0f}", f"{100 * 0.05 / 8:.1f}", f"{100 * 1000 * 8 / 16 / (1000 * 8.05 / 16 + 60):.0f}"


COMPUTED = {n: list(globals()[f"answer_{n}"]()) for n in range(1, 31) if f"answer_{n}" in globals()}

EXAM = (Path(__file__).parents[1] / "book" / "teach" / "exam.md").read_text(encoding="utf8")
QUESTIONS = dict(enumerate(re.split(r"^\(exam-\d+\)=\n## \d+\. ", EXAM, flags=re.MULTILINE)[1:], 1))
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:[.,]\d+)*")
SMALL = {"0", "1", "2"}  # as in "adds up to 1"


@pytest.mark.parametrize("number", QUESTIONS)
def test_every_number_in_an_answer_is_computed_or_given_and_marks_add_up_to_six(number):
    question, _, rest = QUESTIONS[number].split("points\n", 1)[1].partition(":::{admonition}")
    answer = rest.split("dropdown\n\n")[1].split("\n\n- ")[0]
    bold = [NUMBER.findall(text)[0] for text in re.findall(r"\*\*([^*]+)\*\*", answer)]
    computed = set(COMPUTED.get(number, []))
    assert set(bold) == computed
    plain = re.sub(r"\$[^$]*\$|\*\*[^*]+\*\*|\([a-e]\)", "", answer)
    assert set(NUMBER.findall(plain)) <= set(NUMBER.findall(question)) | computed | SMALL
    assert sum(map(int, re.findall(r"^- (\d+): ", rest, flags=re.MULTILINE))) == 6


def test_every_computed_answer_has_its_question():
    assert set(COMPUTED) <= set(QUESTIONS)
