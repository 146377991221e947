<?php

/** $rawBody: file_get_contents('php://input'). $header: Service-Signature. Whether it is signed with the secret, at most 300 s from now. */
function verify(string $rawBody, string $header, string $secret, ?int $now = null): bool
{
    $time = null;
    $signatures = [];
    foreach (explode(',', $header) as $part) {
        [$name, $value] = array_pad(explode('=', $part, 2), 2, '');
        if ($name === 't') {
            $time ??= $value;
        } elseif ($name === 'v1') {
            $signatures[] = $value;
        }
    }
    if ($time === null || !preg_match('/^[0-9]{1,12}$/D', $time) || abs(($now ?? time()) - (int) $time) > 300) {
        return false;
    }
    $expected = hash_hmac('sha256', $time . '.' . $rawBody, $secret);
    foreach ($signatures as $signature) {
        if (hash_equals($expected, $signature)) {
            return true;
        }
    }
    return false;
}
