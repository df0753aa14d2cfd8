import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.protocol.heartbeat.MessageModel;

/** A push member of the generation of the stories (4.9.7); says what it owns and what it consumed, line by line. */
public class StoryMember {
    public static void main(String[] arguments) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(arguments[1]);
        consumer.setNamesrvAddr(arguments[0]);
        consumer.setMessageModel(MessageModel.valueOf(arguments[3]));
        consumer.setClientIP("127.0.0.1");
        consumer.setInstanceName(arguments[4]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(arguments[2], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            say(messages);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        String before = "";
        while (true) {
            String owned = owned(consumer, arguments[2]).toString();
            if (!owned.equals(before)) {
                System.out.println("owns " + owned);
                before = owned;
            }
            Thread.sleep(100);
        }
    }

    static synchronized void say(List<MessageExt> messages) {
        for (MessageExt message : messages) {
            System.out.println("consumed " + message.getBrokerName() + ":" + message.getQueueId() + " "
                    + new String(message.getBody()));
        }
    }

    static Set<String> owned(DefaultMQPushConsumer consumer, String topic) {
        Set<String> queues = new TreeSet<>();
        for (MessageQueue queue :
                consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet()) {
            if (queue.getTopic().equals(topic)) {
                queues.add(queue.getBrokerName() + ":" + queue.getQueueId());
            }
        }
        return queues;
    }
}
