# make demo    run the main job and show its figures (DEMO="--duration 3" hands on arguments)
# make test    check style and types, then run the tests (TEST="-k spline" hands on arguments)
#              by five workers (WORKERS=8 for more; TEST="-n 0 --pdb" in this process)
#              LOWEST=1: with the lowest versions that requirements admit of what the package itself needs
# make test-fast  mathematics and messages in a minute: neither processes nor what takes long
# make test-thorough  all tests, also the longest sweeps, and:
# make test-rounding  what is numerical, with the rounding of older processors
# make coverage  run the tests, and show which statements of hodyn_ros/ they do not reach
# make lint    style and types alone
# make build   only prepare
# make bench   measure speed (BENCH=--quick hands on arguments)
# make bench-ros  measure the node: latency, losses, memory (BENCH=--quick; 16 minutes without; --load: an hour)
# make long-run  everything at once under load: lost, late, memory, processors; an hour (LONG_RUN="--minutes 2 --realtime")
# make promises  measure all that docs/promises.md says: hours (PROMISES="--only accuracy"; --write-docs)
# make docs    build the documentation into out/docs
# make notebooks  run docs/notebooks, and write what they show into them
# make film    simulate the film of the first page anew, and write it to docs/pictures
# make clean   remove all that make has made
#
# Everything is prepared in .venv, each step once and again only when its inputs have changed. Where a ROS 2 is sourced,
# it is used; elsewhere ROS 2 comes from PyPI. Another interpreter: `make test PYTHON=python3.12`.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := build
.PHONY: build lint test test-fast test-thorough test-rounding coverage demo bench bench-ros long-run promises docs notebooks film clean FORCE

PYTHON ?= python3
DEMO ?=
TEST ?=
WORKERS ?= 5
LOWEST ?=
BENCH ?=
LONG_RUN ?=
PROMISES ?=

VENV := $(CURDIR)/.venv
python := $(VENV)/bin/python
state := .venv/state

