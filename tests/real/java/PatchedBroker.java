import io.netty.channel.Channel;
import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.BrokerStartup;
import org.apache.rocketmq.broker.client.ConsumerGroupInfo;
import org.apache.rocketmq.broker.client.net.Broker2Client;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.exception.RemotingCommandException;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RequestCode;
import org.apache.rocketmq.remoting.protocol.ResponseCode;
import org.apache.rocketmq.remoting.protocol.body.ResetOffsetBody;
import org.apache.rocketmq.remoting.protocol.header.ResetOffsetRequestHeader;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;

/** Starts a broker with the operator's two changes of story 3: a broadcasting group can be reset. */
public class PatchedBroker {
    public static void main(String[] arguments) throws Exception {
        BrokerController controller = BrokerStartup.createBrokerController(arguments);
        Field client = BrokerController.class.getDeclaredField("broker2Client");
        client.setAccessible(true);
        client.set(controller, new ResettingBroker2Client(controller));
        BrokerStartup.start(controller);
    }

    /** Clustering groups are reset as ever; broadcasting ones need no stored offset, and the time decides alone. */
    static class ResettingBroker2Client extends Broker2Client {
        private final BrokerController controller;

        ResettingBroker2Client(BrokerController controller) {
            super(controller);
            this.controller = controller;
        }

        @Override
        public RemotingCommand resetOffset(String topic, String group, long time, boolean force, boolean inC)
                throws RemotingCommandException {
            ConsumerGroupInfo members = controller.getConsumerManager().getConsumerGroupInfo(group);
            TopicConfig config = controller.getTopicConfigManager().selectTopicConfig(topic);
            if (members == null || config == null || members.getMessageModel() != MessageModel.BROADCASTING) {
                return super.resetOffset(topic, group, time, force, inC);
            }
            RemotingCommand response = RemotingCommand.createResponseCommand(null);
            ResetOffsetBody body = new ResetOffsetBody();
            try {
                body.setOffsetTable(targets(topic, config.getWriteQueueNums(), time));
                for (Channel channel : members.getChannelInfoTable().keySet()) {
                    controller.getRemotingServer().invokeOneway(channel, push(topic, group, time, body), 5000);
                }
            } catch (Exception error) {
                response.setCode(ResponseCode.SYSTEM_ERROR);
                response.setRemark(error.toString());
                return response;
            }
            response.setCode(ResponseCode.SUCCESS);
            response.setBody(body.encode());
            return response;
        }

        private Map<MessageQueue, Long> targets(String topic, int queues, long time) throws Exception {
            Map<MessageQueue, Long> table = new HashMap<>();
            for (int queue = 0; queue < queues; queue++) {
                long offset = time < 0
                        ? controller.getMessageStore().getMaxOffsetInQueue(topic, queue)
                        : controller.getMessageStore().getOffsetInQueueByTime(topic, queue, time);
                table.put(new MessageQueue(topic, controller.getBrokerConfig().getBrokerName(), queue), offset);
            }
            return table;
        }

        private RemotingCommand push(String topic, String group, long time, ResetOffsetBody body) {
            ResetOffsetRequestHeader header = new ResetOffsetRequestHeader();
            header.setTopic(topic);
            header.setGroup(group);
            header.setTimestamp(time);
            RemotingCommand request =
                    RemotingCommand.createRequestCommand(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, header);
            request.setBody(body.encode());
            return request;
        }
    }
}
