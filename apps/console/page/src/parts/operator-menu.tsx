/** The name of the signed-in operator, with a menu: time zone, sign out. */
import { Group, Menu, Text, UnstyledButton } from '@mantine/core';
import { ChevronDownIcon, ClockIcon, SignOutIcon } from '@primer/octicons-react';
import { endSession, useChange, useSession } from '../queries.ts';
import { useUtc } from './utc.tsx';

export function OperatorMenu() {
  const { data: session } = useSession();
  const [isUtc, setUtc] = useUtc();
  const signOut = useChange(endSession);
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <UnstyledButton px="xs" py={6} aria-label={`Signed in as ${session?.operator}`}>
          <Group gap={4} wrap="nowrap">
            <Text size="sm" maw={110} truncate>
              {session?.operator}
            </Text>
            <ChevronDownIcon size={14} />
          </Group>
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item leftSection={<ClockIcon size={16} />} onClick={() => setUtc(!isUtc)}>
          {isUtc ? 'Times in local time' : 'Times in UTC'}
        </Menu.Item>
        <Menu.Item leftSection={<SignOutIcon size={16} />} onClick={() => signOut.mutate()}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