# The interpreter behind PYTHON; behind an activated .venv the one that .venv was made with.
base_python := $(shell "$(PYTHON)" -c 'import sys; print(sys._base_executable)')
python_version := $(shell "$(PYTHON)" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
ifeq ($(python_version),)
  $(error no Python 3 at "$(PYTHON)": install Python 3.10 to 3.13, or name one, e.g. make PYTHON=python3.12)
endif

# An activated .venv shows rclpy without ROS_DISTRO; a sourced ROS 2 shows both.
ros := $(if $(ROS_DISTRO),$(if $(AMENT_PREFIX_PATH),$(shell "$(base_python)" -c 'import rclpy; print("yes")' 2>/dev/null)))

export PATH := $(VENV)/bin:$(PATH)
# Python keeps what it has compiled, also where the environment says otherwise: tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE
ifeq ($(ros),yes)
  flavour := $(ROS_DISTRO)-python$(python_version)
  venv_flags := --system-site-packages
  # The system's Python modules serve ROS. What hodyn_ros itself needs comes from PyPI all the same, so that one set of
  # versions holds everywhere; the messages of ROS do not mind another NumPy than the one they were compiled with.
  pip_flags := --ignore-installed --no-warn-conflicts
  build_requirements := -r requirements/build.txt
  cmake_arg := -DHODYN_ENVIRONMENT=$(VENV)/setup.sh
  export AMENT_PREFIX_PATH := $(VENV):$(AMENT_PREFIX_PATH)
  export LD_LIBRARY_PATH := $(VENV)/lib:$(LD_LIBRARY_PATH)
else
  ifneq ($(ROS_DISTRO),)
    $(info note: $(base_python) cannot import the rclpy of ROS 2 $(ROS_DISTRO); taking ROS 2 from PyPI)
  endif
  flavour := pypi-python$(python_version)
  venv_flags :=
  pip_flags :=
  build_requirements := -r requirements/build.txt -r requirements/ros.txt
  cmake_arg := -DCMAKE_PROJECT_INCLUDE=$(CURDIR)/cmake/wheel_include_paths.cmake
  export AMENT_PREFIX_PATH := $(VENV)
  export CMAKE_PREFIX_PATH := $(VENV)
  # Another ROS or Python environment, half of it sourced, must not leak in. The last of these is the mark by which the
  # wheels know that LD_LIBRARY_PATH has been set for their .venv.
  unexport PYTHONPATH PYTHONHOME LD_LIBRARY_PATH _ROS_WHEELS_BOOTSTRAP_COMPLETE
endif

# --- the virtual environment: made anew for another Python, another ROS, or when this folder has moved
venv_state := $(state)/venv-$(flavour)$(if $(LOWEST),-lowest)
moved := $(shell test "$$(cat $(venv_state) 2>/dev/null)" = "$(CURDIR)" || echo FORCE)

$(venv_state): $(moved) $(if $(LOWEST),$(wildcard requirements/*.txt))
	@echo "==> virtual environment .venv ($(flavour))"
	@"$(base_python)" tools/check_machine.py $(if $(ros),--ros)
	@"$(base_python)" -m venv --clear $(venv_flags) .venv
	@mkdir -p $(state) && echo "$(CURDIR)" > $@

# --- packages from PyPI; what is imported of them is compiled then, the rest, a third of this time, never
pip_install := "$(python)" -m pip install --quiet --disable-pip-version-check --use-pep517 --no-compile

$(state)/packages: $(venv_state) $(wildcard requirements/*.txt)
	@echo "==> packages from PyPI into .venv (the first time about a minute)"
	@$(pip_install) $(pip_flags) $(foreach part,runtime plots bags test,-r requirements/$(part).txt)
	@$(pip_install) $(build_requirements) $$(tools/cmake_requirement)
	@# in the place of the newest ones: to find a set that suits all libraries of the tests takes pip an hour
	@$(if $(LOWEST),$(pip_install) --no-warn-conflicts -r <(tools/lowest_versions))
	@touch $@

$(state)/bench-packages: $(state)/packages
	@echo "==> packages for the benchmarks from PyPI"
	@$(pip_install) -r requirements/bench.txt
	@touch $@

$(state)/docs-packages: $(state)/packages
	@echo "==> packages for the documentation from PyPI"
	@$(pip_install) -r requirements/docs.txt
	@touch $@

# --- messages and package, by colcon. The list of files makes a deleted file count as a change.
sources := package.xml CMakeLists.txt $(sort $(shell find hodyn_ros msg srv action config launch cmake ros2_control moveit -type f -not -name '*.pyc'))

$(state)/sources: FORCE | $(venv_state)
	@echo '$(sources)' | cmp -s - $@ || echo '$(sources)' > $@

# Symbolic links, so that an edited file counts at once, without a build.
colcon = "$(python)" -m colcon --log-base $(state)/log build --base-paths . --build-base $(state)/build \
    --merge-install --install-base .venv --symlink-install --cmake-args \
    -DBUILD_TESTING=OFF "-DPython3_EXECUTABLE=$(python)" "-DHODYN_PYTHON=$(python)" "$(cmake_arg)"

$(state)/built: $(state)/packages $(state)/sources $(sources)
	@echo "==> messages and package into .venv (colcon, about 15 seconds)"
	@flock $(state) $(colcon) > $(state)/colcon.log 2>&1 || { cat $(state)/colcon.log >&2; exit 1; }
	@# links to files that have moved stay, and would be taken for modules
	@find .venv/lib/python*/site-packages/hodyn_ros .venv/share/hodyn_ros -xtype l -delete
	@touch $@

# --- what people ask for
build: $(state)/built

lint: $(state)/packages
	@echo "==> style and types (ruff, mypy)"
	@"$(python)" -m ruff check --quiet --output-format concise .
	@"$(python)" -m ruff format --check --quiet .
	@if "$(python)" -c 'import numpy as np; raise SystemExit(np.lib.NumpyVersion(np.__version__) < "2.3.0")'; \
	then "$(python)" -m mypy; \
	else echo "types not checked: NumPy before 2.3, the last for Python 3.10, describes shapes in another way"; fi

# A worker takes the groups of test/conftest.py; the last ones compute beside those that start processes
# (test/helpers/worker_scheduling.py). After a crash of a worker the run ends: with another one in its place,
# pytest-xdist 3.8 waits for ever for the last tests.
workers = -n $(WORKERS) --dist loadgroup --no-loadscope-reorder --max-worker-restart 0

# Types are checked beside the first tests: those in real time come later.
test: $(state)/built
	@echo "==> tests (pytest)"
	@nice $(MAKE) --no-print-directory --silent lint & lint=$$!; \
	trap "kill $$lint 2>/dev/null || true" EXIT; \
	status=0; "$(python)" -m pytest $(workers) $(TEST) || status=$$?; \
	wait $$lint || { echo "==> style or types are wrong, see above the tests" >&2; exit 1; }; \
	exit $$status

test-thorough: export HODYN_TEST := thorough
test-thorough: test test-rounding

# What is numerical once more with the rounding of processors before AVX-512, and before fused operations: code of ours,
# of OpenBLAS, and of NumPy, which gives what it leaves out other names from version to version. On ARM all processors fuse.
numerical := $(addprefix test/,actuation codegen control dynamics engine feedforward formulations identification lie \
    model planning simulation trajectory)
avx512 := X86_V4 AVX512_ICL AVX512_SPR AVX512F AVX512CD AVX512_SKX
test-rounding: $(state)/built
	@rounded_as() { \
	    echo "==> numerical tests, rounded as on $$1 (pytest)"; \
	    HODYN_PROCESSOR=$$1 OPENBLAS_CORETYPE=$$2 NPY_DISABLE_CPU_FEATURES="$$3" \
	        "$(python)" -m pytest $(subst -n $(WORKERS),-n 2,$(workers)) -m "not processes" $(numerical) $(TEST); \
	}; \
	if [ "$$(uname -m)" = x86_64 ]; then \
	    rounded_as x86-64-v3 Haswell "$(avx512)"; \
	    rounded_as x86-64-v2 Nehalem "$(avx512) X86_V3 AVX2 FMA3"; \
	elif [ "$$(uname -m)" = aarch64 ]; then \
	    rounded_as armv8-a ARMV8 ""; \
	else \
	    echo "no older processors are known of $$(uname -m)" >&2; exit 1; \
	fi

# All of them compute: more workers would only read the tests once more.
test-fast: WORKERS := 2
test-fast: $(state)/built
	@echo "==> tests without those that start processes (nodes, command line, examples) or take seconds (thorough)"
	@"$(python)" -m pytest $(workers) -m "not processes and not thorough" $(TEST)

coverage: $(state)/built
	@echo "==> tests, with the statements that they and their processes reach"
	@rm -rf out/coverage && mkdir -p out/coverage
	@"$(python)" -m coverage run --data-file=$(CURDIR)/out/coverage/data -m pytest $(workers) $(TEST)
	@"$(python)" -m coverage combine --quiet --data-file=out/coverage/data out/coverage
	@"$(python)" -m coverage report --data-file=out/coverage/data | tee out/coverage/report.txt

demo: $(state)/built
	@echo "==> demo"
	@.venv/bin/hodyn demo $(DEMO)

bench: $(state)/built $(state)/bench-packages
	@echo "==> benchmarks"
	@"$(python)" -m benchmarks $(BENCH)

bench-ros: $(state)/built
	@echo "==> benchmark of the node"
	@"$(python)" -m benchmarks.ros $(BENCH)

long-run: $(state)/built
	@echo "==> everything at once"
	@"$(python)" -m benchmarks.ros.long_run $(LONG_RUN)

promises: $(state)/built $(state)/bench-packages
	@echo "==> promises"
	@"$(python)" -m benchmarks.promises $(PROMISES)

# Made anew each time, so that every warning is seen; any of them is an error.
docs: $(state)/built $(state)/docs-packages
	@echo "==> documentation (Sphinx)"
	@"$(python)" -m sphinx --builder html --fresh-env --doctree-dir out/docs-cache --quiet --fail-on-warning --keep-going \
	    docs out/docs
	@echo "documentation: out/docs/index.html"

notebooks: $(state)/built
	@"$(python)" tools/notebooks.py

film: $(state)/built
	@"$(python)" examples/film.py --out docs/pictures

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis out
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
