import type { ToolRegistry } from '../call/tool-registry.js';
import type { Answer, CallScope } from '../contract/call.js';
import type { LLMProvider } from '../contract/llm-provider.js';
import type { RunPage } from '../contract/run-checkpoint.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { isRecord } from '../kernel/json.js';
import type { ToolLoopResult } from '../loop/events.js';
import { resumeToolLoop, runToolLoop } from '../loop/run.js';
import type { EventFeed } from './event-feed.js';
import type { ChosenScope, InspectorOptions } from './options.js';
import type { PendingBoard } from './pending-board.js';
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
  shownValue,
  storedLine,
  storedRun,
} from './shown-runs.js';
import { toolCard, toolSummaries } from './tool-cards.js';
import type { TrialAnswer, TrialCalls, TrialChats } from './trials.js';
import type { SeenCall, WatchedCalls } from './watched-calls.js';
import type { GivenReply, WatchedRuns } from './watched-runs.js';

/** All that the page can ask for. */
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
}

interface PageRequest {
  /** The rest of the path. */
  readonly id: string;
  readonly query: URLSearchParams;
  readonly body: Readonly<Record<string, unknown>>;
  /** The address of the page, with a slash at its end. */
  readonly page: string;
}

type PageCall = (parts: PageParts, request: PageRequest) => unknown;

/** What somebody at the page did wrong, or what is not there (any more). */
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
  'GET tools': async ({ registry, options, calls }, { id }) => {
    if (id === '') return { tools: toolSummaries(registry), breakpoints: calls.breakpoints };
    const card = await toolCard(id, { registry, surroundings: options.surroundings });
    return card ?? missing('tool', id);
  },
  'GET calls': ({ calls, trials }, { id, page }) => {
    if (id === '') return { calls: calls.list().map(callLine) };
    const seen = calls.get(id) ?? missing('call', id);
    const texts = callTexts({ tool: seen.tool, args: seen.arguments }, page);
    return { ...callDetail(seen, trials.isWaiting(id)), texts };
  },
  'POST calls': async ({ trials, options }, { body }) => {
    const { tool, arguments: args } = body;
    const scope = await scopeFor(options, body.scope);
    const seen = await trials.make({ tool: text('tool', tool), arguments: args, scope });
    return callDetail(seen ?? missing('call', String(tool)), trials.isWaiting(seen?.key ?? ''));
  },
  'POST call-answers': async ({ trials }, { id, body }) => {
    const seen = await said(trials.answer(id, body as unknown as TrialAnswer));
    return callDetail(seen ?? missing('call', id), trials.isWaiting(seen?.key ?? ''));
  },
  'GET runs': async ({ runs, options }, { id, query }) => {
    const seen = runs.get(id);
    if (seen !== undefined) return runDetail(seen);
    if (id !== '') return (await storedRun(options.store, id)) ?? missing('run', id);
    const { store } = options;
    const after = query.get('after');
    const page = { limit: 50, ...(after === null ? {} : { after }) };
    const { runs: stored, next }: RunPage = listsRuns(store) ? await store.list(page) : { runs: [] };
    const own = runs.list().map(runLine);
    const known = new Set(own.map(({ runId }) => runId));
    const others = stored.filter(({ runId }) => !known.has(runId)).map(storedLine);
    return { runs: [...own, ...others], next };
  },
  'GET pending': async ({ pending }) => ({ runs: shownValue(await pending.list()) }),
  'POST answers': async ({ pending, feed }, { body }) => {
    const { runId, answers, goesOn = 'here' } = body;
    if (!Array.isArray(answers)) throw new PageFault('answers is to be a list');
    const way = goesOn as 'here' | 'worker' | 'conversation';
    await said(pending.answer({ runId: text('runId', runId), answers: answers as Answer[], goesOn: way }));
    feed.tell('pending');
    return {};
  },
  'GET chats': ({ chats }, { id }) => shownValue(chats.get(id)),
  'POST chats': async ({ chats, options }, { id, body }) => {
    const prompt = { id: text('id', id), text: text('text', body.text) };
    const scope = await scopeFor(options, body.scope);
    const model = await modelFor(options, body.with);
    return shownValue(await said(async () => chats.prompt({ ...prompt, scope, model })));
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
      typeof body.reason === 'string' && body.reason !== '' ? body.reason : 'it was held and not let go';
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
      recordings: (await recordings.list()).map(({ id: name, kind, title, at, outcome }) => ({
        ...{ id: name, kind, title, at, status: outcome.status, calls: outcome.calls.length },
      })),
    };
  },
  'POST recordings': async (parts, { body }) => {
    const { id, title } = await parts.recordings.keep(await recordingOf(parts, body));
    parts.feed.tell('recordings');
    return { id, title };
  },
  'POST replays': async (parts, { body }) => {
    const { registry, options } = parts;
    const recording = await recordingOf(parts, body);
    const scope = await scopeFor(options, body.scope ?? recording.scope);
    const model =
      body.with === 'model'
        ? await modelFor(options, 'configured')
        : { provider: recordedModel(recording.replies), model: 'recorded' };
    return shownValue(await replay(recording, { registry, scope, answeredBy: options.answeredBy, model }));
  },
  'POST tests': async (parts, { body }) => {
    const { tests } = parts.options;
    const setup = typeof body.setup === 'string' && body.setup.trim() !== '' ? body.setup : tests?.setup;
    const written = writeTest(await recordingOf(parts, body), { ...tests, ...(setup ? { setup } : {}) });
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

/** What is refused is the person's to hear. */
async function said<Value>(work: Promise<Value> | (() => Promise<Value>)): Promise<Value> {
  try {
    return await (typeof work === 'function' ? work() : work);
  } catch (error) {
    const name = ToolwrightError.is(error) ? error.name : '';
    throw new PageFault(
      error instanceof Error ? error.message : String(error),
      name === 'RunNotAllowed' ? 403 : name === 'DefinitionChanged' ? 409 : 400,
    );
  }
}

async function scopeFor({ scope }: InspectorOptions, given: unknown): Promise<CallScope> {
  if (given !== undefined && !isRecord(given)) throw new PageFault('scope is to be an object');
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
  const { OfflineProvider } = await import('../providers/offline/offline-provider.js');
  return { provider: new OfflineProvider() as LLMProvider, model: 'offline' };
}

/** What is to be recorded, replayed or tested: a kept recording, a run or a call. */
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
  throw new PageFault(`the ${what} goes on: what it comes to is not known yet`);
}

