/** Signatures and the secrets behind them. */
export { createSecretBox, newSigningSecret, parseEncryptionKey, SealBroken, type SecretBox } from './secret-box.ts';
export { ADVISED_TOLERANCE_S, deliveryHeaders, signatureHeader, verifySignature } from './signature.ts';
