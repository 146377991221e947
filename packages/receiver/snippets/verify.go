package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// Verify reports whether rawBody (the bytes as received) is signed with the secret, at most 300 s from now.
// The header is Service-Signature.
func Verify(rawBody []byte, header, secret string, now time.Time) bool {
	if secret == "" {
		return false // Anybody could sign.
	}
	parts := strings.Split(header, ",")
	var times []string
	for _, part := range parts {
		if strings.HasPrefix(part, "t=") {
			times = append(times, part[2:])
		}
	}
	if len(times) != 1 || len(times[0]) > 12 {
		return false
	}
	t := times[0]
	seconds, err := strconv.ParseUint(t, 10, 40)
	if err != nil || now.Sub(time.Unix(int64(seconds), 0)).Abs() > 300*time.Second {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(t + "."))
	mac.Write(rawBody)
	expected := []byte("v1=" + hex.EncodeToString(mac.Sum(nil)))
	for _, part := range parts {
		if hmac.Equal([]byte(part), expected) {
			return true
		}
	}
	return false
}
