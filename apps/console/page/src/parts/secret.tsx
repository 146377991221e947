/** Shows a signing secret once, with code that verifies a delivery. */
import { Alert, Stack, Tabs, Text } from '@mantine/core';
import { IconKey } from '@tabler/icons-react';
import { useEffect, useRef } from 'react';
import { useKept } from '../queries.ts';
import { CodeBlock, Copyable } from './code.tsx';
import { SNIPPETS } from './snippets.ts';

export function SecretOnce({ secret }: { secret: string }) {
  useKept();
  const alert = useRef<HTMLDivElement>(null);
  // The button that had the focus is gone.
  useEffect(() => alert.current?.focus(), []);
  useEffect(() => {
    // A reload would lose it: the browser asks first.
    const leaving = new AbortController();
    window.addEventListener('beforeunload', (event) => event.preventDefault(), leaving);
    return () => leaving.abort();
  }, []);
  return (
    <Stack gap="md">
      <Alert
        ref={alert}
        tabIndex={-1}
        color="yellow"
        icon={<IconKey />}
        title="Copy the signing secret now: it is not shown again"
      >
        <Copyable value={secret} what="signing secret" />
      </Alert>
      <div>
        <Text size="sm" fw={500} mb={6}>
          The receiver verifies each delivery with this secret
        </Text>
        <Tabs defaultValue="Node.js">
          <Tabs.List>
            {SNIPPETS.map(([language]) => (
              <Tabs.Tab key={language} value={language}>
                {language}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          {SNIPPETS.map(([language, code]) => (
            <Tabs.Panel key={language} value={language} pt="xs">
              <CodeBlock text={code} label={`${language} code`} maxHeight={300} />
            </Tabs.Panel>
          ))}
        </Tabs>
      </div>
    </Stack>
  );
}
