require "openssl"

# raw_body: request.body.read. header: Service-Signature. Whether it is signed with the secret, at most 300 s from now.
def verify(raw_body, header, secret, now = Time.now.to_i)
  parts = header.split(",").map { |part| part.split("=", 2) }
  time = parts.assoc("t")&.last.to_s
  return false unless time.match?(/\A[0-9]{1,12}\z/) && (now - time.to_i).abs <= 300

  expected = OpenSSL::HMAC.hexdigest("SHA256", secret, "#{time}.".b + raw_body.b)
  parts.any? do |name, value|
    name == "v1" && value.to_s.bytesize == expected.bytesize && OpenSSL.fixed_length_secure_compare(value, expected)
  end
end
