/** The page for an unknown URL. */
import { Button } from '@mantine/core';
import { Link } from 'react-router';
import { PageBody } from '../parts/layout.tsx';
import { Empty } from '../parts/states.tsx';

export function NotFoundPage() {
  return (
    <PageBody title="Nothing here">
      <Empty
        title="Page not found"
        action={
          <Button component={Link} to="/" variant="default" mt="xs">
            To the overview
          </Button>
        }
      />
    </PageBody>
  );
}
