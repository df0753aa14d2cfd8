import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/** The Java client's push, as benchmarks/peers/rocketmq_receives.py asks for it: name server, topic, batch, messages. */
public class RocketMQReceives {
    static long cpu;
    static long began;

    public static void main(String[] arguments) throws Exception {
        int batch = Integer.parseInt(arguments[2]);
        long count = Long.parseLong(arguments[3]);
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        AtomicLong seen = new AtomicLong();
        AtomicLong bytes = new AtomicLong();
        CountDownLatch done = new CountDownLatch(1);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("java-" + arguments[1]);
        consumer.setNamesrvAddr(arguments[0]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPullBatchSize(batch);
        consumer.setConsumeMessageBatchMaxSize(batch);
        consumer.setPullBatchSizeInBytes(4 << 20);
        consumer.setPullThresholdForQueue(4 * batch + 1000);
        consumer.setConsumeConcurrentlyMaxSpan(60000);
        consumer.subscribe(arguments[1], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            long size = 0;
            for (MessageExt message : (List<MessageExt>) messages) {
                size += message.getBody().length;
            }
            bytes.addAndGet(size);
            long now = seen.addAndGet(messages.size());
            if (now >= count / 2 && now - messages.size() < count / 2) {
                cpu = system.getProcessCpuTime();
                began = System.nanoTime();
            }
            if (now >= count) {
                done.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        done.await();
        double seconds = (System.nanoTime() - began) / 1e9;
        double used = (system.getProcessCpuTime() - cpu) / 1e3 / (count / 2);
        System.out.println(String.format("{\"rate\": %.1f, \"cpu_us\": %.3f}", count / 2 / seconds, used));
        System.exit(0);
    }
}
