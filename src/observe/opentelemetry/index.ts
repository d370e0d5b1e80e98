export type { RecordedContent } from './content.js';
export { type OpenTelemetryOptions, openTelemetry } from './open-telemetry.js';
