/** Shows its content to signed-in operators. Others sign in first and then return to the page they opened. */
import { Alert, Button, Center, Loader, Stack } from '@mantine/core';
import type { ReactNode } from 'react';
import { Navigate, useLocation } from 'react-router';
import { useSession } from './queries.ts';

export function RequireSession({ children }: { children: ReactNode }) {
  const session = useSession();
  const { pathname, search } = useLocation();
  if (session.isPending) {
    return (
      <Center h="100vh">
        <Loader aria-label="Loading" />
      </Center>
    );
  }
  if (session.isError) {
    return (
      <Center h="100vh" p="md">
        <Stack maw={420}>
          <Alert color="red" title="Cannot reach the console">
            {session.error.message}
          </Alert>
          <Button variant="default" onClick={() => session.refetch()}>
            Try again
          </Button>
        </Stack>
      </Center>
    );
  }
  if (session.data === null) {
    const next = `${pathname}${search}`;
    return <Navigate replace to={next === '/' ? '/sign-in' : `/sign-in?next=${encodeURIComponent(next)}`} />;
  }
  return children;
}
