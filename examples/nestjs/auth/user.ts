/** A user of the shop. */
export interface User {
  readonly id: string;
  readonly name: string;
  readonly role: 'customer' | 'clerk';
}

/** A request after the guard. */
export interface AuthedRequest {
  readonly headers: Readonly<Record<string, string | undefined>>;
  user?: User;
}
