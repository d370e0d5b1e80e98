import type { CallRecord } from '../../core/contract/call.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { ToolMessage } from '../../core/contract/llm-provider.js';
import { ToolResult } from '../../core/contract/tool-result.js';
import { isRecord } from '../../core/kernel/json.js';
import { toDefinition } from '../../tools/discovery/define-tool.js';
import { EmbeddedTools, mergeRankings, type ToolEmbedder } from '../../tools/search/embedded-tools.js';
import { logFailure } from '../call/failure-log.js';
import { callRecord } from '../call/run-body.js';
import { toolToSchema } from '../call/tool-to-schema.js';
import type { LoopRun } from './loop-run.js';
import { type ParsedCall, parseCall } from './messages.js';
import { CALL_TOOL, divide, READ_RESULT, SEARCH_PARAMETERS, SEARCH_TOOLS } from './offered-tools.js';
import { type OwnTool, ownTool } from './own-tool.js';
import { readOn } from './stored-results.js';

/**
 * The calls of a reply, with answered searches, and with each `call_tool` replaced by the call of the tool that it
 * names.
 */
export function resolveCalls(run: LoopRun, calls: readonly ParsedCall[]): Promise<readonly ParsedCall[]> {
  const { deferred } = divide(run.tools, run.config.deferAbove);
  return Promise.all(
    calls.map(async (call) => {
      if (run.tools.offered(call.name) !== undefined) return call;
      if (call.name === READ_RESULT && run.results !== undefined)
        return { ...call, record: await readOn(run, call) };
      if (deferred.size === 0) return call;
      if (call.name === SEARCH_TOOLS) return { ...call, record: await searcherOf(run)(call, run.scope) };
      return call.name === CALL_TOOL ? resolved(call) : call;
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

function searcherOf(run: LoopRun): OwnTool {
  const tool = toDefinition(
    {
      name: SEARCH_TOOLS,
      description: 'Finds tools',
      parameters: SEARCH_PARAMETERS,
      execute: (args: JsonObject) => findTools(run, args as unknown as SearchArguments),
    },
    { by: 'deferred tools', wrong: [] },
  );
  return ownTool(tool);
}

interface SearchArguments {
  readonly query: string;
  readonly limit?: number;
}

const LIMIT = 5;
/** The multiple of the limit that is ranked, because policies forbid some tools, and some match only by meaning. */
const WIDER = 8;

async function findTools(run: LoopRun, { query, limit = LIMIT }: SearchArguments): Promise<ToolResult> {
  const { tools, config, scope } = run;
  const { deferred } = divide(tools, config.deferAbove);
  const byWords = tools
    .search(query, { limit: WIDER * limit, accepts: (name) => deferred.has(name) })
    .map(({ name }) => name);
  const ranked = await withMeanings(run, { query, byWords, limit: WIDER * limit });
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

interface RankedSearch extends Required<SearchArguments> {
  readonly byWords: readonly string[];
}

const embedded = new WeakMap<ToolEmbedder, EmbeddedTools>();

/** Ranks by words, and by meaning if there is an embedder. If that fails, words are enough. */
async function withMeanings(
  { tools, config, signal }: LoopRun,
  { query, byWords, limit }: RankedSearch,
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
    const what = 'The embedder of tools failed; only words were searched';
    logFailure(logger, { what, error });
    return byWords;
  }
}

/** Names of the tools that a search found, for the message that answers it. */
export function foundBy({ name, result: { details } }: CallRecord): Pick<ToolMessage, 'found'> {
  if (name !== SEARCH_TOOLS || !isRecord(details) || !Array.isArray(details.found)) return {};
  return { found: details.found.filter((item) => typeof item === 'string') };
}
