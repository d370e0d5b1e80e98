import type { Invoker } from '../call/invocation.js';
import { SafeLog } from '../call/log.js';
import { type KeptPart, readKept, shapeOf } from '../call/read-kept.js';
import { isCutDetails, withText } from '../call/result-text.js';
import { ToolRegistry } from '../call/tool-registry.js';
import type { CallRecord } from '../contract/call.js';
import type { Hooks } from '../contract/hooks.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { ToolMessage } from '../contract/llm-provider.js';
import { keepsResults, type ResultKey, type ResultStore } from '../contract/result-store.js';
import { errorResult, ToolResult } from '../contract/tool-result.js';
import { toDefinition } from '../discovery/define-tool.js';
import { errorMessage } from '../kernel/error-message.js';
import { canonicalJson, isRecord } from '../kernel/json.js';
import { nodeCrypto } from '../kernel/node-module.js';
import type { LoopRun } from './loop-run.js';
import type { ParsedCall } from './messages.js';
import { READ_RESULT, READ_SCHEMA } from './offered-tools.js';
import type { ResumeConfig } from './options.js';

/** Characters of a result that a model sees at most where the rest is kept. */
const KEPT_RESULT_CHARS = 32_000;

/** Runs may wait for people that long. */
const LIFE_MS = 7 * 24 * 60 * 60 * 1000;

/**
 * Where a run keeps what is too large for its model, and how long that is; nowhere, where the application has a tool of
 * that name.
 */
export function keepingOf(
  { store, maxResultChars }: ResumeConfig,
  tools: ToolRegistry,
): Pick<LoopRun, 'results' | 'maxResultChars'> {
  const results: ResultStore | undefined =
    keepsResults(store) && tools.offered(READ_RESULT) === undefined ? store.results : undefined;
  const limit = results && (tools.maxResultChars ?? KEPT_RESULT_CHARS);
  return { results, maxResultChars: maxResultChars ?? limit };
}

/** Whether a result was cut, and there is somewhere to keep it. */
export function isToBeKept({ results }: LoopRun, { result }: CallRecord): boolean {
  return results !== undefined && result.details !== undefined && isCutDetails(result.details);
}

/** Keeps the whole of a result that was cut: the model gets its beginning, what it is like, and a handle. */
export async function keepResult(run: LoopRun, call: ParsedCall, record: CallRecord): Promise<CallRecord> {
  const { results, config } = run;
  const { details } = record.result;
  if (results === undefined || !isCutDetails(details)) return record;
  const { full } = details;
  const handle = handleOf(run, call);
  try {
    await results.keepResult({ ...keyOf(run, handle), text: full, lifeMs: LIFE_MS });
  } catch (error) {
    const what = 'A large result could not be kept; it was cut';
    new SafeLog(config.logger).warn(what, { tool: record.name, error: errorMessage(error) });
    return record;
  }
  const text = beginning(record.result.forLLM, { full, handle });
  const kept = { kept: { handle, characters: full.length }, ...own(details.details) };
  const content = record.result.content && withText(record.result.content, text);
  const result = new ToolResult({ ...record.result, forLLM: text, content, details: kept });
  return { ...record, result };
}

function own(details: unknown): { readonly details?: unknown } {
  return details === undefined ? {} : { details };
}

/** The same for the same call, also where it is made again. */
function handleOf({ runId }: LoopRun, { id, place }: ParsedCall): string {
  const about = canonicalJson([runId, id, place.step, place.index]);
  return `res_${nodeCrypto().hash('sha256', about, 'base64url').slice(0, 16)}`;
}

/** Only the run that a result belongs to reads it, also where it is kept as one of the run around that. */
function keyOf({ runId, resultsOf, owner }: LoopRun, handle: string): ResultKey {
  const key = { runId: resultsOf, handle: resultsOf === runId ? handle : `${runId} ${handle}` };
  return owner === undefined ? key : { ...key, owner: canonicalJson(owner) };
}

const MOST_SHAPE = 1_500;
const MARK = /\n\[(\d+) more characters were cut off\]$/;

