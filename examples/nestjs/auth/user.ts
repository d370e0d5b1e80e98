/** Somebody who may use the shop. */
export interface User {
  readonly id: string;
  readonly name: string;
  readonly role: 'customer' | 'clerk';
}

/** A request that the guard has let pass. */
export interface AuthedRequest {
  readonly headers: Readonly<Record<string, string | undefined>>;
  user?: User;
}
