import type { CallScope, UpdateListener } from '../contract/call-scope.js';
import type { Message } from '../contract/message.js';

/** A run's scope with the history up to now, which is copied only when a tool asks for it. */
export class HistoryScope implements CallScope {
  readonly channel: CallScope['channel'];
  readonly chatId: CallScope['chatId'];
  readonly conversationId: CallScope['conversationId'];
  readonly signal: CallScope['signal'];
  readonly data: CallScope['data'];
  readonly container: CallScope['container'];
  readonly onUpdate: CallScope['onUpdate'];
  readonly onLog: CallScope['onLog'];
  readonly #history: readonly Message[];
  readonly #length: number;
  #messages: readonly Message[] | undefined;

  /** `history` only grows, so that its length says what it was. */
  constructor(
    scope: CallScope,
    history: readonly Message[],
    onUpdate: UpdateListener | undefined = scope.onUpdate,
  ) {
    this.channel = scope.channel;
    this.chatId = scope.chatId;
    this.conversationId = scope.conversationId;
    this.signal = scope.signal;
    this.data = scope.data;
    this.container = scope.container;
    this.onUpdate = onUpdate;
    this.onLog = scope.onLog;
    this.#history = history;
    this.#length = history.length;
  }

  get messages(): readonly Message[] {
    this.#messages ??= Object.freeze(this.#history.slice(0, this.#length));
    return this.#messages;
  }
}
