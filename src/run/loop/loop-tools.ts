import type { CallRecord, CallScope } from '../../core/contract/call.js';
import type { Hooks } from '../../core/contract/hooks.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { Message, ToolChoice, ToolMessage, ToolSchema } from '../../core/contract/llm-provider.js';
import { keepsResults, type ResultKey } from '../../core/contract/result-store.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { errorResult, ToolResult } from '../../core/contract/tool-result.js';
import { refuseOptions } from '../../core/errors/author-fault.js';
import { cached } from '../../core/kernel/cached.js';
import { isRecord, ownerText, parsedJson, withoutUndefined } from '../../core/kernel/json.js';
import { nearestName } from '../../core/kernel/nearest-name.js';
import { toDefinition } from '../../tools/discovery/define-tool.js';
import { EmbeddedTools, mergeRankings, type ToolEmbedder } from '../../tools/search/embedded-tools.js';
import { jsonDigest } from '../call/effect-key.js';
import { logFailure } from '../call/failure-log.js';
import { readStored, type StoredPart, shapeOf } from '../call/read-stored.js';
import { isCutDetails, withText } from '../call/result-text.js';
import { callRecord } from '../call/run-body.js';
import { ToolRegistry } from '../call/tool-registry.js';
import { toolToSchema } from '../call/tool-to-schema.js';
import { FINAL_ANSWER } from './final-answer.js';
import type { LoopRun } from './loop-run.js';
import { type ParsedCall, parseCall } from './messages.js';
import type { ProviderTarget, ResumeConfig, StepSettings } from './options.js';
import { type ConfigFault, wrongConfig } from './run-errors.js';

/** The tools through which a model finds and calls deferred tools. */
const SEARCH_TOOLS = 'search_tools';
const CALL_TOOL = 'call_tool';

/** The parts of a run that determine its offered tools. */
interface OfferingRun {
  readonly config: { readonly deferAbove?: number; readonly toolChoice?: ToolChoice };
  /** Also those that a continued run was not offered before, and therefore cannot use. */
  readonly givenTools: ToolRegistry;
  readonly messages: readonly Message[];
  /** The store of its large results, which can be read later. */
  readonly results: unknown;
  /** If it continues: names of the tools that were sent before, in order. */
  readonly record: { readonly tools?: readonly string[] } | undefined;
}

/** The definitions of a registry: those in every request, and those that are found by a search. */
interface Division {
  readonly direct: readonly ToolSchema[];
  /** The names of `direct`. */
  readonly names: readonly string[];
  readonly deferred: ReadonlyMap<string, ToolSchema>;
}

const divisions = new WeakMap<readonly ToolSchema[], Map<number, Division>>();

/** The approximate characters of JSON per token, in all tokenizers. */
const CHARS_PER_TOKEN = 4;

/**
 * Defers tools that request it. If the definitions have more tokens than `above`, defers all tools that do not
 * refuse.
 */
function divide(tools: ToolRegistry, above = Number.POSITIVE_INFINITY): Division {
  const definitions = tools.toProviderDefs();
  const byLimit = cached(divisions, definitions, () => new Map<number, Division>());
  return cached(byLimit, above, () => dividedAbove(above, definitions, tools));
}

function dividedAbove(above: number, definitions: readonly ToolSchema[], tools: ToolRegistry): Division {
  const tokens = (): number =>
    definitions.reduce((sum, schema) => sum + JSON.stringify(schema).length, 0) / CHARS_PER_TOKEN;
  const isTooMuch = Number.isFinite(above) && tokens() > above;
  const direct: ToolSchema[] = [];
  const deferred = new Map<string, ToolSchema>();
  for (const definition of definitions) {
    const { name } = definition.function;
    const { defer = isTooMuch, namespace } = tools.offered(name) ?? {};
    if (!defer) direct.push(definition);
    else deferred.set(name, namespace === undefined ? definition : { ...definition, namespace });
  }
  const isPlain = deferred.size === 0;
  const taken = [SEARCH_TOOLS, CALL_TOOL].find((name) => tools.offered(name) !== undefined);
  if (taken !== undefined && !isPlain) {
    const problem = `a tool is called '${taken}', and tools are deferred: the model could not distinguish them`;
    const fix = 'another `name` for that tool';
    throw wrongConfig({ option: 'tools', problem, fix });
  }
  const names = direct.map((definition) => definition.function.name);
  return { direct: isPlain ? definitions : direct, names, deferred };
}

