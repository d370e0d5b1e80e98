import { registryOf } from '../call/tool-registry.js';
import type { Spending } from '../contract/budget.js';
import type { Answer, PendingCall } from '../contract/call.js';
import type { Message, UserMessage } from '../contract/llm-provider.js';
import type { BackgroundTask } from '../contract/tool-context.js';
import {
  checkArguments,
  checkOptions,
  invalidArguments,
  invalidOptions,
  refuseOptions,
} from '../errors/author-fault.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { FUNCTION } from '../kernel/options.js';
import type { ToolLoopResult } from '../loop/events.js';
import { givenHistory, historyFaults } from '../loop/given-history.js';
import { ownerFaults } from '../loop/run-owner.js';
import type { ConversationListener } from './events.js';
import { MemoryTurns } from './memory-turns.js';
import {
  ANSWER_OPTIONS,
  type AnswerOptions,
  CHANGES,
  CONTENT,
  CONVERSATION_OPTIONS,
  type ConversationChanges,
  type ConversationConfig,
  IDLE_OPTIONS,
  type IdleOptions,
  TURN_OPTIONS,
  type TurnOptions,
} from './options.js';
import { type ConversationSnapshot, validateSnapshot } from './snapshot.js';

/**
 * A conversation with a model: it owns the history, the system prompt, the tools and an inbox. Prompts and
 * completions of work that tools have started are handled in order of arrival, one turn at a time. While a run is
 * suspended, they wait until it is answered or aborted.
 *
 * `subscribe` tells everything that happens; where nobody is subscribed, the model's text is not streamed.
 *
 * @throws InvalidOptionsError (521) and ToolDeclarationError (502) for what its author got wrong, as `runToolLoop` does.
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
  /** Also the `conversationId` that tools see. */
  readonly id: string;
  readonly #turns: MemoryTurns;
  /** What was left of it when it was closed. */
  #closed: ConversationSnapshot | undefined;

  constructor(config: ConversationConfig) {
    refuseOptions([
      ...invalidOptions(config, CONVERSATION_OPTIONS),
      ...ownerFaults(config?.scope),
      ...(Array.isArray(config?.messages)
        ? historyFaults(config.messages, config.history === 'refuse' ? 'refuse' : 'mend')
        : []),
    ]);
    const { id = crypto.randomUUID() } = config;
    const messages = givenHistory({ messages: config.messages ?? [] }, config.logger);
    this.id = id;
    this.#turns = new MemoryTurns({ ...config, id, messages, tools: registryOf(config.tools) });
  }

  /**
   * Goes on with a conversation from its snapshot, in this process or another. `config` is given again, but for
   * `id` and `messages`, which are the snapshot's. What is to happen begins with the next turn of the event
   * loop, so that listeners can subscribe before.
   *
   * - Work that was waiting or running completes once, as the error `TaskInterrupted` (520): `task-end` tells it,
   *   and it has a turn of its own.
   * - A turn that was in the middle goes on after the last message whose calls all had their answers: calls
   *   after that may be made a second time. Its promise was the old process's; `turn-end` tells what came of it.
   * - What waited is handled in its order. All of it runs in the scope of `config`: a turn of another owner ends
   *   with the error `RunNotAllowed` (523) and leaves no trace, as `turn-end` tells.
   * - A suspended run can be answered by the ids that it had. Its prompt stays the one it was begun with.
   *
   * One snapshot is to be restored once. Whoever may restore it in two processes must guard that, for example
   * by a row in a database that one of them takes; with `config.store`, of two that answer the same suspended
   * run one goes on, and the other's `answer` rejects with `RunClaimed` or `RunNotFound`.
   *
   * @throws ToolwrightError `InvalidState` (515) for what is no snapshot, is of another version, or was changed.
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
    const read = validateSnapshot(snapshot, config.stateSecret);
    const { id, messages } = read.snapshot;
    const conversation = new Conversation({ ...config, id, messages });
    conversation.#turns.restore(read);
    return conversation;
  }

  /**
   * What was said: at every moment a history in which each call has its answer, so that of a running turn it
   * ends with the last such message. The system prompt is no part of it. Frozen, and a new array when it grows.
   */
  get messages(): readonly Message[] {
    return this.#turns.messages;
  }

  /** What a suspended run waits for; empty where none does. */
  get pending(): readonly PendingCall[] {
    return this.#turns.suspended?.state.pending ?? [];
  }

  /** What its turns have spent, and a suspended one so far; only where they have a budget. */
  get spent(): Spending | undefined {
    return this.#turns.spent;
  }

  /** Work that tools have started and that has not completed. */
  get tasks(): readonly BackgroundTask[] {
    return this.#turns.tasks;
  }

  /**
   * Says something to the model: text, or parts as the provider takes them. Gives that turn's result, as
   * `runToolLoop` does, once its turn has come; a suspended run is a result too. A tool that awaits a prompt of
   * its own conversation waits for itself.
   *
   * @throws InvalidOptionsError (521) for what is neither text nor a list of parts, and for options that are wrong.
   */
  async prompt(content: UserMessage['content'], options: TurnOptions = {}): Promise<ToolLoopResult> {
    this.#checkOpen();
    refuseOptions([
      ...invalidArguments({ of: TURN_OPTIONS.of, given: { content }, rules: { content: CONTENT } }),
      ...invalidOptions(options, TURN_OPTIONS),
      ...ownerFaults(options?.scope),
    ]);
    return this.#turns.enter(
      { kind: 'prompt', content: typeof content === 'string' ? content : [...content] },
      options,
    );
  }

  /**
   * Goes on from the history as it is, without a new message: after a turn that failed, was aborted or came to its
   * limit. Otherwise it is as `prompt`.
   *
   * @throws ToolwrightError `ConversationNotReady` (526) where a turn runs, waits for answers or is about to begin,
   *   and where the model has said the last word.
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
    refuseOptions([...invalidOptions(options, TURN_OPTIONS), ...ownerFaults(options?.scope)]);
    return this.#turns.continue(options);
  }

  /**
   * Changes who is asked and with what, from the next turn on. A suspended run keeps its model and its system
   * prompt; its tools are looked up anew. A snapshot has none of this: `restore` is given it.
   *
   * @throws ToolwrightError `ConversationNotReady` (526) while a turn runs; InvalidOptionsError (521) and
   *   ToolDeclarationError (502) as the constructor does. Nothing is changed then.
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
    const given = Object.entries(changes).filter(([, value]) => value !== undefined);
    this.#turns.update({
      ...(Object.fromEntries(given) as Omit<ConversationChanges, 'tools'>),
      ...(tools === undefined ? {} : { tools: registryOf(tools) }),
      ...(systemPrompt === '' ? { systemPrompt: undefined } : {}),
    });
  }

  /**
   * Replaces the history by what `change` makes of a copy of it. The new one has to be valid as a whole: a call is
   * edited together with its answers.
   *
   * @throws ToolwrightError `ConversationNotReady` (526) while a turn runs or waits for answers;
   *   InvalidOptionsError (521), naming every place, for a history that is not valid. Nothing is changed then.
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
   * Answers what is pending; the run goes on, or stays suspended as long as answers are missing. Gives the
   * result of the resumed run. `options.scope` wins over that of the turn, and is its owner's; whoever answers
   * for the owner is named in `options.answeredBy`.
   *
   * @throws ToolwrightError `InvalidAnswer` (514) where nothing is pending or an answer is wrong, `RunNotAllowed`
   *   (523) for the scope of another owner, and with a `store` `RunClaimed` (517) and `RunNotFound` (516); the
   *   conversation is then as it was.
   */
  async answer(answers: readonly Answer[], options: AnswerOptions = {}): Promise<ToolLoopResult> {
    this.#checkOpen();
    refuseOptions([...invalidOptions(options, ANSWER_OPTIONS), ...ownerFaults(options?.scope)]);
    return this.#turns.answer(answers, options);
  }

  /**
   * Tells a listener of everything that happens from now on, at once and in order; what it returns ends that.
   * What a listener throws changes nothing.
   */
  subscribe(listener: ConversationListener): () => void {
    checkArguments({ of: 'Conversation.subscribe', given: { listener }, rules: { listener: FUNCTION } });
    return this.#turns.events.subscribe(listener);
  }

  /**
   * Ends the turn that runs or is suspended: its open calls are answered as aborted, its result has status
   * `aborted`, and what waits is handled next. Work that a running turn has started completes as aborted too;
   * that of a turn that is over or suspended goes on (`cancel`). Does nothing between turns.
   */
  abort(reason?: unknown): void {
    this.#turns.abort(reason);
  }

  /** Ends work that a tool has started: it completes as the error `TaskCancelled` (519). `false` where there is none. */
  cancel(taskId: string, reason?: string): boolean {
    return this.#turns.cancel(taskId, reason);
  }

  /**
   * Resolves when no turn runs and none could begin: while a run is suspended, what waits cannot. With
   * `{ tasks: true }` also when all started work has completed, and the turns that led to are over.
   */
  async idle(options: IdleOptions = {}): Promise<void> {
    checkOptions(options, IDLE_OPTIONS);
    return this.#turns.idle(options.tasks ?? false);
  }

  /** What `restore` goes on from: plain JSON that shares nothing with the conversation, which does not notice. */
  toJSON(): ConversationSnapshot {
    return this.#closed ?? this.#turns.snapshot();
  }

  /**
   * Ends the conversation in this process and gives the snapshot to restore it from: what runs is aborted and
   * what waits is dropped, and neither leaves a trace in the snapshot. Listeners still hear of what ends.
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
