import fc from 'fast-check';
import {
  type Answer,
  Conversation,
  type ConversationConfig,
  type ConversationEvent,
  type ConversationSnapshot,
  defineTool,
  type LLMProvider,
  type RunStore,
  type ToolDefinition,
  ToolRegistry,
} from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { historyFaults } from './strict-history.js';

/** What a user or a process does to a conversation. */
export type Action =
  | { readonly do: 'prompt' | 'abort' | 'let' | 'release' | 'cancel' | 'kill' | 'close' }
  /** Answers the pending calls whose bit is set. */
  | { readonly do: 'answer'; readonly which: number; readonly approved: boolean }
  /** Aborts the signal of the oldest waiting prompt. */
  | { readonly do: 'withdraw' }
  /** The process dies during the delivery of the nth event from now. */
  | { readonly do: 'kill-at'; readonly event: number };

const NAMES = ['plain', 'slow', 'background', 'pay', 'locate', 'ask', 'sequential', 'unknown'] as const;

/** The tools that each reply of the model calls, and the actions meanwhile. */
export interface RandomConversation {
  readonly replies: readonly (readonly (typeof NAMES)[number][])[];
  readonly actions: readonly Action[];
  readonly hasStore: boolean;
}

export const arbitraryConversation: fc.Arbitrary<RandomConversation> = fc.record({
  hasStore: fc.boolean(),
  replies: fc.array(fc.array(fc.constantFrom(...NAMES), { maxLength: 4 }), { maxLength: 8 }),
  actions: fc.array(
    fc.oneof(
      fc.record({ do: fc.constantFrom('prompt' as const, 'let' as const, 'release' as const) }),
      fc.record({ do: fc.constantFrom('prompt' as const, 'let' as const, 'release' as const) }),
      fc.record({
        do: fc.constantFrom('abort' as const, 'cancel' as const, 'kill' as const, 'close' as const),
      }),
      fc.record({ do: fc.constant('withdraw' as const) }),
      fc.record({
        do: fc.constant('answer' as const),
        which: fc.integer({ min: 1, max: 7 }),
        approved: fc.boolean(),
      }),
      fc.record({ do: fc.constant('kill-at' as const), event: fc.nat(12) }),
    ),
    { maxLength: 16 },
  ),
});

/** A conversation with its user, model and tools, across several processes. */
export class ConversationWorld {
  readonly faults: string[] = [];
  readonly prompts: string[] = [];
  readonly withdrawn = new Set<string>();
  /** How often each call ran, by number. */
  readonly runs = new Map<number, number>();
  /** Calls that were settled when their run was suspended, with the number of times they had run by then. */
  readonly settled = new Map<number, number>();
  readonly denied = new Set<number>();
  readonly begun: string[] = [];
  readonly ended: string[] = [];
  readonly acknowledged = new Set<string>();
  readonly completed: string[] = [];
  conversation: Conversation;
  #replies: (readonly string[])[];
  #calls = 0;
  #gates: (() => void)[] = [];
  #signals: { text: string; controller: AbortController }[] = [];
  /** The number of the process that is alive. */
  #life = 0;
  readonly #hasStore: boolean;
  #now = 0;
  readonly #store = new MemoryRunStore({ now: () => this.#now });
  #killIn = Number.POSITIVE_INFINITY;

