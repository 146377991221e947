require "openssl"

# raw_body: request.body.read. header: Service-Signature. Whether it is signed with the secret, at most 300 s from now.
def verify(raw_body, header, secret, now = Time.now.to_i)
  # With an empty secret, anybody could sign.
  return false if header.nil? || secret.empty?

  parts = header.b.split(",")
  times = parts.select { |part| part.start_with?("t=") }
  time = times.one? ? times.first.delete_prefix("t=") : ""
  return false unless time.match?(/\A[0-9]{1,12}\z/) && (now - time.to_i).abs <= 300

  expected = "v1=" + OpenSSL::HMAC.hexdigest("SHA256", secret, "#{time}.".b + raw_body.b)
  parts.any? { |part| part.bytesize == expected.bytesize && OpenSSL.fixed_length_secure_compare(part, expected) }
end
