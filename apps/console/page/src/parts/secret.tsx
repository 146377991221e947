/** Shows a signing secret once, with code that verifies a delivery. */
import { Alert, Button, Stack, Tabs, Text } from '@mantine/core';
import type { SubscriptionWithSecret } from '@posthorn/operator-api';
import { KeyIcon } from '@primer/octicons-react';
import { useEffect, useRef } from 'react';
import { useChange, useKept } from '../queries.ts';
import { shortAddress } from './address.tsx';
import { CodeBlock, Copyable } from './code.tsx';
import { SNIPPETS } from './snippets.ts';

/**
 * A change that makes a new secret, which the caller shows. If the caller is no longer on the screen when the answer
 * comes, a dialog shows the secret: nothing else has it.
 */
export function useNewSecret<V = void>(
  change: (value: V) => Promise<SubscriptionWithSecret>,
  options: { quiet?: boolean } = {},
) {
  const isShown = useRef(false);
  useEffect(() => {
    isShown.current = true;
    return () => {
      isShown.current = false;
    };
  }, []);
  const made = useChange(change, {
    ...options,
    onDone: (subscription) => {
      if (!isShown.current) void showInDialog(subscription);
    },
  });
  useAsksToLeave(made.isPending);
  return made;
}

/** Makes the browser ask before a reload, which would lose a secret. */
function useAsksToLeave(isAny = true): void {
  useEffect(() => {
    if (!isAny) return;
    const leaving = new AbortController();
    window.addEventListener('beforeunload', (event) => event.preventDefault(), leaving);
    return () => leaving.abort();
  }, [isAny]);
}

/** Opens a dialog that no key and no click beside it closes. */
async function showInDialog({ url, secret }: SubscriptionWithSecret): Promise<void> {
  const { modals, shown } = await import('./overlays.tsx');
  await shown;
  const id = modals.open({
    title: `New signing secret of ${shortAddress(url)}`,
    size: 'lg',
    closeOnEscape: false,
    closeOnClickOutside: false,
    withCloseButton: false,
    children: (
      <Stack>
        <SecretOnce secret={secret} />
        <div>
          <Button onClick={() => modals.close(id)}>I have copied it</Button>
        </div>
      </Stack>
    ),
  });
}

export function SecretOnce({ secret }: { secret: string }) {
  useKept();
  useAsksToLeave();
  const alert = useRef<HTMLDivElement>(null);
  // The button that had the focus is gone.
  useEffect(() => alert.current?.focus(), []);
  return (
    <Stack gap="md">
      <Alert
        ref={alert}
        tabIndex={-1}
        color="yellow"
        icon={<KeyIcon />}
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
