import type { JsonObject, JsonSchema } from '../../core/contract/json-schema.js';
import type { TextCursor } from './text-cursor.js';

/**
 * A tool in any form that a parser accepts: its name, the tool itself, its schema for providers, or similar objects.
 */
type KnownTool =
  | string
  | { readonly name: string; readonly parameters?: JsonSchema }
  | { readonly function: { readonly name: string; readonly parameters?: JsonSchema } };

/** The tools that a parser accepts: a list, or a registry (anything with `list()`, and `get(name)` for types). */
export type KnownToolSource =
  | readonly KnownTool[]
  | {
      list(): readonly string[];
      get?(name: string): { readonly parameters?: JsonSchema } | undefined;
    };

/** The names of tools, and the schemas of their arguments. */
export interface KnownTools {
  /** Every name counts as a tool, because no tools were given. */
  readonly any: boolean;
  /** Calls of other tools are reported too, between marks that only calls have. */
  readonly reportsUnknown: boolean;
  has(name: string): boolean;
  /** Whether a call of this name should be read further. */
  mayBe(name: string): boolean;
  /** Whether a tool may have a parameter of this name: any, if its schema is unknown. */
  takes(tool: string, name: string): boolean;
  /** Schema of a parameter, if it is known. */
  parameter(tool: string, name: string): JsonSchema | undefined;
}

/** How calls of unknown tools are handled. */
export interface UnknownTools {
  /** As text, the default; or as calls, if they are between marks that only calls have. */
  readonly unknown?: 'text' | 'call';
}

const PLAUSIBLE = /^[\w.:-]{1,64}$/;

/** Looks up names in the given tools; a registry is read again each time that this is called. */
export function knownTools(
  source: KnownToolSource | undefined,
  { unknown = 'text' }: UnknownTools = {},
): KnownTools {
  if (source === undefined) {
    const has = (name: string) => name.trim() !== '';
    return {
      any: true,
      reportsUnknown: false,
      has,
      mayBe: has,
      takes: () => true,
      parameter: () => undefined,
    };
  }
  // A Map, because names come from a model: `constructor` is found only if it is a tool.
  const schemas = new Map(entriesOf(source));
  // Without offered tools, there are no calls.
  const reportsUnknown = unknown === 'call' && schemas.size > 0;
  const parameter = (tool: string, name: string) => {
    const properties = schemas.get(tool)?.()?.properties;
    return properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined;
  };
  return {
    any: false,
    reportsUnknown,
    has: (name) => schemas.has(name),
    mayBe: (name) => schemas.has(name) || (reportsUnknown && PLAUSIBLE.test(name)),
    takes: (tool, name) => parameter(tool, name) !== undefined || hasNoProperties(schemas.get(tool)?.()),
    parameter,
  };
}

function hasNoProperties(schema: JsonSchema | undefined): boolean {
  return Object.keys(schema?.properties ?? {}).length === 0;
}

type SchemaReader = () => JsonSchema | undefined;

function entriesOf(source: KnownToolSource): [string, SchemaReader][] {
  if ('list' in source) return source.list().map((name) => [name, () => source.get?.(name)?.parameters]);
  return source.map((tool) => {
    if (typeof tool === 'string') return [tool, () => undefined];
    const { name, parameters } = 'function' in tool ? tool.function : tool;
    return [name, () => parameters];
  });
}

/** The context of a format's reading, in addition to the text. */
interface FormatContext {
  readonly tools: KnownTools;
  /** The found opener, and its start. */
  readonly opener: string;
  readonly start: number;
}

/** A format in which models write calls. `ALL_FORMATS` of the scanner lists them. */
export interface TextCallFormat {
  /** The start of such a call; the format is tried only there. `''` is the beginning of a message. */
  readonly openers: readonly string[];
  /**
   * Other texts of the same form: `data` is JSON of any kind, `prose` includes code and examples, so that quotation
   * marks and code fences make it text. Absent if only calls have such marks.
   */
  readonly looksLike?: 'data' | 'prose';
  /**
   * Reads the text after the opener, and leaves the cursor after the call. Returns `undefined` if it is not a call
   * (the cursor's `ranOut` states whether more text could make it one). The result must not depend on later text: a
   * prefix of a text must not contain a call that the whole text does not.
   */
  read(cursor: TextCursor, context: FormatContext): readonly DraftCall[] | undefined;
}

/** A call that was found in text, before it has an id. */
export interface DraftCall {
  readonly name: string;
  /** An object, or the raw text if it is not a strict JSON object: the read step repairs it and records the repair. */
  readonly arguments: JsonObject | string;
  /** The id that the model wrote, if any. */
  readonly id?: string;
}
