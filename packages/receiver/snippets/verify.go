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
	t := ""
	var signatures []string
	for _, part := range strings.Split(header, ",") {
		name, value, _ := strings.Cut(part, "=")
		if name == "t" && t == "" {
			t = value
		} else if name == "v1" {
			signatures = append(signatures, value)
		}
	}
	seconds, err := strconv.ParseUint(t, 10, 40)
	if err != nil || now.Sub(time.Unix(int64(seconds), 0)).Abs() > 300*time.Second {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(t + "."))
	mac.Write(rawBody)
	expected := mac.Sum(nil)
	for _, signature := range signatures {
		if given, err := hex.DecodeString(signature); err == nil && hmac.Equal(given, expected) {
			return true
		}
	}
	return false
}
