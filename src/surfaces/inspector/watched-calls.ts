import type { CallJournal, CallScope } from '../../core/contract/call.js';
import { andThen, onAbort } from '../../core/kernel/async.js';
import { forgetOldest } from '../../core/kernel/forget-oldest.js';
import type {
  CallStep,
  CallWatcher,
  Invocation,
  WatchedCall,
  WatcherAdditions,
} from '../../run/call/invocation.js';
import type { EventFeed } from './event-feed.js';

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

  /** Continues or refuses a held call; false if there is none. */
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
