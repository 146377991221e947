import static java.nio.charset.StandardCharsets.UTF_8;

import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.List;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

final class Verify {
  /**
   * rawBody: the bytes as received. header: Service-Signature. nowSeconds: System.currentTimeMillis() / 1000. Returns whether it is signed
   * with the secret, at most 300 s from now.
   */
  static boolean verify(byte[] rawBody, String header, String secret, long nowSeconds) throws GeneralSecurityException {
    // With an empty secret, anybody could sign.
    if (header == null || secret.isEmpty()) return false;
    List<String> times = new ArrayList<>();
    List<String> signatures = new ArrayList<>();
    for (String part : header.split(",")) {
      if (part.startsWith("t=")) times.add(part.substring(2));
      if (part.startsWith("v1=")) signatures.add(part.substring(3));
    }
    String time = times.size() == 1 ? times.get(0) : "";
    if (!time.matches("[0-9]{1,12}") || Math.abs(nowSeconds - Long.parseLong(time)) > 300) return false;
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(secret.getBytes(UTF_8), "HmacSHA256"));
    mac.update((time + ".").getBytes(UTF_8));
    StringBuilder expected = new StringBuilder();
    for (byte one : mac.doFinal(rawBody)) expected.append(String.format("%02x", one));
    for (String signature : signatures) {
      if (MessageDigest.isEqual(signature.getBytes(UTF_8), expected.toString().getBytes(UTF_8))) return true;
    }
    return false;
  }
}
