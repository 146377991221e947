/** Whether instants are shown in UTC: read once for all of a page, which may be hundreds. Kept in the browser. */
import { useLocalStorage } from '@mantine/hooks';
import { createContext, type ReactNode, use } from 'react';

const Utc = createContext<[isUtc: boolean, setUtc: (isUtc: boolean) => void]>([false, () => undefined]);

export function UtcProvider({ children }: { children: ReactNode }) {
  const [isUtc, setUtc] = useLocalStorage({
    key: 'posthorn-utc',
    defaultValue: false,
    getInitialValueInEffect: false,
  });
  return <Utc value={[isUtc, setUtc]}>{children}</Utc>;
}

/** Whether instants are shown in UTC, and a function to change it. By default they are in the zone of the browser. */
export function useUtc() {
  return use(Utc);
}
