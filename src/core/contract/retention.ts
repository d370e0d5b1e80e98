/**
 * The longest ages of data that is no longer used, in milliseconds since its last change. Data without an age is not
 * removed.
 */
export interface RetentionAges {
  /** Ended runs. Suspended and running runs stay. */
  readonly runs?: number;
  /** Completed jobs. */
  readonly jobs?: number;
  /** Events of conversations, and the keys of prompts whose turns have ended. */
  readonly events?: number;
  /**
   * Conversations with all their data, including deleted conversations. A conversation with an open turn, a waiting
   * entry, an unfinished job or a schedule stays.
   */
  readonly conversations?: number;
}

/** The numbers of removed records. */
export type RetentionReport = { readonly [Kind in keyof RetentionAges]-?: number };

/** A store that can remove old data. */
export interface StoreWithRetention {
  /** @throws InvalidOptionsError (521) for an age that is not a number of milliseconds. */
  retention(ages: RetentionAges): Promise<RetentionReport>;
}
