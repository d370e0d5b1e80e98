import { conversationOfRun } from '../call/completion-entry.js';
import type { OnUnknown } from '../call/invocation.js';
import { SafeLog } from '../call/log.js';
import type { CallScope } from '../contract/call.js';
import type { ConversationLog } from '../contract/conversation-log.js';
import type { Logger } from '../contract/ports.js';
import type { CheckpointStore, KeptRun, RunSummary } from '../contract/run-checkpoint.js';
import { MAX_TIMER_MS } from '../kernel/async.js';
import type { ResumeConfig } from '../loop/options.js';
import { driveLostRun } from '../loop/recover-runs.js';

const DEFAULT_LEASE_MS = 30_000;

/** Runs that are looked at in one page, and those that go on at the same time. */
const PAGE = 100;
const MAX_AT_ONCE = 4;

/** What lost runs go on with. */
export interface RunRecoveryParts {
  readonly store: CheckpointStore;
  /** Conversations in the same store: they go on with their runs themselves. */
  readonly conversations?: ConversationLog;
  readonly config: (run: KeptRun) => ResumeConfig | Promise<ResumeConfig>;
  readonly scope: (run: KeptRun) => CallScope | Promise<CallScope>;
  /** Milliseconds until a run can be taken over from this process, too; default 30,000. */
  readonly leaseMs?: number;
  /** What becomes of calls of which nobody knows what came; default: somebody is asked. */
  readonly onUnknown?: OnUnknown;
  readonly logger?: Logger;
}

/** Looks again and again for runs whose process died, and goes on with them; those of conversations are not its business. */
export class RunRecovery {
  readonly #parts: RunRecoveryParts;
  readonly #leaseMs: number;
  readonly #log: SafeLog;
  #looking: Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(parts: RunRecoveryParts) {
    this.#parts = parts;
    this.#leaseMs = parts.leaseMs ?? DEFAULT_LEASE_MS;
    this.#log = new SafeLog(parts.logger);
    this.#looking = this.#look();
  }

  /** Takes over no more runs, and resolves when those that go on here have ended, or are suspended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#looking;
  }

  async #look(): Promise<void> {
    try {
      await this.#recoverAll();
    } catch (error) {
      this.#log.warn('The store could not be asked for lost runs', { error });
    }
    if (this.#isClosed) return;
    const again = (): void => {
      this.#looking = this.#look();
    };
    this.#timer = setTimeout(again, Math.min(this.#leaseMs / 3, MAX_TIMER_MS)).unref();
  }

  async #recoverAll(): Promise<void> {
    const { store } = this.#parts;
    let next: string | undefined;
    do {
      const page = await store.list({
        status: 'running',
        limit: PAGE,
        ...(next === undefined ? {} : { after: next }),
      });
      next = page.next;
      const lost = page.runs.filter(isLost);
      await Promise.all(Array.from({ length: MAX_AT_ONCE }, () => this.#recoverNext(lost)));
    } while (next !== undefined && !this.#isClosed);
  }

  async #recoverNext(lost: RunSummary[]): Promise<void> {
    for (;;) {
      const run = this.#isClosed ? undefined : lost.shift();
      if (run === undefined) return;
      try {
        await this.#recover(run.runId);
      } catch (error) {
        this.#log.warn(`Run '${run.runId}' could not be gone on with`, { error });
      }
    }
  }

  async #recover(runId: string): Promise<void> {
    const { store, config, scope, onUnknown } = this.#parts;
    const run = await store.read(runId);
    if (run?.status !== 'running' || (await this.#isOfConversation(runId))) return;
    const { owner } = run.state;
    const given = { ...(await scope(run)), ...(owner === undefined ? {} : { owner }) };
    await driveLostRun(await config(run), {
      store,
      runId,
      leaseMs: this.#leaseMs,
      surroundings: { scope: given, ...(onUnknown === undefined ? {} : { onUnknown }) },
    });
  }

  async #isOfConversation(runId: string): Promise<boolean> {
    const conversationId = conversationOfRun(runId);
    if (conversationId === undefined) return false;
    return (await this.#parts.conversations?.read(conversationId))?.turn?.runId === runId;
  }
}

/** As far as this process can tell by its own clock; taking it over goes by the store's. */
function isLost({ leaseEnd = 0 }: RunSummary): boolean {
  return leaseEnd < Date.now();
}
