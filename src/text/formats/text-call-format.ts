import type { JsonObject } from '../../contract/json-schema.js';
import type { KnownTools } from '../known-tools.js';
import type { TextCursor } from '../text-cursor.js';

/** What a format may want to know besides the text. */
interface FormatContext {
  readonly tools: KnownTools;
  /** The opener that was found, and where it begins. */
  readonly opener: string;
  readonly start: number;
  /** Nothing but white space stands before the opener. */
  readonly isFirst: boolean;
}

/** One way in which models write calls. `ALL_FORMATS` of the scanner lists them. */
export interface TextCallFormat {
  /** What such a call begins with; the format is asked only there. */
  readonly openers: readonly string[];
  /**
   * Reads what follows the opener, and leaves the cursor behind it. Gives nothing where it is no call (the
   * cursor's `ranOut` tells whether more text could make it one). What it gives must not depend on text
   * behind it: a beginning of a text never holds a call that the whole does not.
   */
  read(cursor: TextCursor, context: FormatContext): readonly DraftCall[] | undefined;
}

const NAMESPACE = 'functions.';

/** A tool's name without the namespace that some formats put before every function. */
export function plainName(name: string, tools: KnownTools): string {
  if (!name.startsWith(NAMESPACE) || (!tools.any && tools.has(name))) return name;
  return name.slice(NAMESPACE.length);
}

/** A call as it was found in text, before it has an id of its own. */
export interface DraftCall {
  readonly name: string;
  /** An object, or the raw text where it is no strict JSON object: the read step mends and records it. */
  readonly arguments: JsonObject | string;
  /** The id that the model wrote, if it wrote one. */
  readonly id?: string;
}
