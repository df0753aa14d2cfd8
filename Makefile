# Each target sets up by itself what it needs: .venv, dependencies with progress, the built extensions.
# PYTHON=python3.12 make test    chooses the interpreter for a new .venv (else the newest one that works)
# MQCLIENT_PURE=1 make test      no C compiler: everything runs on the pure-Python modules

VENV := .venv
PY := $(VENV)/bin/python
SOURCES := setup.py $(wildcard _native/*.pyx _native/*/*.pxi _native/*/*.pxd _native/*/*.h)
ifeq ($(MQCLIENT_PURE),1)
export MQCLIENT_IMPL ?= pure
endif

# Without bytecode each process of the tests compiles all anew: 482 s for 311.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo demo-spark test check real soak bench sanitize wheels clean
help:
	@echo "make demo      the product at work, live, ends by itself"
	@echo "make demo-spark RocketMQ -> Spark -> Pulsar, live (needs a JDK)"
	@echo "make test      the test suite, with lints, types and architecture checks"
	@echo "make check     lints, types and architecture checks only"
	@echo "make real      against real brokers (needs a JDK and Maven)"
	@echo "make soak      the suite with full counts (hours)"
	@echo "make bench     measures native, pure and the floor in C"
	@echo "make sanitize  vectors, cuts and fuzz corpora under ASan and UBSan"
	@echo "make wheels    a wheel for each Python found, checked"

$(VENV)/.demo: pyproject.toml
	@.ci/setup cli
	@touch $@ $(VENV)/.built

$(VENV)/.dev: pyproject.toml
	@.ci/setup dev
	@touch $@ $(VENV)/.demo $(VENV)/.built

# after the first installation a change in a source rebuilds in place just what includes it
$(VENV)/.built: $(SOURCES)
	@.ci/build
	@touch $@

demo: $(VENV)/.demo $(VENV)/.built
	@$(PY) -m mqclient.cli demo

$(VENV)/.spark: pyproject.toml
	@.ci/setup spark
	@touch $@ $(VENV)/.built

demo-spark: $(VENV)/.spark $(VENV)/.built
	@$(PY) examples/spark_pipeline.py

test: $(VENV)/.dev $(VENV)/.built
	@$(PY) -m pytest -n 6 --dist loadgroup tests

check: $(VENV)/.dev $(VENV)/.built
	@$(PY) -m pytest -n 2 tests/arch

real: $(VENV)/.dev $(VENV)/.built
	@$(PY) -m pytest -m real --scale=ci --real=rocketmq,pulsar tests/real tests/api tests/differential

soak: $(VENV)/.dev $(VENV)/.built
	@$(PY) -m pytest --scale=soak --timeout=0 tests

bench: $(VENV)/.dev $(VENV)/.built
	@$(PY) -m benchmarks.run

sanitize: $(VENV)/.dev
	@.ci/sanitize

wheels: $(VENV)/.dev
	@$(PY) wheels/build.py

clean:
	rm -rf build dist mqclient/_native/*.so _native/*.c
