/** An error that the user can fix. The command line shows its message without a stack. */
export class UserError extends Error {
  override name = 'UserError';
  /** The status of the response, if there was one. */
  readonly status: number | undefined;

  constructor(message: string, { status, ...options }: ErrorOptions & { status?: number | undefined } = {}) {
    super(message, options);
    this.status = status;
  }
}
