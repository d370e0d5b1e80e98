import { AsyncLocalStorage } from 'node:async_hooks';
import type { Client, ElicitRequestParams, ElicitResult } from '@modelcontextprotocol/client';
import type { JsonSchema } from '../../../core/contract/json-schema.js';
import type { ToolContext } from '../../../core/contract/tool-context.js';

const QUESTIONS = new WeakMap<object, UserQuestions>();

/** The questions of the server of a client of `connectMcp`. */
export function questionsOf(client: object): UserQuestions | undefined {
  return QUESTIONS.get(client);
}

/** Lets the users of calls answer what a server asks: each question is a pending question of its run. */
export class UserQuestions {
  readonly #client: Client;
  readonly #calls = new Set<ToolContext>();
  readonly #current = new AsyncLocalStorage<ToolContext>();

  constructor(client: Client) {
    this.#client = client;
    QUESTIONS.set(client, this);
    client.setRequestHandler('elicitation/create', ({ params }) => this.answer(params));
  }

  /** Runs the request of a call. */
  async within<Value>(context: ToolContext, request: () => Promise<Value>): Promise<Value> {
    this.#calls.add(context);
    try {
      return await this.#current.run(context, request);
    } finally {
      this.#calls.delete(context);
    }
  }

  /** If there is no answer yet, `ask` throws: the run is suspended, and the call is made again with the answer. */
  async answer(params: ElicitRequestParams): Promise<ElicitResult> {
    const context = this.#asking();
    if (context === undefined) return { action: 'cancel' };
    const { message } = params;
    if (params.mode === 'url') {
      const isDone = await context.ask({ message: `${message}\n${params.url}`, schema: AGREED });
      return { action: isDone === true ? 'accept' : 'decline' };
    }
    const content = await context.ask({ message, schema: params.requestedSchema as JsonSchema });
    return { action: 'accept', content: content as NonNullable<ElicitResult['content']> };
  }

  /** The call whose server asks. Before 2026-07-28, a question does not name its call. */
  #asking(): ToolContext | undefined {
    if (this.#client.getProtocolEra() === 'modern') return this.#current.getStore();
    const [only, ...others] = this.#calls;
    return others.length === 0 ? only : undefined;
  }
}

/** The schema of the answer to a question with a link. */
export const AGREED: JsonSchema = { type: 'boolean', title: 'Done' };
