/** The present moment. */
export type Clock = () => Date;

/** Token of the {@link Clock}. */
export const CLOCK = Symbol('clock');
