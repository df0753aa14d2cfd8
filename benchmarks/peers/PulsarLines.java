import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.pulsar.client.api.BatchReceivePolicy;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Messages;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;

/** The Java client's lines, as benchmarks/peers/pulsar.py asks for them: line, url, topic, messages, size of a body.
 * A quarter of the messages comes first and is not measured, so that what is measured is compiled. */
public class PulsarLines {
    static final OperatingSystemMXBean SYSTEM = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    interface Work {
        void run(int count) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        String topic = arguments[2];
        int count = Integer.parseInt(arguments[3]);
        byte[] body = new byte[Integer.parseInt(arguments[4])];
        PulsarClient client = PulsarClient.builder().serviceUrl(arguments[1]).build();
        if (arguments[0].equals("send_many")) {
            Producer<byte[]> producer = client.newProducer().topic(topic).maxPendingMessages(20000)
                .blockIfQueueFull(true).batchingMaxMessages(1000).batchingMaxBytes(131072).create();
            measured(messages -> send(producer, body, messages), count);
            producer.close();
        } else {
            Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("billing")
                .receiverQueueSize(1000).batchReceivePolicy(BatchReceivePolicy.builder().maxNumMessages(1000)
                .maxNumBytes(-1).timeout(100, TimeUnit.MILLISECONDS).build()).subscribe();
            measured(messages -> receive(consumer, messages), count);
            consumer.close(); // what is acknowledged is told by now
        }
        client.close();
        System.exit(0);
    }

    static void measured(Work work, int count) throws Exception {
        int first = count / 4;
        work.run(first);
        long cpu = SYSTEM.getProcessCpuTime();
        long began = System.nanoTime();
        work.run(count - first);
        double seconds = (System.nanoTime() - began) / 1e9;
        double used = (SYSTEM.getProcessCpuTime() - cpu) / 1e3 / (count - first);
        System.out.println(String.format("{\"rate\": %.1f, \"cpu_us\": %.3f}", (count - first) / seconds, used));
    }

    static void send(Producer<byte[]> producer, byte[] body, int count) throws Exception {
        AtomicInteger failed = new AtomicInteger();
        for (int left = count; left > 0; left--) {
            producer.sendAsync(body).exceptionally(error -> {
                failed.incrementAndGet();
                return null;
            });
        }
        producer.flush();
        if (failed.get() > 0) {
            throw new IllegalStateException(failed + " messages failed");
        }
    }

    static void receive(Consumer<byte[]> consumer, int count) throws Exception {
        for (int left = count; left > 0;) {
            Messages<byte[]> messages = consumer.batchReceive();
            left -= messages.size();
            consumer.acknowledgeAsync(messages);
        }
    }
}
