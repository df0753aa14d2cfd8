import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;

/** Sends in every way and consumes in every way; prints one line of name=count pairs. */
public class GenuineClient {
    static final String TOPIC = "JavaTopic";
    static final int SENT = 18;

    public static void main(String[] arguments) throws Exception {
        Thread.currentThread().setUncaughtExceptionHandler((thread, error) -> {
            error.printStackTrace();
            Runtime.getRuntime().halt(1); // the client's threads would go on for ever
        });
        String names = arguments[0];
        DefaultMQProducer producer = new DefaultMQProducer("java-producer");
        producer.setNamesrvAddr(names);
        producer.start();
        int sent = send(producer);
        AtomicInteger push = new AtomicInteger();
        AtomicInteger retried = new AtomicInteger();
        AtomicInteger orderly = new AtomicInteger();
        AtomicInteger broadcast = new AtomicInteger();
        DefaultMQPushConsumer pusher = consumer(names, "java-push", "TagA || TagB");
        pusher.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            if (messages.get(0).getReconsumeTimes() == 0 && messages.get(0).getQueueOffset() == 0) {
                context.setDelayLevelWhenNextConsume(1);
                retried.incrementAndGet();
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }
            push.addAndGet(messages.size());
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        pusher.start();
        DefaultMQPushConsumer orderer = consumer(names, "java-orderly", "*");
        orderer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            orderly.addAndGet(messages.size());
            return ConsumeOrderlyStatus.SUCCESS;
        });
        orderer.start();
        DefaultMQPushConsumer listener = consumer(names, "java-broadcast", "*");
        listener.setMessageModel(MessageModel.BROADCASTING);
        listener.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            broadcast.addAndGet(messages.size());
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        listener.start();
        DefaultLitePullConsumer puller = new DefaultLitePullConsumer("java-lite");
        puller.setNamesrvAddr(names);
        puller.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        puller.subscribe(TOPIC, "*");
        puller.start();
        int lite = 0;
        // The route of a retry topic that the first heartbeat made is seen with the refresh after 30 s, as on any broker.
        long until = System.currentTimeMillis() + 70000;
        while (System.currentTimeMillis() < until
                && (lite < SENT || push.get() < SENT || orderly.get() < SENT || broadcast.get() < SENT)) {
            lite += puller.poll(200).size();
        }
        System.out.println("counts sent=" + sent + " push=" + push + " retried=" + (retried.get() > 0)
                + " orderly=" + orderly + " broadcast=" + broadcast + " lite=" + lite);
        System.exit(0);
    }

    static DefaultMQPushConsumer consumer(String names, String group, String expression) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(names);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(TOPIC, expression);
        return consumer;
    }

    static int send(DefaultMQProducer producer) throws Exception {
        int sent = 0;
        for (int i = 0; i < 10; i++) {
            SendResult result = producer.send(new Message(TOPIC, "TagA", "key-" + i, ("m" + i).getBytes()));
            sent += result.getOffsetMsgId().isEmpty() ? 0 : 1;
        }
        List<Message> batch = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            batch.add(new Message(TOPIC, "TagB", ("b" + i).getBytes()));
        }
        sent += producer.send(batch).getMsgId().split(",").length;
        producer.sendOneway(new Message(TOPIC, "TagA", "one way".getBytes()));
        sent++;
        CountDownLatch answered = new CountDownLatch(1);
        producer.send(new Message(TOPIC, "TagA", new byte[8000]), new SendCallback() {
            public void onSuccess(SendResult result) {
                answered.countDown();
            }

            public void onException(Throwable error) {
                error.printStackTrace();
            }
        });
        sent += answered.await(5, TimeUnit.SECONDS) ? 1 : 0;
        Message delayed = new Message(TOPIC, "TagA", "delayed".getBytes());
        delayed.setDelayTimeLevel(1);
        producer.send(delayed);
        return sent + 1;
    }
}
