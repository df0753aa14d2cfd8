// The Go client of RocketMQ on a broker: every way to send, every way to consume. One line of JSON a scenario.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

const topic = "GoTopic"

var resolver primitive.NsResolver

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

// inbox collects bodies and is done when so many are there.
type inbox struct {
	sync.Mutex
	bodies []string
	wanted int
	done   chan struct{}
}

func newInbox(wanted int) *inbox { return &inbox{wanted: wanted, done: make(chan struct{})} }

func (i *inbox) put(body string) {
	i.Lock()
	defer i.Unlock()
	i.bodies = append(i.bodies, body)
	if len(i.bodies) == i.wanted {
		close(i.done)
	}
}

func (i *inbox) wait(sorted bool) []string {
	select {
	case <-i.done:
	case <-time.After(60 * time.Second):
	}
	i.Lock()
	defer i.Unlock()
	got := append([]string{}, i.bodies...)
	if sorted {
		sort.Strings(got)
	}
	return got
}

func consume(group, on, expression string, box *inbox, retried *bool, options ...consumer.Option) rocketmq.PushConsumer {
	options = append(options, consumer.WithGroupName(group), consumer.WithInstance(group), consumer.WithNsResolver(resolver),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	pusher, err := rocketmq.NewPushConsumer(options...)
	must(err)
	selector := consumer.MessageSelector{Type: consumer.TAG, Expression: expression}
	must(pusher.Subscribe(on, selector, func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, message := range messages {
			if retried != nil && message.ReconsumeTimes == 0 && string(message.Body) == "one-0" {
				*retried = true
				return consumer.ConsumeRetryLater, nil
			}
			box.put(string(message.Body))
		}
		return consumer.ConsumeSuccess, nil
	}))
	must(pusher.Start())
	return pusher
}

func send() {
	sender, err := rocketmq.NewProducer(producer.WithGroupName("go-producer"), producer.WithNsResolver(resolver))
	must(err)
	must(sender.Start())
	ctx := context.Background()
	sent := []string{}
	for number := 0; number < 6; number++ {
		message := primitive.NewMessage(topic, []byte(fmt.Sprintf("one-%d", number))).WithTag("a").WithKeys([]string{"k"})
		result, err := sender.SendSync(ctx, message)
		must(err)
		if result.Status == primitive.SendOK && result.MsgID != "" {
			sent = append(sent, string(message.Body))
		}
	}
	batch := []*primitive.Message{}
	for number := 0; number < 3; number++ {
		batch = append(batch, primitive.NewMessage(topic, []byte(fmt.Sprintf("batch-%d", number))).WithTag("a"))
	}
	result, err := sender.SendSync(ctx, batch...)
	must(err)
	sent = append(sent, fmt.Sprint(result.Status == primitive.SendOK))
	answered := make(chan string, 1)
	must(sender.SendAsync(ctx, func(_ context.Context, result *primitive.SendResult, err error) {
		must(err)
		answered <- fmt.Sprint(result.Status == primitive.SendOK)
	}, primitive.NewMessage(topic, []byte("async")).WithTag("a")))
	sent = append(sent, <-answered)
	must(sender.SendOneWay(ctx, primitive.NewMessage(topic, []byte("one way")).WithTag("a")))
	delayed := primitive.NewMessage(topic, []byte("delayed")).WithTag("a").WithDelayTimeLevel(1)
	_, err = sender.SendSync(ctx, delayed)
	must(err)
	_, err = sender.SendSync(ctx, primitive.NewMessage(topic, []byte("other tag")).WithTag("b"))
	must(err)
	told("send", sent)
	must(sender.Shutdown())
	keyed, err := rocketmq.NewProducer(producer.WithGroupName("go-keyed"), producer.WithNsResolver(resolver),
		producer.WithInstanceName("keyed"), producer.WithQueueSelector(producer.NewHashQueueSelector()))
	must(err)
	must(keyed.Start())
	for number := 0; number < 8; number++ {
		message := primitive.NewMessage("GoOrdered", []byte(fmt.Sprintf("%d", number))).WithShardingKey("same")
		_, err := keyed.SendSync(ctx, message)
		must(err)
	}
	must(keyed.Shutdown())
}

// decider commits what is called so, rolls back what is called so, and is asked about the rest.
type decider struct{}

func (decider) ExecuteLocalTransaction(message *primitive.Message) primitive.LocalTransactionState {
	switch string(message.Body) {
	case "commit":
		return primitive.CommitMessageState
	case "rollback":
		return primitive.RollbackMessageState
	}
	return primitive.UnknowState
}

func (decider) CheckLocalTransaction(message *primitive.MessageExt) primitive.LocalTransactionState {
	return primitive.CommitMessageState
}

func transactions() {
	sender, err := rocketmq.NewTransactionProducer(decider{}, producer.WithGroupName("go-deciders"), producer.WithNsResolver(resolver),
		producer.WithInstanceName("deciders"))
	must(err)
	must(sender.Start())
	for _, body := range []string{"commit", "rollback", "check"} {
		_, err := sender.SendMessageInTransaction(context.Background(), primitive.NewMessage("GoDecided", []byte(body)))
		must(err)
	}
	box := newInbox(2)
	pusher := consume("go-decided", "GoDecided", "*", box, nil)
	told("transactions", box.wait(true))
	must(pusher.Shutdown())
	must(sender.Shutdown())
}

func main() {
	rlog.SetLogLevel("error")
	names := os.Args[1]
	resolver = primitive.NewPassthroughResolver([]string{names})
	manager, err := admin.NewAdmin(admin.WithResolver(resolver))
	must(err)
	for _, one := range []string{topic, "GoOrdered", "GoDecided"} {
		must(manager.CreateTopic(context.Background(), admin.WithTopicCreate(one), admin.WithBrokerAddrCreate(os.Args[2])))
	}
	topics, err := manager.FetchAllTopicList(context.Background())
	must(err)
	found := []string{}
	for _, one := range topics.TopicList {
		if one == topic {
			found = append(found, one)
		}
	}
	told("admin", found)
	send()
	retried := false
	clustering, loud, ordered := newInbox(12), newInbox(13), newInbox(8)
	pushers := []rocketmq.PushConsumer{
		consume("go-clustering", topic, "a", clustering, &retried),
		consume("go-loud", topic, "*", loud, nil, consumer.WithConsumerModel(consumer.BroadCasting)),
		consume("go-ordered", "GoOrdered", "*", ordered, nil, consumer.WithConsumerOrder(true)),
	}
	told("clustering", clustering.wait(true))
	told("retried", []string{fmt.Sprint(retried)})
	told("broadcasting", loud.wait(true))
	told("orderly", ordered.wait(false))
	if len(os.Args) > 3 {
		transactions()
	}
	for _, pusher := range pushers {
		must(pusher.Shutdown())
	}
}
