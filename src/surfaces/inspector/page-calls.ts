import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Answer, CallScope, HookMoment } from '../../core/contract/call.js';
import type { LLMProvider } from '../../core/contract/llm-provider.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { type Fields, isRecord } from '../../core/kernel/json.js';
import { connectionsOf } from '../../core/kernel/tool-connections.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import { toolToSchema } from '../../run/call/tool-to-schema.js';
import type { ToolLoopResult } from '../../run/loop/events.js';
import { resumeToolLoop, runToolLoop } from '../../run/loop/run.js';
import { boundMethodOf, methodPlace } from '../../tools/discovery/bound-method.js';
import { planToolset, schemaOrigins } from '../../tools/discovery/plan-toolset.js';
import { type StrictSchema, strictSchema } from '../../tools/schema/strict/strict-schema.js';
import { listedTool } from '../mcp/server/call-result.js';
import { type AppDocuments, appData, callForApp } from './app-views.js';
import type { EventFeed } from './event-feed.js';
import type { ChosenScope, InspectorOptions, ToolSurrounding } from './options.js';
import type { GoesOn, PendingBoard } from './pending-board.js';
import {
  callTexts,
  outcomeOf,
  type RecordedReply,
  type Recording,
  type Recordings,
  recordCall,
  recordRun,
  saveTest,
  scopeFromRequest,
  writeTest,
} from './recording.js';
import {
  callLine,
  listsRuns,
  runDetail,
  runLine,
  shownFields,
  shownRecordOf,
  shownValue,
  storedLine,
  storedRun,
} from './shown-runs.js';
import { listWarnings, toolWarnings } from './tool-warnings.js';
import type { TrialAnswer, TrialCalls, TrialChats } from './trials.js';
import type { SeenCall, WatchedCalls } from './watched-calls.js';
import type { GivenReply, WatchedRuns } from './watched-runs.js';

/** Estimate: a token of English and JSON has about four characters. */
const CHARACTERS_PER_TOKEN = 4;

function toolSummaries(registry: ToolRegistry) {
  const tools = registry.tools();
  const sizes = tools.map((tool) =>
    Math.ceil(JSON.stringify(toolToSchema(tool)).length / CHARACTERS_PER_TOKEN),
  );
  const total = sizes.reduce((sum, size) => sum + size, 0);
  return tools.map((tool, index) => {
    const { name, description = '', annotations } = tool;
    const bound = boundMethodOf(tool);
    const method = bound && methodPlace(bound);
    const tokens = sizes[index] ?? 0;
    const share = total === 0 ? 0 : tokens / total;
    const about = { title: annotations?.title, description, method, marks: marksOf(tool) };
    return { name, ...about, tokens, share, warnings: toolWarnings(tool).map(shownValue) };
  });
}

/** Declarations of a tool that change how it is called. */
function marksOf(tool: ToolDefinition): readonly string[] {
  const { annotations = {}, approval, execution, background, sequential, returnDirect } = tool;
  const marks = [
    [annotations.readOnly, 'reads only'],
    [annotations.destructive, 'destructive'],
    [annotations.idempotent, 'idempotent'],
    [annotations.openWorld, 'open world'],
    [approval, typeof approval === 'function' ? 'may need approval' : 'needs approval'],
    [execution === 'client', 'executed by the client'],
    [background, 'background'],
    [sequential, 'sequential'],
    [returnDirect, 'returns directly'],
  ] as const;
  return marks.flatMap(([isSet, mark]) => (isSet ? [mark] : []));
}

/** The details of a tool; `undefined` if there is no such tool. */
async function toolCard(name: string, { registry, options }: PageParts) {
  const tool = registry.offered(name);
  const summary = toolSummaries(registry).find((listed) => listed.name === name);
  if (tool === undefined || summary === undefined) return undefined;
  const { parameters, output, annotations, timeoutMs, retries, maxResultChars, coerce, repair } = tool;
  const bound = boundMethodOf(tool);
  const planned = bound && planToolset(bound.class).tools.find(({ key }) => key === bound.key);
  const origins = planned === undefined ? ['explicit'] : schemaOrigins(planned);
  // The function in the source of the application.
  const body = bound === undefined ? tool.execute : Reflect.get(bound.class.prototype, bound.key);
  return {
    ...summary,
    origins: origins.length === 0 ? ['no parameters'] : origins,
    place: await placeOf(body),
    parameters,
    output,
    annotations: shownValue(annotations),
    limits: shownValue({ timeoutMs, retries, maxResultChars, coerce, repair }),
    surroundings: [...standingAround(registry), ...(options.surroundings?.(tool) ?? [])],
    app: tool.ui && { uri: tool.ui.uri, csp: tool.ui.csp, domain: tool.ui.domain },
    strict: strictReport(strictSchema(parameters)),
    surfaces: await surfacesOf(tool, registry),
  };
}

