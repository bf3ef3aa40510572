"""PyMC in a kernel of the book's environment, and elsewhere."""

import os
import subprocess
import sys

import nbformat
import pymc as pm
import pytest
from bookkit import kernel
from nbclient import NotebookClient
from tools import chapters

CELL = """
import pymc as pm, logging, sys
with pm.Model() as model:
    x = pm.Normal("x", shape={unknowns})
    pm.Normal("y", x.sum(), observed=1.0)
tree = pm.sample(5, tune=5, random_seed=1, model=model)
with model:
    again = pm.sample(5, tune=5, random_seed=1, chains=4, cores=1)
    two = pm.sample(5, tune=5, chains=2)
    pm.sample_posterior_predictive(two, random_seed=1)
    approx = pm.fit(10, random_seed=1)
print(dict(tree.posterior.sizes)["chain"], two.posterior.sizes["chain"], "observed_data" in tree)
"""


@pytest.mark.parametrize(("unknowns", "n_kept"), [(3, 0), (kernel.LARGE + 1, 1)])
def test_a_kernel_makes_four_quiet_chains_and_keeps_those_of_a_large_model(tmp_path, unknowns, n_kept):
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL.format(unknowns=unknowns))])
    environ = chapters.kernel_environment() | {"BNN_CACHE": str(tmp_path / "kept")}
    NotebookClient(nb, timeout=300, kernel_name="python3").execute(env=environ)
    said = [output for output in nb.cells[0].outputs if "divergence" not in output.get("text", "")]
    assert [output.text for output in said] == ["4 2 True\n"]
    assert len(list(tmp_path.rglob("*.nc"))) == n_kept


def test_elsewhere_pymc_is_as_it_comes():
    ask = "import pymc as pm; print(pm.sample.__module__, hasattr(pm.fit, '__wrapped__'))"
    told = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True, env=os.environ)
    assert told.stdout.split() == ["pymc.sampling.mcmc", "False"]
    assert pm.sample is kernel.sample.__wrapped__
