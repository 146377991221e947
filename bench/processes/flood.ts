/**
 * Publishes single events over many connections, after each response or at a fixed rate, and prints the responses that
 * it got.
 */
import { connect, type Socket } from 'node:net';
import { type EventType, event400, percentile } from '../harness.ts';
import type { Told } from '../overload.ts';
import { publishRequest } from '../raw-publishers.ts';

const { INGEST_URL, CONNECTIONS, SECONDS, PER_S } = process.env as Record<string, string>;
const { hostname, port } = new URL(INGEST_URL!);
/** One event in fifty has a delivery, so that ingest is overloaded and not the machine. */
const WITH_DELIVERY = 50;
/** Unanswered requests that a connection may have. If all connections have that many, an event is not sent. */
const DEPTH = 2;
const LAST_ANSWERS_MS = 15_000;

const request = (type: EventType) => publishRequest(hostname, event400(type));
const [delivered, undelivered] = [request('session.approved'), request('session.expired')];

const answers: Record<string, number> = {};
const times: number[] = [];
let [sent, deliveries] = [0, 0];
const count = (answer: string) => {
  answers[answer] = (answers[answer] ?? 0) + 1;
};

const free: (() => void)[] = [];
const sockets: Socket[] = [];
let out = 0;

function openConnection(onAnswer: (send: () => void) => void): void {
  const sentAt: number[] = [];
  let rest = '';
  const socket = connect(Number(port), hostname);
  sockets.push(socket);
  socket.setNoDelay(true);
  socket.on('error', ({ message }) => count(message));
  const send = () => {
    out += 1;
    sentAt.push(performance.now());
    socket.write(++sent % WITH_DELIVERY === 0 ? delivered : undelivered);
  };
  socket.on('data', (data) => {
    rest += data.toString('latin1');
    // A response is complete once its `Content-Length` bytes are there.
    for (;;) {
      const headEnd = rest.indexOf('\r\n\r\n');
      if (headEnd < 0) return;
      const head = rest.slice(0, headEnd);
      const end = headEnd + 4 + Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
      if (rest.length < end) return;
      const status = head.slice(9, 12);
      count(status === '503' && !/retry-after: \d/i.test(head) ? '503 without Retry-After' : status);
      deliveries += Number(/"deliveries":(\d+)/.exec(rest.slice(headEnd, end))?.[1] ?? 0);
      rest = rest.slice(end);
      out -= 1;
      times.push(performance.now() - sentAt.shift()!);
      onAnswer(send);
    }
  });
  for (let i = 0; i < DEPTH; i++) free.push(send);
}

const seconds = Number(SECONDS);
const startedAt = performance.now();
const elapsedS = () => (performance.now() - startedAt) / 1_000;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
let offered = 0;
if (PER_S === undefined) {
  for (let i = 0; i < Number(CONNECTIONS); i++) {
    openConnection((send) => {
      if (elapsedS() < seconds) send();
    });
  }
  for (let i = 0; i < free.length; i += DEPTH) free[i]!();
  await pause(seconds * 1_000);
  offered = sent;
} else {
  for (let i = 0; i < Number(CONNECTIONS); i++) openConnection((send) => free.push(send));
  for (; elapsedS() < seconds; await pause(2)) {
    for (const wanted = elapsedS() * Number(PER_S); offered < wanted; offered++) {
      const send = free.shift();
      if (send) send();
      else count('unsent');
    }
  }
}
const figures = { offeredPerS: offered / elapsedS(), acceptedPerS: (answers['202'] ?? 0) / elapsedS() };
for (const endsAt = performance.now() + LAST_ANSWERS_MS; out > 0 && performance.now() < endsAt; ) await pause(50);
if (out > 0) answers.none = out;
for (const socket of sockets) socket.destroy();
console.log(JSON.stringify({ answers, deliveries, ...figures, answerP99Ms: percentile(times, 0.99) } satisfies Told));
