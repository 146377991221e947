<?php

/** $rawBody: file_get_contents('php://input'). $header: Service-Signature. Whether it is signed with the secret, at most 300 s from now. */
function verify(string $rawBody, ?string $header, string $secret, ?int $now = null): bool
{
    // With an empty secret, anybody could sign.
    if ($header === null || $secret === '') {
        return false;
    }
    $parts = explode(',', $header);
    $times = array_values(array_filter($parts, fn (string $part) => str_starts_with($part, 't=')));
    $time = count($times) === 1 ? substr($times[0], 2) : '';
    if (!preg_match('/^[0-9]{1,12}$/D', $time) || abs(($now ?? time()) - (int) $time) > 300) {
        return false;
    }
    $expected = 'v1=' . hash_hmac('sha256', $time . '.' . $rawBody, $secret);
    foreach ($parts as $part) {
        if (hash_equals($expected, $part)) {
            return true;
        }
    }
    return false;
}
