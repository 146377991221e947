import hashlib, hmac, re, time


def verify(raw_body: bytes, header: str | None, secret: str, now: float | None = None) -> bool:
    """raw_body: the bytes as received. header: Service-Signature. Whether it is signed with the secret, at most 300 s from now."""
    # With an empty secret, anybody could sign.
    if not header or secret == "":
        return False
    parts = header.split(",")
    times = [part[2:] for part in parts if part.startswith("t=")]
    t = times[0] if len(times) == 1 else ""
    if not re.fullmatch("[0-9]{1,12}", t) or abs((time.time() if now is None else now) - int(t)) > 300:
        return False
    signature = hmac.new(secret.encode(), t.encode() + b"." + raw_body, hashlib.sha256).hexdigest()
    expected = f"v1={signature}".encode()
    # Some servers decode a byte that is not UTF-8 to a character that cannot be encoded again.
    return any(hmac.compare_digest(part.encode(errors="replace"), expected) for part in parts)
