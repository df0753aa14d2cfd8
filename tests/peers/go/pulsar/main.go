// The Go client of Pulsar on a broker. One line of JSON a scenario: what arrived, or what was answered.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/sirupsen/logrus"
)

var client pulsar.Client

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func told(scenario string, got []string) {
	line, err := json.Marshal(map[string]any{"scenario": scenario, "got": got})
	must(err)
	fmt.Println(string(line))
}

func within() context.Context {
	ctx, _ := context.WithTimeout(context.Background(), 20*time.Second) //nolint:govet
	return ctx
}

func produce(topic string, count int, options pulsar.ProducerOptions, key func(int) string) {
	options.Topic = topic
	producer, err := client.CreateProducer(options)
	must(err)
	defer producer.Close()
	for number := 0; number < count; number++ {
		message := &pulsar.ProducerMessage{Payload: []byte(fmt.Sprintf("%03d", number)), Properties: map[string]string{"n": "v"}}
		if key != nil {
			message.Key = key(number)
		}
		producer.SendAsync(within(), message, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { must(err) })
	}
	must(producer.FlushWithCtx(within()))
}

func subscribe(topic, name string, kind pulsar.SubscriptionType) pulsar.Consumer {
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{
		Topic: topic, SubscriptionName: name, Type: kind, NackRedeliveryDelay: 100 * time.Millisecond,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest, StartMessageIDInclusive: true,
	})
	must(err)
	return consumer
}

func take(consumer pulsar.Consumer, count int) []string {
	got := []string{}
	for len(got) < count {
		message, err := consumer.Receive(within())
		must(err)
		must(consumer.Ack(message))
		got = append(got, string(message.Payload()))
	}
	return got
}

func each(kind pulsar.SubscriptionType, name string) {
	topic := "go-" + name
	produce(topic, 50, pulsar.ProducerOptions{BatchingMaxMessages: 10}, func(number int) string { return fmt.Sprint(number % 5) })
	one, two := subscribe(topic, "sub", kind), pulsar.Consumer(nil)
	if kind != pulsar.Exclusive {
		two = subscribe(topic, "sub", kind)
	}
	got := make(chan string, 100)
	for _, consumer := range []pulsar.Consumer{one, two} {
		if consumer == nil {
			continue
		}
		go func() {
			for message := range consumer.Chan() {
				must(consumer.Ack(message.Message))
				got <- string(message.Payload())
			}
		}()
	}
	bodies := []string{}
	for len(bodies) < 50 {
		select {
		case body := <-got:
			bodies = append(bodies, body)
		case <-time.After(20 * time.Second):
			panic(fmt.Sprintf("%s: %d came", name, len(bodies)))
		}
	}
	sort.Strings(bodies)
	told(name, bodies)
	one.Close()
	if two != nil {
		two.Close()
	}
}

func redelivered() {
	produce("go-nacked", 2, pulsar.ProducerOptions{DisableBatching: true}, nil)
	consumer := subscribe("go-nacked", "sub", pulsar.Shared)
	defer consumer.Close()
	got := []string{}
	for len(got) < 4 {
		message, err := consumer.Receive(within())
		must(err)
		got = append(got, fmt.Sprintf("%s/%d", message.Payload(), message.RedeliveryCount()))
		if message.RedeliveryCount() == 0 {
			consumer.Nack(message)
		} else {
			must(consumer.Ack(message))
		}
	}
	sort.Strings(got)
	told("redelivered", got)
}

func sought() {
	produce("go-sought", 5, pulsar.ProducerOptions{DisableBatching: true}, nil)
	consumer := subscribe("go-sought", "sub", pulsar.Exclusive)
	defer consumer.Close()
	first, err := consumer.Receive(within())
	must(err)
	must(consumer.Ack(first))
	got := append([]string{string(first.Payload())}, take(consumer, 4)...)
	must(consumer.Seek(first.ID()))
	got = append(got, take(consumer, 5)...)
	must(consumer.SeekByTime(time.Now().Add(-time.Hour)))
	got = append(got, take(consumer, 5)...)
	told("sought", got)
	must(consumer.Unsubscribe())
}

func read() {
	reader, err := client.CreateReader(pulsar.ReaderOptions{Topic: "go-sought", StartMessageID: pulsar.EarliestMessageID()})
	must(err)
	defer reader.Close()
	got := []string{}
	for reader.HasNext() {
		message, err := reader.Next(within())
		must(err)
		got = append(got, string(message.Payload()))
	}
	told("read", got)
}

func compressed() {
	got := []string{}
	for name, kind := range map[string]pulsar.CompressionType{"lz4": pulsar.LZ4, "zlib": pulsar.ZLib, "zstd": pulsar.ZSTD} {
		topic := "go-" + name
		producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic, CompressionType: kind})
		must(err)
		_, err = producer.Send(within(), &pulsar.ProducerMessage{Payload: []byte(strings.Repeat(name, 1000))})
		must(err)
		consumer := subscribe(topic, "sub", pulsar.Exclusive)
		got = append(got, fmt.Sprint(name, " ", take(consumer, 1)[0] == strings.Repeat(name, 1000)))
		consumer.Close()
		producer.Close()
	}
	sort.Strings(got)
	told("compressed", got)
}

func main() {
	logger := logrus.New()
	logger.SetLevel(logrus.ErrorLevel)
	var err error
	client, err = pulsar.NewClient(pulsar.ClientOptions{URL: os.Args[1], Logger: log.NewLoggerWithLogrus(logger)})
	must(err)
	defer client.Close()
	each(pulsar.Exclusive, "exclusive")
	each(pulsar.Failover, "failover")
	each(pulsar.Shared, "shared")
	each(pulsar.KeyShared, "key-shared")
	redelivered()
	sought()
	read()
	compressed()
}
