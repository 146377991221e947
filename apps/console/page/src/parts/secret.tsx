/** Shows a signing secret once, with code that verifies a delivery. */
import { Alert, Stack, Tabs, Text } from '@mantine/core';
import { IconKey } from '@tabler/icons-react';
import { CodeBlock, Copyable } from './code.tsx';
import { nodeSnippet, pythonSnippet } from './snippets.ts';

export function SecretOnce({ secret }: { secret: string }) {
  return (
    <Stack gap="md">
      <Alert color="yellow" icon={<IconKey />} title="Copy the signing secret now: it is not shown again">
        <Copyable value={secret} what="signing secret" />
      </Alert>
      <div>
        <Text size="sm" fw={500} mb={6}>
          The receiver verifies each delivery with this secret
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
