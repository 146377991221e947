/**
 * What came back from an attempt or a validation. It was written by a stranger: it is shown as text only, and never as
 * a link.
 */
import { Stack, Text } from '@mantine/core';
import { type CameBack, cameBackFacts } from './attempt-facts.ts';
import { CodeBlock, indented } from './code.tsx';
import { Facts, Note } from './layout.tsx';

const MAX_BODY_HEIGHT = 260;

/** The facts and the body. */
export function CameBackDetails({ cameBack, label }: { cameBack: CameBack; label: string }) {
  return (
    <Stack gap="xs">
      <Facts facts={cameBackFacts(cameBack)} />
      <ResponseBody cameBack={cameBack} label={label} />
    </Stack>
  );
}

/** The kept beginning of the body; says why there is none. */
export function ResponseBody({ cameBack: { response }, label }: { cameBack: CameBack; label: string }) {
  if (response === null) return <Note size="xs">No body was kept.</Note>;
  if (response.body === '') {
    return (
      <Note size="xs">
        {'content-encoding' in response.headers ? 'The body is compressed.' : 'No body arrived with the response.'}
      </Note>
    );
  }
  return (
    <>
      <CodeBlock text={indented(response.body)} label={label} maxHeight={MAX_BODY_HEIGHT} />
      {response.body_truncated && <Note size="xs">Only the beginning was kept.</Note>}
    </>
  );
}

/** The beginning of the body in one line, if there is one. */
export function FirstLine({ cameBack: { response } }: { cameBack: CameBack }) {
  const line = response?.body.replaceAll(/\s+/g, ' ').trim();
  if (!line) return null;
  return (
    <Text size="sm" className="mono" lineClamp={2} style={{ overflowWrap: 'anywhere' }}>
      {line}
    </Text>
  );
}
