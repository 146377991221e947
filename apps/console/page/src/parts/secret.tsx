/** A signing secret, shown this once, and code that verifies a delivery with it. */
import { Alert, Stack, Tabs, Text } from '@mantine/core';
import { IconKey } from '@tabler/icons-react';
import { CodeBlock, Copyable } from './code.tsx';

export function SecretOnce({ secret }: { secret: string }) {
  return (
    <Stack gap="md">
      <Alert color="yellow" icon={<IconKey />} title="Copy the signing secret now: it is not shown again">
        <Copyable value={secret} what="signing secret" />
      </Alert>
      <div>
        <Text size="sm" fw={500} mb={6}>
          The receiver verifies each delivery with it
        </Text>
        <Tabs defaultValue="node">
          <Tabs.List>
            <Tabs.Tab value="node">Node.js</Tabs.Tab>
            <Tabs.Tab value="python">Python</Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="node" pt="xs">
            <CodeBlock text={nodeSnippet} label="Node.js code" maxHeight={300} />
          </Tabs.Panel>
          <Tabs.Panel value="python" pt="xs">
            <CodeBlock text={pythonSnippet} label="Python code" maxHeight={300} />
          </Tabs.Panel>
        </Tabs>
      </div>
    </Stack>
  );
}

const nodeSnippet = `import { createHmac, timingSafeEqual } from 'node:crypto';

/** rawBody: the bytes as they came. header: Service-Signature. */
export function verify(rawBody, header, secret) {
  const parts = header.split(',').map((part) => part.split('='));
  const time = parts.find(([name]) => name === 't')?.[1];
  if (!(Math.abs(Date.now() / 1000 - Number(time)) <= 300)) return false;
  const expected = createHmac('sha256', secret).update(\`\${time}.\`).update(rawBody).digest();
  return parts.some(([name, value]) => {
    const given = Buffer.from(value ?? '', 'hex');
    return name === 'v1' && given.length === expected.length && timingSafeEqual(given, expected);
  });
}`;

const pythonSnippet = `import hashlib, hmac, time

def verify(raw_body: bytes, header: str, secret: str) -> bool:
    """raw_body: the bytes as they came. header: Service-Signature."""
    parts = [part.split("=", 1) for part in header.split(",")]
    t = next((value for name, value in parts if name == "t"), "0")
    if abs(time.time() - int(t)) > 300:
        return False
    expected = hmac.new(secret.encode(), t.encode() + b"." + raw_body, hashlib.sha256).hexdigest()
    return any(name == "v1" and hmac.compare_digest(value, expected) for name, value in parts)`;
