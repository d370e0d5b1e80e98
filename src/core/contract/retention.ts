/**
 * How old what nobody needs any more may become in a store, in milliseconds since it last changed. What is left out is
 * kept.
 */
export interface RetentionAges {
  /** Runs that have ended. Runs that wait for an answer or are under way stay. */
  readonly runs?: number;
  /** Jobs that have their result. */
  readonly jobs?: number;
  /** Events of conversations, and the keys of their prompts whose turns have ended. */
  readonly events?: number;
  /**
   * Conversations with all that is kept of them, deleted ones included. Those with an open turn, a waiting entry, an
   * unfinished job or a schedule stay.
   */
  readonly conversations?: number;
}

/** How many were removed. */
export type RetentionReport = { readonly [Kind in keyof RetentionAges]-?: number };

/** A store that removes what has become old. */
export interface StoreWithRetention {
  /** @throws InvalidOptionsError (521) for an age that is not a number of milliseconds. */
  retention(ages: RetentionAges): Promise<RetentionReport>;
}
