import type { Spending } from '../../core/contract/budget.js';
import { type Answer, type PendingCall, SCOPE_OPTION } from '../../core/contract/call.js';
import { type Message, MODEL, PROVIDER, type UserMessage } from '../../core/contract/llm-provider.js';
import type { BackgroundTask } from '../../core/contract/tool-context.js';
import {
  checkArguments,
  checkOptions,
  type InvalidOption,
  invalidArguments,
  invalidOptions,
  refuseOptions,
} from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import {
  BOOLEAN,
  FILLED_TEXT,
  FUNCTION,
  JSON_VALUE,
  LIST,
  type OptionTable,
  optionTable,
  SIGNAL,
  TEXT,
} from '../../core/kernel/options.js';
import { registryOf } from '../call/tool-registry.js';
import type { ToolLoopResult } from '../loop/events.js';
import { givenHistory, historyFaults } from '../loop/given-history.js';
import { LOOP_ALIASES, LOOP_RULES } from '../loop/options.js';
import { ownerFaults } from '../loop/run-owner.js';
import type { ConversationListener } from './events.js';
import { type ConversationSnapshot, MemoryTurns, validateSnapshot } from './memory-turns.js';
import {
  type AnswerOptions,
  CONTENT,
  type ConversationChanges,
  type ConversationConfig,
  type IdleOptions,
  type TurnOptions,
} from './options.js';

/**
 * A conversation with a model. It contains the history, the system prompt, the tools and an inbox. Prompts and
 * completions of started work are processed in order of arrival, one turn at a time. While a run is suspended, they
 * wait until it is answered or aborted.
 *
 * `subscribe` reports all events; without a listener, the model's text is not streamed.
 *
 * @throws InvalidOptionsError (521) and ToolDeclarationError (502) for mistakes of the author, as in `runToolLoop`.
 *
 * @example
 * ```ts
 * const conversation = new Conversation({ provider, model, tools, systemPrompt: 'Be brief.' });
 * conversation.subscribe((event) => {
 *   if (event.type === 'text-delta') process.stdout.write(event.text);
 *   if (event.type === 'user-message') console.log(`${event.tool}: ${event.text}`);
 * });
 * const { status } = await conversation.prompt('Which orders are open?');
 * if (status === 'suspended') {
 *   await conversation.answer(conversation.pending.map(({ id }) => ({ id, approved: true })));
 * }
 * await conversation.idle({ tasks: true });
 * ```
 */
export class Conversation {
  /** Also the `conversationId` of tool contexts. */
  readonly id: string;
  readonly #turns: MemoryTurns;
  /** Its snapshot when it was closed. */
  #closed: ConversationSnapshot | undefined;

  constructor(config: ConversationConfig) {
    const care = config?.history === 'refuse' ? 'refuse' : 'repair';
    refuseOptions([
      ...invalidOptions(config, CONVERSATION_OPTIONS),
      ...ownerFaults(config?.scope),
      ...(Array.isArray(config?.messages) ? historyFaults(config.messages, care) : []),
    ]);
    const { id = crypto.randomUUID() } = config;
    const messages = givenHistory({ messages: config.messages ?? [] }, config.logger);
    this.id = id;
    this.#turns = new MemoryTurns({ ...config, id, messages, tools: registryOf(config.tools) });
  }

  /**
   * Continues a conversation from its snapshot, in this process or another. Pass `config` again, except `id` and
   * `messages`, which come from the snapshot. Work starts in the next turn of the event loop, so that listeners can
   * subscribe first.
   *
   * - Work that was waiting or running completes once, with the error `TaskInterrupted` (520), in its own turn.
   * - An interrupted turn continues after the last message whose calls all had their answers: later calls may be
   *   executed a second time. `turn-end` reports the outcome.
   * - Waiting entries are processed in order, in the scope of `config`: a turn of another owner ends with the error
   *   `RunNotAllowed` (523) and leaves no trace except `turn-end`.
   * - A suspended run can be answered with the same ids, and keeps its prompt.
   *
   * Restore a snapshot only once, and guard against two processes restoring it. With `config.store`, if two
   * conversations answer the same suspended run, the first continues; the other's `answer` rejects with `RunClaimed`
   * or `RunNotFound`.
   *
   * @throws ToolwrightError `InvalidState` (515) for a value that is not a snapshot, was changed, or has another
   * version.
   *
   * @example
   * ```ts
   * const conversation = new Conversation({ provider, model, tools });
   * const text = JSON.stringify(conversation);
   * // Later, in another process:
   * const restored = Conversation.restore({ provider, model, tools }, JSON.parse(text));
   * restored.subscribe((event) => console.log(event.type));
   * await restored.idle();
   * ```
   */
  static restore(config: ConversationConfig, snapshot: ConversationSnapshot): Conversation {
    checkOptions(config, CONVERSATION_OPTIONS);
    const valid = validateSnapshot(snapshot, config.stateSecret);
    const { id, messages } = valid.snapshot;
    const conversation = new Conversation({ ...config, id, messages });
    conversation.#turns.restore(valid);
    return conversation;
  }

