"""The modules by which Spark discovers the formats: light to import, and never a danger to other sources."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from tests.support.tree import ROOT

SHIMS = {"pyspark_mqrocketmq": "mq-rocketmq", "pyspark_mqpulsar": "mq-pulsar"}


def said(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("module", SHIMS)
def test_as_spark_looks_for_it(module: str) -> None:
    datasource = pytest.importorskip("pyspark.sql.datasource", reason="pyspark is not installed")
    source = import_module(module).DefaultSource
    assert issubclass(source, datasource.DataSource)
    assert source.name() == SHIMS[module]
    given = {"nameServer": "a:1"} if "rocketmq" in module else {"serviceUrl": "pulsar://a:1"}
    assert source(options={**given, "topic": "t"}).schema().startswith("key binary, value binary")


def test_importing_them_imports_nothing_of_ours() -> None:
    pytest.importorskip("pyspark.sql.datasource", reason="pyspark is not installed")
    listed = "print([name for name in sys.modules if name.startswith('mqclient')])"
    assert said(f"import sys, {', '.join(SHIMS)}; {listed}").strip() == "[]"


def test_without_a_pyspark_that_has_sources_they_say_so_and_have_none() -> None:
    program = "import sys; sys.modules['pyspark.sql.datasource'] = None\n"
    program += "".join(f"import {module}\nassert not hasattr({module}, 'DefaultSource')\n" for module in SHIMS)
    assert "formats mq-rocketmq and mq-pulsar are not there" in said(program)
