/** The Mantine theme of the page. */
import { type CSSVariablesResolver, createTheme } from '@mantine/core';

const closable = { closeButtonProps: { 'aria-label': 'Close' } };
/** The list of options scrolls itself: it is the popup that the arrow keys of its field move in. */
const scrollingOptions = {
  defaultProps: { withScrollArea: false },
  styles: { options: { maxHeight: 220, overflowY: 'auto' } },
};

export const theme = createTheme({
  primaryColor: 'indigo',
  primaryShade: 7,
  defaultRadius: 'md',
  cursorType: 'pointer',
  autoContrast: true,
  respectReducedMotion: true,
  fontFamily: 'Inter, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace',
  headings: { fontWeight: '600' },
  // By their names only: importing them here would load the code of all of them before the first paint.
  components: {
    DateTimePicker: { defaultProps: { clearable: true } },
    Drawer: { defaultProps: closable },
    // A menu that is higher than the window scrolls itself: if the window scrolled, the menu would close.
    Menu: { defaultProps: { middlewares: { size: true } }, styles: { dropdown: { overflowY: 'auto' } } },
    Modal: { defaultProps: closable, styles: { title: { overflowWrap: 'anywhere' } } },
    MultiSelect: scrollingOptions,
    Notification: { defaultProps: closable, styles: { description: { overflowWrap: 'anywhere' } } },
    Select: scrollingOptions,
    Table: {
      defaultProps: {
        horizontalSpacing: 'md',
        verticalSpacing: 7,
        tabularNums: true,
        // On Mantine's own colors for the row under the pointer, links have too little contrast.
        highlightOnHoverColor: 'light-dark(var(--mantine-color-gray-0), var(--mantine-color-dark-6))',
      },
      styles: {
        th: { fontSize: 'var(--mantine-font-size-xs)', fontWeight: 550, color: 'var(--mantine-color-dimmed)' },
      },
    },
  },
});

const redButtons = { '--mantine-color-red-filled': '#c92a2a', '--mantine-color-red-filled-hover': '#b02020' };

/** A contrast of at least 4.5 to 1 for secondary text, placeholders, badges and red buttons (WCAG AA). */
export const readable: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    ...redButtons,
    '--mantine-color-dimmed': '#5c636b',
    '--mantine-color-placeholder': '#6c737b',
    '--mantine-color-error': '#c92a2a',
    '--mantine-color-yellow-light-color': '#7a4a00',
    '--mantine-color-orange-light-color': '#9a3c00',
    '--mantine-color-teal-light-color': '#05603f',
    '--mantine-color-red-light-color': '#b02020',
    '--mantine-color-gray-light-color': '#495057',
    '--mantine-color-blue-light-color': '#125a9e',
  },
  dark: {
    ...redButtons,
    '--mantine-color-dimmed': '#a6a7ab',
    '--mantine-color-placeholder': '#a0a2a6',
  },
});