  /**
   * The history, without the system prompt. Every call in it always has its answer, so during a turn it ends with the
   * last such message. Frozen, and replaced by a new array when it grows.
   */
  get messages(): readonly Message[] {
    return this.#turns.messages;
  }

  /** The waits of a suspended run; otherwise empty. */
  get pending(): readonly PendingCall[] {
    return this.#turns.suspended?.state.pending ?? [];
  }

  /** The amounts spent by its turns, including a suspended one; only if they have a budget. */
  get spent(): Spending | undefined {
    return this.#turns.spent;
  }

  /** Work that tools have started and that is not completed. */
  get tasks(): readonly BackgroundTask[] {
    return this.#turns.tasks;
  }

  /**
   * Sends a message to the model: text, or parts in the provider's form. Resolves with the result of its turn, as
   * `runToolLoop` does, also if the turn is suspended. A tool that awaits a prompt of its own conversation waits for
   * itself.
   *
   * @throws InvalidOptionsError (521) for content that is neither text nor a list of parts, and for invalid options.
   */
  async prompt(content: UserMessage['content'], options: TurnOptions = {}): Promise<ToolLoopResult> {
    this.#checkOpen();
    const { of } = TURN_OPTIONS;
    checkTurn(
      options,
      TURN_OPTIONS,
      invalidArguments({ of, given: { content }, rules: { content: CONTENT } }),
    );
    const own = typeof content === 'string' ? content : [...content];
    return this.#turns.enter({ kind: 'prompt', content: own }, options);
  }

  /**
   * Continues from the history without a new message: after a turn that failed, was aborted or reached its limit.
   * Otherwise like `prompt`.
   *
   * @throws ToolwrightError `ConversationNotReady` (526) if a turn runs, waits for answers or is about to start, or
   * if the last message is the model's.
   *
   * @example
   * ```ts
   * const conversation = new Conversation({ provider, model, tools });
   * let run = await conversation.prompt('Which orders are open?');
   * if (run.status === 'failed') run = await conversation.continue();
   * ```
   */
  async continue(options: TurnOptions = {}): Promise<ToolLoopResult> {
    this.#checkOpen();
    checkTurn(options, TURN_OPTIONS);
    return this.#turns.continue(options);
  }

