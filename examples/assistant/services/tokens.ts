/** Tokens of what is injected and is no class of ours. */

/** The folder that holds everything the assistant keeps: an absolute path (string). */
export const DATA_FOLDER = Symbol('data folder');

/** The open database: a `DatabaseSync`. */
export const DATABASE = Symbol('database');

/** What time it is: a {@link Clock}. */
export const CLOCK = Symbol('clock');

/** The present moment. */
export type Clock = () => Date;
