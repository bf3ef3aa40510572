"""The index of the search: Pagefind reads the prose of the built pages, and answers in the reader's browser.

A result leads to a heading, so headings carry the ids of their sections in what Pagefind is given, and terms of the
glossary and names of the package are headings as well.
"""

import html
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from book_front import list_core
from book_pages import spell_formula

LEFT_OUT = (
    "pre, .output, table.bnn, div.math, .headerlink, .section-number, summary",
    ".solution, .prerequisites",  # answers, and the box "Before you start"
    "em.property, .sig-prename, .sig-paren, .sig-param, .sig-return",  # of a signature all but the name
)
# What readers ask for in words that a section does not use: by its label, or its id. `test_pages.py` asks for some.
ASKED = {
    "run-it-yourself": "how long does it take, how long does a chapter take, how long, run time, how to install, "
    "Windows, conda, version of PyMC, PyMC version, requirements, dependencies",
    "sec-running-cost": "memory, RAM, how much memory, out of memory",
    "sec-hierarchical-nuts-model": "hierarchical model, hierarchical models, hierachical, multilevel model, "
    "random effects",
    "sec-when-to-use-box": "how many groups do I need, how many groups, few data per group, when not to use",
    "sec-when-to-use-else": "lme4, brms, mixed models, random forest, boosted trees, Gaussian process, embeddings",
    "sec-own-file-predictions": "prediction interval, predictive interval, credible interval, save predictions",
    "sec-moons-score": "log score, log loss, cross entropy, proper scoring rule, negative log likelihood, nats, "
    "what is a nat",
    "sec-teach-assignments-course": "homework, homework solutions, solutions of assignments, nbgrader, answer key",
    "sec-one-choice-question": "hyperparameter, hyperparameters, sensitivity, ablation, number of units",
    "sec-growth-curves-question": "time series, longitudinal data, repeated measures, forecasting",
    "sec-hierarchical-nuts-funnel": "non-centered parameterization, non-centred parametrisation, reparameterization",
    "sec-flat-advi-prior": "what is a prior, prior predictive, prior predictive check, prior predictive checks",
    "sec-engines-gradient": "speed up sampling, faster sampling, slow sampling",
    "sec-index-way": "PDF, download PDF, ebook, print the book",
    "sec-primer-hill": "posterior, what is a posterior, Bayes theorem, Bayes' rule",
    "sec-informed-priors-idea": "transfer learning, meta learning, few-shot learning, new patient, cold start",
    "sec-convergence-verdict": "MCMC diagnostics, convergence diagnostics, trace plots",
    "sec-flat-advi-uncertainty": "uncertainty quantification, quantify uncertainty",
    "sec-how-tested-numbers": "confidence interval, error bars, standard error, random seed, random seeds",
    "sec-primer-numbers": "how many samples do I need, how many draws, effective sample size",
    "sec-workflow-model": "regression instead of classification, continuous outcome, how many hidden units, "
    "how many units, network size, choose a prior",
    "sec-workflow-rival": "WAIC, LOO, model comparison, compare models",
    "sec-digits-question": "out of distribution, out-of-distribution detection, OOD, distribution shift, open set",
    "sec-flat-advi-model": "PyTorch, TensorFlow, Keras, JAX, Flax",
    "sec-informed-priors-question": "small data, small data sets, little data, few data, small sample, new subject",
    "sec-own-data-shops": "my own data, own data, my data, use it on my data, custom data set, "
    "unbalanced groups, unequal groups",
    "sec-own-data-load": "missing data, missing values, NaN, imputation",
    "sec-own-file-new": "predict a new group, predict new groups, prediction for a new group, unseen group",
    "sec-primer-advi": "Bayes by backprop, variational inference, variational Bayes, VI",
    "sec-replication-methods": "dropout, MC dropout, Monte Carlo dropout, Laplace approximation, SWAG",
    "sec-running-posteriors": "save model, save a fitted model, load a model, keep draws",
    "sec-teach-slides": "slides, decks, lecture slides, presentation",
    "sec-unpooled-why": "overfitting, overfit, underfitting, regularisation, regularization, weight decay",
    "sec-hierarchical-nuts-change": "ReLU, activation function, bias terms, intercept, change the number of units",
    "sec-own-file-kinds": "count data, Poisson, binary outcome, ordinal outcome, multiclass, "
    "nested groups, crossed groups",
    "sec-digits-model": "multiclass, multi-class, more than two classes, multinomial",
    "sec-cite-how": "BibTeX, cite this book, citation",
    "sec-group-sd-camps": "multimodal posterior, multimodality, several modes, local modes, chains disagree",
    "sec-weight-correlations-question": "interpretability, interpret weights, explain a network, "
    "explain a prediction, feature importance, identifiability",
    "sec-hierarchical-nuts-pooling": "vary by group, varying coefficients, random slopes, borrow strength",
    "sec-real-tables-tools": "XGBoost, LightGBM, CatBoost, gradient boosting, better than XGBoost",
    "sec-digits-calibration": "temperature scaling, calibration error, recalibrate",
    "sec-primer-verdict": "p-value, multiple comparisons, significant, significance test, Bonferroni",
    "sec-class-gains-sizes": "power analysis, sample size, how many students do I need",
    "sec-beyond-one-machine-question": "parallel, parallel chains, cores, cluster, Dask, distributed",
    "sec-running-program": "deploy, production, use the model in my own program, pip install",
}
HELPER = "\u2063"  # an invisible mark behind each of these words: no excerpt shows them (_static/search/pagefind.js)
HEADING = re.compile(r'<section([^>]*) id="([^"]+)">((?:\s*<span id="[^"]+"></span>)*)\s*<h(\d)>')
TERM = re.compile(r'<dt(?: class="sig sig-object py")? id="([^"]+)">(.*?)</dt>', flags=re.DOTALL)
SIGNATURE = '<span class="sig-paren">'
FORMULA = re.compile(r'<span class="math notranslate nohighlight"[^>]*>\\\((.*?)\\\)</span>', flags=re.DOTALL)


