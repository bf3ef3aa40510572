"""What did a class learn? Answers to the entry test, before and after a course, by a hierarchical model.

    python -m teach.learned class.csv

reads a CSV with the columns ``student``, ``when`` (before or after) and ``q1`` to ``q10`` (a, b, c, d, or x for a
question that was left open), and prints the gain for each objective, with its error, what was ticked at each question,
and which questions tell little.
"""

import argparse
import csv
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pymc as pm
from hbnn import diagnostics, sampling
from hbnn._checks import check_seed
from scipy.special import expit

OBJECTIVES = ("score", "posterior", "doubt", "approximation", "pooling")
# of each question of book/teach/entry_test.md: what it asks about, and the right answer
ITEMS = (
    ("score", "b"), ("posterior", "c"), ("doubt", "a"), ("approximation", "d"), ("pooling", "b"),
    ("score", "d"), ("posterior", "a"), ("doubt", "c"), ("approximation", "b"), ("pooling", "c"),
)  # fmt: skip
QUESTIONS = tuple(f"q{i}" for i in range(1, len(ITEMS) + 1))
OBJECTIVE_OF = np.array([OBJECTIVES.index(objective) for objective, _ in ITEMS])
KEY = tuple(right for _, right in ITEMS)
CHOICES = ("a", "b", "c", "d")
NO_ANSWER = ("x", "-", "")  # "I don't know", on paper and where a cell was left empty
WHEN = ("before", "after")
COLUMNS = ("student", "when", *QUESTIONS)
SAMPLER = {"draws": 1000, "tune": 1000, "target_accept": 0.9}
LEAST_LOADING = 0.5  # logits for one standard deviation among students: below it a question hardly tells them apart
SURE = 0.9  # of that, before a question is named
INTERVAL = (0.05, 0.95)
FEW = 10  # students: fewer than that, and their sheets say more than a model


@dataclass(frozen=True)
class Answers:
    """A class's answers, one row for each student and sitting.

    Attributes
    ----------
    right : int, (row, question), 1 where the answer is the right one
    student : int, (row,), the place of the row's student in `students`
    after : int, (row,), 1 for the second sitting
    students : tuple of str
    chosen : str, (row, question), the letter that was ticked; None for a class that was invented

    Examples
    --------
    Goes on from `simulate`.

    >>> answers.right.shape  # sheets, questions
    (38, 10)
    >>> answers.count()
    {'both': 18, 'before only': 2, 'after only': 0}
    """

    right: np.ndarray
    student: np.ndarray
    after: np.ndarray
    students: tuple
    chosen: np.ndarray | None = None

    def count(self):
        """Students who sat both tests, the first only, the second only: dict of int."""
        first, second = (set(self.student[self.after == when]) for when in (0, 1))
        return {"both": len(first & second), "before only": len(first - second), "after only": len(second - first)}


