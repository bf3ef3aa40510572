"""Are the Stan programs of the reference posteriors the PyMC models? Ask Stan once, and store what it says.

    python -m studies._check_stan FOLDER     FOLDER: PyPI's wheel of httpstan 4.13 (Linux), unpacked

Stan is no dependency of this book. The wheel holds its compiler and its headers; g++ makes a program of each model,
which prints log density, gradient and generated quantities at random positions. They become
tests/hbnn/reference/stan_check.json, and tests/hbnn/reference/test_posteriors.py compares PyMC with them.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from bookkit.repo import ROOT
from hbnn.reference import posteriors
from hbnn.reference.posteriors import CURVES, FLAT, FOLDER, HIERARCHICAL

from studies.reference import list_positions

N_POSITIONS = 3
PRINT = r"""
#include "model.hpp"
#include <stan/model/log_prob_grad.hpp>
#include <stan/io/json/json_data.hpp>
#include <stan/services/util/create_rng.hpp>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
int main(int argc, char** argv) {
  std::ifstream file(argv[1]);
  stan::json::json_data data(file);
  stan_model model(data, 1, &std::cerr);
  std::vector<std::string> all;
  model.constrained_param_names(all, true, true);
  for (auto& name : all) std::cout << name << " ";
  std::cout << "\n" << std::setprecision(17);
  auto rng = stan::services::util::create_rng(1, 0);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::stringstream text(line);
    std::vector<double> position, gradient, values;
    std::vector<int> none;
    for (double value; text >> value;) position.push_back(value);
    std::cout << stan::model::log_prob_grad<false, true>(model, position, none, gradient, &std::cerr);
    for (double value : gradient) std::cout << " " << value;
    std::cout << "\n";
    model.write_array(rng, position, none, values, true, true, &std::cerr);
    for (double value : values) std::cout << value << " ";
    std::cout << "\n";
  }
}
"""


def draw_position(name, seed):
    """A random position as Stan has it, scales as logarithms: dict of name to array."""
    rng = np.random.default_rng(seed)
    found = {key: 0.7 * rng.normal(size=shape) for key, shape in list_positions(name).items()}
    return {key.removeprefix("log_"): value for key, value in found.items()}


def build(program, wheel, folder):
    """Compile a Stan program. Returns the path of what prints its density."""
    include, made = wheel / "httpstan" / "include", folder / program.stem
    subprocess.run([wheel / "httpstan" / "stanc", f"--o={folder / 'model.hpp'}", program], check=True)
    (folder / "print.cpp").write_text(PRINT)
    libraries = wheel / "httpstan" / "lib"
    command = ["g++", "-std=c++17", "-O0", "-w", "-D_REENTRANT", "-DBOOST_DISABLE_ASSERTS", "-DSTAN_THREADS"]
    command += [f"-I{include}", f"-I{folder}", "-o", made, folder / "print.cpp", f"-L{libraries}", "-ltbb"]
    subprocess.run([*command, f"-Wl,-rpath,{libraries}"], check=True)
    return made


def place(name):
    """``w1.2.3`` as name and index."""
    key, *index = name.split(".")
    return key, tuple(int(i) - 1 for i in index)


def list_order(name):
    """Unknowns in the order of Stan's unconstrained vector: arrays element by element, a matrix column by column."""
    found = []
    for key, value in draw_position(name, 0).items():
        for g in np.ndindex(*value.shape[:1] if key.startswith("z") else ()):
            matrix = value.shape[len(g) :]
            found += [(key, (*g, *index[::-1])) for index in np.ndindex(*matrix[::-1])]
    return found


def ask(program, name):
    """What a compiled program says of a posterior at `N_POSITIONS` positions (list of dict)."""
    positions = [draw_position(name, seed) for seed in range(N_POSITIONS)]
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.json"
        given = posteriors.load_posterior(name).data
        data.write_text(json.dumps({key: value.tolist() for key, value in given.items()}))
        run = lambda lines: subprocess.run(  # noqa: E731
            [program, data], input=lines, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        order = list_order(name)
        said = run("".join(" ".join(f"{p[key][i]:.17g}" for key, i in order) + "\n" for p in positions))
    outputs, found = [place(word) for word in said[0].split()], []
    posterior = posteriors.load_posterior(name)
    for k, position in enumerate(positions):
        logp, *slope = map(float, said[1 + 2 * k].split())
        gradient = {key: np.empty(np.shape(value)) for key, value in position.items()}
        for (key, index), value in zip(order, slope, strict=True):
            gradient[key][index] = value
        values = {key: np.empty(shape) for key, shape in (posterior.unknowns | posterior.functionals).items()}
        for (key, index), value in zip(outputs, map(float, said[2 + 2 * k].split()), strict=True):
            if key in values:
                values[key][index] = value
        for key, value in position.items():  # the positions that we meant
            is_log = f"log_{key}" in list_positions(name)
            np.testing.assert_allclose(values[key], np.exp(value) if is_log else value, rtol=1e-12)
        logs = [key.removeprefix("log_") for key in list_positions(name) if key.startswith("log_")]
        found.append({
            "log_density": logp,
            "gradient": {f"log_{key}" if key in logs else key: round_all(value) for key, value in gradient.items()},
            "functionals": {key: round_all(values[key]) for key in posterior.functionals},
        })  # fmt: skip
    return found


def round_all(values):
    """Numbers as the record has them, to twelve digits: flat list, or a number."""
    return [float(f"{value:.12g}") for value in np.ravel(values)] if np.ndim(values) else float(f"{values:.12g}")


def main(wheel):
    """Build and ask all programs, and write the record."""
    record = {"stan": None, "posteriors": {}}
    record["stan"] = subprocess.run(
        [wheel / "httpstan" / "stanc", "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()
    for name in (FLAT, HIERARCHICAL, CURVES):
        program = FOLDER / "models" / "stan" / f"{name.split('-')[1]}.stan"
        with tempfile.TemporaryDirectory() as folder:
            found = ask(build(program, wheel, Path(folder)), name)
        digest = hashlib.sha256(program.read_bytes()).hexdigest()
        record["posteriors"][name] = {"program_sha256": digest, "positions": found}
    (ROOT / "tests" / "hbnn" / "reference" / "stan_check.json").write_text(json.dumps(record) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
