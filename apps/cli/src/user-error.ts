/** An error that the user can fix. The command line shows its message without a stack. */
export class UserError extends Error {
  override name = 'UserError';
  /** The status of the response, if there was one. */
  readonly status: number | undefined;
  /** Whether a call that changes something failed so that it may have been carried out all the same. */
  readonly mayBeDone: boolean;

  constructor(message: string, { status, mayBeDone = false, ...options }: UserErrorOptions = {}) {
    super(message, options);
    this.status = status;
    this.mayBeDone = mayBeDone;
  }
}

interface UserErrorOptions extends ErrorOptions {
  status?: number | undefined;
  mayBeDone?: boolean;
}