def read_answers(source):
    """A class's answers from a CSV: checked, nothing dropped.

    Parameters
    ----------
    source : path of a CSV in UTF-8 or Latin-1, with commas or semicolons and names in its first line; capital letters
        make no difference, in codes as little as in answers

    Returns
    -------
    Answers

    Raises
    ------
    OSError
        When there is no such file.
    ValueError
        When the file is no such table: what is wrong, in which line, and what would be right; at most three lines.

    Examples
    --------
    Goes on from `write_answers`.

    >>> answers.count() == again.count(), bool((answers.right == again.right).all())
    (True, True)
    """
    try:
        lines = Path(source).read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:  # a spreadsheet's own
        lines = Path(source).read_text(encoding="latin-1").splitlines()
    separator = ";" if lines and lines[0].count(";") > lines[0].count(",") else ","
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    rows = [
        (reader.line_num, [cell.strip().casefold() for cell in cells]) for cells in reader if any(map(str.strip, cells))
    ]
    if not rows or tuple(rows[0][1]) != COLUMNS:
        first = separator.join(rows[0][1]) if rows else "nothing"
        raise ValueError(f"{source}: the first line is {first!r}; wanted: {','.join(COLUMNS)}")
    wrong, seen = [], {}
    for n, cells in rows[1:]:
        said = _find_fault(cells, n, seen)
        if said:
            wrong.append(f"line {n}: {said}")
    if wrong:
        more = f"; and {len(wrong) - 3} more lines" if len(wrong) > 3 else ""
        raise ValueError(f"{source}, " + "; ".join(wrong[:3]) + more)
    sittings = {when for _, when in seen}
    if sittings != set(WHEN):
        there = " and ".join(sorted(sittings)) or "no row"
        raise ValueError(f"{source} has {there}; wanted: rows of both sittings, before and after")
    students = tuple(sorted({student for student, _ in seen}))
    body = [cells for _, cells in rows[1:]]
    chosen = np.array([cells[2:] for cells in body])
    answers = Answers(
        right=(chosen == np.array(KEY)).astype(int),
        student=np.array([students.index(cells[0]) for cells in body]),
        after=np.array([WHEN.index(cells[1]) for cells in body]),
        students=students,
        chosen=chosen,
    )
    if answers.count()["both"] < 2:
        raise ValueError(f"{source}: fewer than two students sat both tests; wanted: the same code on both sheets")
    return answers


def _find_fault(cells, n, seen):
    """What is wrong with a line of answers, or None; `seen` (student and sitting: line) grows by it."""
    if len(cells) != len(COLUMNS):
        return f"{len(cells)} columns; wanted: {len(COLUMNS)}, a student, before or after, and {len(ITEMS)} answers"
    student, when, *given = cells
    if not student:
        return "no student; wanted: the code on the sheet"
    if when not in WHEN:
        return f"when is {when!r}; wanted: before or after"
    bad = [(q, a) for q, a in zip(QUESTIONS, given, strict=True) if a not in (*CHOICES, *NO_ANSWER)]
    if bad:
        return f"{bad[0][0]} is {bad[0][1]!r}; wanted: a, b, c, d, or x for no answer"
    earlier = seen.setdefault((student, when), n)
    if earlier != n:
        return f"{student!r} {when} stands in line {earlier} already; wanted: one line for each sitting"
    return None


# --- the model


def vary(name, mean, sd, dim):
    """One number for each student, question or objective around a common mean, written with offsets."""
    return pm.Deterministic(name, mean + sd * pm.Normal(f"{name}_z", dims=dim), dims=dim)


def give(answers):
    """The data of the model, by name."""
    return {"right": answers.right, "who": answers.student, "when": answers.after}


def build(answers):
    """The model: which answers are right, from students, questions, and what was gained between the sittings.

    Parameters
    ----------
    answers : Answers

    Returns
    -------
    pm.Model
        With, in logits, ``gain``, ``loading`` (for one standard deviation among students) and ``difficulty`` of each
        question, ``aim``, the gain of each objective, and ``start`` and ``move`` of each student, standardised; and the
        data that `give` names, so that it can be compiled once for classes of one size.

    Source: an item response model with two parameters a question; Gelman and Hill (2007), chapter 14.

    Examples
    --------
    Goes on from `simulate`.

    >>> model = learned.build(answers)
    >>> sorted(model.coords)
    ['objective', 'question', 'student']
    """
    coords = {"student": list(answers.students), "question": list(QUESTIONS), "objective": list(OBJECTIVES)}
    with pm.Model(coords=coords) as model:
        right, who, when = (pm.Data(name, value) for name, value in give(answers).items())
        start = pm.Normal("start", dims="student")
        move = vary("move", 0, pm.HalfNormal("sd_move", 0.5), "student")
        loading = vary("loading", pm.HalfNormal("mean_loading", 1), pm.HalfNormal("sd_loading", 0.5), "question")
        difficulty = vary(
            "difficulty", pm.Normal("mean_difficulty", 0, 1.5), pm.HalfNormal("sd_difficulty", 1), "question"
        )
        aim = vary("aim", pm.Normal("mean_gain", 0, 1), pm.HalfNormal("sd_gain", 0.7), "objective")
        gain = vary("gain", aim[OBJECTIVE_OF], pm.HalfNormal("sd_within", 0.5), "question")
        after = when[:, None]
        level = start[who][:, None] + after * move[who][:, None]
        pm.Bernoulli("answer", logit_p=loading * level - difficulty + after * gain, observed=right)
    return model


