/** A headless chromium at a console, and the actions that tests of the page share. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { AxeBuilder } from '@axe-core/playwright';
import { HUNG_MS } from '@posthorn/testing';
import { type Browser, chromium, type Page } from 'playwright-core';
import { OPERATOR_TOKEN } from '../world.ts';

const SCREENSHOTS = join(import.meta.dirname, '../../.posthorn/screenshots');

export const WIDTHS = { wide: { width: 1280, height: 900 }, narrow: { width: 390, height: 844 } } as const;

/** A name under which the browser reaches this machine: on an address of a private network, some pages load less than elsewhere. */
export const PUBLIC_NAME = 'posthorn.example';

export async function launchBrowser(): Promise<Browser> {
  const executablePath = process.env.POSTHORN_TEST_CHROMIUM;
  if (!executablePath) throw new Error('No chromium for tests: run them with npm test');
  return await chromium.launch({
    executablePath,
    args: ['--no-sandbox', `--host-resolver-rules=MAP ${PUBLIC_NAME} 127.0.0.1`],
  });
}

export type ColorScheme = 'light' | 'dark';

/** The rules of axe whose result depends on colors. */
const COLOR_RULES = ['color-contrast', 'link-in-text-block'];

/** Evaluated in the page: resolves once no transition runs. */
const TRANSITIONS_END = `Promise.allSettled(
  document.getAnimations().filter(({ effect }) => effect.getComputedTiming().endTime !== Infinity).map(({ finished }) => finished)
).then(() => null)`;

export type Visit = Awaited<ReturnType<typeof openVisit>>;

/** A user with a browser of their own at a console. `problems` are errors in the page and violations of its security policy. */
export async function openVisit(
  browser: Browser,
  consoleUrl: string,
  options: { width?: keyof typeof WIDTHS; timezoneId?: string } = {},
) {
  const { width = 'wide', timezoneId = 'UTC' } = options;
  let colorScheme: ColorScheme = 'light';
  const context = await browser.newContext({
    viewport: WIDTHS[width],
    colorScheme,
    baseURL: consoleUrl,
    timezoneId,
    reducedMotion: 'reduce',
  });
  context.setDefaultTimeout(HUNG_MS);
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: consoleUrl });
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    // The page shows what the API refuses; the browser's own line about the status adds nothing.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      problems.push(message.text());
  });
  page.on('response', (response) => {
    if (response.status() >= 500) problems.push(`${response.status()} ${response.url()}`);
  });
  return {
    page,
    context,
    problems,
    /** Runs `work`; if it fails, the error includes what the page showed. */
    async explained(work: () => Promise<void>): Promise<void> {
      try {
        await work();
      } catch (cause) {
        const shown = await page.locator('body').textContent();
        throw new Error(`${String(cause)}\n${page.url()} showed:\n${shown}\n${problems.join('\n')}`, { cause });
      }
    },
    async signIn(token = OPERATOR_TOKEN): Promise<void> {
      await page.getByLabel('Operator token').first().fill(token);
      // A user who leaves before the response has arrived is not signed in.
      const answered = page.waitForResponse((response) => response.request().method() === 'POST');
      await page.getByRole('button', { name: 'Sign in' }).click();
      await answered;
    },
    /** Switches the color scheme of the page, and waits until no color changes any more. */
    async showIn(scheme: ColorScheme): Promise<void> {
      colorScheme = scheme;
      await page.emulateMedia({ colorScheme: scheme });
      await page.locator(`:root[data-mantine-color-scheme="${scheme}"]`).waitFor({ state: 'attached' });
      await page.evaluate(TRANSITIONS_END);
    },
    /** Returns axe's serious and critical findings for what is shown now; `rules` limits it to those that depend on colors. */
    async accessibilityFindings(rules: 'all' | 'colors' = 'all'): Promise<string[]> {
      // Legacy mode: the page has no frames of other origins, and without it axe opens one more page for each analysis.
      const axe = new AxeBuilder({ page }).setLegacyMode(true);
      // Rows further down are built like the first ones, and checking colors takes long.
      axe.exclude('tbody > tr:nth-child(n + 9)');
      axe.options({
        resultTypes: ['violations'],
        ...(rules === 'colors' && { runOnly: { type: 'rule', values: COLOR_RULES } }),
      });
      const { violations } = await axe.analyze();
      return violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(
          ({ id, nodes }) =>
            `${id}: ${nodes.map(({ html, failureSummary }) => `${html} (${failureSummary})`).join('; ')}`,
        );
    },
    async screenshot(name: string): Promise<void> {
      mkdirSync(SCREENSHOTS, { recursive: true });
      await page.screenshot({ path: join(SCREENSHOTS, `${name}-${width}-${colorScheme}.png`), fullPage: true });
    },
    /** The number of pixels by which the page is wider than its window. */
    overflow: () => page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
    close: () => context.close(),
  };
}

/** The text of a toast that confirms an action. */
export async function toast(page: Page, text: string): Promise<void> {
  await page.getByText(text).first().waitFor();
}
