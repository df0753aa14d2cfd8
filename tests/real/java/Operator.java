import org.apache.rocketmq.tools.command.MQAdminStartup;

/** The operators' tool (mqadmin), several commands in one process; arguments are commands, parts separated by blanks. */
public class Operator {
    public static void main(String[] arguments) {
        for (String line : arguments) {
            System.out.println("@@ " + line.split(" ")[0]);
            MQAdminStartup.main0(line.split(" "), null);
        }
        System.out.println("@@ end");
        System.out.flush();
        Runtime.getRuntime().halt(0); // its shutdown takes seconds
    }
}
