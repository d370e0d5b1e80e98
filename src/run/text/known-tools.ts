import type { JsonObject, JsonSchema } from '../../core/contract/json-schema.js';
import type { TextCursor } from './text-cursor.js';

/** A tool as a parser may receive it: its name, itself, its schema for providers, or anything alike. */
type KnownTool =
  | string
  | { readonly name: string; readonly parameters?: JsonSchema }
  | { readonly function: { readonly name: string; readonly parameters?: JsonSchema } };

/** The tools a parser accepts: a list, or a registry (anything with `list()`, and `get(name)` for types). */
export type KnownToolSource =
  | readonly KnownTool[]
  | {
      list(): readonly string[];
      get?(name: string): { readonly parameters?: JsonSchema } | undefined;
    };

/** Which names are tools, and what their arguments look like. */
export interface KnownTools {
  /** Every name counts as a tool, because none were given. */
  readonly any: boolean;
  /** Calls of other tools are reported too, between marks that only calls have. */
  readonly tellsUnknown: boolean;
  has(name: string): boolean;
  /** Whether what is called so is to be read further. */
  mayBe(name: string): boolean;
  /** Whether a tool may have a parameter of this name: where its schema is not known, any. */
  takes(tool: string, name: string): boolean;
  /** Schema of a parameter, where it is known. */
  parameter(tool: string, name: string): JsonSchema | undefined;
}

/** How calls of tools that were not given are taken. */
export interface UnknownTools {
  /** As text, the default; or as calls, where they stand between marks that nothing but calls has. */
  readonly unknown?: 'text' | 'call';
}

const PLAUSIBLE = /^[\w.:-]{1,64}$/;

/** Looks names up in what was given; a registry is asked anew each time this is called. */
export function knownTools(
  source: KnownToolSource | undefined,
  { unknown = 'text' }: UnknownTools = {},
): KnownTools {
  if (source === undefined) {
    const has = (name: string) => name.trim() !== '';
    return { any: true, tellsUnknown: false, has, mayBe: has, takes: () => true, parameter: () => undefined };
  }
  // A Map, because names come from a model: `constructor` is found only if it is a tool.
  const schemas = new Map(entriesOf(source));
  // Where nothing is offered, nothing is a call.
  const tellsUnknown = unknown === 'call' && schemas.size > 0;
  const parameter = (tool: string, name: string) => {
    const properties = schemas.get(tool)?.()?.properties;
    return properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined;
  };
  return {
    any: false,
    tellsUnknown,
    has: (name) => schemas.has(name),
    mayBe: (name) => schemas.has(name) || (tellsUnknown && PLAUSIBLE.test(name)),
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

/** What a format may want to know besides the text. */
interface FormatContext {
  readonly tools: KnownTools;
  /** The opener that was found, and where it begins. */
  readonly opener: string;
  readonly start: number;
}

/** One way in which models write calls. `ALL_FORMATS` of the scanner lists them. */
export interface TextCallFormat {
  /** What such a call begins with; the format is asked only there. `''` is the beginning of a message. */
  readonly openers: readonly string[];
  /**
   * What else looks like such a call: `data` are JSON of any kind, `prose` also code and examples, so that quotation
   * marks and code fences make it text. Absent where nothing but calls has such marks.
   */
  readonly looksLike?: 'data' | 'prose';
  /**
   * Reads what follows the opener, and leaves the cursor behind it. Gives nothing where it is no call (the
   * cursor's `ranOut` tells whether more text could make it one). What it gives must not depend on text
   * behind it: a beginning of a text never holds a call that the whole does not.
   */
  read(cursor: TextCursor, context: FormatContext): readonly DraftCall[] | undefined;
}

/** A call as it was found in text, before it has an id of its own. */
export interface DraftCall {
  readonly name: string;
  /** An object, or the raw text where it is no strict JSON object: the read step repairs and records it. */
  readonly arguments: JsonObject | string;
  /** The id that the model wrote, if it wrote one. */
  readonly id?: string;
}
