# The two commands are `make figures` and `make test`. Both first build .venv, from nothing but
# Python 3.11 to 3.13 and its pip, when it is missing or requirements.lock has changed.

PYTHON ?= python3#   the Python that .venv is made with: 3.11, 3.12 or 3.13
STUDY ?= thesis#     one or more of config/studies, or all
CORES ?= all#        how many cores a run may use
PROFILE ?=#          a cluster's profile: slurm, generic
SPHINX ?=#           further options of `make docs`
UV ?= uv#            only `make lock` needs it

# The stamps carry checksums, not times: another commit's lock or project file is noticed after any
# checkout, and the same one again is not.
ENVIRONMENT := .venv/.environment-$(shell cksum requirements.lock | cut -d ' ' -f 1)
PROJECT := .venv/.project-$(shell cksum pyproject.toml | cut -d ' ' -f 1)

CLUSTER := .venv/.cluster-$(shell cksum requirements-cluster.lock | cut -d ' ' -f 1)
SITE := .venv/.docs-$(shell cksum requirements-docs.lock | cut -d ' ' -f 1)

VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' src/dpmc/common/version.py)

# What `make tune` has made of the studies.
searched = $(foreach study,$(STUDY),$(wildcard results/$(study)/tuned.yaml figures/$(study)/search/lessons.png))

# Modules are compiled when they are first imported: compiling all of them at once takes half a minute.
# If an environment forbids to keep them (images of containers often do), each process compiles them again, 3 s.
unexport PYTHONDONTWRITEBYTECODE

# Wheels only, so that no compiler is needed. The one exception is pure Python and published as a
# source archive alone.
WHEELS := --only-binary :all: --no-binary connection-pool

.PHONY: help install cluster figures tune smoke report gallery check-gallery quotes docs release benchmarks test coverage slow test-slurm lint lock clean

help: ## this list
	@echo "make figures [STUDY=thesis] [CORES=all] [PROFILE=slurm]"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s  %s\n", $$1, $$2 }' Makefile

install: $(PROJECT) ## the environment, .venv (every other target does this first)

cluster: $(CLUSTER) ## what a cluster needs besides: Snakemake's plugins for Slurm and for other schedulers

figures: $(PROJECT) $(if $(PROFILE),$(CLUSTER)) ## every figure of a study, from scratch or from where a run was stopped
	.venv/bin/python workflow/run.py --cores $(CORES) $(if $(PROFILE),--profile $(PROFILE)) $(STUDY)

tune: $(PROJECT) $(if $(PROFILE),$(CLUSTER)) ## hyperparameters of a study by search: results/<study>/tuned.yaml
	.venv/bin/python workflow/run.py --tune --cores $(CORES) $(if $(PROFILE),--profile $(PROFILE)) $(STUDY)

smoke: ## a small study from data to figures
	$(MAKE) figures STUDY=smoke

report: figures ## report.html: figures, searches if there were any, settings and run times of a study
	STUDY="$(STUDY)" .venv/bin/python -m snakemake --cores 1 --report report.html \
	    --report-metadata workflow/report/metadata.yaml -- $(STUDY) $(searched)

