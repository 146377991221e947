/** One attempt over HTTP, and the address guard. */
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
