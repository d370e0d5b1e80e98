import { AsyncLocalStorage } from 'node:async_hooks';
import type { Client, ElicitRequestParams, ElicitResult } from '@modelcontextprotocol/client';
import type { JsonSchema } from '../../../core/contract/json-schema.js';
import type { ToolContext } from '../../../core/contract/tool-context.js';
import { ToolwrightError } from '../../../core/errors/toolwright-error.js';
import type { AskForSignIn } from './sign-in.js';

const QUESTIONS = new WeakMap<object, UserQuestions>();

/** The reasons of users who refused to answer, by call; a server receives only the refusal. */
const REFUSALS = new WeakMap<ToolContext, string>();

export function refusalOf(context: ToolContext): string | undefined {
  return REFUSALS.get(context);
}

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
    const onRefusal = 'throw';
    try {
      if (params.mode === 'url') {
        const address = `${message}\n${params.url}`;
        const isDone = await context.ask({ message: address, schema: AGREED, onRefusal });
        return { action: isDone === true ? 'accept' : 'decline' };
      }
      const content = await context.ask({ message, schema: params.requestedSchema as JsonSchema, onRefusal });
      return { action: 'accept', content: content as NonNullable<ElicitResult['content']> };
    } catch (error) {
      if (!ToolwrightError.is(error) || error.name !== 'ToolRefused') throw error;
      REFUSALS.set(context, error.message);
      return { action: 'decline' };
    }
  }

  /** The call whose server asks. Before 2026-07-28, a question does not name its call. */
  #asking(): ToolContext | undefined {
    if (this.#client.getProtocolEra() === 'modern') return this.#current.getStore();
    const [only, ...others] = this.#calls;
    return others.length === 0 ? only : undefined;
  }
}

/** The schema of the answer to a question with a link. */
const AGREED: JsonSchema = { type: 'boolean', title: 'Done' };

const NOT_RECORDED = new Error('Nothing is recorded.');

/** What an earlier execution of a call has recorded with `context.once`; `undefined` if it has not. */
export async function recorded<Value>(context: ToolContext, key: string): Promise<Value | undefined> {
  try {
    return await context.once<Value>(key, () => {
      throw NOT_RECORDED;
    });
  } catch (error) {
    if (error === NOT_RECORDED) return undefined;
    throw error;
  }
}

/** Limits a user who answers without signing in. */
const MOST_SIGN_INS = 5;

/**
 * Makes sign-ins pending questions of the run. A call that is executed again first asks again what it has asked before,
 * although it may need no sign-in any more.
 */
export async function signInQuestions(context: ToolContext): Promise<AskForSignIn> {
  let asked = 0;
  const ask = async (page: string): Promise<void> => {
    asked += 1;
    const message = `Sign in at this page, and then answer that it is done:\n${page}`;
    if (asked > MOST_SIGN_INS || (await context.ask({ message, schema: AGREED })) !== true)
      throw new Error('The user did not sign in.');
  };
  const next = () => `sign-in ${asked + 1}`;
  for (let page = await recorded<string>(context, next()); page !== undefined; ) {
    await ask(page);
    page = await recorded<string>(context, next());
  }
  return async (address) => ask(await context.once(next(), () => address.href));
}
