/** An error that the user can fix. The command line shows its message without a stack. */
export class UserError extends Error {
  override name = 'UserError';
}
