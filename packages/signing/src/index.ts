/** Signatures of deliveries, and the secrets that they are made with. */
export { diagnoseSignature, type SignatureDiagnosis } from './diagnose-signature.ts';
export { createFingerprints, type Fingerprints } from './fingerprint.ts';
export {
  createSecretBox,
  type EncryptionKeys,
  newSigningSecret,
  parseEncryptionKeys,
  SealBroken,
  type SecretBox,
} from './secret-box.ts';
export { ADVISED_TOLERANCE_S, deliveryHeaders, signatureHeader } from './signature.ts';