def sample(answers, *, seed, **options):
    """Draws of the model: `pm.sample` with `SAMPLER`, changed by `options`. seed : int. Returns a DataTree.

    Examples
    --------
    Goes on from `simulate`. A short run; without `draws` and `tune` it is long enough to be judged.

    >>> tree = learned.sample(answers, seed=1, draws=100, tune=200)
    >>> tree["posterior"]["aim"].shape  # chains, draws, objectives
    (4, 100, 5)
    """
    check_seed(seed)
    with build(answers):
        return pm.sample(random_seed=seed, **sampling.ONE_CORE | SAMPLER | options)


def find_gains(posterior, answers):
    """Gain in percentage points, for each objective: the share of right answers, after less before.

    The mean runs over the objective's questions and over all students, both sittings asked of each of them, whether
    they came or not.

    Parameters
    ----------
    posterior : Dataset (chain, draw, …), as `sample` has it
    answers : Answers

    Returns
    -------
    (chain, draw, objective) array

    Examples
    --------
    Goes on from `sample`.

    >>> gains = learned.find_gains(tree["posterior"].to_dataset(), answers)
    >>> gains.shape  # percentage points
    (4, 100, 5)
    >>> bool((gains.mean(axis=(0, 1)) > 0).all())
    True
    """
    loading, difficulty, gain = (posterior[name].values[..., None, :] for name in ("loading", "difficulty", "gain"))
    start, move = (posterior[name].values[..., None] for name in ("start", "move"))
    before = expit(loading * start - difficulty).mean(axis=-2)
    after = expit(loading * (start + move) - difficulty + gain).mean(axis=-2)
    return 100 * average_objectives(after - before)


def average_objectives(values):
    """Means over the questions of each objective: (…, question) to (…, objective).

    Examples
    --------
    >>> import numpy as np
    >>> from teach import learned
    >>> learned.OBJECTIVES
    ('score', 'posterior', 'doubt', 'approximation', 'pooling')
    >>> learned.average_objectives(np.arange(10.0))  # of question 1 to 10
    array([2.5, 3.5, 4.5, 5.5, 6.5])
    """
    return np.stack([values[..., k == OBJECTIVE_OF].mean(axis=-1) for k in range(len(OBJECTIVES))], axis=-1)


def find_raw_gains(answers):
    """What counting gives: paired differences of the students who sat both tests, in percentage points.

    Returns
    -------
    mean, error : (objective,) arrays; the error is the standard error over students

    Examples
    --------
    Goes on from `simulate`.

    >>> mean, error = learned.find_raw_gains(answers)
    >>> mean.shape, bool((error > 0).all())
    ((5,), True)
    """
    scores = {}
    for row, student, after in zip(answers.right, answers.student, answers.after, strict=True):
        scores.setdefault(student, {})[after] = 100 * average_objectives(row.astype(float))
    paired = np.array([both[1] - both[0] for both in scores.values() if len(both) == 2])
    return paired.mean(axis=0), paired.std(axis=0, ddof=1) / np.sqrt(len(paired))


def find_flat(posterior):
    """The probability that a question hardly tells students apart, its loading below `LEAST_LOADING`: (question,).

    Examples
    --------
    Goes on from `sample`.

    >>> learned.find_flat(tree["posterior"]).shape  # a probability for each question
    (10,)
    """
    return (posterior["loading"].values < LEAST_LOADING).mean(axis=(0, 1))


