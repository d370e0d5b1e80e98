import { EventEmitter } from 'node:events';
import type { CallJournal, CallRecord, CallScope, PendingCall } from '../../core/contract/call.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { Message, Usage } from '../../core/contract/llm-provider.js';
import type { ProgressUpdate } from '../../core/contract/tool-context.js';
import { andThen, onAbort } from '../../core/kernel/async.js';
import { forgetOldest } from '../../core/kernel/forget-oldest.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import type {
  CallStep,
  CallWatcher,
  Invocation,
  WatchedCall,
  WatcherAdditions,
} from '../../run/call/invocation.js';
import type { LoopEvent, ToolLoopResult } from '../../run/loop/events.js';
import type { LoopRun } from '../../run/loop/loop-run.js';
import { frameStream } from '../chat/frame-stream.js';

/** The longest text of a model that is stored for a page. */
const MAX_TEXT = 200_000;

/** What the page shows and what may have changed. */
type Topic = 'tools' | 'calls' | 'runs' | 'pending' | 'held' | 'recordings';

/** What a model has written in one request of a run. */
interface WrittenText {
  readonly runId: string;
  readonly iteration: number;
  readonly text: string;
}

/** What a page has not received yet. The size is limited, also for slow readers. */
interface Reader {
  readonly topics: Set<Topic>;
  /** By run and request. */
  readonly texts: Map<string, WrittenText>;
  wake(): void;
}

/**
 * Reports to open pages what has changed. Pages request the new data themselves, so slow pages miss nothing.
 */
export class EventFeed {
  readonly #readers = new Set<Reader>();

  /** Whether a page is open. */
  get hasReaders(): boolean {
    return this.#readers.size > 0;
  }

  report(topic: Topic): void {
    for (const reader of this.#readers) {
      reader.topics.add(topic);
      reader.wake();
    }
  }

  write({ runId, iteration, text }: WrittenText): void {
    const key = `${iteration} ${runId}`;
    for (const reader of this.#readers) {
      const known = reader.texts.get(key)?.text ?? '';
      if (known.length + text.length <= MAX_TEXT)
        reader.texts.set(key, { runId, iteration, text: known + text });
      reader.wake();
    }
  }

