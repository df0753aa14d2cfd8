import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** The reset as an operator of the stories' generation does it (4.9.7); says the new offsets, or the error. */
public class StoryReset {
    public static void main(String[] arguments) throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt(10000);
        admin.setNamesrvAddr(arguments[0]);
        admin.setInstanceName("reset-" + System.nanoTime());
        admin.start();
        try {
            System.out.println("moved " + admin.resetOffsetByTimestamp(arguments[2], arguments[1], 0, true).size());
        } catch (Exception error) {
            System.out.println("refused " + error.getMessage());
        }
        System.exit(0);
    }
}
