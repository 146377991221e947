/** A button that starts a change and shows a loader until the change ends, or that its own action may remove. */
import { Button, type ButtonProps } from '@mantine/core';
import type { Icon } from '@primer/octicons-react';
import { useKeptFocus } from './kept-focus.ts';

type Looks = Pick<ButtonProps, 'variant' | 'disabled' | 'color' | 'size' | 'radius' | 'fullWidth'>;

export interface ActionButtonProps extends Looks {
  label: string;
  icon?: Icon;
  /** What the action is about, for screen readers, where several buttons have the same label. */
  about?: string;
  change: { isPending?: boolean; mutate: () => void };
}

export function ActionButton({ label, icon: Icon, about, change, ...button }: ActionButtonProps) {
  const { isPending = false, mutate } = change;
  return (
    <Button
      ref={useKeptFocus(isPending)}
      leftSection={Icon && <Icon size={16} />}
      loading={isPending}
      // Not for the second click of a double click: by then, the button may be another one.
      onClick={({ detail: clicks }) => clicks < 2 && mutate()}
      // A key that is held clicks again and again.
      onKeyDown={(event) => event.repeat && event.key === 'Enter' && event.preventDefault()}
      {...(about !== undefined && { 'aria-label': `${label} ${about}` })}
      {...button}
    >
      {label}
    </Button>
  );
}
