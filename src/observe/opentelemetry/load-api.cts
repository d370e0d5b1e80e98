/** The API of OpenTelemetry as `require` gives it. */
type Api = typeof import('@opentelemetry/api');

/** The API of OpenTelemetry, loaded when something is first recorded through it. */
export function loadApi(): Api {
  // Bundlers take what is required within `try` for a package that may be missing.
  try {
    return require('@opentelemetry/api');
  } catch (cause) {
    throw new Error(
      "toolwright/opentelemetry records through the package '@opentelemetry/api', which cannot be loaded: npm install @opentelemetry/api",
      { cause },
    );
  }
}
