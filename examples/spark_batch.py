"""Read a RocketMQ topic into a frame, look at it with SQL, and write what was found to Pulsar.

python examples/spark_batch.py        a broker in the box; needs a JDK and mqclient[spark]
"""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

import mqclient.spark
from mqclient import pulsar, rocketmq
from mqclient.broker import EmbeddedBroker


def session() -> SparkSession:
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.ui.showConsoleProgress", "false")
    # Workers talk over Unix sockets: a task costs a third of what it costs over TCP.
    spark = builder.config("spark.python.unix.domain.socket.enabled", "true").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    mqclient.spark.register(spark)
    return spark


def main(broker: EmbeddedBroker) -> None:
    with rocketmq.Client(broker.name_server) as client:
        with client.admin() as admin:
            admin.create_topic("orders", queues=2)
        with client.producer("shop") as producer:
            tags = ("paid", "void")
            messages = [rocketmq.Message("orders", b"%d" % number, tag=tags[number % 2]) for number in range(1000)]
            producer.send_many(messages, raise_on_error=True)

    spark = session()
    orders = spark.read.format("mq-rocketmq").option("nameServer", broker.name_server).load("orders")
    orders.createOrReplaceTempView("orders")
    found = spark.sql(
        "select tag, count(*) as orders, max(cast(cast(value as string) as int)) as last from orders group by tag"
    )
    found.orderBy("tag").show()

    rows = found.selectExpr("tag as key", "to_json(struct(*)) as value")
    rows.write.format("mq-pulsar").options(serviceUrl=broker.pulsar_url, topic="found").mode("append").save()
    with pulsar.Client(broker.pulsar_url) as client, client.reader("found", start="earliest") as reader:
        for message in sorted(reader.receive_many(10, timeout=5), key=lambda message: message.body):
            print(message.key, message.body.decode())
    spark.stop()


if __name__ == "__main__":
    with EmbeddedBroker() as embedded:
        main(embedded)
