import java.util.List;
import java.util.Map;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.SchemaDefinition;

/** Prints the definitions of these classes as Pulsar's Java client writes them: allowing null, then not. */
public class Define {
    public enum Color { RED, BLUE }

    public static class Plain {
        public String a;
        public Integer b;
    }

    public static class Inner {
        public String name;
    }

    public static class Full {
        public boolean flag;
        public int small;
        public long big;
        public float half;
        public double whole;
        public byte[] blob;
        public Color color;
        public Color again;
        public Inner inner;
        public List<Inner> others;
        public Map<String, Long> counts;
        public Inner maybe;
        public List<String> tags;
    }

    public static class Defaults {
        @org.apache.avro.reflect.AvroDefault("\"x\"")
        public String text;

        @org.apache.avro.reflect.Nullable
        public String none;

        @org.apache.avro.reflect.AvroDefault("5")
        public int five;
    }

    public static void main(String[] arguments) {
        for (Class<?> kind : List.of(Plain.class, Inner.class, Full.class, Defaults.class)) {
            for (boolean allowed : new boolean[] {true, false}) {
                SchemaDefinition<?> definition =
                        SchemaDefinition.builder().withPojo((Class) kind).withAlwaysAllowNull(allowed).build();
                String avro = new String(Schema.AVRO(definition).getSchemaInfo().getSchema());
                String json = new String(Schema.JSON(definition).getSchemaInfo().getSchema());
                if (!avro.equals(json)) throw new IllegalStateException("they differ: " + avro + json);
                System.out.println(kind.getSimpleName() + " " + allowed + " " + avro);
            }
        }
    }
}