def judge(tree, answers):
    """The book's verdict on a run, asked of gains, loadings, difficulties and the class's mean: `diagnostics.Verdict`.

    Examples
    --------
    Goes on from `sample`.

    >>> learned.judge(tree, answers).n_draws
    400
    """
    posterior = tree["posterior"].to_dataset()
    quantities = {
        "gains": find_gains(posterior, answers),
        "loadings": posterior["loading"].values,
        "difficulties": posterior["difficulty"].values,
    }
    return diagnostics.verdict(quantities, tree)


# --- what a lecturer is told


def list_questions(answers):
    """What was ticked at each question: list of str, one a question, with a mark where the key may be wrong.

    Examples
    --------
    Goes on from `write_answers`.

    >>> line = learned.list_questions(again)[0]
    >>> line.startswith("  q1   score         b right: "), "after most often: " in line
    (True, True)
    """
    lines = []
    for k, (name, (objective, right)) in enumerate(zip(QUESTIONS, ITEMS, strict=True)):
        shares = [100 * answers.right[answers.after == when, k].mean() for when in (0, 1)]
        ticked = answers.chosen[answers.after == 1, k].tolist()
        most = max(CHOICES, key=ticked.count)
        doubt = (
            "" if most == right else "  <- not the right one: is the key, or the order of options, that of your sheet?"
        )
        lines.append(
            f"  {name:5}{objective:14}{right} right: {shares[0]:3.0f} % before, {shares[1]:3.0f} % after; "
            f"after most often: {most} ({100 * ticked.count(most) / len(ticked):.0f} %){doubt}"
        )
    return lines


def _name_questions(said):
    """A verdict with the names that questions have on the sheet."""
    names = {"loadings": QUESTIONS, "difficulties": QUESTIONS, "gains": OBJECTIVES}
    return re.sub(r"(loadings|difficulties|gains)\[(\d+)\]", lambda at: f"{at[1]}, {names[at[1]][int(at[2])]}", said)


def describe(tree, answers):
    """What the draws say of a class, in lines of text.

    Examples
    --------
    Goes on from `sample`.

    >>> print(learned.describe(tree, answers).splitlines()[0])
    20 students: 18 sat both tests, 2 the first alone, 0 the second alone.
    """
    came, posterior = answers.count(), tree["posterior"].to_dataset()
    gains, (counted, error) = find_gains(posterior, answers), find_raw_gains(answers)
    low, high = np.quantile(gains, INTERVAL, axis=(0, 1))
    lines = [
        f"{len(answers.students)} students: {came['both']} sat both tests, {came['before only']} the first alone, "
        f"{came['after only']} the second alone.",
        _name_questions(str(judge(tree, answers))),
        "",
        "Gain in percentage points, 90 % interval; in brackets by counting, with its standard error.",
        "In invented classes about one objective in ten on which nothing was taught is called a gain all the same.",
    ]
    for k, name in enumerate(OBJECTIVES):
        sure = "a gain" if low[k] > 0 else "a loss" if high[k] < 0 else "open"
        lines.append(
            f"  {name:14}{gains[..., k].mean():5.0f}, {low[k]:4.0f} to {high[k]:3.0f}: {sure:7} "
            f"({counted[k]:.0f} ± {error[k]:.0f})"
        )
    named = [f"{q} ({round(100 * p)} %)" for q, p in zip(QUESTIONS, find_flat(posterior), strict=True) if p > SURE]
    if answers.chosen is not None:
        lines += ["", "What was ticked:", *list_questions(answers)]
    lines += ["", f"Questions that hardly tell students apart: {', '.join(named) or 'none that we could name'}."]
    if came["both"] < FEW:
        lines.append(f"Fewer than {FEW} students sat both: read the sheets as well.")
    return "\n".join(lines)


