/** Serves the OpenAPI document at `/openapi.json` and Swagger UI at `/docs`. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { shareResult } from '@posthorn/runtime';
import { Router } from 'express';
// Not from the package itself, which would load a megabyte of code that runs in browsers.
import absolutePath from 'swagger-ui-dist/absolute-path.js';
import type { Api } from './api.ts';

/** Swagger UI needs its own files and inline styles. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** A link above the document. */
interface BackLink {
  href: string;
  label: string;
}

const STYLES = `.back { display: block; padding: 12px 20px; font: 15px system-ui, sans-serif; }
.back a { color: #274690; }
`;

const page = (title: string, icon: string, back: BackLink | undefined) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="${icon}">
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="stylesheet" href="/docs/page.css">
</head>
<body>
${back ? `<nav class="back"><a href="${back.href}">← ${back.label}</a></nav>` : ''}
<div id="api"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/show.js"></script>
</body>
</html>
`;
const script = `SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#api',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  persistAuthorization: false,
  tryItOutEnabled: true,
  validatorUrl: null,
});
`;

const gzipped = promisify(gzip);

/** The files of Swagger UI that the page loads. */
const SWAGGER_UI = ['swagger-ui.css', 'swagger-ui-bundle.js'];

/**
 * Returns a router for both. Call it after all routes are added. The page loads nothing from other servers; `back`
 * links to the app's own page, whose icon is `icon`.
 */
export function docsRouter(api: Api, { back, icon = 'data:,' }: { back?: BackLink; icon?: string } = {}): Router {
  let document: Buffer | undefined;
  const router = Router();
  router.get('/openapi.json', (_request, response) => {
    // Made at the first request, since most processes never get one, and only once, since requests need no key.
    document ??= Buffer.from(JSON.stringify(api.document()));
    response.type('json').send(document);
  });
  router.use('/docs', (_request, response, next) => {
    response.set('Content-Security-Policy', CONTENT_SECURITY_POLICY);
    next();
  });
  router.get('/docs', (_request, response) => void response.type('html').send(page(api.title, icon, back)));
  router.get('/docs/page.css', (_request, response) => void response.type('css').send(STYLES));
  router.get('/docs/show.js', (_request, response) => void response.type('js').send(script));
  for (const name of SWAGGER_UI) {
    // Read and compressed once, since everybody may ask for it: streamed, each request took an open file and 100 KB.
    const content = shareResult(
      async () => gzipped(await readFile(join(absolutePath(), name))),
      Number.POSITIVE_INFINITY,
    );
    router.get(`/docs/${name}`, async (_request, response) => {
      const body = await content();
      // Every browser takes gzip.
      response.set({ 'Cache-Control': 'public, max-age=3600', 'Content-Encoding': 'gzip' }).type(name).send(body);
    });
  }
  return router;
}
