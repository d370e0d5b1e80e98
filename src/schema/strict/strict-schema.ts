import type { JsonSchema } from '../../contract/json-schema.js';
import type {
  AssistantMessage,
  LLMRequest,
  LLMResponse,
  Message,
  MessageToolCall,
  ToolCall,
  ToolSchema,
} from '../../contract/llm-provider.js';
import { copyOfJson, isRecord, parsedJson } from '../../kernel/json.js';
import { findReference } from '../find-reference.js';
import { subschemas } from '../keywords.js';
import type { Extras } from './compound-plans.js';
import { Forms, Restorer } from './forms.js';
import { Forwarder } from './forward.js';
import type { Use } from './plan.js';
import { PlanReader } from './plan-reader.js';
import { type StrictEdit, type StrictReport, strictReport, writeStrict } from './write-strict.js';

/** The strict form of a schema, and the way back. */
export interface StrictForm {
  readonly isStrict: true;
  /** What a provider is sent with `strict: true`. */
  readonly schema: JsonSchema;
  /** Every place where it differs. */
  readonly edits: readonly StrictEdit[];
  /** The same for people. */
  readonly report: StrictReport;
  /** From the arguments that a model gave to those that the schema itself speaks of. What is not strict stays as it is. */
  restore(args: unknown): unknown;
  /** From arguments of the schema itself to strict ones, as a history shows them to a model. */
  forward(args: unknown): unknown;
}

/** A schema that has no strict form, and why. */
export interface NoStrictForm {
  readonly isStrict: false;
  readonly reasons: readonly string[];
}

/** What {@link strictSchema} makes of a schema. */
export type StrictSchema = StrictForm | NoStrictForm;

const known = new WeakMap<JsonSchema, StrictSchema>();

/**
 * The form of a schema that providers with strict tools take (the documented subset of OpenAI), with the way
 * back: a model answers in the strict form, and `restore` makes of that what the schema itself says. What the
 * subset has no words for is said in descriptions, and judged by the check of the call as before.
 *
 * @example
 * ```ts
 * const strict = strictSchema({
 *   type: 'object',
 *   properties: { city: { type: 'string' }, limit: { type: 'integer' } },
 *   required: ['city'],
 * });
 * if (strict.isStrict) strict.restore({ city: 'Bern', limit: null }); // { city: 'Bern' }
 * ```
 */
export function strictSchema(schema: JsonSchema): StrictSchema {
  const before = known.get(schema);
  if (before !== undefined) return before;
  const strict = compile(schema);
  known.set(schema, strict);
  return strict;
}

/** Whether a schema is in its strict form already, so that a provider may be told that it is strict. */
export function isStrictForm(schema: JsonSchema): boolean {
  const strict = strictSchema(schema);
  return strict.isStrict && strict.edits.length === 0;
}

function compile(schema: JsonSchema): StrictSchema {
  try {
    const strict = compilePlan(schema, 'kept');
    if (strict.isStrict) return strict;
    // Lists for properties that nobody speaks of make a large schema too large.
    const smaller = compilePlan(schema, 'closed');
    return smaller.isStrict ? smaller : strict;
  } catch (error) {
    if (error instanceof RangeError) return refused(['it is nested too deep']);
    throw error;
  }
}

function refused(reasons: readonly string[]): NoStrictForm {
  return frozen({ isStrict: false, reasons });
}

/** The property that holds arguments that are strictly no object, as it is where unions are offered. */
const WRAPPER = 'input';

function compilePlan(schema: JsonSchema, extras: Extras): StrictSchema {
  const reader = new PlanReader(schema, extras);
  const root = reader.read();
  if (reader.faults.size > 0) return refused([...reader.faults]);
  const { kind } = root.slot.plan;
  if (kind === 'never') return refused(['no arguments fit it']);
  const wrapper = kind === 'object' ? undefined : WRAPPER;
  const forms = new Forms(root);
  const written = writeStrict(root, forms, wrapper);
  const faults = limitFaults(written.schema);
  if (faults.length > 0) return refused(faults);
  const { restore, forward } = waysOf(root, forms, wrapper);
  const report = strictReport(written.edits);
  return Object.freeze({ ...frozen({ isStrict: true as const, ...written, report }), restore, forward });
}

