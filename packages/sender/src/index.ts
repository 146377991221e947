/** One attempt over HTTP, and what is to be known of addresses. */
export { clientNetwork } from './client-network.ts';
export {
  type AddressRefusalReason,
  type AllowedNetworks,
  checkIp,
  checkUrl,
  parseNetworks,
  type UrlCheck,
} from './guard.ts';
export type { Resolve } from './resolve.ts';
export { createSender, type Sender, type SenderOptions, type SendRequest, type SendResult } from './sender.ts';