def main(arguments=None):
    """Analyse a class's CSV; returns 0, or 1 for a file that cannot be read, or 2 where the chains do not agree."""
    parser = argparse.ArgumentParser(prog="python -m teach.learned", description=__doc__.partition("\n")[0])
    parser.add_argument("csv", help="student,when,q1,...,q10; a line for each sheet")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    try:
        answers = read_answers(given.csv)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    print(
        f"{len(answers.students)} students are read; sampling takes about half a minute.", file=sys.stderr, flush=True
    )
    tree = sample(answers, seed=given.seed)
    print(describe(tree, answers))
    return 0 if judge(tree, answers).converged else 2


# --- classes that were invented


def write_answers(answers, path, *, seed):
    """Write a class as the CSV that `read_answers` reads; a wrong answer is another letter, or none, by lot.

    Examples
    --------
    Goes on from `simulate`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     learned.write_answers(answers, Path(folder, "class.csv"), seed=1)
    ...     again = learned.read_answers(Path(folder, "class.csv"))
    >>> again.students == answers.students
    True
    """
    check_seed(seed)
    rng = np.random.default_rng(seed)
    lines = [",".join(COLUMNS)]
    for right, student, after in zip(answers.right, answers.student, answers.after, strict=True):
        wrong = [rng.choice([c for c in CHOICES if c != k] + [NO_ANSWER[0]]) for k in KEY]
        given = [k if hit else str(other) for k, hit, other in zip(KEY, right, wrong, strict=True)]
        lines.append(",".join([answers.students[student], WHEN[after], *given]))
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def simulate(n_students, *, seed, gains=None, flat=(), guess=0.1, absent=0.1):
    """A class that never was, with the truth about it.

    Who does not know ticks "I don't know" or guesses; the model knows nothing of guessing, as it should be with a truth
    that is not its own.

    Parameters
    ----------
    n_students : int
    seed : int
    gains : (objective,) array, logits; None: drawn from N(0.8, 0.6)
    flat : places of questions that do not tell students apart: loading 0
    guess : float, probability of a right answer by one who does not know
    absent : float, probability of missing the second sitting

    Returns
    -------
    Answers, dict
        The truth: "gain" (objective, percentage points, over all students), "loading" and "difficulty" (question).

    Examples
    --------
    >>> from teach import learned
    >>> answers, truth = learned.simulate(20, seed=1, gains=[2.0] * 5)
    >>> len(answers.students), sorted(truth)
    (20, ['difficulty', 'gain', 'loading'])
    """
    check_seed(seed)
    rng = np.random.default_rng(seed)
    gains = rng.normal(0.8, 0.6, len(OBJECTIVES)) if gains is None else np.asarray(gains, dtype=float)
    loading = rng.lognormal(0, 0.3, len(ITEMS))
    loading[list(flat)] = 0
    difficulty = rng.normal(0.6, 0.8, len(ITEMS))
    gain = gains[OBJECTIVE_OF] + rng.normal(0, 0.3, len(ITEMS))
    start, move = rng.normal(size=n_students), 0.4 * rng.normal(size=n_students)
    knows = [expit(np.outer(start + t * move, loading) - difficulty + t * gain) for t in (0, 1)]
    p = guess + (1 - guess) * np.stack(knows)  # (sitting, student, question)
    comes = np.stack([np.ones(n_students, dtype=bool), rng.random(n_students) >= absent])
    after, student = np.nonzero(comes)
    right = (rng.random(p.shape) < p).astype(int)[after, student]
    names = tuple(f"s{i + 1:03}" for i in range(n_students))
    truth = {"gain": 100 * average_objectives((p[1] - p[0]).mean(axis=0)), "loading": loading, "difficulty": difficulty}
    return Answers(right=right, student=student, after=after, students=names), truth


if __name__ == "__main__":
    sys.exit(main())