function waysOf(
  root: Use,
  forms: Forms,
  wrapper: string | undefined,
): Pick<StrictForm, 'restore' | 'forward'> {
  const restorer = new Restorer(forms);
  const forwarder = new Forwarder(forms);
  return {
    restore: orAsGiven((args) => {
      if (wrapper === undefined) return restorer.restore(root.slot, args);
      const isWrapped = isRecord(args) && Object.hasOwn(args, wrapper) && Object.keys(args).length === 1;
      return isWrapped ? restorer.restore(root.slot, args[wrapper]) : copyOfJson(args);
    }),
    forward: orAsGiven((args) => {
      const strict = forwarder.forward(root.slot, args);
      return wrapper === undefined ? strict : { [wrapper]: strict };
    }),
  };
}

/** What is nested too deep is left as it is; others tell of it. */
function orAsGiven(way: (args: unknown) => unknown): (args: unknown) => unknown {
  return (args) => {
    try {
      return way(args);
    } catch {
      return args;
    }
  };
}

function frozen<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const part of Object.values(value)) frozen(part);
  return Object.freeze(value);
}

const MOST_PROPERTIES = 5_000;
const MOST_LEVELS = 10;
const MOST_CHARACTERS = 120_000;
const MOST_CONSTANTS = 1_000;
const MANY_CONSTANTS = 250;
const MOST_CHARACTERS_OF_MANY = 15_000;

/** Why a strict schema is too large: the documented limits of its whole. */
function limitFaults(schema: JsonSchema): readonly string[] {
  const { properties, characters, constants, largest } = sizesOf(schema);
  const levels = levelsOf(schema);
  const faults: string[] = [];
  const tell = (found: number, most: number, what: string): void => {
    if (found > most) faults.push(`it has ${found} ${what}, of at most ${most}`);
  };
  tell(properties, MOST_PROPERTIES, 'properties');
  tell(levels, MOST_LEVELS, 'levels of objects and lists');
  tell(characters, MOST_CHARACTERS, 'characters of names and constants');
  tell(constants, MOST_CONSTANTS, 'constants');
  tell(
    largest,
    MOST_CHARACTERS_OF_MANY,
    `characters of constants in one list of more than ${MANY_CONSTANTS}`,
  );
  return faults;
}

interface Sizes {
  properties: number;
  characters: number;
  constants: number;
  largest: number;
}

function sizesOf(root: JsonSchema): Readonly<Sizes> {
  const sizes: Sizes = { properties: 0, characters: 0, constants: 0, largest: 0 };
  const count = (schema: JsonSchema): void => {
    const { properties = {}, $defs = {}, enum: constants = [] } = schema;
    const names = Object.keys(properties);
    const ofConstants = charactersOf(
      constants.map((value) => (typeof value === 'string' ? value : String(value))),
    );
    sizes.properties += names.length;
    sizes.constants += constants.length;
    sizes.characters += charactersOf([...names, ...Object.keys($defs)]) + ofConstants;
    if (constants.length > MANY_CONSTANTS) sizes.largest = Math.max(sizes.largest, ofConstants);
    for (const part of subschemas(schema)) count(part);
  };
  count(root);
  return sizes;
}

function charactersOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0);
}

/**
 * How deep objects and lists stand within each other: definitions where they are used, but those that lead back to
 * themselves, which have no end, for themselves.
 */
function levelsOf(root: JsonSchema): number {
  const known = new Map<JsonSchema, number>();
  const targetOf = ({ $ref }: JsonSchema): JsonSchema | undefined => {
    const target = $ref === undefined ? undefined : findReference($ref, { root });
    return typeof target === 'object' ? target : undefined;
  };
  const endless = endlessOf([root, ...Object.values(root.$defs ?? {})], targetOf);
  const deepest = (schemas: readonly JsonSchema[]): number => Math.max(0, ...schemas.map(levels));
  function levels(schema: JsonSchema): number {
    const before = known.get(schema);
    if (before !== undefined) return before;
    const target = targetOf(schema);
    const isLevel = schema.type === 'object' || schema.type === 'array';
    const inner = target !== undefined && !endless.has(target) ? [target] : [];
    const found = (isLevel ? 1 : 0) + deepest([...partsOf(schema), ...inner]);
    known.set(schema, found);
    return found;
  }
  return deepest([root, ...endless]);
}

function partsOf({ $defs: _, ...schema }: JsonSchema): readonly JsonSchema[] {
  return subschemas(schema);
}

/** The schemas that lead back to themselves. */
function endlessOf(
  schemas: readonly JsonSchema[],
  targetOf: (schema: JsonSchema) => JsonSchema | undefined,
): ReadonlySet<JsonSchema> {
  const leadsBack = (start: JsonSchema): boolean => {
    const seen = new Set(partsOf(start));
    for (const schema of seen) {
      for (const part of partsOf(schema)) seen.add(part);
      const target = targetOf(schema);
      if (target !== undefined) seen.add(target);
    }
    return seen.has(start);
  };
  return new Set(schemas.filter(leadsBack));
}

