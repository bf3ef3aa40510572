"""The arithmetic of the exam bank: each number in an answer is computed here, and marks add up."""

import re
from math import ceil, factorial, log, log2, sqrt
from pathlib import Path

import numpy as np
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


# the numbers of each answer, as it writes them
COMPUTED = {}
error = 100 * sqrt(0.86 * 0.14 / 900)
difference = np.repeat([1, -1, 0], [41, 32, 900 - 73])
COMPUTED[1] = f"{error:.2f}", f"{100 * difference.mean():.2f}", f"{100 * difference.std() / sqrt(900):.2f}"
COMPUTED[2] = f"{100 * norm.cdf(1):.1f}", f"{100 * sqrt(0.9 * 0.1 / 100):.1f}", f"{(90 - 100 * norm.cdf(1)) / 3:.1f}"
limit = 100 * sqrt(norm.cdf(1) * norm.sf(1) / 100)
COMPUTED[2] += f"{limit:.1f}", f"{(90 - 100 * norm.cdf(1)) / limit:.1f}"
logit = np.array([-2, 0, 4])
COMPUTED[3] = f"{expit(logit).mean():.2f}", f"{expit(logit.mean()):.2f}"
COMPUTED[4] = f"{2 * 5 + 5 * 5 + 5}", f"{2 * 12 + 12 * 12 + 12}", f"{2 * 12 + 12 * 12 + 12 + 12 + 12 + 1}"
COMPUTED[5] = [
    f"{part:.2f}" for p in ((0.5, 0.5, 0.5, 0.5), (0, 0, 1, 1), (0.9, 0.7, 0.3, 0.1)) for part in split_doubt(p)
]
COMPUTED[6] = (f"{500 * log(2):.0f}",)
posterior = np.array([[1, 0.9], [0.9, 1]])
precision = np.linalg.inv(posterior)
q = np.diag(1 / np.diag(precision))  # the mean-field normal with the least KL(q || p)
directions = [np.array([1, 1]), np.array([1, -1])]
widths = [sqrt(d @ cov @ d) for d in directions for cov in (posterior, q)]
COMPUTED[7] = f"{sqrt(q[0, 0]):.2f}", *(f"{width:.2f}" for width in widths)
COMPUTED[8] = f"{30 * 2000 / 50 + 25:,.0f}", f"{2000 // 50}"
COMPUTED[9] = f"{14 * 500 / 50:.0f}", f"{14 * 500 / 50 - 129:.0f}"
few, many = (3 + 10) / (5 + 20), (60 + 10) / (100 + 20)
COMPUTED[10] = f"{60 / 100:.1f}", f"{few:.2f}", f"{many:.2f}"
gain, control = np.array([0.08, 0.09, 0.07]), np.array([0.04, 0.05, 0.03])
share = 100 * control / gain
COMPUTED[11] = f"{share.mean():.0f}", f"{share.std(ddof=1) / sqrt(3):.0f}"
COMPUTED[12] = f"{sqrt(1 + 0.5**2):.2f}", f"{1 / (1 + 0.5**2):.1f}"
between = np.var([0, 0, 1, 1], ddof=1)
COMPUTED[13] = f"{between:.2f}", f"{sqrt(1 + between):.2f}"
ess = 4000 * (1 - 0.8) / (1 + 0.8)
COMPUTED[14] = f"{ess:.0f}", f"{0.33 / sqrt(ess):.3f}", f"{4000 * (1 - 0.9) / (1 + 0.9):.0f}"
COMPUTED[15] = f"{0.001 / 0.003:.1f}", f"{0.38 / 0.04:.1f}"
COMPUTED[16] = (f"{100 * sqrt(0.97 * 0.03 / 900):.1f}",)
one = 2**5 * factorial(5)
COMPUTED[17] = f"{one:,}", f"{one**2:,}"
COMPUTED[19] = (f"{sqrt(0.2**2 + 0.5**2):.2f}",)
learned, coin = np.mean([0.02, 0.01, 0.005, 0.005]), 0.5**5
COMPUTED[20] = f"{learned:.3f}", f"{coin:.3f}", f"{log(learned / coin):.1f}"
COMPUTED[21] = (
    f"{log2(10):.2f}",
    f"{400 * 5 // 100}",
    f"{100 * sqrt(0.05 * 0.95 / 400):.1f}",
    f"{100 * sqrt(0.05 * 0.95 * 2 / 400):.1f}",
)
digits, letters = [0.1, 0.2, 0.4], [0.3, 0.5]
auroc = np.mean([letter > digit for letter in letters for digit in digits])
COMPUTED[22] = f"{auroc:.2f}", f"{ceil(0.95 * (399 + 1))}"
COMPUTED[23] = f"{1 / sqrt(1 + 4):.2f}", f"{1 / sqrt(1 + 4 / 0.1):.2f}"
COMPUTED[24] = f"{0.020 / 0.014:.1f}", f"{0.009 / 0.011:.1f}"
one, z = sqrt(120**2 + 90**2), norm.ppf(0.95)
COMPUTED[25] = f"{one:.0f}", f"{z * one:.0f}", f"{z * 90:.0f}", f"{z * 120:.0f}"
precision = 1 / 30**2 + 1 / 10**2
COMPUTED[26] = f"{20 / 10**2 / precision:.0f}", f"{1 / sqrt(precision):.1f}"
alone = round(binom.sf(25, 300, 1 / 20), 3)
assert alone == 0.005  # which the question says
COMPUTED[27] = (
    f"{300 / 20:.0f}",
    f"{sqrt(300 * 0.05 * 0.95):.1f}",
    f"{100 * (1 - (1 - alone) ** 20):.0f}",
    f"{0.1 / sqrt(1 / 4000 + 1 / 10000):.1f}",
)
error = 0.9 / sqrt(20)
new = norm.cdf(3.0 / sqrt(0.9**2 + error**2))
lucky = norm.cdf(0.5 / 0.9)
COMPUTED[28] = f"{error:.2f}", f"{100 * new:.1f}", f"{100 * lucky:.0f}", f"{0.9 / 0.4:.2f}"
COMPUTED[29] = f"{400 * 1.5 * 31 * 20e-6:.2f}", f"{(2.1 - 1.9) / 0.5:.1f}"
rounds = ceil(1000 / 16)
COMPUTED[30] = (
    f"{rounds * 8.05:.0f}",
    f"{rounds}",
    f"{100 * 0.05 / 8:.1f}",
    f"{100 * 1000 * 8 / 16 / (rounds * 8.05 + 60):.0f}",
)

