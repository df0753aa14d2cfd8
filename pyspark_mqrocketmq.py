"""Has Spark discover the format "mq-rocketmq": it imports all modules called pyspark_… for their DefaultSource.

One module that cannot be imported would take all other discovered sources away with it, so nothing here may fail, and
nothing of mqclient is imported before somebody asks for the format.
"""

from __future__ import annotations

import logging
from typing import Any, ClassVar

__all__ = ["DefaultSource"]

try:
    from pyspark.sql.datasource import DataSource
except Exception as error:  # an older or a broken PySpark: without the name Spark passes this module over
    logging.getLogger("mqclient.spark").warning("formats mq-rocketmq and mq-pulsar are not there: %s", error)
    __all__.clear()
else:

    class DefaultSource(DataSource):
        """Stands for the format until it is wanted."""

        format: ClassVar[str] = "mq-rocketmq"
        stands_for: ClassVar[str] = "RocketmqFormat"

        @classmethod
        def name(cls) -> str:
            return cls.format

        def __new__(cls, options: dict[str, str]) -> Any:
            from mqclient.spark import formats

            return getattr(formats, cls.stands_for)(options)
