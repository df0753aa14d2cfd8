import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageRequestMode;
import org.apache.rocketmq.remoting.protocol.body.CMResult;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** Transactions, filters by properties, request-reply, POP, queries, recall, administration: a line name=what happened each. */
public class GenuineExtras {
    static String names;
    static DefaultMQProducer producer;
    static DefaultMQAdminExt admin;

    public static void main(String[] arguments) throws Exception {
        Thread.currentThread().setUncaughtExceptionHandler((thread, error) -> {
            error.printStackTrace();
            Runtime.getRuntime().halt(1); // the client's threads would go on for ever
        });
        names = arguments[0];
        String broker = arguments[1];
        admin = new DefaultMQAdminExt();
        admin.setNamesrvAddr(names);
        admin.start();
        for (String topic : new String[] {"TxT", "SqlT", "AskT", "PopT", "KeyT", "LaterT"}) {
            admin.createAndUpdateTopicConfig(broker, new TopicConfig(topic, 2, 2));
        }
        producer = new DefaultMQProducer("extras-producer");
        producer.setNamesrvAddr(names);
        producer.start();
        say("transactions", transactions());
        say("filter", filter());
        say("reply", reply());
        say("pop", pop(broker));
        say("query", query());
        say("recall", recall());
        say("admin", administration(broker));
        System.out.println("end");
        System.exit(0);
    }

    static void say(String name, Object value) {
        System.out.println("extra " + name + "=" + value);
    }

