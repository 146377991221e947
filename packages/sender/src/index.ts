/** One attempt over HTTP, and what is to be known of addresses. */
export {
  type AddressRefusalReason,
  type AllowedNetworks,
  checkIp,
  checkUrl,
  parseNetworks,
  type UrlCheck,
} from './guard.ts';
export { createOneOffSender } from './one-off-sender.ts';
export { createProbe, type Probe, type ProbeResult } from './probe.ts';
export { createResolver, NameError, parseNameServers, type Resolve, type ResolverOptions } from './resolve.ts';
export type { Sender, SendRequest, SendResult } from './result.ts';
export { createSender, type SenderOptions } from './sender.ts';