/**
 * Which tools go out with `strict: true`: all that have a strict form (`true`), these but for those that say
 * `strict: false` (`'auto'`), none (`false`).
 */
export type StrictMode = 'auto' | boolean;

/** Tools as a request offers them, and the forms of those that are strict, by name. */
interface Offered {
  readonly tools: readonly ToolSchema[];
  readonly forms: ReadonlyMap<string, StrictForm>;
}

/**
 * Offers tools in their strict form and takes the calls of replies back to what the tools' own schemas say. Histories
 * are shown to the model in the strict form, too: what it sees of itself is what it is asked for.
 */
export class StrictTools {
  readonly #mode: StrictMode | undefined;
  readonly #offered = new WeakMap<readonly ToolSchema[], Offered>();
  readonly #shown = new WeakMap<MessageToolCall, MessageToolCall>();

  /** Without a mode, only tools that say `strict: true` are strict. */
  constructor(mode: StrictMode | undefined) {
    this.#mode = mode;
  }

  /** The request as it goes out. */
  request(request: LLMRequest): LLMRequest {
    const { tools, forms } = this.#offer(request.tools);
    if (tools === request.tools) return request;
    return { ...request, tools, messages: request.messages.map((message) => this.#show(message, forms)) };
  }

  /** The reply to a request as the tools' schemas speak of it. */
  response(response: LLMResponse, request: LLMRequest): LLMResponse {
    const { forms } = this.#offer(request.tools);
    if (forms.size === 0 || response.toolCalls.length === 0) return response;
    return { ...response, toolCalls: response.toolCalls.map((call) => restored(call, forms)) };
  }

  #offer(tools: readonly ToolSchema[] = NO_TOOLS): Offered {
    let offered = this.#offered.get(tools);
    if (offered === undefined) {
      offered = offer(tools, this.#mode);
      this.#offered.set(tools, offered);
    }
    return offered;
  }

  #show(message: Message, forms: Offered['forms']): Message {
    if (message.role !== 'assistant' || !hasStrictCalls(message, forms)) return message;
    return { ...message, tool_calls: message.tool_calls?.map((call) => this.#showCall(call, forms)) };
  }

  #showCall(call: MessageToolCall, forms: Offered['forms']): MessageToolCall {
    const form = forms.get(call.function.name);
    const args = form && parseArguments(call.function.arguments);
    if (form === undefined || args === undefined) return call;
    let shown = this.#shown.get(call);
    if (shown === undefined) {
      const strict = JSON.stringify(form.forward(args));
      shown = { ...call, function: { ...call.function, arguments: strict } };
      this.#shown.set(call, shown);
    }
    return shown;
  }
}

/** What is no JSON of an object is shown as it is. */
function parseArguments(text: string): unknown {
  const value = parsedJson(text);
  return isRecord(value) ? value : undefined;
}

const NO_TOOLS: readonly ToolSchema[] = [];

function hasStrictCalls({ tool_calls: calls }: AssistantMessage, forms: Offered['forms']): boolean {
  return calls?.some((call) => forms.has(call.function.name)) ?? false;
}

function offer(tools: readonly ToolSchema[], mode: StrictMode | undefined): Offered {
  const forms = new Map<string, StrictForm>();
  const offered = tools.map((tool) => {
    const { strict, ...named } = tool.function;
    const form = isWanted(strict, mode) ? strictSchema(named.parameters) : undefined;
    if (!form?.isStrict)
      return strict === undefined ? tool : { ...tool, function: { ...named, strict: false } };
    forms.set(named.name, form);
    return { ...tool, function: { ...named, parameters: form.schema, strict: true } };
  });
  const isSame = offered.every((tool, index) => tool === tools[index]);
  return { tools: isSame ? tools : offered, forms };
}

function isWanted(strict: boolean | undefined, mode: StrictMode | undefined): boolean {
  if (mode === undefined) return strict === true;
  return mode === 'auto' ? strict !== false : mode;
}

function restored(call: ToolCall, forms: Offered['forms']): ToolCall {
  const form = forms.get(call.name);
  if (form === undefined || typeof call.arguments === 'string') return call;
  return { ...call, arguments: form.restore(call.arguments) as ToolCall['arguments'] };
}