interface ReplaySource {
  readonly registry: ToolRegistry;
  readonly scope: CallScope;
  /** Who gives the recorded answers. */
  readonly answeredBy: unknown;
  readonly model: { readonly provider: LLMProvider; readonly model: string };
}

/** Makes a recorded run again with the current tools: their effects take place again. */
async function replay(recording: Recording, { registry, scope, answeredBy, model }: ReplaySource) {
  const runId = crypto.randomUUID();
  const config = { ...model, tools: registry, runId, providerRetries: 0, loopGuard: false } as const;
  let run = await runToolLoop(config, recording.messages, scope);
  for (const given of recording.answers) {
    const answers = answersFor(run, given);
    if (answers === undefined) break;
    run = await resumeToolLoop(config, run.state, answers, { scope, answeredBy });
  }
  return { runId, before: recording.outcome, after: outcomeOf(run.status, run.content, run.toolCalls) };
}

/** The recorded answers for what a run waits for now; nothing where they do not fit it. */
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
      if (reply === undefined) throw new Error('the recording ends here: the model was asked no further');
      const toolCalls = (reply.toolCalls ?? []).map(({ id = '', name, arguments: args = {} }) => ({
        ...{ id, name, arguments: args as string },
      }));
      const finishReason = toolCalls.length > 0 ? 'tool_calls' : 'stop';
      return { content: reply.content, toolCalls, finishReason };
    },
  };
}

/** A call with all that is known of it; `waits`: an answer from the page lets it go on. */
function callDetail(seen: SeenCall, waits: boolean): object {
  const { arguments: args, steps, scope, invocation } = seen;
  const { record, result } = invocation ?? {};
  const { channel, chatId, conversationId, owner, data } = scope;
  const { repairs, removed, attempts, arguments: checked } = record ?? {};
  const { isError, silent, async, forLLM, forUser, details, content, error } = result ?? {};
  return {
    ...callLine(seen),
    ...{ steps, repairs, removed, attempts, isError, silent, async },
    ...shownFields({ arguments: args, scope: { channel, chatId, conversationId, owner, data }, checked }),
    ...shownFields({ forLLM, forUser, details, content, error }),
    ...(invocation?.status === 'suspended' ? { waits: invocation.suspension.waits, canAnswer: waits } : {}),
  };
}
