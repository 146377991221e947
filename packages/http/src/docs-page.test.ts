/** The page that shows an API. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import absolutePath from 'swagger-ui-dist/absolute-path.js';
import { docsRouter } from './docs-page.ts';
import { createApi } from './index.ts';
import { serve } from './test-service.ts';

it('gets the two files of Swagger UI that it loads, compressed, and nobody gets the others', async () => {
  const api = createApi({ title: 'Test', description: '', security: {} });
  const url = await serve((app) => app.use(docsRouter(api)));
  for (const [name, type] of [
    ['swagger-ui.css', 'text/css; charset=utf-8'],
    ['swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
  ] as const) {
    const content = await readFile(join(absolutePath(), name), 'utf8');
    // The second response comes from memory.
    for (let i = 0; i < 2; i++) {
      const response = await fetch(`${url}/docs/${name}`);
      const encoding = response.headers.get('content-encoding');
      expect([response.status, response.headers.get('content-type'), encoding]).toEqual([200, type, 'gzip']);
      expect((await response.text()) === content).toBe(true);
    }
  }
  for (const name of ['index.html', 'oauth2-redirect.html', 'package.json', 'swagger-ui-bundle.js.map'])
    expect([name, (await fetch(`${url}/docs/${name}`)).status]).toEqual([name, 404]);
});
