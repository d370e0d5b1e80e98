import type { JsonObject } from '../contract/json-schema.js';

/** A call as it was found in text, before it has an id of its own. */
export interface DraftCall {
  readonly name: string;
  /** An object, or the raw text where it is no strict JSON object: the read step mends and records it. */
  readonly arguments: JsonObject | string;
  /** The id that the model wrote, if it wrote one. */
  readonly id?: string;
}
