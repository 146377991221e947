import hashlib, hmac, re, time


def verify(raw_body: bytes, header: str, secret: str, now: float | None = None) -> bool:
    """raw_body: the bytes as received. header: Service-Signature. Whether it is signed with the secret, at most 300 s from now."""
    parts = [part.partition("=") for part in header.split(",")]
    t = next((value for name, _, value in parts if name == "t"), "")
    if not re.fullmatch("[0-9]{1,12}", t) or abs((time.time() if now is None else now) - int(t)) > 300:
        return False
    expected = hmac.new(secret.encode(), t.encode() + b"." + raw_body, hashlib.sha256).hexdigest()
    return any(
        name == "v1" and hmac.compare_digest(value.encode(), expected.encode())
        for name, _, value in parts
    )
