/** Text to read or copy: ids, secrets, bodies, commands. It is never interpreted as HTML. */
import { ActionIcon, Box, CopyButton, Group, Text, Tooltip } from '@mantine/core';
import { CheckIcon, CopyIcon } from '@primer/octicons-react';
import { memo, type ReactNode, useState } from 'react';
import { ActionButton } from './action-button.tsx';
import { escapeInvisible, jsonTokens, looksLikeJson } from './json-tokens.ts';
import { countText } from './numbers.ts';
import './code.css';

function Copy({ value, label }: { value: string; label: string }) {
  return (
    <CopyButton value={value}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? 'Copied' : label}>
          <ActionIcon variant="subtle" color={copied ? 'teal' : 'gray'} size="sm" onClick={copy} aria-label={label}>
            {copied ? <CheckIcon size={15} /> : <CopyIcon size={15} />}
          </ActionIcon>
        </Tooltip>
      )}
    </CopyButton>
  );
}

/** An id or a URL with a copy button. `children` stand for a value that is not shown as it is. */
export function Copyable({ value, what, children }: { value: string; what: string; children?: ReactNode }) {
  return (
    <Group gap={4} wrap="nowrap" component="span" display="inline-flex" maw="100%">
      {children ?? (
        <Text span inherit className="mono" style={{ overflowWrap: 'anywhere' }}>
          {value}
        </Text>
      )}
      <Copy value={value} label={`Copy ${what}`} />
    </Group>
  );
}

/** Characters that are shown at first: some hundred lines. */
const MAX_SHOWN = 20_000;
/** Characters that are shown in color. Each token is an element of the page. */
const MAX_COLORED = 60_000;

/**
 * Preformatted text that scrolls; JSON is in color. The rest of a very long text is shown on request, and always
 * copied.
 */
export function CodeBlock({ text, label, maxHeight = 420 }: { text: string; label: string; maxHeight?: number }) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole || text.length <= MAX_SHOWN ? text : beginningOf(text, MAX_SHOWN);
  return (
    <>
      <div className="code">
        <Box component="pre" tabIndex={0} role="region" aria-label={label} mah={maxHeight}>
          <Colored text={shown} />
        </Box>
        {/* Beside the text: over it, it would cover the end of a long first line. */}
        <Box p={6}>
          <Copy value={text} label={`Copy ${label}`} />
        </Box>
      </div>
      {shown !== text && (
        <Group gap="xs" mt={6}>
          <Text size="xs" c="dimmed">
            These are the first {countText(shown.length)} of {countText(text.length)} characters.
          </Text>
          <ActionButton
            label="Show all"
            size="compact-xs"
            variant="default"
            change={{ mutate: () => setWhole(true) }}
          />
        </Group>
      )}
    </>
  );
}

const Colored = memo(({ text: original }: { text: string }) => {
  if (!looksLikeJson(original)) return original;
  const text = escapeInvisible(original);
  const colored = beginningOf(text, MAX_COLORED);
  return (
    <>
      {jsonTokens(colored).map(({ kind, text: token }, index) =>
        kind === null ? (
          token
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: tokens have no other identity
          <span key={index} className={`json-${kind}`}>
            {token}
          </span>
        ),
      )}
      {text.slice(colored.length)}
    </>
  );
});

/** Returns at most `length` characters, and no half of a character. */
function beginningOf(text: string, length: number): string {
  const isHalf = /[\ud800-\udbff]/.test(text.charAt(length - 1));
  return text.slice(0, isHalf ? length - 1 : length);
}

/** Returns indented JSON. Numbers keep their original digits if the browser supports it. */
export function prettyJson(text: string): string {
  const exact = JSON as unknown as { rawJSON?: (source: string) => unknown };
  const keepDigits = (_name: string, value: unknown, context?: { source?: string }) =>
    typeof value === 'number' && exact.rawJSON && context?.source ? exact.rawJSON(context.source) : value;
  return JSON.stringify(JSON.parse(text, keepDigits as (name: string, value: unknown) => unknown), null, 2);
}

/** Values in a text that is indented. Each level of nesting makes every line in it longer. */
const MAX_INDENTED_VALUES = 300;

/**
 * Returns a stranger's JSON indented. Any other text, and JSON with hundreds of lists or objects, is returned as it is.
 */
export function indented(text: string): string {
  if ((text.match(/[[{]/g)?.length ?? 0) > MAX_INDENTED_VALUES) return text;
  try {
    return prettyJson(text);
  } catch {
    return text;
  }
}

/** Returns a curl command that sends a request: with `-g`, since curl would expand `[1-9]` in the URL. */
export function curlOf(request: { url: string; headers: Record<string, string>; body: string }): string {
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const headers = Object.entries(request.headers).map(([name, value]) => `  -H ${quoted(`${name}: ${value}`)}`);
  return [`curl -g -i -X POST ${quoted(request.url)}`, ...headers, `  --data-raw ${quoted(request.body)}`].join(
    ' \\\n',
  );
}
