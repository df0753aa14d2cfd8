import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.Security;
import java.security.spec.X509EncodedKeySpec;
import java.util.Base64;
import java.util.HexFormat;
import javax.crypto.Cipher;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.bouncycastle.jce.spec.IESParameterSpec;

/** Wraps a data key (hexadecimal) for the owner of a public key (PEM), with the parameters of Pulsar's Java client. */
public class Wrap {
    public static void main(String[] arguments) throws Exception {
        Security.addProvider(new BouncyCastleProvider());
        String text = Files.readString(Path.of(arguments[0])).replaceAll("-----(BEGIN|END) PUBLIC KEY-----", "");
        byte[] encoded = Base64.getMimeDecoder().decode(text.trim());
        Cipher cipher = Cipher.getInstance("ECIES", "BC");
        cipher.init(
                Cipher.ENCRYPT_MODE,
                KeyFactory.getInstance("EC", "BC").generatePublic(new X509EncodedKeySpec(encoded)),
                new IESParameterSpec(null, null, 128));
        System.out.println(HexFormat.of().formatHex(cipher.doFinal(HexFormat.of().parseHex(arguments[1]))));
    }
}