gallery: figures ## docs/gallery/<study>: the figures of a study as PNG, its tables, settings found by search; pages in docs/results
	for study in $(STUDY); do \
	    mkdir -p docs/gallery/$$study && cp $$(find figures/$$study -name '*.png' \
	        -not -path '*/search/*' -o -name lessons.png) \
	        $$(ls figures/$$study/*.md figures/$$study/*.csv results/$$study/*table.csv \
	        results/$$study/tuned.yaml 2> /dev/null) docs/gallery/$$study/; \
	    [ ! -f figures/$$study/z-scores.png ] || cp results/$$study/published_comparison.csv docs/gallery/$$study/; \
	    git rev-parse --short HEAD > docs/gallery/$$study/commit.txt; done
	.venv/bin/python docs/tools/gallery_pages.py

check-gallery: $(PROJECT) ## is docs/gallery/<study> of the results that are here? stale files are named
	.venv/bin/python docs/tools/check_gallery.py $(STUDY)

quotes: $(PROJECT) ## numbers that the pages in docs quote, against results/; studies without results are skipped
	.venv/bin/python docs/tools/quotes.py $$(find docs -name '*.md' -not -path 'docs/_build/*')

# The kernel that runs examples finds `dpmc` on the PATH. `make docs SPHINX="-D nb_execution_mode=off"` runs none.
docs: $(SITE) ## the site, docs/_build/html: examples are run, warnings are errors
	PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/python -m sphinx --builder html --fail-on-warning --keep-going \
	    --quiet --fresh-env --jobs auto $(SPHINX) docs docs/_build/html

# The tag is the version, as in v0.1.0.
release: $(SITE) ## of a tagged commit: wheel and source archive in dist, the site as an archive in docs/_build
	git tag --points-at HEAD | grep --quiet --fixed-strings --line-regexp v$(VERSION) || { \
	    echo "make release: no tag v$(VERSION) at this commit" >&2; exit 1; }
	rm -rf dist docs/_build
	.venv/bin/python -m hatchling build
	$(MAKE) docs
	tar --directory docs/_build --create --gzip --file docs/_build/dpmc-$(VERSION)-site.tar.gz html

benchmarks: $(PROJECT) ## the tables and the figure of docs/explanation/performance.md, ten minutes; wants a quiet machine
	for question in kernels growth mmd agreement speed_up; do .venv/bin/python benchmarks/$$question.py; done

test: $(PROJECT) ## the tests, on all cores
	.venv/bin/python -m pytest -n auto -m "not slow"

coverage: $(PROJECT) ## the same tests, and the lines of src that none of them reaches
	.venv/bin/python -m pytest -n auto -m "not slow" --cov --cov-report=term-missing

slow: $(PROJECT) ## the slow tests: the ladder on twenty further seeds, 2,000 mutated inputs, costly checks of samplers and accountants
	.venv/bin/python -m pytest -n auto -m slow

test-slurm: $(CLUSTER) ## the workflow on a real Slurm, which it installs (Debian, root) and starts, minutes
	.venv/bin/python -m pytest -v --durations 0 tests/cluster/on_slurm.py

lint: $(PROJECT) ## style, format and types, and Snakemake's lint of the rules
	.venv/bin/python -m ruff check .
	.venv/bin/python -m ruff format --check .
	.venv/bin/snakefmt --check Snakefile workflow
	.venv/bin/python -m snakemake --lint
	.venv/bin/python -m mypy

# --universal with the lowest Python: one lock for every platform and Python from 3.11. Versions
# that are in the lock stay; to raise one, remove its lines from requirements.lock first.
lock: ## requirements*.lock anew, after a change of pyproject.toml (needs uv)
	@command -v $(firstword $(UV)) > /dev/null || { echo "make lock: no $(firstword $(UV)) found" >&2; exit 1; }
	$(UV) pip compile --quiet --universal --python-version 3.11 --extra workflow --extra dev \
	    $(WHEELS) --generate-hashes --no-strip-extras \
	    --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	    --output-file requirements.lock pyproject.toml
	for extra in cluster docs; do \
	    $(UV) pip compile --quiet --universal --python-version 3.11 --extra $$extra \
	        $(WHEELS) --generate-hashes --no-strip-extras --constraint requirements.lock \
	        $$(sed -nE 's/^([a-z][a-z0-9._-]*)(\[[a-z,]*\])?==.*/--no-emit-package \1/p' requirements.lock) \
	        --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	        --output-file requirements-$$extra.lock pyproject.toml || exit 1; \
	    sed -i.old '/^# The following packages were excluded/,$$d' requirements-$$extra.lock && \
	        rm requirements-$$extra.lock.old; done

clean: ## remove .venv, report.html and the tools' caches; data, chains and figures stay
	rm -rf .venv report.html docs/_build .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
	find src tests workflow benchmarks docs/tools -type d -name __pycache__ -prune -exec rm -rf {} +

# Python 3.14 is kept out by Snakemake's dependency immutables, which has no wheel for it yet.
$(ENVIRONMENT):
	@"$(PYTHON)" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || { \
	    echo "make: $(PYTHON) is not Python 3.11, 3.12 or 3.13; name one that is: make PYTHON=python3.12 ..." >&2; \
	    exit 1; }
	"$(PYTHON)" -m venv --clear .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
	    --no-compile $(WHEELS) --requirement requirements.lock
	@touch $@

# Whatever else these need is in the first lock, at the same versions.
$(CLUSTER) $(SITE): .venv/.%: $(PROJECT)
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
	    $(WHEELS) --requirement requirements-$(firstword $(subst -, ,$*)).lock
	@touch $@

$(PROJECT): $(ENVIRONMENT)
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
	    --no-build-isolation --editable .
	@touch $@