# the second bank: question n + 30 asks about the topic of question n
error = 100 * sqrt(0.92 * 0.08 / 400)
difference = np.repeat([1, -1, 0], [30, 18, 400 - 48])
ahead = 100 * difference.mean(), 100 * difference.std() / sqrt(400)
COMPUTED[31] = f"{error:.2f}", f"{ahead[0]:.2f}", f"{ahead[1]:.2f}", f"{ahead[0] / ahead[1]:.1f}"
best = [0.9 * log(0.9) + 0.1 * log(0.1), 0.3 * log(0.3) + 0.7 * log(0.7)]
COMPUTED[32] = f"{100 * np.mean([0.9, 0.7]):.0f}", f"{np.mean(best):.2f}"
COMPUTED[33] = f"{np.mean([0.1, 0.2, 0.2, 0.9]):.2f}", f"{1 / 6:.2f}"
weights = 3 * 8 + 8
COMPUTED[34] = f"{weights}", f"{weights + 8 + 1}", f"{weights * 11 + 2}"
COMPUTED[35] = [f"{part:.2f}" for p in ((0.5, 0.5), (0.1, 0.9), (0.9, 0.9)) for part in split_doubt(p)[1:]]
COMPUTED[36] = f"{200 * log(2):.0f}", f"{1 / sqrt(0.5):.1f}"
posterior = np.array([[1, 0.6], [0.6, 1]])
width = 1 / sqrt(np.linalg.inv(posterior)[0, 0])
COMPUTED[37] = f"{width:.2f}", f"{width * sqrt(2):.2f}", f"{sqrt(posterior.sum()):.2f}"
scale = 10_000 / 100
COMPUTED[38] = f"{45 * scale + 60:,.0f}", f"{5 * scale:.0f}", f"{10_000 // 1000}"
COMPUTED[39] = f"{0.42 * 1000:.0f}", f"{21 * 1000 / 50:.0f}", f"{0.42 * 1000 - 405:.0f}"
COMPUTED[40] = f"{1 / 4:.2f}", f"{(1 + 2) / (4 + 20):.3f}", f"{(30 + 2) / (120 + 20):.3f}"
left = np.array([6, 4, 5, 5]) - np.array([5, 1, 2, 4])
error = left.std(ddof=1) / sqrt(4)
COMPUTED[41] = f"{left.mean():.1f}", f"{error:.2f}", f"{left.mean() / error:.1f}"
COMPUTED[42] = f"{sqrt(4 + 1):.2f}", f"{sqrt(2):.2f}", f"{4 / (4 + 1):.1f}"
between, within = np.var([0, 0, 0, 0], ddof=1), np.mean([1, 1, 1, 9])
COMPUTED[43] = (f"{sqrt(1 + between / within):.2f}",)
COMPUTED[44] = (f"{0.06 / sqrt(900):.3f}",)
COMPUTED[45] = f"{0.02 / 0.01:.0f}", f"{0.45 / 0.05:.0f}"
COMPUTED[47] = f"{factorial(7):,}", f"{2**7 * factorial(7):,}"
expected = sqrt(0.3**2 + 0.4**2)
precision = 1 / expected**2 + 1 / 0.5**2
COMPUTED[49] = f"{expected:.1f}", f"{(1.2 / expected**2 + 0.2 / 0.5**2) / precision:.1f}", f"{1 / sqrt(precision):.2f}"
likelihood = np.array([0.03, 0.06, 0, 0.03])
omega = likelihood / likelihood.sum()
learned, coin = likelihood.mean(), 0.5**6
COMPUTED[50] = f"{learned:.2f}", f"{coin:.3f}", f"{log(learned / coin):.2f}"
COMPUTED[50] += f"{omega[0]:.2f}", f"{omega[1]:.2f}", f"{1 / np.sum(omega**2):.1f}"
COMPUTED[51] = f"{log2(4):.0f}", f"{100 * 9 / 300:.0f}", f"{100 * sqrt(0.03 * 0.97 / 300):.1f}"
COMPUTED[52] = f"{ceil(0.9 * 25)}", f"{ceil(0.97 * 25)}", f"{1 - 0.55:.2f}"