  /** An event stream of all changes from now on. */
  stream(signal: AbortSignal): ReadableStream<Uint8Array> {
    const reader: Reader = { topics: new Set(), texts: new Map(), wake: () => {} };
    this.#readers.add(reader);
    const onLeave = (): void => {
      this.#readers.delete(reader);
      reader.wake();
    };
    signal.addEventListener('abort', onLeave, { once: true });
    return frameStream(this.#frames(reader), onLeave);
  }

  async *#frames(reader: Reader): AsyncGenerator<string, undefined> {
    const { topics, texts } = reader;
    yield ': open\n\n';
    for (;;) {
      while (topics.size + texts.size === 0 && this.#readers.has(reader))
        await new Promise<void>((resolve) => {
          reader.wake = resolve;
        });
      if (!this.#readers.has(reader)) return;
      const news = { changed: [...topics], texts: [...texts.values()] };
      topics.clear();
      texts.clear();
      yield `data: ${JSON.stringify(news)}\n\n`;
    }
  }

  close(): void {
    for (const reader of this.#readers) {
      this.#readers.delete(reader);
      reader.wake();
    }
  }
}

export interface SeenCall {
  /** Unique in this inspector; ids of calls are not. */
  readonly key: string;
  readonly callId: string;
  readonly tool: string;
  readonly at: number;
  readonly arguments: unknown;
  readonly scope: CallScope;
  readonly runId: string | undefined;
  /** The call was made on the page. */
  readonly isTrial: boolean;
  /** The answers, if the call had waited. */
  readonly journal: CallJournal | undefined;
  readonly steps: { readonly step: CallStep | 'read' | 'held'; readonly ms: number }[];
  invocation?: Invocation;
}

interface HeldCall extends Pick<SeenCall, 'key' | 'callId' | 'tool' | 'arguments' | 'runId'> {
  readonly since: number;
}

/** The decision on a held call; the model receives `reason`. */
type Release = { readonly how: 'go' } | { readonly how: 'refuse'; readonly reason: string };

const MAX_CALLS = 500;

/** Prefix of the ids of calls from the page. */
export const TRIAL = 'inspector_';

/** Stores the last calls with the times of their steps, and holds calls at breakpoints. */
export class WatchedCalls implements CallWatcher {
  readonly #feed: EventFeed;
  readonly #calls = new Map<string, SeenCall>();
  readonly #held = new Map<string, HeldCall & { readonly release: (release: Release) => void }>();
  readonly #breakpoints = new Set<string>();
  #count = 0;

  constructor(feed: EventFeed) {
    this.#feed = feed;
  }

  aroundCall(call: WatchedCall): Invocation | Promise<Invocation> {
    const { request, scope } = call;
    this.#count += 1;
    const callId = String(request.id);
    const seen: SeenCall = {
      key: `${this.#count}`,
      callId,
      tool: String(request.name),
      at: Date.now(),
      arguments: request.text ?? request.arguments,
      scope,
      runId: request.place?.runId,
      isTrial: callId.startsWith(TRIAL),
      journal: request.journal,
      steps: [],
    };
    this.#calls.set(seen.key, seen);
    forgetOldest(this.#calls, MAX_CALLS);
    if (!this.#breakpoints.has(seen.tool)) return this.#make(seen, call, { how: 'go' });
    return this.#hold(seen, scope.signal).then((release) => this.#make(seen, call, release));
  }

  /** The last calls, the latest first. */
  list(): readonly SeenCall[] {
    return [...this.#calls.values()].reverse();
  }

  get(key: string): SeenCall | undefined {
    return this.#calls.get(key);
  }

  /** The latest call with an id, of a run if one is named. */
  find(callId: string, runId?: string): SeenCall | undefined {
    return this.list().find((seen) => seen.callId === callId && (runId ?? seen.runId) === seen.runId);
  }

  /** Adds a step that came before the call was seen. */
  addRead(callId: string, ms: number): void {
    this.find(callId)?.steps.unshift({ step: 'read', ms });
  }

  get breakpoints(): readonly string[] {
    return [...this.#breakpoints];
  }

  /** Sets or removes a breakpoint. Removing it continues the held calls. */
  breakAt(tool: string, state: 'on' | 'off'): void {
    if (state === 'on') this.#breakpoints.add(tool);
    else {
      this.#breakpoints.delete(tool);
      for (const held of [...this.#held.values()]) if (held.tool === tool) held.release({ how: 'go' });
    }
    this.#feed.report('held');
  }

  held(): readonly HeldCall[] {
    return [...this.#held.values()].map(({ release: _, ...held }) => held);
  }

  /** Continues or refuses a held call; returns `false` if no call with this key is held. */
  release(key: string, release: Release): boolean {
    const held = this.#held.get(key);
    held?.release(release);
    return held !== undefined;
  }

  close(): void {
    for (const tool of this.breakpoints) this.breakAt(tool, 'off');
  }

  #hold(seen: SeenCall, signal: AbortSignal | undefined): Promise<Release> {
    const since = Date.now();
    const { key, callId, tool, arguments: args, runId } = seen;
    return new Promise((resolve) => {
      const release = (how: Release): void => {
        if (!this.#held.delete(key)) return;
        seen.steps.push({ step: 'held', ms: Date.now() - since });
        this.#feed.report('held');
        resolve(how);
      };
      this.#held.set(key, { key, callId, tool, since, arguments: args, runId, release });
      this.#feed.report('held');
      // An aborted call needs no decision.
      if (signal !== undefined) onAbort(signal, () => release({ how: 'go' }));
    });
  }

  #make(seen: SeenCall, call: WatchedCall, release: Release): Invocation | Promise<Invocation> {
    let last = performance.now();
    const added: WatcherAdditions = {
      onStep: (step) => {
        const now = performance.now();
        seen.steps.push({ step, ms: now - last });
        last = now;
      },
      ...(release.how === 'refuse' ? { policy: () => ({ allow: false, reason: release.reason }) } : {}),
    };
    const end = (invocation: Invocation): Invocation => {
      seen.invocation = invocation;
      this.#feed.report('calls');
      return invocation;
    };
    // A call of a synchronous tool stays synchronous.
    return andThen(call.make(added), end);
  }
}

/** An entry of a run's timeline, in milliseconds since 1970; `end` is absent while it is open. */
type RunSpan = {
  readonly begin: number;
  end?: number;
} & (
  | {
      readonly kind: 'request';
      readonly iteration: number;
      /** What the model has written so far. */
      text: string;
      usage?: Usage;
      finishReason?: string;
      retries?: string[];
    }
  | {
      readonly kind: 'call';
      readonly callId: string;
      readonly tool: string;
      readonly arguments: unknown;
      progress?: ProgressUpdate;
      record?: CallRecord;
    }
  | { readonly kind: 'wait'; readonly tool: string; readonly pending: readonly PendingCall[] }
);

/** An answer that a test can repeat. */
export type GivenReply =
  | { readonly tool: string; readonly approved: true; readonly arguments?: JsonObject }
  | { readonly tool: string; readonly approved: false; readonly reason?: string }
  | { readonly tool: string; readonly result: unknown }
  | { readonly tool: string; readonly value: unknown };

/** A run of this process, with its suspensions. */
export interface SeenRun {
  readonly runId: string;
  readonly begin: number;
  readonly model: string;
  readonly owner: unknown;
  /** The messages that it started with. */
  readonly given: readonly Message[];
  /** The latest continuation of the run. */
  run: LoopRun;
  readonly spans: RunSpan[];
  /** The answers, by resume. */
  readonly answers: (readonly GivenReply[])[];
  status: 'running' | ToolLoopResult['status'];
  result?: ToolLoopResult;
}

const MAX_RUNS = 200;

/** Follows the runs of a registry through their events. */
export class WatchedRuns {
  readonly #feed: EventFeed;
  readonly #runs = new Map<string, SeenRun>();
  /** `end`: a run and its result, also if it was suspended. `begin <runId>`: a run starts or continues. */
  readonly events = new EventEmitter();

  constructor(feed: EventFeed) {
    this.#feed = feed;
  }

  /** The last runs, the latest first. */
  list(): readonly SeenRun[] {
    return [...this.#runs.values()].reverse();
  }

  get(runId: string): SeenRun | undefined {
    return this.#runs.get(runId);
  }

  /** Marks a waiting run as aborted. */
  giveUp(runId: string): void {
    const seen = this.#runs.get(runId);
    if (seen?.status === 'suspended') seen.status = 'aborted';
    this.#feed.report('pending');
  }

  begin(run: LoopRun): (event: LoopEvent) => void {
    const seen = this.#seen(run);
    this.events.emit(`begin ${run.runId}`);
    return (event) => {
      this.#receive(seen, event);
      if (event.type === 'text-delta')
        for (const { iteration } of open(seen, 'request'))
          this.#feed.write({ runId: seen.runId, iteration, text: event.text });
      else if (event.type !== 'call-input-delta') this.#feed.report('runs');
      if (event.type === 'run-end') {
        this.#feed.report('pending');
        this.events.emit('end', seen, event.result);
      }
    };
  }

  #seen(run: LoopRun): SeenRun {
    const known = this.#runs.get(run.runId);
    if (known !== undefined) {
      const now = Date.now();
      for (const span of open(known, 'wait')) span.end = now;
      const calls = run.record?.open?.calls ?? [];
      const waiting = calls.filter((call) => call.status === 'waiting');
      known.answers.push(waiting.flatMap(({ name, journal }) => repliesIn(name, journal)));
      Object.assign(known, { run, status: 'running', result: undefined });
      return known;
    }
    const { runId, owner, config, messages } = run;
    const seen: SeenRun = {
      runId,
      owner,
      run,
      begin: Date.now(),
      model: config.model,
      given: [...messages],
      spans: [],
      answers: [],
      status: 'running',
    };
    this.#runs.set(runId, seen);
    forgetOldest(this.#runs, MAX_RUNS);
    return seen;
  }

  #receive(seen: SeenRun, event: LoopEvent): void {
    const now = Date.now();
    switch (event.type) {
      case 'text-delta':
        for (const span of open(seen, 'request')) if (span.text.length < MAX_TEXT) span.text += event.text;
        return;
      case 'step-start':
        seen.spans.push({ kind: 'request', begin: now, iteration: event.iteration, text: '' });
        return;
      case 'request-retry':
        for (const span of open(seen, 'request')) {
          span.retries = [...(span.retries ?? []), event.error.message];
          span.text = '';
        }
        return;
      case 'reply-end':
        for (const span of open(seen, 'request'))
          Object.assign(span, { end: now, usage: event.usage, finishReason: event.finishReason });
        return;
      case 'run-end':
        seen.status = event.result.status;
        seen.result = event.result;
        // Failed requests and abandoned calls have no other end.
        for (const span of seen.spans) if (span.kind !== 'wait') span.end ??= now;
        return;
      case 'call-start': {
        const { callId, tool, arguments: args } = event;
        seen.spans.push({ kind: 'call', begin: now, callId, tool, arguments: args });
        return;
      }
      case 'call-progress':
        for (const span of openCall(seen, event.callId)) span.progress = event.update;
        return;
      case 'call-end':
        for (const span of openCall(seen, event.callId))
          Object.assign(span, { end: now, record: event.record });
        return;
      case 'call-suspended':
        for (const span of openCall(seen, event.callId)) span.end = now;
        seen.spans.push({ kind: 'wait', begin: now, tool: event.tool, pending: event.pending });
    }
  }
}

type SpanOf<Kind extends RunSpan['kind']> = Extract<RunSpan, { readonly kind: Kind }>;

function open<Kind extends RunSpan['kind']>({ spans }: SeenRun, kind: Kind): readonly SpanOf<Kind>[] {
  return spans.filter((span): span is SpanOf<Kind> => span.kind === kind && span.end === undefined);
}

function openCall(seen: SeenRun, callId: string): readonly SpanOf<'call'>[] {
  return open(seen, 'call').filter((span) => span.callId === callId);
}

export function repliesIn(tool: string, journal: CallJournal): readonly GivenReply[] {
  const { approved, refused, result, answers, edited, arguments: args } = journal;
  if (refused !== undefined) {
    return [withoutUndefined({ tool, approved: false as const, reason: refused.reason })];
  }
  if (result !== undefined) return [{ tool, result: result.value }];
  if (answers.length > 0) return answers.map(({ value }) => ({ tool, value }));
  if (!approved) return [];
  return [withoutUndefined({ tool, approved, arguments: edited === undefined ? undefined : args })];
}
