import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.remoting.protocol.route.TopicRouteData;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** What GenuineClient leaves out: pulls, transactions, resets, administration. One line of JSON a scenario. */
public class JavaPeer {
    static String names;

    public static void main(String[] arguments) {
        names = arguments[0];
        try {
            run(Arrays.asList(arguments).subList(1, arguments.length));
            System.exit(0);
        } catch (Throwable error) {
            error.printStackTrace();
            System.exit(1);
        }
    }

    static void run(List<String> wanted) throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt(10000);
        admin.setNamesrvAddr(names);
        admin.start();
        DefaultMQProducer producer = new DefaultMQProducer("java-peers");
        producer.setNamesrvAddr(names);
        producer.start();
        if (wanted.contains("admin")) {
            administration(admin);
        }
        if (wanted.contains("pull")) {
            pull(producer);
        }
        if (wanted.contains("reset")) {
            reset(admin, producer);
        }
        if (wanted.contains("transactions")) {
            transactions();
        }
    }

    static void told(String scenario, Collection<?> got) {
        String items = got.stream().map(one -> '"' + one.toString() + '"').collect(Collectors.joining(", "));
        System.out.println("{\"scenario\": \"" + scenario + "\", \"got\": [" + items + "]}");
    }

    static String body(MessageExt message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }

    static void administration(DefaultMQAdminExt admin) throws Exception {
        String broker = admin.examineBrokerClusterInfo().getBrokerAddrTable().get("broker-a").getBrokerAddrs().get(0L);
        admin.createTopic("TBW102", "JavaMade", 3, new TreeMap<>());
        TopicRouteData route = admin.examineTopicRouteInfo("JavaMade");
        told("route", List.of(route.getQueueDatas().get(0).getReadQueueNums()));
        told("topic list", admin.fetchAllTopicList().getTopicList().stream().filter("JavaMade"::equals).toList());
        told("cluster", new TreeSet<>(admin.examineBrokerClusterInfo().getBrokerAddrTable().keySet()));
        told("config", List.of(admin.getBrokerConfig(broker).getProperty("brokerName")));
        admin.updateBrokerConfig(broker, properties("maxMessageSize", "65536"));
        told("config changed", List.of(admin.getBrokerConfig(broker).getProperty("maxMessageSize")));
        told("max offset", List.of(admin.maxOffset(new MessageQueue("JavaMade", "broker-a", 0))));
        admin.deleteTopicInBroker(java.util.Set.of(broker), "JavaMade");
        admin.deleteTopicInNameServer(java.util.Set.of(names), "JavaMade");
        try {
            admin.examineTopicRouteInfo("JavaMade");
            told("deleted", List.of("still there"));
        } catch (Exception error) {
            told("deleted", List.of(error.getClass().getSimpleName()));
        }
    }

    static java.util.Properties properties(String name, String value) {
        java.util.Properties properties = new java.util.Properties();
        properties.setProperty(name, value);
        return properties;
    }

    static void pull(DefaultMQProducer producer) throws Exception {
        producer.createTopic("TBW102", "JavaPulled", 2, new TreeMap<>());
        for (int number = 0; number < 6; number++) {
            MessageQueue queue = new MessageQueue("JavaPulled", "broker-a", number % 2);
            producer.send(new Message("JavaPulled", number < 4 ? "a" : "b", ("p" + number).getBytes()), queue);
        }
        DefaultMQPullConsumer puller = new DefaultMQPullConsumer("java-puller");
        puller.setNamesrvAddr(names);
        puller.start();
        List<String> got = new ArrayList<>();
        List<String> statuses = new ArrayList<>();
        for (MessageQueue queue : new TreeSet<>(puller.fetchSubscribeMessageQueues("JavaPulled"))) {
            PullResult found = puller.pull(queue, "a", 0, 32);
            found.getMsgFoundList().forEach(message -> got.add(body(message)));
            statuses.add(puller.pull(queue, "zzz", 0, 32).getPullStatus().toString());
            statuses.add(puller.pull(queue, "*", 3, 32).getPullStatus().toString());
            statuses.add(puller.pull(queue, "*", 99, 32).getPullStatus().toString());
            puller.updateConsumeOffset(queue, found.getNextBeginOffset());
            puller.getDefaultMQPullConsumerImpl().getOffsetStore().persist(queue);
            // The write is one-way and not awaited, the question may overtake it: asked until it shows.
            until(() -> committed(puller, queue) == found.getNextBeginOffset());
            got.add("committed " + committed(puller, queue));
        }
        told("pull", got);
        told("pull statuses", statuses);
        puller.shutdown();
    }

    static long committed(DefaultMQPullConsumer puller, MessageQueue queue) {
        try {
            return puller.fetchConsumeOffset(queue, true);
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    static void reset(DefaultMQAdminExt admin, DefaultMQProducer producer) throws Exception {
        producer.createTopic("TBW102", "JavaReset", 2, new TreeMap<>());
        List<String> one = new ArrayList<>();
        List<String> two = new ArrayList<>();
        DefaultMQPushConsumer first = listener("java-reset-1", one);
        DefaultMQPushConsumer second = listener("java-reset-2", two);
        for (int number = 0; number < 6; number++) {
            producer.send(new Message("JavaReset", "a", ("r" + number).getBytes()));
        }
        until(() -> one.size() == 6 && two.size() == 6);
        Map<MessageQueue, Long> moved = admin.resetOffsetByTimestamp("JavaReset", "java-reset", 0, true);
        told("reset", new TreeSet<>(moved.values()));
        until(() -> one.size() >= 12 && two.size() >= 12);
        synchronized (one) {
            told("reset members", List.of(one.size(), two.size(), new TreeSet<>(one).size()));
        }
        first.shutdown();
        second.shutdown();
    }

    static DefaultMQPushConsumer listener(String instance, List<String> got) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("java-reset");
        consumer.setNamesrvAddr(names);
        consumer.setInstanceName(instance);
        consumer.setMessageModel(MessageModel.BROADCASTING);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("JavaReset", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            synchronized (got) {
                messages.forEach(message -> got.add(body(message)));
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return consumer;
    }

    static void transactions() throws Exception {
        TransactionMQProducer producer = new TransactionMQProducer("java-deciders");
        producer.setNamesrvAddr(names);
        producer.setTransactionListener(new TransactionListener() {
            public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                return LocalTransactionState.valueOf(argument.toString());
            }

            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        producer.start();
        for (String state : List.of("COMMIT_MESSAGE", "ROLLBACK_MESSAGE", "UNKNOW")) {
            producer.sendMessageInTransaction(new Message("JavaDecided", "a", state.getBytes()), state);
        }
        List<String> got = new ArrayList<>();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("java-decided");
        consumer.setNamesrvAddr(names);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("JavaDecided", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            synchronized (got) {
                messages.forEach(message -> got.add(body(message)));
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        until(() -> got.size() >= 2);
        synchronized (got) {
            told("transactions", new TreeSet<>(got));
        }
        producer.shutdown();
        consumer.shutdown();
    }

    interface Condition {
        boolean holds();
    }

    static void until(Condition condition) throws InterruptedException {
        long end = System.currentTimeMillis() + 60000;
        while (!condition.holds() && System.currentTimeMillis() < end) {
            Thread.sleep(20);
        }
    }
}
