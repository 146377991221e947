/** The headers that keep a browser from doing with the console's pages what they are not for. */
import type { RequestHandler } from 'express';
import helmet from 'helmet';

/** Scripts come from the console alone, never from the page itself. Bull Board writes styles into its page. */
export function securityHeaders(): RequestHandler {
  return helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'self'"],
        scriptSrc: ["'self'"],
        styleSrc: ["'self'", "'unsafe-inline'"],
        imgSrc: ["'self'", 'data:'],
        objectSrc: ["'none'"],
        baseUri: ["'self'"],
        formAction: ["'self'"],
        frameAncestors: ["'none'"],
      },
    },
  });
}
