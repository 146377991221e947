/** A name server on a free UDP port of loopback. It responds as the test says, or not at all. */
import { createSocket } from 'node:dgram';

/**
 * Addresses of a name, `silent` for no response at all, `refused` for an error of the server, or `missing` for a name
 * that does not exist.
 */
export type NameAnswer = readonly string[] | 'silent' | 'refused' | 'missing';

export interface NameServer {
  /** `ip:port`, as in the settings. */
  address: string;
  /** The names of all queries so far, one entry for A and one for AAAA. */
  queries: string[];
  /** Resolves once there were `count` queries for names that end in `suffix`. */
  asked(count: number, suffix: string): Promise<void>;
  close(): Promise<void>;
}

const TYPE_A = 1;
const TYPE_AAAA = 28;
const RCODES = { refused: 5, missing: 3 };

/** Starts a name server. `answer` gets the name in lower case and the family of the queried addresses. */
export async function startNameServer(answer: (name: string, family: 4 | 6) => NameAnswer): Promise<NameServer> {
  const socket = createSocket('udp4');
  const queries: string[] = [];
  const waiting = new Set<() => void>();
  socket.on('message', (query, from) => {
    const { name, type, end } = readQuestion(query);
    queries.push(name);
    for (const check of waiting) check();
    if (type !== TYPE_A && type !== TYPE_AAAA) return;
    const family = type === TYPE_A ? 4 : 6;
    const answered = answer(name, family);
    if (answered === 'silent') return;
    const question = query.subarray(12, end);
    const addresses =
      typeof answered === 'string' ? [] : answered.filter((address) => address.includes(':') === (family === 6));
    const header = Buffer.alloc(12);
    query.copy(header, 0, 0, 2);
    header.writeUInt16BE(0x8180 | (typeof answered === 'string' ? RCODES[answered] : 0), 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(addresses.length, 6);
    socket.send(Buffer.concat([header, question, ...addresses.map((address) => record(type, address))]), from.port);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  return {
    address: `127.0.0.1:${socket.address().port}`,
    queries,
    asked(count, suffix) {
      return new Promise((resolve) => {
        const check = () => {
          if (queries.filter((name) => name.endsWith(suffix)).length < count) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      });
    },
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}

function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

/** One resource record for the name of the question, with a time to live of 0. */
function record(type: number, address: string): Buffer {
  const data =
    type === TYPE_A ? Buffer.from(address.split('.').map(Number)) : Buffer.from(groupsOf(address).join(''), 'hex');
  const head = Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 0, 0, data.length]);
  return Buffer.concat([head, data]);
}

/** The eight groups of an IPv6 address, four hex digits each. */
function groupsOf(address: string): string[] {
  const [left = [], right = []] = address
    .split('::')
    .map((part) => part.split(':').filter((group) => group !== ''))
    .map((groups) => groups.map((group) => group.padStart(4, '0')));
  return [...left, ...Array.from({ length: 8 - left.length - right.length }, () => '0000'), ...right];
}
