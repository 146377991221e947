/** A button that sends a change without a value, and shows that it is under way. */
import { Button, type ButtonProps } from '@mantine/core';
import type { TablerIcon } from '@tabler/icons-react';
import type { ReactNode } from 'react';

interface ActionButtonProps extends Pick<ButtonProps, 'variant' | 'disabled'> {
  change: { isPending: boolean; mutate: () => void };
  icon?: TablerIcon;
  children: ReactNode;
}

export function ActionButton({ change, icon: Icon, ...button }: ActionButtonProps) {
  return (
    <Button
      leftSection={Icon && <Icon size={16} />}
      loading={change.isPending}
      onClick={() => change.mutate()}
      {...button}
    />
  );
}
