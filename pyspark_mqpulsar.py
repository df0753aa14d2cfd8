"""Has Spark discover the format "mq-pulsar", as `pyspark_mqrocketmq` does for the other: one of them each module."""

from __future__ import annotations

from typing import ClassVar

__all__ = ["DefaultSource"]

try:
    from pyspark_mqrocketmq import DefaultSource as Rocketmq
except ImportError:  # it has told why
    __all__.clear()
else:

    class DefaultSource(Rocketmq):
        """Stands for the format until it is wanted."""

        format: ClassVar[str] = "mq-pulsar"
        stands_for: ClassVar[str] = "PulsarFormat"