interface LastOffer {
  /** All tools of the registry, also the deferred ones. */
  readonly all: readonly ToolSchema[];
  readonly division: Division;
  readonly takesFound: boolean;
  readonly found: number;
  readonly reads: boolean;
  readonly definitions: readonly ToolSchema[];
}

/**
 * The definitions in the requests of one run. A definition keeps its position once it was sent, even if tools are
 * withheld, return or are added: providers can cache the beginning of a prompt only while it does not change.
 */
export class OfferedTools {
  /** The last request offered one of our tools. */
  hasOurs = false;
  readonly #run: OfferingRun;
  /** Names in the order in which their definitions were sent. */
  #order: readonly string[];
  #found: Set<string> | undefined;
  #looked = 0;
  #hasKept = false;
  #helpers: readonly [ToolSchema, ToolSchema] | undefined;
  #last: LastOffer | undefined;

  /** @throws InvalidOptionsError (521) for an unknown tool in the config. */
  constructor(run: OfferingRun) {
    this.#run = run;
    this.#order = run.record?.tools ?? [];
    const { toolChoice } = run.config;
    if (toolChoice !== undefined) this.checkNames('the loop’s config', { toolChoice });
  }

  /** @throws InvalidOptionsError (521) for unknown tools in the settings of requests. */
  checkNames(where: string, settings: Pick<StepSettings, 'tools' | 'toolChoice'>): void {
    refuseOptions(unknownTools(settings, this.#run.givenTools).map((fault) => ({ where, ...fault })));
  }

  /** Names in the order in which their definitions were sent. */
  get order(): readonly string[] {
    return this.#order;
  }

  /** The definitions of the next request; the same array as long as nothing changes. */
  definitions(tools: ToolRegistry, { provider, model = '' }: ProviderTarget): readonly ToolSchema[] {
    const { config, messages, results } = this.#run;
    const all = tools.toProviderDefs();
    const last = this.#last;
    const division = last?.all === all ? last.division : divide(tools, config.deferAbove);
    const hasDeferred = division.deferred.size > 0;
    // The model accepts definitions of found tools after its prompt.
    const takesFound = hasDeferred && (provider.takesFoundTools?.(model) ?? false);
    if (results !== undefined || takesFound)
      // The new messages of the history: for found tools, and stored results.
      for (; this.#looked < messages.length; this.#looked += 1) {
        const message = messages[this.#looked];
        if (message?.role !== 'tool') continue;
        if (message.found !== undefined) this.#found ??= new Set();
        for (const name of message.found ?? []) this.#found?.add(name);
        if (message.kept !== undefined) this.#hasKept = true;
      }
    const found = takesFound ? (this.#found?.size ?? 0) : 0;
    const reads = results !== undefined && this.#hasKept;
    const isSame = last?.division === division && last.takesFound === takesFound;
    if (isSame && last.found === found && last.reads === reads) return last.definitions;
    const direct = this.#inOrder(division);
    const others = [
      ...(hasDeferred ? this.#deferred(division, takesFound) : []),
      ...(reads ? [READ_SCHEMA] : []),
    ];
    const definitions = others.length > 0 ? [...direct, ...others] : direct;
    this.hasOurs = others.length > 0;
    this.#last = { all, division, takesFound, found, reads, definitions };
    return definitions;
  }

  /** The definitions in the order in which they were first sent. */
  #inOrder({ direct, names }: Division): readonly ToolSchema[] {
    const before = this.#order;
    const isSent = names.length === before.length && names.every((name, place) => name === before[place]);
    if (isSent) return direct;
    this.#order = before.length === 0 ? names : [...new Set([...before, ...names])];
    if (before.length === 0) return direct;
    const places = new Map(this.#order.map((name, place) => [name, place]));
    const placeOf = ({ function: { name } }: ToolSchema) => places.get(name) ?? 0;
    return direct.toSorted((one, other) => placeOf(one) - placeOf(other));
  }

  #deferred({ deferred }: Division, takesFound: boolean): readonly ToolSchema[] {
    // Unchanged after the first request; later tools are found all the same.
    this.#helpers ??= helpersFor(deferred);
    const [search, call] = this.#helpers;
    if (!takesFound) return [search, call];
    const found = [...(this.#found ?? [])].flatMap((name) => deferred.get(name) ?? []);
    return [
      { ...search, isSearch: true },
      ...found.map((definition) => ({ ...definition, defer: true as const })),
    ];
  }
}

const MAX_NAMESPACES = 40;

/** The tools to find and call deferred tools. */
function helpersFor(deferred: ReadonlyMap<string, ToolSchema>): readonly [ToolSchema, ToolSchema] {
  const namespaces = new Set(Array.from(deferred.values(), ({ namespace }) => namespace));
  namespaces.delete(undefined);
  const named = [...namespaces].sort().slice(0, MAX_NAMESPACES);
  const groups = named.length === 0 ? '' : ` There are tools for: ${named.join(', ')}.`;
  const helper = (name: string, description: string, parameters: ToolSchema['function']['parameters']) => ({
    type: 'function' as const,
    function: { name, description, parameters, strict: false },
  });
  return [
    helper(SEARCH_TOOLS, `${SEARCH_DESCRIPTION}${groups}`, SEARCH_PARAMETERS),
    helper(CALL_TOOL, CALL_DESCRIPTION, CALL_PARAMETERS),
  ];
}

const SEARCH_DESCRIPTION =
  'Finds tools that you do not have yet, by the task that you want to do. There are more tools than the ones that you see: before you say that something cannot be done, search for it. Search once per task.';

const SEARCH_PARAMETERS = {
  type: 'object',
  properties: {
    query: {
      type: 'string',
      minLength: 1,
      description: 'The task in a few words, e.g. create an invoice',
    },
    limit: {
      type: 'integer',
      minimum: 1,
      maximum: 20,
      description: 'Maximum number of tools to return; default: 5',
    },
  },
  required: ['query'],
} as const;

const CALL_DESCRIPTION = `Calls a tool that ${SEARCH_TOOLS} has found, by its name, with arguments that fit its parameters.`;

const CALL_PARAMETERS = {
  type: 'object',
  properties: {
    name: { type: 'string', description: 'The name of the tool' },
    arguments: { type: 'object', description: 'The arguments for the tool', additionalProperties: true },
  },
  required: ['name', 'arguments'],
} as const;

const READ_RESULT = 'read_result';

/** The definition of the tool that reads stored results. It is offered once there is a stored result. */
const READ_SCHEMA: ToolSchema = {
  type: 'function',
  function: {
    name: READ_RESULT,
    description:
      'Reads further parts of a result that was too large to be shown completely: by character ("from"), by line ("line"), by JSON path ("path"), or around a text ("search").',
    parameters: {
      type: 'object',
      properties: {
        handle: { type: 'string', description: 'The handle in the text of the cut result' },
        from: {
          type: 'integer',
          minimum: 0,
          description: 'First character; with the path of a list, first item',
        },
        line: { type: 'integer', minimum: 1, description: 'First line' },
        count: {
          type: 'integer',
          minimum: 1,
          description: 'Maximum number of characters, lines, items or matches',
        },
        path: { type: 'string', description: 'A path in the JSON, e.g. orders[0].lines' },
        search: { type: 'string', description: 'A text to search for' },
      },
      required: ['handle'],
    },
    strict: false,
  },
};

/** The earlier offered tools that are still given, what replaced them, and tools that are registered from now on. */
export function onlyKnown(given: ToolRegistry, names: readonly string[] | undefined): ToolRegistry {
  if (names === undefined) return given;
  const isGone = (name: string) => given.offered(name) === undefined;
  const replacing = names.filter(isGone).flatMap((name) => given.get(name)?.replacedBy?.() ?? []);
  const known = new Set([...names, ...replacing]);
  const others = given.list().filter((name) => !known.has(name));
  return others.length === 0 ? given : given.view({ deny: others });
}

/** Tools of the loop itself, which settings of requests may name too. */
const LOOP_TOOLS: ReadonlySet<string> = new Set([SEARCH_TOOLS, CALL_TOOL, READ_RESULT, FINAL_ANSWER]);

/** Whether the loop answers such a call itself. Readers of the run do not see it. */
export function isLoopCall({ tools }: Pick<LoopRun, 'tools'>, name: string): boolean {
  return LOOP_TOOLS.has(name) && name !== CALL_TOOL && tools.offered(name) === undefined;
}

/** The names of tools in the settings of requests that fit neither a given tool nor a tool of the loop. */
function unknownTools(
  { tools = [], toolChoice }: Pick<StepSettings, 'tools' | 'toolChoice'>,
  given: ToolRegistry,
): readonly ConfigFault[] {
  const { tool, tools: choices = tool === undefined ? [] : [tool] } = Object(toolChoice) as {
    readonly tool?: string;
    readonly tools?: readonly string[];
  };
  return Object.entries({ tools, toolChoice: choices }).flatMap(([option, names]) =>
    names.flatMap((name): ConfigFault | [] => {
      const isTool = given.offered(name) !== undefined || LOOP_TOOLS.has(name);
      if (isTool || given.view({ allow: [name] }).count() > 0) return [];
      const known = given.list();
      const near = nearestName(name, known);
      const hint = near === undefined ? '' : ` (did you mean \`${near}\`?)`;
      const problem = `${option} names '${name}', which is not a tool of the run${hint}`;
      const others = known.length === 0 ? 'tools: [tool, …]' : `one of ${known.join(', ')}`;
      return { option, problem, fix: near === undefined ? others : `'${near}'` };
    }),
  );
}

/**
 * The calls of a reply, with answered searches, and with each `call_tool` replaced by the call of the tool that it
 * names.
 */
export function callLoopTools(run: LoopRun, calls: readonly ParsedCall[]): Promise<readonly ParsedCall[]> {
  const { deferred } = divide(run.tools, run.config.deferAbove);
  return Promise.all(
    calls.map(async (call) => {
      if (run.tools.offered(call.name) !== undefined) return call;
      if (call.name === READ_RESULT && run.results !== undefined)
        return { ...call, record: await readOn(run, call) };
      if (deferred.size === 0) return call;
      if (call.name === CALL_TOOL) return resolved(call);
      if (call.name !== SEARCH_TOOLS) return call;
      const search = {
        name: SEARCH_TOOLS,
        description: 'Finds tools',
        parameters: SEARCH_PARAMETERS,
        execute: (args: JsonObject) => findTools(run, args as unknown as SearchArguments),
      };
      const tool = toDefinition(search, { by: 'deferred tools', wrong: [] });
      return { ...call, record: await callOwn(tool, call, { scope: run.scope }) };
    }),
  );
}

/** Calls a tool of the loop itself, which is not among those of the run. Such a call never waits. */
async function callOwn(
  tool: ToolDefinition,
  { id, name, arguments: args }: ParsedCall,
  { scope, hooks = [] }: { readonly scope: CallScope; readonly hooks?: readonly Hooks[] },
): Promise<CallRecord> {
  const registry = new ToolRegistry({ hooks }).register(tool);
  return (await registry.invoke({ id, name, arguments: args }, scope)).record;
}

/** The call of the tool that a call names; all later steps concern that tool. */
function resolved(call: ParsedCall): ParsedCall {
  const { id, read, place, text, providerItems } = call;
  const { name, arguments: args, ...others } = read.ok ? read.value : {};
  if (typeof name !== 'string' || name === '') {
    const message = `Invalid arguments for ${CALL_TOOL}; it needs { "name": "…", "arguments": { … } }.`;
    const result = new ToolResult({ forLLM: message, isError: true });
    const record = callRecord({ request: call, attempt: 1, since: 0 }, { status: 'rejected', result });
    return { ...call, record };
  }
  // Some models write the arguments beside the name.
  const given = args === undefined || args === null ? others : args;
  const inner = isRecord(given) || typeof given === 'string' ? given : JSON.stringify(given);
  const parsed = parseCall({ id, name, arguments: inner as JsonObject, providerItems }, place);
  return { ...parsed, wire: { name: CALL_TOOL, text: text ?? '{}' } };
}

interface SearchArguments {
  readonly query: string;
  readonly limit?: number;
}

const LIMIT = 5;
/** The multiple of the limit that is ranked, because policies forbid some tools, and some match only by meaning. */
const WIDER = 8;

const embedded = new WeakMap<ToolEmbedder, EmbeddedTools>();

/** Finds deferred tools by words, and by meaning if there is an embedder. */
async function findTools(run: LoopRun, { query, limit = LIMIT }: SearchArguments): Promise<ToolResult> {
  const { tools, config, scope, signal } = run;
  const { toolEmbedder: embedder, logger } = config;
  const { deferred } = divide(tools, config.deferAbove);
  let ranked: readonly string[] = tools
    .search(query, { limit: WIDER * limit, accepts: (name) => deferred.has(name) })
    .map(({ name }) => name);
  if (embedder !== undefined)
    try {
      const known = cached(embedded, embedder, () => new EmbeddedTools(embedder));
      const searched = [...deferred.keys()].flatMap((name) => tools.offered(name) ?? []);
      const near = await known.nearest({ query, tools: searched, limit: WIDER * limit, signal });
      ranked = mergeRankings([ranked, near], WIDER * limit);
    } catch (error) {
      const what = 'The embedder of tools failed; only keywords were searched';
      logFailure(logger, { what, error });
    }
  const names = await tools.allowed(ranked, { scope, limit, policy: config.policy });
  const lines = names.flatMap((name) => {
    const tool = tools.offered(name);
    if (tool === undefined) return [];
    const { strict: _, ...schema } = toolToSchema(tool).function;
    return JSON.stringify(schema);
  });
  const text =
    lines.length === 0
      ? `No tool was found for ${JSON.stringify(query.slice(0, 200).toWellFormed())}. Search again with other words, or for one task at a time.`
      : [
          `Found ${lines.length}; ${CALL_TOOL} calls the ones that are not in your list of tools:`,
          ...lines,
        ].join('\n');
  return new ToolResult({ forLLM: text, details: { found: names } });
}

/** Names of the tools that a search found, for the message that answers it. */
export function foundBy({ name, result: { details } }: CallRecord): Pick<ToolMessage, 'found'> {
  if (name !== SEARCH_TOOLS || !isRecord(details) || !Array.isArray(details.found)) return {};
  return { found: details.found.filter((item) => typeof item === 'string') };
}

/** The most characters of a result that a model receives if the rest is stored. */
const SHOWN_CHARS = 32_000;

/** Runs may wait for people that long. */
const LIFE_MS = 7 * 24 * 60 * 60 * 1000;

/**
 * Where a run stores large results, and from which size on; `undefined` if the application has a tool with the same
 * name.
 */
export function resultStoreOf(
  { store, maxResultChars }: ResumeConfig,
  tools: ToolRegistry,
): Pick<LoopRun, 'results' | 'maxResultChars'> {
  const isStoring = keepsResults(store) && tools.offered(READ_RESULT) === undefined;
  const results = isStoring ? store.results : undefined;
  const limit = results && (tools.maxResultChars ?? SHOWN_CHARS);
  return { results, maxResultChars: maxResultChars ?? limit };
}

const MOST_SHAPE = 1_500;
const MARK = /\n\[(\d+) more characters were cut off\]$/;

/** Stores the whole of a cut result: the model receives its beginning, its structure, and a handle. */
export async function storeIfLarge(run: LoopRun, call: ParsedCall): Promise<void> {
  const { results, runId, config } = run;
  const { record } = call;
  const { details } = record?.result ?? {};
  if (results === undefined || record === undefined || !isCutDetails(details)) return;
  const { full } = details;
  // The same for the same call, also if it is executed again.
  const handle = `res_${jsonDigest([runId, call.id, call.place.step, call.place.index]).slice(0, 16)}`;
  try {
    await results.keepResult({ ...keyOf(run, handle), text: full, lifeMs: LIFE_MS });
  } catch (error) {
    const what = 'A large result could not be stored; it was cut';
    logFailure(config.logger, { what, error, at: { tool: record.name } });
    return;
  }
  const { forLLM, content } = record.result;
  const [mark = '', missing] = MARK.exec(forLLM.slice(-100)) ?? [];
  const head = mark === '' ? forLLM : forLLM.slice(0, -mark.length);
  // If files were removed, positions in the shown text differ from those in the whole.
  const isPlain = missing !== undefined && head.length + Number(missing) >= full.length;
  const from = isPlain ? full.length - Number(missing) : 0;
  const cut = missing === undefined ? '' : `${missing} more characters were cut off. `;
  const how = `${READ_RESULT} with {"handle":"${handle}"} reads the rest: "from": ${from}, a "line", a "path" or a "search"`;
  const value = parsedJson(full);
  const form =
    typeof value === 'object'
      ? shapeOf(value).slice(0, MOST_SHAPE).toWellFormed()
      : `text of ${full.split('\n').length} lines`;
  const text = `${head}\n[${cut}All ${full.length} characters are stored: ${how}. It is ${form}.]`;
  const kept = { handle, characters: full.length };
  const result = new ToolResult({
    ...record.result,
    forLLM: text,
    content: content && withText(content, text),
    details: withoutUndefined({ kept, details: details.details }),
  });
  call.record = { ...record, result };
}

/** Only its own run can read the result of an agent, though it is stored under the enclosing run. */
function keyOf({ runId, resultsOf, owner }: LoopRun, handle: string): ResultKey {
  const own = resultsOf.isShared ? handle : `${runId} ${handle}`;
  return withoutUndefined({ runId: resultsOf.runId, handle: own, owner: ownerText(owner) });
}

/** The handle of the stored result of a record, for the message that answers its call. */
export function handleIn({ result: { details } }: CallRecord): Pick<ToolMessage, 'kept'> {
  if (!isRecord(details) || !isRecord(details.kept) || typeof details.kept.handle !== 'string') return {};
  return { kept: details.kept.handle };
}

/** Results are stored as the tool returned them: hooks that mark and mask results run when they are read. */
function readOn(run: LoopRun, call: ParsedCall): Promise<CallRecord> {
  const { results, runId, maxResultChars = SHOWN_CHARS, toolCalls, tools, config, scope } = run;
  const given = call.read.ok ? call.read.value.handle : undefined;
  const record = toolCalls.find((known) => handleIn(known).kept === given);
  const isMarked = record?.hooks?.some(({ hook, did }) => hook === 'mark-untrusted' && did === 'rewrote');
  const openWorld =
    record === undefined || isMarked === true || tools.offered(record.name)?.annotations?.openWorld === true;
  const { name, parameters, description } = READ_SCHEMA.function;
  const execute = async (args: JsonObject): Promise<ToolResult> => {
    const { handle, ...wanted } = args as unknown as StoredPart & { readonly handle: string };
    const key = keyOf(run, handle);
    let text = await results?.readResult(key);
    // Earlier versions stored those of agents and turns under their own run.
    if (key.runId !== runId) text ??= await results?.readResult({ ...key, runId, handle });
    if (text === undefined)
      return errorResult(
        `There is no result '${handle.slice(0, 80).toWellFormed()}' in this run, or it is no longer stored.`,
      );
    return new ToolResult({ forLLM: readStored(text, wanted, maxResultChars) });
  };
  const tool = toDefinition(
    {
      ...{ name, description, parameters, maxResultChars: Number.POSITIVE_INFINITY, execute },
      annotations: { openWorld },
    },
    { by: 'kept results', wrong: [] },
  );
  const hooks = [...tools.hooks, ...(config.hooks ?? [])].flatMap((hook): Hooks[] => {
    if (hook.afterCall === undefined) return [];
    return [withoutUndefined({ name: hook.name, afterCall: (ended) => hook.afterCall?.(ended) })];
  });
  return callOwn(tool, call, { scope, hooks });
}