const MOMENTS: readonly HookMoment[] = ['beforeCall', 'beforeRun', 'afterCall', 'onError'];

function standingAround({ policies, hooks }: ToolRegistry): readonly ToolSurrounding[] {
  return [
    ...policies.map((policy) => ({ kind: 'policy', name: policy.name || 'policy' }) as const),
    ...hooks.flatMap((hook, index) => {
      const moments = MOMENTS.filter((moment) => hook[moment] !== undefined);
      if (moments.length === 0) return [];
      const name = `${hook.name ?? `hook ${index + 1}`} (${moments.join(', ')})`;
      return [{ kind: 'hook', name } as const];
    }),
  ];
}

function strictReport(strict: StrictSchema): unknown {
  if (!strict.isStrict) return { isStrict: false, reasons: strict.reasons };
  const { rewritten, checked } = strict.report;
  return { isStrict: true, rewritten, checked, schema: strict.schema };
}

async function surfacesOf(tool: ToolDefinition, registry: ToolRegistry) {
  const { name, description, parameters } = toolToSchema(tool).function;
  const strict = strictSchema(parameters);
  const about = { type: 'function', name, description };
  const sent = {
    'OpenAI, Chat Completions': () => toolToSchema(tool),
    'OpenAI, Responses': () => ({ ...about, parameters, strict: false }),
    ...(strict.isStrict && {
      'OpenAI, strict': () => ({ ...about, parameters: strict.schema, strict: true }),
    }),
    MCP: () => listedTool(tool, false),
    'AI SDK': () => aiSdkTool(name, registry),
  };
  const surfaces = Object.entries(sent).map(async ([surface, write]) => {
    try {
      return { name: surface, sent: shownValue(await write()) };
    } catch (error) {
      return { name: surface, problem: errorMessage(error) };
    }
  });
  return Promise.all(surfaces);
}

async function aiSdkTool(name: string, registry: ToolRegistry): Promise<unknown> {
  const { toAiSdkTools } = await import('../../models/ai-sdk/to-ai-sdk-tools.js');
  const { [name]: tool } = toAiSdkTools(registry.view({ allow: [name] }));
  if (tool === undefined) throw new Error('it is not offered to the AI SDK');
  const { inputSchema, ...others } = tool;
  return { ...others, inputSchema: inputSchema.jsonSchema };
}

/** The place of a function in the source; `line` counts from 1. */
interface FunctionPlace {
  readonly file: string;
  readonly line: number;
}

const known = new WeakMap<object, FunctionPlace>();

/** The file and line of a function, through its source map if there is one. */
async function placeOf(body: unknown): Promise<FunctionPlace | undefined> {
  if (typeof body !== 'function') return undefined;
  const found = known.get(body) ?? (await askEngine(body));
  if (found !== undefined) known.set(body, found);
  return found;
}

const SLOT = Symbol.for('toolwright.inspector.function');

