import { EventEmitter } from 'node:events';
import type { CallJournal, CallRecord, PendingCall } from '../../core/contract/call.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { Message, Usage } from '../../core/contract/llm-provider.js';
import type { ProgressUpdate } from '../../core/contract/tool-context.js';
import { forgetOldest } from '../../core/kernel/forget-oldest.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import type { LoopEvent, ToolLoopResult } from '../../run/loop/events.js';
import type { LoopRun } from '../../run/loop/loop-run.js';
import type { EventFeed } from './event-feed.js';

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
const MAX_TEXT = 200_000;

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
