/** `npm run build`: what has to be built before the console can serve it. */
import { buildPage } from './build-page.ts';

buildPage(console.log);