def beta(a, b):
    return a / (a + b), sqrt(a * b / (a + b) ** 2 / (a + b + 1))


COMPUTED[53] = [f"{value:.2f}" for a, b in ((4, 8), (13, 29)) for value in beta(a, b)]
COMPUTED[54] = f"{0.004 / 0.006:.1f}", f"{0.09 / 0.011:.1f}", f"{0.03 / 0.008:.1f}"
spread = sqrt(0.3**2 + 0.4**2)
COMPUTED[55] = f"{100 * norm.sf(1 / spread):.1f}", f"{100 * norm.sf(0.3 / 0.3):.1f}", f"{100 * norm.sf(1 / 0.4):.1f}"
one, two = 1 / 20**2 + 1 / 20**2, 1 / 20**2 + 2 / 20**2
COMPUTED[56] = f"{40 / 20**2 / two:.0f}", f"{1 / sqrt(two):.1f}", f"{30 / 20**2 / one:.0f}", f"{1 / sqrt(one):.1f}"
COMPUTED[57] = f"{200 / 10:.0f}", f"{sqrt(200 * 0.1 * 0.9):.1f}"
error = 1.5 / sqrt(10)
COMPUTED[58] = f"{error:.2f}", f"{1 / error:.1f}", f"{100 * norm.cdf(1 / sqrt(1.5**2 + error**2)):.0f}"
four, eight = 1200 / (4 * 150), 1200 / (8 * 150)
COMPUTED[59] = f"{40 + 20 * four:.0f}", f"{40 + 20 * eight:.0f}"
rounds = ceil(600 / 40)
COMPUTED[60] = f"{90 + rounds * 30}", f"{ceil(6 / 40) * 30}"

EXAM = (Path(__file__).parents[2] / "book" / "teach" / "exam.md").read_text(encoding="utf8")
QUESTIONS = dict(enumerate(re.split(r"^\(exam-\d+\)=\n## \d+\. ", EXAM, flags=re.MULTILINE)[1:], 1))
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:[.,]\d+)*")
SMALL = {"0", "1", "2"}  # as in "adds up to 1"


def test_a_paper_has_ten_questions_and_the_table_that_they_need():
    papers = re.findall(r'\?take=([\d,]+)"', EXAM)
    assert [len(set(paper.split(","))) for paper in papers] == [10] * 10
    z, phi = (
        re.findall(r"[\d.]+", line) for line in re.findall(r"^\| \$(?:z|\\Phi\(z\))\$ (.*)", EXAM, flags=re.MULTILINE)
    )
    assert [f"{norm.cdf(float(value)):.3f}" for value in z] == phi


def test_every_number_in_an_answer_is_computed_or_given_and_marks_add_up_to_six():
    assert set(COMPUTED) <= set(QUESTIONS)
    for number, text in QUESTIONS.items():
        question, _, rest = text.split("points\n", 1)[1].partition(":::{admonition}")
        answer = rest.split("exam-answer\n\n")[1].split("\n\n- ")[0]
        bold = [NUMBER.findall(text)[0] for text in re.findall(r"\*\*([^*]+)\*\*", answer)]
        computed = set(COMPUTED.get(number, []))
        assert set(bold) == computed, number
        plain = re.sub(r"\$[^$]*\$|\*\*[^*]+\*\*|\([a-e]\)", "", answer)
        assert set(NUMBER.findall(plain)) <= set(NUMBER.findall(question)) | computed | SMALL, number
        assert sum(map(int, re.findall(r"^- (\d+): ", rest, flags=re.MULTILINE))) == 6, number
