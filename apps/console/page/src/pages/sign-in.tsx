/** The form to sign in with an operator token. */
import { Alert, Button, Center, Group, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core';
import type { Session } from '@posthorn/operator-api';
import { useState } from 'react';
import { Navigate, useSearchParams } from 'react-router';
import { call } from '../api.ts';
import { useKeptFocus } from '../parts/kept-focus.ts';
import { Note, useTitle } from '../parts/layout.tsx';
import { beginSession, sessionHasExpired, useChange, useSession } from '../queries.ts';

export function SignInPage() {
  useTitle('Sign in');
  const session = useSession();
  const [search] = useSearchParams();
  const [token, setToken] = useState('');
  const signIn = useChange(() => call<Session>('POST', '/v1/session', { token: token.trim() }), {
    onDone: beginSession,
    quiet: true,
  });
  const submit = useKeptFocus(signIn.isPending);
  const next = search.get('next') ?? '/';
  // Only a path of this page. Any other URL would be an open redirect; browsers ignore tabs and line breaks in it.
  if (session.data) return <Navigate replace to={/^\/(?![/\\\s])/.test(next) ? next : '/'} />;
  return (
    <Center mih="100vh" p="md" component="main">
      <Paper withBorder p="xl" w="100%" maw={400}>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            signIn.mutate();
          }}
        >
          <Stack>
            <Group gap="sm">
              <img src="/posthorn.svg" width={34} height={34} alt="" />
              <Title order={1} size="h3">
                Sign in to Posthorn
              </Title>
            </Group>
            {sessionHasExpired() && <Text size="sm">Your session has ended. Sign in to return to where you were.</Text>}
            <Note>Use one of the tokens in the console's OPERATOR_TOKENS setting.</Note>
            <PasswordInput
              label="Operator token"
              value={token}
              onChange={(event) => setToken(event.currentTarget.value)}
              autoFocus
              autoComplete="current-password"
              required
            />
            {signIn.error && (
              <Alert color="red" role="alert">
                {signIn.error.message}
              </Alert>
            )}
            <Button ref={submit} type="submit" loading={signIn.isPending} disabled={token.trim() === ''}>
              Sign in
            </Button>
          </Stack>
        </form>
      </Paper>
    </Center>
  );
}
