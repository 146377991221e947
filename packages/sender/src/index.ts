/** One attempt over HTTP, and the address guard. */
export { checkIp, checkUrl, parseNetworks } from './guard.ts';
export { createOneOffSender } from './one-off-sender.ts';
export { createProbe, type Probe, type ProbeResult } from './probe.ts';
export { createResolver, MAX_LOOKUP_MS, parseNameServers } from './resolve.ts';
export { errorOfOutcome, type Sender, type SendRequest, type SendResult } from './result.ts';
export { createSender } from './sender.ts';
