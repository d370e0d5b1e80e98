/** The API of OpenTelemetry as `require` gives it. */
export type Api = typeof import('@opentelemetry/api');

/** The API of OpenTelemetry, loaded when something is first recorded through it. */
export function loadApi(): Api {
  return require('@opentelemetry/api');
}