  constructor({ replies, hasStore }: RandomConversation) {
    this.#replies = [...replies];
    this.#hasStore = hasStore;
    this.conversation = new Conversation(this.#config());
    this.#watch();
  }

  async act(action: Action): Promise<void> {
    if (action.do === 'prompt') this.#prompt();
    else if (action.do === 'abort') this.conversation.abort();
    else if (action.do === 'release') this.#gates.shift()?.();
    else if (action.do === 'cancel') this.conversation.cancel(this.conversation.tasks[0]?.id ?? '');
    else if (action.do === 'answer') this.#answer(action.which, action.approved);
    else if (action.do === 'withdraw') this.#withdraw();
    else if (action.do === 'kill') this.#restart(this.conversation.toJSON());
    else if (action.do === 'close') this.#restart(this.conversation.close());
    else if (action.do === 'kill-at') this.#killIn = action.event;
    this.#checkHistory();
    if (action.do === 'let') await new Promise(setImmediate);
  }

  /** Lets everything end: opens all gates and approves all calls. */
  async drain(): Promise<void> {
    this.#killIn = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 500; round += 1) {
      for (const open of this.#gates.splice(0)) open();
      this.#answer(7, true);
      await new Promise(setImmediate);
      this.#checkHistory();
      const { inbox, tasks, turn } = this.conversation.toJSON();
      if (inbox.length + tasks.length === 0 && turn === undefined) break;
    }
    const idle = this.conversation.idle({ tasks: true }).then(() => true);
    const late = new Promise<boolean>((resolve) => setTimeout(resolve, 30_000, false).unref());
    if (!(await Promise.race([idle, late]))) this.faults.push('it never came to an end');
  }

  #prompt(): void {
    const text = `prompt ${this.prompts.length + 1}`;
    this.prompts.push(text);
    const controller = new AbortController();
    this.#signals.push({ text, controller });
    const life = this.#life;
    this.conversation.prompt(text, { signal: controller.signal }).then(
      () => {},
      (error) => {
        if (life === this.#life) this.faults.push(`${text} rejected: ${error}`);
      },
    );
  }

  #withdraw(): void {
    const waiting = this.conversation
      .toJSON()
      .inbox.flatMap((origin) => (origin.kind === 'prompt' ? [origin.content] : []));
    const one = this.#signals.find(({ text }) => waiting.includes(text));
    if (one === undefined) return;
    one.controller.abort();
    this.withdrawn.add(one.text);
  }

  #answer(which: number, approved: boolean): void {
    const { pending } = this.conversation;
    const chosen = pending.filter((_, index) => (which & (1 << (index % 3))) !== 0);
    if (chosen.length === 0) return;
    const answers = chosen.map(({ id, kind, arguments: args }): Answer => {
      if (!approved) this.denied.add(Number(args.n));
      if (!approved) return { id, approved: false };
      if (kind === 'client') return { id, result: 'here' };
      return kind === 'question' ? { id, value: 'yes' } : { id, approved: true };
    });
    const life = this.#life;
    this.conversation.answer(answers).catch((error) => {
      if (life === this.#life) this.faults.push(`an answer rejected: ${error}`);
    });
  }

  /** The process dies, and another continues from the snapshot. */
  #restart(snapshot: ConversationSnapshot): void {
    this.#life += 1;
    // Longer than the lease of the old process.
    this.#now += 60_000;
    this.#killIn = Number.POSITIVE_INFINITY;
    this.#gates = [];
    this.#signals = [];
    this.#noteSettled(snapshot);
    // Events of the old process no longer matter, but its timers must be stopped.
    this.conversation.close();
    const kept = JSON.parse(JSON.stringify(snapshot)) as ConversationSnapshot;
    this.conversation = Conversation.restore(this.#config(), kept);
    this.#watch();
    const again = this.conversation.toJSON();
    if (again.inbox.length !== kept.inbox.length + kept.tasks.length || again.tasks.length > 0)
      this.faults.push('a restored conversation lost something');
  }

