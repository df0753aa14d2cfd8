import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;

/** The Java client's sends, as benchmarks/peers/rocketmq.py asks for them: name server, topic, line, messages. */
public class RocketMQSends {
    static final byte[] BODY = new byte[128];
    static DefaultMQProducer producer;
    static String topic;

    public static void main(String[] arguments) throws Exception {
        topic = arguments[1];
        int count = Integer.parseInt(arguments[3]);
        producer = new DefaultMQProducer("peers-java");
        producer.setNamesrvAddr(arguments[0]);
        producer.setSendMsgTimeout(10000);
        producer.start();
        run(arguments[2], Math.max(64, count / 4)); // so that it is compiled
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long cpu = system.getProcessCpuTime();
        long began = System.nanoTime();
        run(arguments[2], count);
        double seconds = (System.nanoTime() - began) / 1e9;
        double used = (system.getProcessCpuTime() - cpu) / 1e3 / count;
        System.out.println(String.format("{\"rate\": %.1f, \"cpu_us\": %.3f}", count / seconds, used));
        producer.shutdown();
        System.exit(0);
    }

    static void run(String line, int count) throws Exception {
        if (line.startsWith("sync")) {
            threads(Integer.parseInt(line.substring(4)), count);
        } else if (line.equals("async")) {
            async(count);
        } else {
            many(count);
        }
    }

    static void threads(int number, int count) throws Exception {
        CountDownLatch done = new CountDownLatch(number);
        AtomicInteger failed = new AtomicInteger();
        for (int index = 0; index < number; index++) {
            new Thread(() -> {
                try {
                    for (int left = count / number; left > 0; left--) {
                        producer.send(new Message(topic, BODY));
                    }
                } catch (Exception error) {
                    failed.incrementAndGet();
                }
                done.countDown();
            }).start();
        }
        done.await();
        if (failed.get() > 0) {
            throw new IllegalStateException(failed + " threads failed");
        }
    }

    static void async(int count) throws Exception {
        Semaphore window = new Semaphore(1024);
        AtomicInteger failed = new AtomicInteger();
        for (int left = count; left > 0; left--) {
            if (!window.tryAcquire(60, TimeUnit.SECONDS)) {
                throw new IllegalStateException("no answer in a minute");
            }
            producer.send(new Message(topic, BODY), new SendCallback() {
                public void onSuccess(SendResult result) {
                    window.release();
                }

                public void onException(Throwable error) {
                    failed.incrementAndGet();
                    window.release();
                }
            });
        }
        if (!window.tryAcquire(1024, 60, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no answer in a minute");
        }
        if (failed.get() > 0) {
            throw new IllegalStateException(failed + " messages failed");
        }
    }

    static void many(int count) throws Exception {
        for (int left = count; left > 0; left -= 32) {
            List<Message> batch = new ArrayList<>();
            for (int index = 0; index < 32; index++) {
                batch.add(new Message(topic, BODY));
            }
            producer.send(batch);
        }
    }
}
