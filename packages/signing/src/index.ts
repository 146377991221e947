/** Signatures of deliveries, and the secrets that they are made with. */
export { diagnoseSignature } from './diagnose-signature.ts';
export { createFingerprints, type Fingerprints } from './fingerprint.ts';
export {
  createSecretBox,
  deriveKeys,
  newSigningSecret,
  parseEncryptionKeys,
  SealBroken,
  type SecretBox,
} from './secret-box.ts';
export { deliveryHeaders, signatureHeader } from './signature.ts';
