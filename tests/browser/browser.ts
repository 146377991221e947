/** A headless chromium at a console, and the actions that tests of the page share. */
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { eventually, HUNG_MS } from '@posthorn/testing';
import type { ContextObject, Result, RunOptions } from 'axe-core';
import { type Browser, chromium, type Page, type Request } from 'playwright-core';
import { OPERATOR_TOKEN } from '../world.ts';

const SCREENSHOTS = join(import.meta.dirname, '../../.posthorn/screenshots');

export const WIDTHS = { wide: { width: 1280, height: 900 }, narrow: { width: 390, height: 844 } } as const;

/**
 * A name under which the browser reaches this machine: on an address of a private network, some pages load less than
 * elsewhere.
 */
export const PUBLIC_NAME = 'posthorn.example';

export async function launchBrowser(): Promise<Browser> {
  const executablePath = process.env.POSTHORN_TEST_CHROMIUM;
  if (!executablePath) throw new Error('No chromium for tests: run them with npm test');
  return await chromium.launch({
    executablePath,
    args: [
      '--no-sandbox',
      `--host-resolver-rules=MAP ${PUBLIC_NAME} 127.0.0.1`,
      // A page lives for seconds: optimizing its code takes more CPU than it saves.
      '--js-flags=--no-maglev,--no-opt',
    ],
  });
}

export type ColorScheme = 'light' | 'dark';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** Rows further down are built like the first ones, and checking colors takes long. */
const CHECKED: ContextObject = { exclude: [['tbody > tr:nth-child(n + 9)']] };
/** The rules of axe whose result depends on colors. */
const COLOR_RULES = ['color-contrast', 'link-in-text-block'];

/** By how much a clock is set forward when it is stopped: more than a busy machine needs to do that. */
const CLOCK_JUMP_MS = 60_000;

/** Evaluated in the page: resolves once no transition runs. */
const TRANSITIONS_END = `Promise.allSettled(
  document.getAnimations().filter(({ effect }) => effect.getComputedTiming().endTime !== Infinity).map(({ finished }) => finished)
).then(() => null)`;

/** Holds requests back, all or those with a method, until the function that it resolves with is called. */
export async function holdBack(page: Page, url: string | RegExp, method?: string): Promise<() => void> {
  const mayGoOn = Promise.withResolvers<void>();
  await page.route(url, async (route) => {
    if (method === undefined || route.request().method() === method) await mayGoOn.promise;
    await route.continue();
  });
  return mayGoOn.resolve;
}

/** Waits until the page has read all answers that it has received: it reads one more after them. */
export async function readAll(page: Page): Promise<void> {
  await page.evaluate("fetch('/healthz').then((answer) => answer.text())");
}

export type Visit = Awaited<ReturnType<typeof openVisit>>;

