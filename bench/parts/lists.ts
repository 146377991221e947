/** Pages of lists, of few and of many deliveries: `npm run bench -- --only=lists`. */
import { benchLists } from '../lists.ts';
import { type Run, round } from '../run.ts';

export async function lists({ bench, size }: Run) {
  const [few, many] = [1_000, size(1_000_000)];
  const fromFew = await benchLists(bench, few);
  const fromMany = await benchLists(bench, many);
  console.log('Lists: a page of 50 deliveries over the API, median ms');
  console.table(
    Object.fromEntries(
      Object.entries(fromFew).map(([name, ms]) => [
        name,
        {
          [`of ${few}`]: round(ms, 1),
          [`of ${many}`]: round(fromMany[name]!, 1),
          ratio: round(fromMany[name]! / ms, 2),
        },
      ]),
    ),
  );
  return { few: fromFew, many: fromMany };
}