def weigh(name):
    """What a word counts on a page: most where it is explained, least where a course or a reference passes by it."""
    folder, _, page = name.rpartition("/")
    passes_by = folder == "book/teach" or page.startswith("api_")
    return {"glossary": 3, "primer": 2}.get(page, 2 if page in list_core() else 0.5 if passes_by else 1)


def prepare(page, weight):
    """A page (HTML) as Pagefind is to read it. Headings count most, then words that are introduced: in italics."""
    for key, words in ASKED.items():
        marked = re.sub(r"([\w-]+)", rf"\1{HELPER}", words)
        said = rf'\1<p data-pagefind-weight="10">{marked}</p>'
        page = re.sub(rf'(id="{key}">.*?</h\d>)', said, page, count=1, flags=re.DOTALL)
    page = HEADING.sub(rf'<section\1>\3<h\4 id="\2" data-pagefind-weight="{4 * weight}">', page)
    page = TERM.sub(lambda match: f'<h3 id="{match[1]}" data-pagefind-weight="{4 * weight}">'
                    f'{match[2].split(SIGNATURE)[0]}</h3>', page)  # fmt: skip
    page = re.sub(r"<em>([^<]+)</em>([^\s<]*)", rf'<em data-pagefind-weight="{3 * weight}">\1\2</em>', page)
    page = FORMULA.sub(lambda match: html.escape(spell_formula(html.unescape(match[1]))), page)
    return page.replace("<article", f'<article data-pagefind-body data-pagefind-weight="{weight}"', 1)


def write_index(app, exception):
    """Index all pages of a built site, with the binary that the package brings along, into the folder `pagefind`."""
    if exception is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    shutil.rmtree(out / "pagefind", ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in app.env.found_docs - {"book/teach/handouts"}:  # sheets with blanks to fill in
            page = app.builder.get_target_uri(name)
            target = Path(folder, page)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(prepare((out / page).read_text(encoding="utf8"), weigh(name)), encoding="utf8")
        command = [sys.executable, "-m", "pagefind", "--site", folder, "--output-path", out / "pagefind", "--quiet"]
        command += ["--force-language", "en", "--keep-index-url", "--exclude-selectors", ", ".join(LEFT_OUT)]
        subprocess.run(command, check=True)


def setup(app):
    """Index the pages once they are built."""
    app.connect("build-finished", write_index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