interface EngineLocation {
  readonly scriptId: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/** Only a debugger can read this from the engine, so this is a debugger session for a moment. */
async function askEngine(body: object): Promise<FunctionPlace | undefined> {
  try {
    const { Session } = await import('node:inspector');
    const session = new Session();
    session.connect();
    const urls = new Map<string, string>();
    session.on('Debugger.scriptParsed', ({ params }) => urls.set(params.scriptId, params.url));
    const post = (method: string, params?: object): unknown => {
      let answer: unknown;
      // The session is of this thread, so the answer is synchronous.
      session.post(method, params, (_error, result) => {
        answer = result;
      });
      return answer;
    };
    try {
      Reflect.set(globalThis, SLOT, body);
      post('Debugger.enable');
      const expression = `globalThis[Symbol.for(${JSON.stringify(SLOT.description)})]`;
      const evaluated = post('Runtime.evaluate', { expression }) as { result: { objectId?: string } };
      const { objectId } = evaluated.result;
      if (objectId === undefined) return undefined;
      const { internalProperties = [] } = post('Runtime.getProperties', { objectId }) as {
        internalProperties?: readonly { name: string; value?: { value?: EngineLocation } }[];
      };
      const location = internalProperties.find(({ name }) => name === '[[FunctionLocation]]')?.value?.value;
      return location && sourcePlace(urls.get(location.scriptId) ?? '', location);
    } finally {
      Reflect.deleteProperty(globalThis, SLOT);
      session.disconnect();
    }
  } catch {
    // The runtime has no such session, or is being debugged.
    return undefined;
  }
}

function sourcePlace(url: string, { lineNumber, columnNumber }: EngineLocation): FunctionPlace | undefined {
  if (!url.startsWith('file:')) return undefined;
  const file = fileURLToPath(url);
  const map = `${file}.map`;
  const built = { file: relative(process.cwd(), file), line: lineNumber + 1 };
  if (!existsSync(map)) return built;
  const entry = new SourceMap(JSON.parse(readFileSync(map, 'utf8'))).findEntry(lineNumber, columnNumber);
  if (!('originalSource' in entry) || !entry.originalSource) return built;
  const source = fileURLToPath(new URL(entry.originalSource, pathToFileURL(resolve(map))));
  return { file: relative(process.cwd(), source), line: entry.originalLine + 1 };
}

/** The parts that requests of the page use. */
export interface PageParts {
  readonly registry: ToolRegistry;
  readonly options: InspectorOptions;
  readonly feed: EventFeed;
  readonly calls: WatchedCalls;
  readonly runs: WatchedRuns;
  readonly trials: TrialCalls;
  readonly chats: TrialChats;
  readonly pending: PendingBoard;
  readonly recordings: Recordings;
  readonly apps: AppDocuments;
}

interface PageRequest {
  /** The rest of the path. */
  readonly id: string;
  readonly body: Fields;
  /** The address of the page, with a slash at its end. */
  readonly page: string;
}

type PageCall = (parts: PageParts, request: PageRequest) => unknown;

/** An invalid request, or something that does not exist. */
export class PageFault extends Error {
  readonly status: 400 | 403 | 404 | 409;