  /**
   * Changes the provider, model, tools or system prompt, starting with the next turn. A suspended run keeps its model
   * and its system prompt; its tools are looked up again. Snapshots do not contain these settings; pass them to
   * `restore`.
   *
   * @throws ToolwrightError `ConversationNotReady` (526) while a turn runs; InvalidOptionsError (521) and
   * ToolDeclarationError (502) as the constructor. Nothing changes then.
   *
   * @example
   * ```ts
   * const conversation = new Conversation({ provider, model, tools });
   * conversation.update({ model: 'gpt-5-mini', systemPrompt: 'Answer in one sentence.' });
   * ```
   */
  update(changes: ConversationChanges): void {
    this.#checkOpen();
    checkOptions(changes, CHANGES);
    const { tools, systemPrompt } = changes;
    this.#turns.update({
      ...withoutUndefined({ ...changes, tools: tools && registryOf(tools) }),
      ...(systemPrompt === '' ? { systemPrompt: undefined } : {}),
    });
  }

  /**
   * Replaces the history by the result of `change`, which receives a copy. The new history must be valid: edit a call
   * together with its answers.
   *
   * @throws ToolwrightError `ConversationNotReady` (526) while a turn runs or waits for answers; InvalidOptionsError
   * (521), naming every place, for an invalid history. Nothing changes then.
   *
   * @example
   * ```ts
   * const conversation = new Conversation({ provider, model, tools });
   * conversation.editHistory((messages) => messages.slice(0, messages.findLastIndex(({ role }) => role === 'user')));
   * ```
   */
  editHistory(change: (messages: Message[]) => readonly Message[]): void {
    this.#checkOpen();
    checkArguments({ of: 'Conversation.editHistory', given: { change }, rules: { change: FUNCTION } });
    this.#turns.edit(change);
  }

  /**
   * Answers pending calls; the run continues, or stays suspended while answers are missing. Resolves with the result
   * of the resumed run. `options.scope` overrides the scope of the turn and must be its owner's; set
   * `options.answeredBy` if another user answers for the owner.
   *
   * @throws ToolwrightError `InvalidAnswer` (514) if nothing is pending or an answer is wrong, `RunNotAllowed` (523)
   * for the scope of another owner, and with a `store` `RunClaimed` (517) and `RunNotFound` (516). Nothing changes
   * then.
   */
  async answer(answers: readonly Answer[], options: AnswerOptions = {}): Promise<ToolLoopResult> {
    this.#checkOpen();
    checkTurn(options, ANSWER_OPTIONS);
    return this.#turns.answer(answers, options);
  }

  /**
   * Calls a listener for all later events, immediately and in order; the returned function removes it. Errors of a
   * listener have no effect.
   */
  subscribe(listener: ConversationListener): () => void {
    checkArguments({ of: 'Conversation.subscribe', given: { listener }, rules: { listener: FUNCTION } });
    return this.#turns.events.subscribe(listener);
  }

  /**
   * Ends the running or suspended turn with status `aborted`: its open calls are answered as aborted, and waiting
   * entries are processed next. Work that a running turn has started is aborted too; work of a finished or suspended
   * turn continues (`cancel`). Does nothing between turns.
   */
  abort(reason?: unknown): void {
    this.#turns.abort(reason);
  }

  /**
   * Cancels work that a tool has started: it completes with the error `TaskCancelled` (519). Returns `false` if there
   * is no such work.
   */
  cancel(taskId: string, reason?: string): boolean {
    return this.#turns.cancel(taskId, reason);
  }

  /**
   * Resolves when no turn runs and none can start: while a run is suspended, waiting entries cannot start. With
   * `{ tasks: true }`, also waits until all started work is completed, and the turns of its completions are over.
   */
  async idle(options: IdleOptions = {}): Promise<void> {
    checkOptions(options, IDLE_OPTIONS);
    return this.#turns.idle(options.tasks ?? false);
  }

  /** The snapshot for `restore`: independent plain JSON. The conversation continues. */
  toJSON(): ConversationSnapshot {
    return this.#closed ?? this.#turns.snapshot();
  }

  /**
   * Ends the conversation in this process and returns the snapshot to restore it from: running turns are aborted and
   * waiting entries dropped, but the snapshot still contains them. Listeners still receive the end events.
   */
  close(): ConversationSnapshot {
    this.#closed ??= this.#turns.close();
    return this.#closed;
  }

  #checkOpen(): void {
    if (this.#closed !== undefined)
      throw new ToolwrightError('RunAborted', 'The conversation was closed in this process.');
  }
}

function checkTurn(options: TurnOptions, table: OptionTable, others: readonly InvalidOption[] = []): void {
  refuseOptions([...others, ...invalidOptions(options, table), ...ownerFaults(options?.scope)]);
}

const { checkpoint: _1, leaseMs: _2, runId: _3, ...TURN_RULES } = LOOP_RULES;

const CONVERSATION_OPTIONS = optionTable<ConversationConfig>(
  'Conversation',
  { ...TURN_RULES, systemPrompt: TEXT, id: FILLED_TEXT, messages: LIST, scope: SCOPE_OPTION },
  { ...LOOP_ALIASES, conversationId: 'id: …' },
);

const CHANGES = optionTable<ConversationChanges>(
  'Conversation.update',
  { provider: PROVIDER, model: MODEL, tools: LOOP_RULES.tools, systemPrompt: TEXT },
  LOOP_ALIASES,
);

const TURN_OPTIONS = optionTable<TurnOptions>(
  'the turn of a Conversation',
  { signal: SIGNAL, scope: SCOPE_OPTION },
  { data: 'scope: { data: … }' },
);

const ANSWER_OPTIONS = optionTable<AnswerOptions>(
  'the answer of a Conversation',
  { signal: SIGNAL, scope: SCOPE_OPTION, answeredBy: JSON_VALUE },
  { data: 'scope: { data: … }' },
);

const IDLE_OPTIONS = optionTable<IdleOptions>('Conversation.idle', { tasks: BOOLEAN });
