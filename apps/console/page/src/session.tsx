/** Shows its content to signed-in operators. Others sign in first and then return to the page they opened. */
import { Box, Center, Loader } from '@mantine/core';
import type { ReactNode } from 'react';
import { Navigate, useLocation } from 'react-router';
import { isStorageAway, withQuery } from './api.ts';
import { Problem } from './parts/states.tsx';
import { useSession } from './queries.ts';
import { SIGN_IN } from './routes.ts';

export function RequireSession({ children }: { children: ReactNode }) {
  const session = useSession();
  const { pathname, search } = useLocation();
  if (session.data) return children;
  if (session.data === null) {
    const next = `${pathname}${search}`;
    return <Navigate replace to={withQuery(SIGN_IN, { next: next === '/' ? null : next })} />;
  }
  const problem = session.error ?? session.failureReason;
  return (
    <Center h="100vh" p="md">
      {problem ? (
        <Box maw={420}>
          <Problem
            title={isStorageAway(problem) ? 'Redis is unavailable' : 'The console is unavailable'}
            error={problem}
            retry={session.refetch}
          />
        </Box>
      ) : (
        <Loader role="status" aria-label="Loading" />
      )}
    </Center>
  );
}
