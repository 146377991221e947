/** What is shown above every page: notifications and the dialogs that ask for confirmation. */
import '@mantine/notifications/styles.css';
import { ModalsProvider, modals } from '@mantine/modals';
import { Notifications, notifications } from '@mantine/notifications';
import { useEffect } from 'react';

export { modals, notifications };

let setShown: () => void;
/** Resolves when dialogs can be opened. */
export const shown = new Promise<void>((resolve) => {
  setShown = resolve;
});

export function Overlays() {
  useEffect(() => setShown(), []);
  return (
    <>
      <ModalsProvider labels={{ confirm: 'Yes', cancel: 'Cancel' }} />
      <Notifications position="bottom-right" />
    </>
  );
}
