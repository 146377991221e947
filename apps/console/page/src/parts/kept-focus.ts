/** Keeps the place of keyboards and screen readers when what has the focus is disabled or removed. */
import { useLayoutEffect, useRef } from 'react';

/** Gives the focus to the content of the page if nothing has it. */
export function focusContent(): void {
  if (document.activeElement === document.body) document.getElementById('content')?.focus({ preventScroll: true });
}

/**
 * Returns the ref of a button that is disabled while `isPending`: it has the focus again afterwards. If the button is
 * removed, for example because its action makes no sense any more, the content gets the focus.
 */
export function useKeptFocus(isPending: boolean) {
  const button = useRef<HTMLButtonElement>(null);
  const hasLost = useRef(false);
  useLayoutEffect(() => {
    if (!isPending && hasLost.current && document.activeElement === document.body) button.current?.focus();
    hasLost.current = isPending;
  }, [isPending]);
  useLayoutEffect(() => {
    const own = button.current;
    return () => {
      if (document.activeElement === own) own?.blur();
      else if (!hasLost.current) return;
      focusContent();
    };
  }, []);
  return button;
}