  constructor(message: string, status: PageFault['status'] = 400) {
    super(message);
    this.status = status;
  }
}

export const PAGE_CALLS: Readonly<Record<string, PageCall>> = {
  'GET about': ({ options }) => ({
    hasModel: options.provider !== undefined && options.model !== undefined,
    model: options.model,
    hasStore: options.store !== undefined,
    tests: options.tests,
    recordings: options.recordings,
  }),
  'GET tools': async (parts, { id }) => {
    if (id !== '') return (await toolCard(id, parts)) ?? missing('tool', id);
    const { registry, calls } = parts;
    const tools = toolSummaries(registry);
    const connections = connectionsOf(registry).map((connection) => ({
      ...connection,
      tools: connection.tools.length,
    }));
    return { tools, connections, warnings: listWarnings(tools), breakpoints: calls.breakpoints };
  },
  'GET calls': (parts, { id, page }) => {
    const { calls, options } = parts;
    if (id === '') return { calls: calls.list().map(callLine) };
    const seen = calls.get(id) ?? missing('call', id);
    const setup = options.tests?.setup;
    const texts = callTexts({ tool: seen.tool, args: seen.arguments }, { page, setup });
    return { ...callDetail(seen, parts), texts };
  },
  'POST calls': async (parts, { body }) => {
    const { trials, options } = parts;
    const { tool, arguments: args } = body;
    const scope = await scopeFor(options, body.scope);
    return callDetail(await said(trials.make({ tool: text('tool', tool), arguments: args, scope })), parts);
  },
  'POST call-texts': ({ options }, { body, page }) =>
    callTexts({ tool: text('tool', body.tool), args: body.arguments }, { page, setup: options.tests?.setup }),
  'POST call-answers': async (parts, { id, body }) => {
    return callDetail(await said(parts.trials.answer(id, body as unknown as TrialAnswer)), parts);
  },
  'POST app-views': ({ registry, apps }, { id }) => {
    const tool = registry.offered(id);
    const { ui } = tool ?? missing('tool', id);
    return tool && ui ? said(apps.open({ ...tool, ui })) : missing('view of', id);
  },
  'POST app-calls': async ({ registry, trials, options }, { body }) => {
    const { name, arguments: args = {} } = body;
    const scope = await scopeFor(options, body.scope);
    return said(callForApp(registry, trials, { tool: text('name', name), arguments: args, scope }));
  },
  'GET runs': async ({ runs, calls, options }, { id }) => {
    const seen = runs.get(id);
    if (seen !== undefined) return runDetail(seen, calls);
    if (id !== '') return (await storedRun(options.store, id)) ?? missing('run', id);
    const { store } = options;
    const stored = listsRuns(store) ? (await store.list({ limit: 50 })).runs : [];
    const own = runs.list().map(runLine);
    const known = new Set(own.map(({ runId }) => runId));
    const others = stored.filter(({ runId }) => !known.has(runId)).map(storedLine);
    return { runs: [...own, ...others] };
  },
  'GET pending': async ({ pending }) => ({ runs: shownValue(await pending.list()) }),
  'POST answers': async ({ pending, feed }, { body }) => {
    const { runId, answers, goesOn = 'here' } = body;
    if (!Array.isArray(answers)) throw new PageFault('answers must be a list');
    await said(pending.answer(text('runId', runId), answers as Answer[], goesOn as GoesOn));
    feed.report('pending');
    return {};
  },
  'GET chats': ({ chats }, { id }) => shownValue(chats.get(id)),
  'POST chats': async ({ chats, options }, { id, body }) => {
    const prompt = { id: text('id', id), text: text('text', body.text) };
    const scope = await scopeFor(options, body.scope);
    const model = await modelFor(options, body.with);
    return shownValue(await said(chats.prompt({ ...prompt, scope, model })));
  },
  'POST chat-retries': async ({ chats, options }, { id, body }) => {
    const scope = await scopeFor(options, body.scope);
    const model = await modelFor(options, body.with);
    return shownValue(await said(chats.retry({ id: text('id', id), scope, model })));
  },
  'POST chat-aborts': ({ chats }, { id }) => {
    chats.abort(id);
    return shownValue(chats.get(id));
  },
  'GET held': ({ calls }) => ({
    held: calls.held().map((held) => ({ ...held, arguments: shownValue(held.arguments) })),
    breakpoints: calls.breakpoints,
  }),
  'POST held': ({ calls }, { id, body }) => {
    const reason =
      typeof body.reason === 'string' && body.reason !== '' ? body.reason : 'it was stopped at a breakpoint';
    if (!calls.release(id, body.how === 'refuse' ? { how: 'refuse', reason } : { how: 'go' }))
      missing('held call', id);
    return {};
  },
  'POST breakpoints': ({ calls, registry }, { id, body }) => {
    if (registry.offered(id) === undefined) missing('tool', id);
    calls.breakAt(id, body.state === 'on' ? 'on' : 'off');
    return { breakpoints: calls.breakpoints };
  },
  'GET recordings': async ({ recordings }, { id }) => {
    if (id !== '') return shownValue((await recordings.get(id)) ?? missing('recording', id));
    return {
      recordings: (await recordings.list()).map(({ outcome: { status, calls }, ...recording }) => {
        const { id: name, kind, title, at } = recording;
        return { id: name, kind, title, at, status, calls: calls.length };
      }),
    };
  },
  'POST recordings': async (parts, { body }) => {
    const { id, title } = await parts.recordings.save(await recordingOf(parts, body));
    parts.feed.report('recordings');
    return { id, title };
  },
  'POST replays': async (parts, { body }) => shownValue(await replay(parts, body)),
  'POST tests': async (parts, { body }) => {
    const { tests } = parts.options;
    const setup = typeof body.setup === 'string' && body.setup.trim() !== '' ? body.setup : tests?.setup;
    const written = writeTest(await recordingOf(parts, body), { ...tests, setup });
    if (body.save !== true || tests === undefined) return written;
    return { ...written, path: await saveTest(written, tests) };
  },
};

function missing(what: string, id: string): never {
  throw new PageFault(`there is no ${what} '${id.slice(0, 100)}'`, 404);
}

function text(name: string, value: unknown): string {
  if (typeof value === 'string' && value !== '') return value;
  throw new PageFault(`${name} is missing`);
}

/** Errors of the work become errors of the request. */
async function said<Value>(work: Promise<Value>): Promise<Value> {
  try {
    return await work;
  } catch (error) {
    throw new PageFault(errorMessage(error), ToolwrightError.is(error) ? error.statusCode : undefined);
  }
}

async function scopeFor({ scope }: InspectorOptions, given: unknown): Promise<CallScope> {
  if (given !== undefined && !isRecord(given)) throw new PageFault('scope must be an object');
  const chosen = (given ?? {}) as ChosenScope;
  if (scope !== undefined) return scopeFromRequest(await scope(chosen), chosen.request);
  const { request: _, ...others } = chosen;
  return others as CallScope;
}

async function modelFor({ provider, model }: InspectorOptions, who: unknown) {
  if (who === 'configured') {
    if (provider === undefined || model === undefined)
      throw new PageFault('no model is configured: createInspector(registry, { provider, model })');
    return { provider, model };
  }
  const { OfflineProvider } = await import('../../models/offline/offline-provider.js');
  return { provider: new OfflineProvider() as LLMProvider, model: 'offline' };
}

/** The recording, run or call that a request names. */
async function recordingOf(
  { recordings, runs, calls }: PageParts,
  { recording, runId, key }: PageRequest['body'],
): Promise<Recording> {
  if (typeof recording === 'string')
    return (await recordings.get(recording)) ?? missing('recording', recording);
  if (typeof key === 'string') {
    const seen = calls.get(key) ?? missing('call', key);
    return recordCall(seen) ?? unfinished('call');
  }
  const seen = runs.get(text('runId', runId)) ?? missing('run of this process', String(runId));
  return recordRun(seen) ?? unfinished('run');
}

function unfinished(what: string): never {
  throw new PageFault(`the ${what} is still running: its result is not known yet`);
}

/** Repeats a recorded run with the current tools. Effects happen again. */
async function replay(parts: PageParts, body: PageRequest['body']) {
  const { registry, options } = parts;
  const recording = await recordingOf(parts, body);
  const scope = await scopeFor(options, body.scope ?? recording.scope);
  const model =
    body.with === 'model'
      ? await modelFor(options, 'configured')
      : { provider: recordedModel(recording.replies), model: 'recorded' };
  const runId = crypto.randomUUID();
  const config = { ...model, tools: registry, runId, providerRetries: 0, loopGuard: false } as const;
  let run = await runToolLoop(config, recording.messages, scope);
  for (const given of recording.answers) {
    const answers = answersFor(run, given);
    if (answers === undefined) break;
    run = await resumeToolLoop(config, run.state, answers, { scope, answeredBy: options.answeredBy });
  }
  return { runId, before: recording.outcome, after: outcomeOf(run.status, run.content, run.toolCalls) };
}

/** The recorded answers for the pending calls; `undefined` if they do not fit. */
function answersFor(
  { status, pending = [] }: ToolLoopResult,
  given: readonly GivenReply[],
): readonly Answer[] | undefined {
  if (status !== 'suspended' || given.length !== pending.length) return undefined;
  if (pending.some(({ tool }, index) => given[index]?.tool !== tool)) return undefined;
  return given.map(({ tool: _, ...said }, index) => ({ id: pending[index]?.id ?? '', ...said }));
}

function recordedModel(replies: readonly RecordedReply[]): LLMProvider {
  const left = [...replies];
  return {
    async chat() {
      const reply = left.shift();
      if (reply === undefined) throw new Error('the recording ends here: there was no further request');
      const toolCalls = (reply.toolCalls ?? []).map(({ id = '', name, arguments: args = {} }) => ({
        id,
        name,
        arguments: args as string,
      }));
      const finishReason = toolCalls.length > 0 ? 'tool_calls' : 'stop';
      return { content: reply.content, toolCalls, finishReason };
    },
  };
}

function callDetail(seen: SeenCall, { registry, trials }: PageParts): object {
  const { arguments: args, steps, scope, invocation } = seen;
  const { isError, silent, async, content } = invocation?.result ?? {};
  const { channel, chatId, conversationId, owner, data } = scope;
  return {
    ...callLine(seen),
    steps,
    isError,
    silent,
    async,
    ...(invocation && shownRecordOf(invocation.record)),
    ...shownFields({ arguments: args, scope: { channel, chatId, conversationId, owner, data }, content }),
    app: appData(registry.offered(seen.tool), seen),
    ...(invocation?.status === 'suspended' && {
      waits: invocation.suspension.waits,
      canAnswer: trials.isWaiting(seen.key),
    }),
  };
}
