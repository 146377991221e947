/** What is shown above every page: notifications and the dialogs that ask for confirmation. */
import '@mantine/notifications/styles.css';
import { ModalsProvider } from '@mantine/modals';
import { Notifications, notifications } from '@mantine/notifications';

export { notifications };

export function Overlays() {
  return (
    <>
      <ModalsProvider labels={{ confirm: 'Yes', cancel: 'Cancel' }} />
      <Notifications position="bottom-right" />
    </>
  );
}
