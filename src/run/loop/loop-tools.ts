import type { CallRecord } from '../../core/contract/call.js';
import type { Hooks } from '../../core/contract/hooks.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { ToolMessage } from '../../core/contract/llm-provider.js';
import { keepsResults, type ResultKey } from '../../core/contract/result-store.js';
import { errorResult, ToolResult } from '../../core/contract/tool-result.js';
import { cached } from '../../core/kernel/cached.js';
import { canonicalJson, isRecord, ownerText, parsedJson, withoutUndefined } from '../../core/kernel/json.js';
import { nodeCrypto } from '../../core/kernel/node-module.js';
import { toDefinition } from '../../tools/discovery/define-tool.js';
import { EmbeddedTools, mergeRankings, type ToolEmbedder } from '../../tools/search/embedded-tools.js';
import { logFailure } from '../call/failure-log.js';
import { readStored, type StoredPart, shapeOf } from '../call/read-stored.js';
import { isCutDetails, withText } from '../call/result-text.js';
import { callRecord } from '../call/run-body.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import { toolToSchema } from '../call/tool-to-schema.js';
import type { LoopRun } from './loop-run.js';
import { type ParsedCall, parseCall } from './messages.js';
import {
  CALL_TOOL,
  divide,
  READ_RESULT,
  READ_SCHEMA,
  SEARCH_PARAMETERS,
  SEARCH_TOOLS,
} from './offered-tools.js';
import type { ResumeConfig } from './options.js';
import { ownTool } from './own-tool.js';

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
      return { ...call, record: await ownTool(tool)(call, run.scope) };
    }),
  );
}

/** The call of the tool that a call names; all later steps concern that tool. */
function resolved(call: ParsedCall): ParsedCall {
  const { id, read, place, text, providerItems } = call;
  const { name, arguments: args, ...others } = read.ok ? read.value : {};
  if (typeof name !== 'string' || name === '') {
    const message = `Invalid arguments for ${CALL_TOOL}: it takes { "name": "…", "arguments": { … } }.`;
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
      const what = 'The embedder of tools failed; only words were searched';
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
      ? `No tool was found for ${JSON.stringify(query.slice(0, 200).toWellFormed())}. Search again in other words, or for one thing at a time.`
      : [`Found ${lines.length}; ${CALL_TOOL} calls those that are not among your tools:`, ...lines].join(
          '\n',
        );
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
  const about = canonicalJson([runId, call.id, call.place.step, call.place.index]);
  const handle = `res_${nodeCrypto().hash('sha256', about, 'base64url').slice(0, 16)}`;
  try {
    await results.keepResult({ ...keyOf(run, handle), text: full, lifeMs: LIFE_MS });
  } catch (error) {
    const what = 'A large result could not be kept; it was cut';
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
  const how = `${READ_RESULT} with {"handle":"${handle}"} reads on: "from": ${from}, a "line", a "path" or a "search"`;
  const value = parsedJson(full);
  const form =
    typeof value === 'object'
      ? shapeOf(value).slice(0, MOST_SHAPE).toWellFormed()
      : `a text of ${full.split('\n').length} lines`;
  const text = `${head}\n[${cut}All ${full.length} are kept: ${how}. It is ${form}.]`;
  const kept = { handle, characters: full.length };
  const result = new ToolResult({
    ...record.result,
    forLLM: text,
    content: content && withText(content, text),
    details: withoutUndefined({ kept, details: details.details }),
  });
  call.record = { ...record, result };
}

/** Only the run that a result belongs to can read it, even if it is stored under the enclosing run. */
function keyOf({ runId, resultsOf, owner }: LoopRun, handle: string): ResultKey {
  const own = resultsOf === runId ? handle : `${runId} ${handle}`;
  return withoutUndefined({ runId: resultsOf, handle: own, owner: ownerText(owner) });
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
    // The previous version stored those of an agent under its own run.
    if (key.runId !== runId) text ??= await results?.readResult({ ...key, runId, handle });
    if (text === undefined)
      return errorResult(
        `There is no result '${handle.slice(0, 80).toWellFormed()}' in this run, or it is not kept any more.`,
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
  return ownTool(tool, hooks)(call, scope);
}