    static DefaultMQPushConsumer consumer(String group, Set<String> seen) {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(names);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> seen.add(text(message)));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        return consumer;
    }

    static String text(Message message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }

    static Object wait(Set<String> seen, int count) throws Exception {
        long until = System.currentTimeMillis() + 60000;
        while (seen.size() < count && System.currentTimeMillis() < until) {
            Thread.sleep(20);
        }
        Thread.sleep(200); // what should not come would come now
        return new TreeSet<>(seen);
    }

    static Object transactions() throws Exception {
        TransactionMQProducer sender = new TransactionMQProducer("extras-bank");
        sender.setNamesrvAddr(names);
        AtomicInteger checks = new AtomicInteger();
        sender.setTransactionListener(new TransactionListener() {
            public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                String body = text(message);
                return body.equals("commit") ? LocalTransactionState.COMMIT_MESSAGE
                        : body.equals("rollback") ? LocalTransactionState.ROLLBACK_MESSAGE : LocalTransactionState.UNKNOW;
            }

            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                checks.incrementAndGet();
                return text(message).equals("checked") ? LocalTransactionState.COMMIT_MESSAGE
                        : LocalTransactionState.ROLLBACK_MESSAGE;
            }
        });
        sender.start();
        for (String body : new String[] {"commit", "rollback", "checked", "refused"}) {
            sender.sendMessageInTransaction(new Message("TxT", body.getBytes()), null);
        }
        Set<String> seen = ConcurrentHashMap.newKeySet();
        DefaultMQPushConsumer consumer = consumer("extras-tx", seen);
        consumer.subscribe("TxT", "*");
        consumer.start();
        Object result = wait(seen, 2);
        return result + " checks=" + checks;
    }

    static Object filter() throws Exception {
        for (int i = 0; i < 6; i++) {
            Message message = new Message("SqlT", ("m" + i).getBytes());
            message.putUserProperty("a", String.valueOf(i));
            producer.send(message);
        }
        Set<String> seen = ConcurrentHashMap.newKeySet();
        DefaultMQPushConsumer consumer = consumer("extras-sql", seen);
        consumer.subscribe("SqlT", MessageSelector.bySql("a BETWEEN 2 AND 4 AND a <> 3"));
        consumer.start();
        return wait(seen, 2);
    }

    static Object reply() throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("extras-answers");
        consumer.setNamesrvAddr(names);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("AskT", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                try {
                    producer.send(MessageUtil.createReplyMessage(message, ("re: " + text(message)).getBytes()));
                } catch (Exception e) {
                    say("trouble", e);
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        // A heartbeat of Java's that found its own lock taken comes again 30 s later: until then nobody is subscribed.
        return text(producer.request(new Message("AskT", "question".getBytes()), 60000));
    }

    static Object pop(String broker) throws Exception {
        Set<String> seen = ConcurrentHashMap.newKeySet();
        DefaultMQPushConsumer consumer = consumer("extras-pop", seen);
        consumer.setClientRebalance(false);
        consumer.subscribe("PopT", "*");
        admin.setMessageRequestMode(broker, "PopT", "extras-pop", MessageRequestMode.POP, 0, 5000);
        for (int i = 0; i < 5; i++) {
            producer.send(new Message("PopT", ("p" + i).getBytes()));
        }
        consumer.start();
        return wait(seen, 5);
    }

    static Object query() throws Exception {
        long before = System.currentTimeMillis() - 60000;
        SendResult sent = producer.send(new Message("KeyT", "TagK", "key-1 key-2", "found".getBytes()));
        producer.send(new Message("KeyT", "TagK", "key-2", "second".getBytes()));
        String unique = text(producer.viewMessage("KeyT", sent.getMsgId()));
        String placed = text(producer.viewMessage("KeyT", sent.getOffsetMsgId()));
        int both = producer.queryMessage("KeyT", "key-2", 10, before, before + 3600000).getMessageList().size();
        return unique + " " + placed + " " + both;
    }

    static Object recall() throws Exception {
        Message message = new Message("LaterT", "never".getBytes());
        message.setDelayTimeMs(3000);
        SendResult sent = producer.send(message);
        boolean same = producer.recallMessage("LaterT", sent.getRecallHandle()).equals(sent.getMsgId());
        Message other = new Message("LaterT", "later".getBytes());
        other.setDelayTimeMs(3000);
        producer.send(other);
        Set<String> seen = ConcurrentHashMap.newKeySet();
        DefaultMQPushConsumer consumer = consumer("extras-later", seen);
        consumer.subscribe("LaterT", "*");
        consumer.start();
        return same + " " + wait(seen, 1);
    }

    static Object administration(String broker) throws Exception {
        long held = admin.examineTopicStats("KeyT").getOffsetTable().values().stream()
                .mapToLong(queue -> queue.getMaxOffset()).sum();
        long behind = admin.examineConsumeStats("extras-sql").computeTotalDiff();
        String member = admin.examineConsumerConnectionInfo("extras-sql").getConnectionSet().iterator().next().getClientId();
        boolean running = admin.getConsumerRunningInfo("extras-sql", member, false).getMqTable().size() > 0;
        MessageExt message = (MessageExt) producer.viewMessage("KeyT",
                producer.send(new Message("KeyT", "direct".getBytes())).getOffsetMsgId());
        CMResult direct = admin.consumeMessageDirectly("extras-sql", member, "KeyT", message.getMsgId()).getConsumeResult();
        boolean producers = admin.examineProducerConnectionInfo("extras-producer", "KeyT").getConnectionSet().size() == 1;
        boolean groups = admin.getAllSubscriptionGroup(broker, 5000).getSubscriptionGroupTable().containsKey("extras-sql");
        boolean topics = admin.getAllTopicConfig(broker, 5000).getTopicConfigTable().containsKey("KeyT");
        boolean readers = admin.queryTopicConsumeByWho("SqlT").getGroupList().contains("extras-sql");
        admin.cloneGroupOffset("extras-sql", "extras-clone", "SqlT", true);
        boolean cloned = admin.examineConsumeStats("extras-clone", "SqlT").computeTotalDiff() >= 0;
        boolean runtime = admin.fetchBrokerRuntimeStats(broker).getTable().containsKey("brokerVersionDesc");
        admin.deleteSubscriptionGroup(broker, "extras-clone", true);
        admin.deleteTopicInBroker(Set.of(broker), "LaterT");
        admin.deleteTopicInNameServer(Set.of(names), "LaterT");
        boolean gone = !admin.fetchAllTopicList().getTopicList().contains("LaterT");
        return held + " " + (behind >= 0) + " " + running + " " + direct + " " + List.of(producers, groups, topics, readers,
                cloned, runtime, gone);
    }
}
