import com.sun.management.OperatingSystemMXBean;
import java.io.DataInputStream;
import java.io.EOFException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;

/** The Java client's decoder, as benchmarks/peers/rocketmq_decodes.py asks for it: a file of bodies, messages to decode. */
public class RocketMQDecodes {
    static long seen;

    public static void main(String[] arguments) throws Exception {
        List<byte[]> bodies = new ArrayList<>();
        try (DataInputStream in = new DataInputStream(Files.newInputStream(Path.of(arguments[0])))) {
            while (true) {
                byte[] body = new byte[in.readInt()];
                in.readFully(body);
                bodies.add(body);
            }
        } catch (EOFException end) {
            // all are read
        }
        long count = Long.parseLong(arguments[1]);
        decode(bodies, count); // so that it is compiled
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long cpu = system.getProcessCpuTime();
        long done = decode(bodies, count);
        double used = (double) (system.getProcessCpuTime() - cpu) / done;
        System.out.println(String.format("{\"ns\": %.2f}", used));
        System.exit(seen > 0 ? 0 : 1);
    }

    static long decode(List<byte[]> bodies, long count) {
        long done = 0;
        while (done < count) {
            for (byte[] body : bodies) {
                List<MessageExt> messages = MessageDecoder.decodes(ByteBuffer.wrap(body));
                for (MessageExt message : messages) {
                    seen += message.getBody().length + message.getTags().length() + message.getKeys().length();
                }
                done += messages.size();
            }
        }
        return done;
    }
}
