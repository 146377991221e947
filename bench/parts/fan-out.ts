/** How long one event takes to reach many addresses: `npm run bench -- --only=fan-out`. */
import { benchFanOut } from '../fan-out.ts';
import { type Run, round } from '../run.ts';

export async function fanOut({ bench, quick, size }: Run) {
  const fanOut = await benchFanOut(bench, [100, size(1_000)], quick ? 3 : 10);
  console.log('Fan-out of one event, ms (median): until all have it, and until the publisher has its response');
  console.table(
    fanOut.map(({ size: addresses, requests, plain, posthorn }) => ({
      addresses,
      'the requests alone': round(requests.fanOutMs),
      'plain: all have it': round(plain.fanOutMs),
      'Posthorn: all have it': round(posthorn.fanOutMs),
      goal: addresses === 100 ? '<= 15' : '',
      'plain: response': round(plain.fanOutPublishMs),
      'Posthorn: response': round(posthorn.fanOutPublishMs),
    })),
  );
  return fanOut;
}
