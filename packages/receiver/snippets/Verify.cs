using System;
using System.Linq;
using System.Security.Cryptography;
using System.Text;

static class Webhook
{
    /// <summary>rawBody: the bytes as received. header: Service-Signature. Whether it is signed with the secret, at most 300 s from now.</summary>
    public static bool Verify(byte[] rawBody, string header, string secret, DateTimeOffset now)
    {
        // With an empty secret, anybody could sign.
        if (header == null || secret.Length == 0) return false;
        var parts = header.Split(',');
        var times = parts.Where(part => part.StartsWith("t=", StringComparison.Ordinal)).ToArray();
        var time = times.Length == 1 ? times[0].Substring(2) : "";
        if (time.Length is 0 or > 12 || !time.All(c => c is >= '0' and <= '9')) return false;
        if (Math.Abs(now.ToUnixTimeSeconds() - long.Parse(time)) > 300) return false;
        var signed = Encoding.UTF8.GetBytes(time + ".").Concat(rawBody).ToArray();
        var expected = "v1=" + Convert.ToHexString(HMACSHA256.HashData(Encoding.UTF8.GetBytes(secret), signed)).ToLowerInvariant();
        return parts.Any(part =>
            CryptographicOperations.FixedTimeEquals(Encoding.UTF8.GetBytes(part), Encoding.UTF8.GetBytes(expected)));
    }
}
