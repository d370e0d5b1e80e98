import type { Invoker } from '../call/invocation.js';
import { SafeLog } from '../call/log.js';
import { callRecord } from '../call/result.js';
import { ToolRegistry } from '../call/tool-registry.js';
import { toolToSchema } from '../call/tool-to-schema.js';
import type { CallRecord } from '../contract/call.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { ToolMessage } from '../contract/llm-provider.js';
import { ToolResult } from '../contract/tool-result.js';
import { toDefinition } from '../discovery/define-tool.js';
import { errorMessage } from '../kernel/error-message.js';
import { isRecord } from '../kernel/json.js';
import { EmbeddedTools, mergeRankings, type ToolEmbedder } from '../search/embedded-tools.js';
import { readOn } from './kept-results.js';
import type { LoopRun } from './loop-run.js';
import { type ParsedCall, parseCall } from './messages.js';
import { CALL_TOOL, divide, READ_RESULT, SEARCH_PARAMETERS, SEARCH_TOOLS } from './offered-tools.js';

/** The calls of a reply, with searches answered and calls of `call_tool` as those of the tools that they name. */
export function resolveCalls(run: LoopRun, calls: readonly ParsedCall[]): Promise<readonly ParsedCall[]> {
  const { deferred } = divide(run.tools, run.config.deferAbove);
  return Promise.all(
    calls.map(async (call) => {
      if (run.tools.offered(call.name) !== undefined) return call;
      if (call.name === READ_RESULT && run.results !== undefined)
        return { ...call, record: await readOn(run, call) };
      if (deferred.size === 0) return call;
      if (call.name === SEARCH_TOOLS) return { ...call, record: await searched(run, call) };
      return call.name === CALL_TOOL ? resolved(call) : call;
    }),
  );
}

/** The call of the tool that a call names. Everything after this speaks of that tool. */
function resolved(call: ParsedCall): ParsedCall {
  const { id, read, place, text, providerItems } = call;
  const { name, arguments: args, ...others } = read.ok ? read.value : {};
  if (typeof name !== 'string' || name === '') return { ...call, record: unnamed(call) };
  // Some models write the arguments beside the name.
  const given = args === undefined || args === null ? others : args;
  const inner = isRecord(given) || typeof given === 'string' ? given : JSON.stringify(given);
  const parsed = parseCall({ id, name, arguments: inner as JsonObject, providerItems }, place);
  return { ...parsed, wire: { name: CALL_TOOL, text: text ?? '{}' } };
}

function unnamed(call: ParsedCall): CallRecord {
  const message = `Invalid arguments for ${CALL_TOOL}: it takes { "name": "…", "arguments": { … } }.`;
  const result = new ToolResult({ forLLM: message, isError: true });
  return callRecord({ request: call, attempt: 1, since: 0 }, { status: 'rejected', result });
}

const searchers = new WeakMap<LoopRun, Invoker>();

async function searched(run: LoopRun, call: ParsedCall): Promise<CallRecord> {
  let search = searchers.get(run);
  if (search === undefined) {
    search = searcherOf(run);
    searchers.set(run, search);
  }
  const { id, name, arguments: args } = call;
  const invocation = await search({ id, name, arguments: args }, run.scope);
  if (invocation.status !== 'suspended') return invocation.record;
  throw new TypeError('A search cannot wait.');
}

function searcherOf(run: LoopRun): Invoker {
  const tool = toDefinition(
    {
      name: SEARCH_TOOLS,
      description: 'Finds tools',
      parameters: SEARCH_PARAMETERS,
      execute: async (args: JsonObject) => found(run, args as unknown as SearchArguments),
    },
    { by: 'deferred tools', wrong: [] },
  );
  return new ToolRegistry().register(tool).invoker();
}

interface SearchArguments {
  readonly query: string;
  readonly limit?: number;
}

const LIMIT = 5;
/** So many are looked at for those that no policy forbids, and that are near by meaning, too. */
const WIDER = 8;

async function found(run: LoopRun, { query, limit = LIMIT }: SearchArguments): Promise<ToolResult> {
  const { tools, config, scope } = run;
  const { deferred } = divide(tools, config.deferAbove);
  const byWords = tools
    .search(query, { limit: WIDER * limit, accepts: (name) => deferred.has(name) })
    .map(({ name }) => name);
  const ranked = await withMeanings(run, { query, byWords, limit: WIDER * limit });
  const names = await tools.allowed(ranked, { scope, limit, policy: config.policy });
  const schemas = names
    .flatMap((name) => tools.offered(name) ?? [])
    .map((tool) => toolToSchema(tool).function);
  const lines = schemas.map(({ strict: _, ...schema }) => JSON.stringify(schema));
  const text =
    lines.length === 0
      ? `No tool was found for ${JSON.stringify(query.slice(0, 200).toWellFormed())}. Search again in other words, or for one thing at a time.`
      : [`Found ${lines.length}; ${CALL_TOOL} calls those that are not among your tools:`, ...lines].join(
          '\n',
        );
  return new ToolResult({ forLLM: text, details: { found: names } });
}

const embedded = new WeakMap<ToolEmbedder, EmbeddedTools>();

/** By words and by meaning, where somebody knows meanings. Where that fails, words are enough. */
async function withMeanings(
  { tools, config, signal }: LoopRun,
  {
    query,
    byWords,
    limit,
  }: { readonly query: string; readonly byWords: readonly string[]; readonly limit: number },
): Promise<readonly string[]> {
  const { toolEmbedder: embedder, logger } = config;
  if (embedder === undefined) return byWords;
  const known = embedded.get(embedder) ?? new EmbeddedTools(embedder);
  embedded.set(embedder, known);
  const { deferred } = divide(tools, config.deferAbove);
  const searched = [...deferred.keys()].flatMap((name) => tools.offered(name) ?? []);
  try {
    const near = await known.nearest({ query, tools: searched, limit, signal });
    return mergeRankings([byWords, near], limit);
  } catch (error) {
    const what = 'The embedder of tools failed; they were searched by their words alone';
    new SafeLog(logger).warn(what, { error: errorMessage(error) });
    return byWords;
  }
}

/** Names of the tools that a call has found, for the message that answers it. */
export function foundBy({ name, result: { details } }: CallRecord): Pick<ToolMessage, 'found'> {
  if (name !== SEARCH_TOOLS || !isRecord(details) || !Array.isArray(details.found)) return {};
  return { found: details.found.filter((item) => typeof item === 'string') };
}