/**
 * A user with a browser of their own at a console. `problems` are errors in the page and violations of its security
 * policy.
 */
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
  const underWay = new Set<Request>();
  /** The URLs of all calls that were answered. */
  const answered: string[] = [];
  page.on('request', (request) => underWay.add(request));
  page.on('requestfinished', (request) => {
    underWay.delete(request);
    answered.push(request.url());
  });
  const failed: string[] = [];
  page.on('requestfailed', (request) => {
    underWay.delete(request);
    failed.push(`${request.failure()?.errorText} ${request.url()}`);
  });
  const staleMark = page.getByRole('status').filter({ hasText: 'Out of date: last answer at' });
  return {
    page,
    context,
    problems,
    /** The mark of data that are not refreshed any more. */
    staleMark,
    /**
     * Stops the clock of the page, which has to be installed, when `call` has been made and answered since and no call
     * is under way. Returns its time, which then passes only with `page.clock.runFor`: however slow this machine is,
     * the page has no more time than the test gives it.
     */
    async stopClock(call: string): Promise<number> {
      // What marks data is loaded after the rest of the page.
      await page.locator('main > div > [role="status"]').waitFor({ state: 'attached' });
      // The clock runs until this call arrives, and can't be set back.
      await page.clock.pauseAt((await page.evaluate(() => Date.now())) + CLOCK_JUMP_MS);
      // Calls made before the jump took all of it by the page's clock. Once a later call is seen, they all are.
      const seen = page.waitForEvent('requestfinished', (request) => request.url().endsWith('/healthz'));
      await Promise.all([seen, readAll(page)]);
      await eventually('no call under way', () => underWay.size === 0);
      const before = answered.length;
      await eventually('the page to be up to date', async () => {
        await page.clock.runFor(250);
        await eventually('all answers', () => underWay.size === 0);
        // The first answer may be one to the retry of a call that the jump ended.
        const since = answered.slice(before).filter((url) => url.includes(call));
        return new Set(since).size < since.length && !(await staleMark.isVisible());
      });
      await readAll(page);
      return await page.evaluate(() => Date.now());
    },
    /** Runs `work`; if it fails, the error includes what the page showed, and its last calls. */
    async explained(work: () => Promise<void>): Promise<void> {
      try {
        await work();
      } catch (cause) {
        const shown = await page.locator('body').textContent();
        const calls = [...answered.slice(-20), 'Failed:', ...failed.slice(-20), 'Under way:'];
        const all = [...problems, 'Answered:', ...calls, ...[...underWay].map((request) => request.url())];
        throw new Error(`${String(cause)}\n${page.url()} showed:\n${shown}\n${all.join('\n')}`, { cause });
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
    /**
     * Returns axe's serious and critical findings for what is shown now. In dark mode it looks only at colors, which
     * are all that differs: a test looks in light mode too.
     */
    async accessibilityFindings(): Promise<string[]> {
      // A document keeps it, and loading it takes as much CPU as checking colors.
      if (!(await page.evaluate("'axe' in window"))) await page.evaluate(AXE);
      const options: RunOptions = {
        resultTypes: ['violations'],
        ...(colorScheme === 'dark' && { runOnly: { type: 'rule', values: COLOR_RULES } }),
      };
      const run = `axe.run(${JSON.stringify(CHECKED)}, ${JSON.stringify(options)}).then((found) => found.violations)`;
      const violations = await page.evaluate<Result[]>(run);
      return violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(
          ({ id, nodes }) =>
            `${id}: ${nodes.map(({ html, failureSummary }) => `${html} (${failureSummary})`).join('; ')}`,
        );
    },
    /** Only if somebody wants to look at it: it takes half a second of CPU. */
    async screenshot(name: string): Promise<void> {
      if (!process.env.POSTHORN_SCREENSHOTS) return;
      mkdirSync(SCREENSHOTS, { recursive: true });
      await page.screenshot({ path: join(SCREENSHOTS, `${name}-${width}-${colorScheme}.png`), fullPage: true });
    },
    /** The number of pixels by which the page is wider than its window. */
    overflow: () => page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
    async close(): Promise<void> {
      // A call of the page may be in a route handler of the test, which would fail, and with it every test of the file.
      for (const one of context.pages()) await one.unrouteAll({ behavior: 'ignoreErrors' });
      await context.close();
    },
  };
}

/** Clicks the button with this name, and returns the text that it copies. */
export async function copyWith(page: Page, name: string): Promise<string> {
  await page.evaluate("navigator.clipboard.writeText('')");
  await page.getByRole('button', { name }).click();
  // The page copies some time after the click.
  const copied = () => page.evaluate<string>('navigator.clipboard.readText()');
  return await eventually('text in the clipboard', async () => (await copied()) || undefined);
}

/**
 * Runs `act`, which a toast with this text confirms. Toasts go away by themselves, perhaps while this process gets no
 * CPU, so the page itself notes what an element with this selector has shown.
 */
export async function confirmed(
  page: Page,
  text: string,
  act: () => Promise<void>,
  selector = '[role="alert"]',
): Promise<void> {
  await page.evaluate(`{
    window.wasShown = false;
    new MutationObserver((_, observer) => {
      const found = [...document.querySelectorAll(${JSON.stringify(selector)})];
      if (!found.some(({ textContent }) => textContent.includes(${JSON.stringify(text)}))) return;
      window.wasShown = true;
      observer.disconnect();
    }).observe(document.body, { childList: true, subtree: true });
  }`);
  await act();
  await eventually(`the page to say "${text}"`, () => page.evaluate<boolean>('wasShown'));
}
