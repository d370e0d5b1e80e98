import type { CallJournal, CallScope } from '../../core/contract/call.js';
import type { LLMProvider, Message } from '../../core/contract/llm-provider.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { forgetOldest } from '../../core/kernel/forget-oldest.js';
import type { Invocation } from '../../run/call/invocation.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import { answerWait, needsApprover, type WaitAnswer } from '../../run/call/waits.js';
import type { ToolLoopResult } from '../../run/loop/events.js';
import { streamToolLoop } from '../../run/loop/run.js';
import { readArguments } from '../../tools/checking/read-arguments.js';
import type { AnsweringPerson } from './pending-board.js';
import { type SeenCall, TRIAL, type WatchedCalls } from './watched-calls.js';
import type { SeenRun, WatchedRuns } from './watched-runs.js';

export interface TrialCall {
  readonly tool: string;
  /** An object, or the text that a model would send. */
  readonly arguments: unknown;
  readonly scope: CallScope;
}

/** A suspended call. */
interface Waiting {
  readonly trial: TrialCall;
  readonly invocation: Extract<Invocation, { readonly status: 'suspended' }>;
}

/** Executes the calls of the page. */
export class TrialCalls {
  readonly #registry: ToolRegistry;
  readonly #calls: WatchedCalls;
  /** By the key of the call. */
  readonly #waiting = new Map<string, Waiting>();
  readonly #person: AnsweringPerson;
  #count = 0;

  constructor(registry: ToolRegistry, calls: WatchedCalls, person: AnsweringPerson) {
    this.#registry = registry;
    this.#calls = calls;
    this.#person = person;
  }

  async make(trial: TrialCall, journal?: CallJournal): Promise<SeenCall> {
    this.#count += 1;
    const id = `${TRIAL}${this.#count}`;
    const { tool, arguments: args, scope } = trial;
    const begin = performance.now();
    const read = readArguments(args);
    const readMs = performance.now() - begin;
    const request = { id, name: tool, arguments: args, read, journal };
    const invocation = await this.#registry.invoke(request, { ...scope, callId: id });
    this.#calls.addRead(id, readMs);
    const seen = this.#calls.find(id);
    if (seen === undefined) throw new Error(`the call of '${tool}' is no longer stored`);
    if (invocation.status === 'suspended') this.#waiting.set(seen.key, { trial, invocation });
    return seen;
  }

  isWaiting(key: string): boolean {
    return this.#waiting.has(key);
  }

  /**
   * Answers a waiting call of the page. Edited arguments are validated, and count as approved.
   *
   * @throws Error if the answer does not fit.
   */
  async answer(key: string, { arguments: edited, ...answer }: TrialAnswer): Promise<SeenCall> {
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) throw new Error('this call is not waiting');
    if (edited === undefined) return this.#continueCall(key, waiting, answer);
    const again = await this.make({ ...waiting.trial, arguments: edited });
    this.#waiting.delete(key);
    const next = this.#waiting.get(again.key);
    return next === undefined ? again : this.#continueCall(again.key, next, answer);
  }

  async #continueCall(key: string, { trial, invocation }: Waiting, answer: WaitAnswer): Promise<SeenCall> {
    const { waits, journal } = invocation.suspension;
    const [wait] = waits;
    if (wait === undefined) throw new Error('this call is not waiting');
    const answered = answerWait({ wait, journal }, answer);
    if (!answered.ok) throw new Error(answered.problem);
    if (needsApprover(answer)) this.#person.check({ tool: trial.tool, approver: wait.approver });
    this.#waiting.delete(key);
    const { kind, index } = wait;
    const given = [...(journal.given ?? []), { kind, index, answeredBy: this.#person.name }];
    return this.make(trial, { ...answered.journal, given });
  }
}

/** An answer to a call of the page. */
export type TrialAnswer = WaitAnswer & { readonly arguments?: unknown };

interface ChatTurn {
  readonly asked: string;
  readonly runId: string;
  /** The number of messages before this turn. */
  readonly from: number;
}

