using System;
using System.Linq;
using System.Security.Cryptography;
using System.Text;

static class Webhook
{
    /// <summary>rawBody: the bytes as received. header: Service-Signature. Whether it is signed with the secret, at most 300 s from now.</summary>
    public static bool Verify(byte[] rawBody, string header, string secret, DateTimeOffset now)
    {
        var parts = header.Split(',').Select(part => part.Split('=', 2)).Where(part => part.Length == 2).ToArray();
        var time = parts.FirstOrDefault(part => part[0] == "t")?[1] ?? "";
        if (time.Length is 0 or > 12 || !time.All(c => c is >= '0' and <= '9')) return false;
        if (Math.Abs(now.ToUnixTimeSeconds() - long.Parse(time)) > 300) return false;
        var signed = Encoding.UTF8.GetBytes(time + ".").Concat(rawBody).ToArray();
        var expected = Convert.ToHexString(HMACSHA256.HashData(Encoding.UTF8.GetBytes(secret), signed)).ToLowerInvariant();
        return parts.Any(part => part[0] == "v1"
            && CryptographicOperations.FixedTimeEquals(Encoding.UTF8.GetBytes(part[1]), Encoding.UTF8.GetBytes(expected)));
    }
}
