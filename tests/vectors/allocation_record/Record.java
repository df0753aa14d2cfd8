import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONArray;
import com.alibaba.fastjson2.JSONObject;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.consistenthash.HashFunction;
import org.apache.rocketmq.common.message.MessageQueue;

/** Reads cases from standard input, asks RocketMQ's own strategies, writes the cases with their answers. */
public class Record {
    public static void main(String[] arguments) throws Exception {
        JSONArray cases = JSON.parseArray(new String(System.in.readAllBytes(), "UTF-8"));
        for (int i = 0; i < cases.size(); i++) {
            JSONObject asked = cases.getJSONObject(i);
            List<MessageQueue> queues = queues(asked.getJSONArray("queues"));
            try {
                List<MessageQueue> share = strategy(asked.getString("rule"), asked).allocate(
                    "group", asked.getString("own"), queues, asked.getJSONArray("members").toJavaList(String.class));
                asked.put("share", places(share, queues));
            } catch (IllegalArgumentException error) {
                asked.put("error", error.getMessage());
            }
        }
        System.out.write(JSON.toJSONString(cases).getBytes("UTF-8"));
        System.out.flush();
    }

    static AllocateMessageQueueStrategy strategy(String rule, JSONObject asked) {
        switch (rule) {
            case "averagely":
                return new AllocateMessageQueueAveragely();
            case "averagely_by_circle":
                return new AllocateMessageQueueAveragelyByCircle();
            case "by_config":
                AllocateMessageQueueByConfig config = new AllocateMessageQueueByConfig();
                config.setMessageQueueList(queues(asked.getJSONArray("configured")));
                return config;
            case "machine_room":
                AllocateMessageQueueByMachineRoom room = new AllocateMessageQueueByMachineRoom();
                room.setConsumeridcs(new HashSet<>(asked.getJSONArray("rooms").toJavaList(String.class)));
                return room;
            case "consistent_hash":
                return new AllocateMessageQueueConsistentHash(asked.getIntValue("virtual_nodes"), hash(asked));
            default:
                return new AllocateMachineRoomNearby(strategy(asked.getString("inner"), asked), resolver(asked));
        }
    }

    static HashFunction hash(JSONObject asked) {
        if (!asked.containsKey("hash")) return null;
        boolean short_ = asked.getString("hash").equals("java & 15");
        return key -> short_ ? key.hashCode() & 15 : key.hashCode();
    }

    static AllocateMachineRoomNearby.MachineRoomResolver resolver(JSONObject asked) {
        return new AllocateMachineRoomNearby.MachineRoomResolver() {
            public String brokerDeployIn(MessageQueue queue) {
                return asked.getJSONObject("broker_room").getString(queue.getBrokerName());
            }

            public String consumerDeployIn(String id) {
                return asked.getJSONObject("member_room").getString(id);
            }
        };
    }

    static List<MessageQueue> queues(JSONArray rows) {
        List<MessageQueue> queues = new ArrayList<>();
        for (int i = 0; i < rows.size(); i++) {
            JSONArray row = rows.getJSONArray(i);
            queues.add(new MessageQueue(row.getString(0), row.getString(1), row.getIntValue(2)));
        }
        return queues;
    }

    static List<Object> places(List<MessageQueue> share, List<MessageQueue> queues) {
        List<Object> places = new ArrayList<>();
        for (MessageQueue queue : share) places.add(queues.indexOf(queue));
        return places;
    }
}
