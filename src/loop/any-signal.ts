/** A signal that is aborted with the first of these; `undefined` where there are none. */
export function anySignal(...signals: readonly (AbortSignal | undefined)[]): AbortSignal | undefined {
  const given = [...new Set(signals.filter((signal) => signal !== undefined))];
  return given.length > 1 ? AbortSignal.any(given) : given[0];
}