/** A chat of the page, with the messages of completed runs. */
interface TrialChat {
  readonly id: string;
  readonly messages: readonly Message[];
  readonly turns: readonly ChatTurn[];
  readonly status: string;
  readonly error?: string | undefined;
}

interface ChatPrompt {
  readonly id: string;
  readonly text: string;
  readonly scope: CallScope;
  readonly model: { readonly provider: LLMProvider; readonly model: string };
}

const MAX_CHATS = 50;

/** Whether the last turn is running or waits for an answer. */
function isBusy({ status }: TrialChat): boolean {
  return status === 'running' || status === 'suspended';
}

/** The chats of the page. */
export class TrialChats {
  readonly #registry: ToolRegistry;
  readonly #runs: WatchedRuns;
  readonly #systemPrompt: string | undefined;
  readonly #chats = new Map<string, TrialChat>();
  readonly #running = new Map<string, AbortController>();

  constructor(registry: ToolRegistry, runs: WatchedRuns, systemPrompt: string | undefined) {
    this.#registry = registry;
    this.#runs = runs;
    this.#systemPrompt = systemPrompt;
    // Also for runs that were suspended and answered on the page.
    runs.events.on('end', ({ runId }: SeenRun, { status, messages, error }: ToolLoopResult) => {
      const chat = this.#chats.values().find(({ turns }) => turns.at(-1)?.runId === runId);
      if (chat === undefined) return;
      if (status === 'suspended') this.#save({ ...chat, status });
      else {
        const said = messages.filter(({ role }) => role !== 'system');
        this.#save({ ...chat, error: error?.message, status, messages: said });
      }
    });
  }

  get(id: string): TrialChat {
    return this.#chats.get(id) ?? { id, messages: [], turns: [], status: 'new' };
  }

  async prompt({ id, text, scope, model }: ChatPrompt): Promise<TrialChat> {
    const chat = this.get(id);
    if (isBusy(chat)) throw new Error('the chat is busy: its run is still running or waits for an answer');
    const runId = crypto.randomUUID();
    const aborted = new AbortController();
    const system = this.#systemPrompt;
    const messages: readonly Message[] = [
      ...(system === undefined ? [] : [{ role: 'system', content: system } as const]),
      ...chat.messages,
      { role: 'user', content: text },
    ];
    const turns = [...chat.turns, { asked: text, runId, from: chat.messages.length }];
    const begun = { ...chat, turns, error: undefined, status: 'running' };
    this.#save(begun);
    this.#running.set(id, aborted);
    const config = { ...model, tools: this.#registry, runId, signal: aborted.signal };
    void this.#follow(id, streamToolLoop(config, messages, { ...scope, conversationId: id }));
    return begun;
  }

  /** Removes the last turn, and sends its prompt again. */
  async retry({ id, ...others }: Omit<ChatPrompt, 'text'>): Promise<TrialChat> {
    const chat = this.get(id);
    const last = chat.turns.at(-1);
    if (last === undefined) throw new Error('there is nothing to retry');
    if (!isBusy(chat))
      this.#save({ ...chat, turns: chat.turns.slice(0, -1), messages: chat.messages.slice(0, last.from) });
    return this.prompt({ id, text: last.asked, ...others });
  }

  /** Aborts the run, or gives it up if it is waiting. */
  abort(id: string): void {
    this.#running.get(id)?.abort(new Error('aborted in the inspector'));
    const chat = this.get(id);
    const runId = chat.turns.at(-1)?.runId;
    if (chat.status !== 'suspended' || runId === undefined) return;
    this.#runs.giveUp(runId);
    this.#save({ ...chat, status: 'aborted' });
  }

  close(): void {
    for (const id of this.#running.keys()) this.abort(id);
  }

  async #follow(id: string, run: ReturnType<typeof streamToolLoop>): Promise<void> {
    try {
      for await (const _ of run);
    } catch (error) {
      this.#save({ ...this.get(id), status: 'failed', error: errorMessage(error) });
    } finally {
      this.#running.delete(id);
    }
  }

  #save(chat: TrialChat): void {
    this.#chats.set(chat.id, chat);
    forgetOldest(this.#chats, MAX_CHATS);
  }
}