/** What the call gave of the result, and what there is of it elsewhere. */
function beginning(
  told: string,
  { full, handle }: { readonly full: string; readonly handle: string },
): string {
  const [mark = '', missing] = MARK.exec(told.slice(-100)) ?? [];
  const head = mark === '' ? told : told.slice(0, -mark.length);
  // Where files were taken out, places in what is told are other places in the whole.
  const isPlain = missing !== undefined && head.length + Number(missing) >= full.length;
  const from = isPlain ? full.length - Number(missing) : 0;
  const cut = missing === undefined ? '' : `${missing} more characters were cut off. `;
  const how = `${READ_RESULT} with {"handle":"${handle}"} reads on: "from": ${from}, a "line", a "path" or a "search"`;
  return `${head}\n[${cut}All ${full.length} are kept: ${how}. It is ${formOf(full)}.]`;
}

function formOf(full: string): string {
  try {
    const value: unknown = JSON.parse(full);
    if (typeof value === 'object') return shapeOf(value).slice(0, MOST_SHAPE).toWellFormed();
  } catch {
    // It is no JSON.
  }
  return `a text of ${full.split('\n').length} lines`;
}

/** The handle of what a record keeps, for the message that answers its call. */
export function keptBy({ result: { details } }: CallRecord): Pick<ToolMessage, 'kept'> {
  if (!isRecord(details) || !isRecord(details.kept) || typeof details.kept.handle !== 'string') return {};
  return { kept: details.kept.handle };
}

/** Of each run, what reads on in results from outside and in others. */
const readers = new WeakMap<LoopRun, { outside?: Invoker; inside?: Invoker }>();

/** The answer to a call of {@link READ_RESULT}. */
export async function readOn(run: LoopRun, call: ParsedCall): Promise<CallRecord> {
  const made = readers.get(run) ?? {};
  readers.set(run, made);
  const { id, name, arguments: args } = call;
  const place = isFromOutside(run, call) ? 'outside' : 'inside';
  made[place] ??= readerOf(run, place === 'outside');
  const read = made[place];
  const invocation = await read({ id, name, arguments: args }, run.scope);
  if (invocation.status !== 'suspended') return invocation.record;
  throw new TypeError('Reading a result cannot wait.');
}

/** Whether the tool whose result is read reaches outside, or a hook has marked it; of an unknown one, yes. */
function isFromOutside({ toolCalls, tools }: LoopRun, { read }: ParsedCall): boolean {
  const handle = read.ok ? read.value.handle : undefined;
  const record = toolCalls.find((known) => keptBy(known).kept === handle);
  if (record === undefined) return true;
  const isMarked = record.hooks?.some(({ hook, did }) => hook === 'mark-untrusted' && did === 'rewrote');
  return isMarked === true || tools.offered(record.name)?.annotations?.openWorld === true;
}

/** What is kept is as the tool gave it: hooks that mark and mask results see what is read of it. */
function readerOf(run: LoopRun, openWorld: boolean): Invoker {
  const { name, parameters, description } = READ_SCHEMA.function;
  const execute = (args: JsonObject) => part(run, args as unknown as KeptPart & { readonly handle: string });
  const tool = toDefinition(
    {
      ...{ name, description, parameters, maxResultChars: Number.POSITIVE_INFINITY, execute },
      annotations: { openWorld },
    },
    { by: 'kept results', wrong: [] },
  );
  const hooks = [...run.tools.hooks, ...(run.config.hooks ?? [])].flatMap((hook): Hooks[] =>
    hook.afterCall === undefined
      ? []
      : [
          {
            ...(hook.name === undefined ? {} : { name: hook.name }),
            afterCall: (call) => hook.afterCall?.(call),
          },
        ],
  );
  return new ToolRegistry(hooks.length === 0 ? {} : { hooks }).register(tool).invoker();
}

async function part(
  run: LoopRun,
  { handle, ...wanted }: KeptPart & { readonly handle: string },
): Promise<ToolResult> {
  const { results, runId, maxResultChars = KEPT_RESULT_CHARS } = run;
  const key = keyOf(run, handle);
  let text = await results?.readResult(key);
  // The version before kept those of an agent under its own run.
  if (key.runId !== runId) text ??= await results?.readResult({ ...key, runId, handle });
  if (text === undefined)
    return errorResult(
      `There is no result '${handle.slice(0, 80).toWellFormed()}' in this run, or it is not kept any more.`,
    );
  return new ToolResult({ forLLM: readKept(text, wanted, maxResultChars) });
}
