/** The longest timer Node keeps (24 days); what is longer, `Infinity` too, would run out at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;