  #noteSettled({ turn }: ConversationSnapshot): void {
    if (turn === undefined || turn.standing.status === 'running') return;
    for (const call of turn.standing.state.open.calls) {
      if (call.status !== 'settled') continue;
      const number = Number(call.record.arguments?.n);
      if (!this.settled.has(number)) this.settled.set(number, this.runs.get(number) ?? 0);
    }
  }

  #watch(): void {
    const life = this.#life;
    this.conversation.subscribe((event) => {
      if (life !== this.#life) return;
      this.#note(event);
      this.#checkHistory();
      this.#killIn -= 1;
      if (this.#killIn < 0) this.#restart(this.conversation.toJSON());
    });
  }

  #note(event: ConversationEvent): void {
    if (event.type === 'call-end' && event.record.status === 'started')
      this.acknowledged.add(event.record.taskId ?? 'without an id');
    if (event.type !== 'turn-start' && event.type !== 'turn-end') return;
    const { origin, resumedBy } = event.turn;
    if (event.type === 'turn-start' && resumedBy === undefined) {
      if (origin.kind === 'completion') this.completed.push(origin.taskId ?? 'without an id');
      else if (origin.kind === 'prompt') this.begun.push(String(origin.content));
    }
    if (event.type === 'turn-end' && event.result?.status !== 'suspended' && origin.kind === 'prompt')
      this.ended.push(String(origin.content));
    if (event.type === 'turn-end') this.#noteSettled(this.conversation.toJSON());
  }

  #checkHistory(): void {
    this.faults.push(...historyFaults(this.conversation.messages).map((fault) => `messages: ${fault}`));
  }

  #config(): ConversationConfig {
    const tools = new ToolRegistry().register(...this.#tools());
    return {
      provider: this.#provider(),
      model: 'm',
      tools,
      id: 'c',
      ...(this.#hasStore ? { store: this.#storeOfThisLife() } : {}),
    };
  }

  /** A process that has died no longer reaches the store. */
  #storeOfThisLife(): RunStore {
    const store = this.#store;
    const life = this.#life;
    const alive = <Value>(act: () => Value): Value | Promise<Value> =>
      life === this.#life ? act() : new Promise(() => {});
    return {
      save: (state) => alive(() => store.save(state)),
      load: (runId) => alive(() => store.load(runId)),
      claim: (lease) => alive(() => store.claim(lease)),
      renew: (lease) => alive(() => store.renew(lease)),
      release: (claim, state) => alive(() => store.release(claim, state)),
      remove: (claim) => alive(() => store.remove(claim)),
    };
  }

  #provider(): LLMProvider {
    const life = this.#life;
    return {
      chat: async ({ messages }) => {
        if (life !== this.#life) return new Promise(() => {});
        this.faults.push(...historyFaults(messages).map((fault) => `request: ${fault}`));
        if (JSON.stringify(messages) !== JSON.stringify(this.conversation.messages))
          this.faults.push('the messages of the conversation are not those that the model was given');
        if (messages.at(-1)?.role === 'assistant')
          this.faults.push('the model was asked after its last word');
        const toolCalls = (this.#replies.shift() ?? []).map((name, index) => {
          this.#calls += 1;
          return { id: `c${index}`, name, arguments: { n: this.#calls } };
        });
        await new Promise(setImmediate);
        return { content: 'said', toolCalls, finishReason: toolCalls.length > 0 ? 'tool_calls' : 'stop' };
      },
    };
  }

  #tools(): readonly ToolDefinition[] {
    const life = this.#life;
    const parameters = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] } as const;
    const ran = (n: unknown): string => {
      if (life === this.#life) this.runs.set(Number(n), (this.runs.get(Number(n)) ?? 0) + 1);
      return `ran ${n}`;
    };
    const gate = (): Promise<void> => new Promise((open) => this.#gates.push(open));
    const tool = (name: string, more: object): ToolDefinition =>
      defineTool({ name, description: name, parameters, ...more } as Parameters<typeof defineTool>[0]);
    type Args = { readonly n: unknown };
    type Context = Parameters<NonNullable<ToolDefinition['execute']>>[1];
    return [
      tool('plain', { execute: ({ n }: Args) => ran(n) }),
      tool('slow', { execute: ({ n }: Args) => gate().then(() => ran(n)) }),
      tool('sequential', { sequential: true, execute: ({ n }: Args) => ran(n) }),
      tool('background', {
        execute: ({ n }: Args, context: Context) => {
          ran(n);
          return context.background(gate);
        },
      }),
      tool('pay', { approval: true, execute: ({ n }: Args) => ran(n) }),
      tool('locate', {}),
      tool('ask', {
        execute: async ({ n }: Args, context: Context) => {
          const answer = await context.ask({ message: 'Sure?' });
          return `${ran(n)} ${answer}`;
        },
      }),
    ];
  }
}
