/** An address of the page that shows nothing. */
import { Button } from '@mantine/core';
import { Link } from 'react-router';
import { PageBody } from '../parts/layout.tsx';
import { Empty } from '../parts/states.tsx';

export function NotFoundPage() {
  return (
    <PageBody title="Nothing here">
      <Empty
        title="There is no such page"
        action={
          <Button component={Link} to="/" variant="default" mt="xs">
            To the overview
          </Button>
        }
      />
    </PageBody>
  );
}
