import { setTimeout as wait } from 'node:timers/promises';
import type { CallToolResult, Client, ElicitRequestParams, ElicitResult } from '@modelcontextprotocol/client';
import { isInputRequiredResult, isSpecType } from '@modelcontextprotocol/server';
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

/** What a call sends again with the answers to its server's questions. */
type Answered = { readonly inputResponses?: Record<string, ElicitResult>; readonly requestState?: string };

/** The pause before a call whose server asks nothing, but wants it to be sent again. */
const RETRY_MS = 250;

/** Lets the users of calls answer what a server asks: each question is a pending question of its run. */
export class UserQuestions {
  readonly #calls = new Set<ToolContext>();

  constructor(client: Client) {
    QUESTIONS.set(client, this);
    client.setRequestHandler('elicitation/create', ({ params }) => {
      const [only, ...others] = client.getProtocolEra() === 'modern' ? [] : this.#calls;
      return only === undefined || others.length > 0 ? { action: 'cancel' } : answer(params, only);
    });
  }

  /** Runs the request of a call. Before 2026-07-28, a question does not name its call: only a single call is asked. */
  async within<Value>(context: ToolContext, request: () => Promise<Value>): Promise<Value> {
    this.#calls.add(context);
    try {
      return await request();
    } finally {
      this.#calls.delete(context);
    }
  }

  /** Sends a call until its result is complete. Since 2026-07-28, results contain the questions of their calls. */
  async complete(
    context: ToolContext,
    send: (answered: Answered) => Promise<CallToolResult>,
  ): Promise<CallToolResult> {
    for (let answered: Answered = {}; ; ) {
      const result: object = await send(answered);
      if (!isInputRequiredResult(result)) return result as CallToolResult;
      const { requestState, inputRequests = {} } = result;
      const asked = Object.entries(inputRequests);
      if (asked.length === 0) await wait(RETRY_MS, undefined, { signal: context.signal });
      const given = asked.map(async ([key, request]) => [key, await this.answer(request, context)] as const);
      answered = {
        ...(asked.length > 0 && { inputResponses: Object.fromEntries(await Promise.all(given)) }),
        ...(requestState !== undefined && { requestState }),
      };
    }
  }

  /** Answers a question that belongs to a call. */
  async answer(request: unknown, context: ToolContext): Promise<ElicitResult> {
    if (!isSpecType.ElicitRequest(request))
      throw new Error('The server asks for something other than an answer of the user.');
    return answer(request.params, context);
  }
}

/** If there is no answer yet, `ask` throws: the run is suspended, and the call is made again with the answer. */
async function answer(params: ElicitRequestParams, context: ToolContext): Promise<ElicitResult> {
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

/**
 * Asks what a call asks one after another. A call that is executed again first asks again what it has asked before,
 * although it may not be needed any more. The returned function records and asks the next question.
 */
export async function askInOrder<Question>(
  context: ToolContext,
  kind: string,
  ask: (question: Question) => Promise<void>,
): Promise<(question: Question) => Promise<void>> {
  let count = 1;
  const next = () => `${kind} ${count}`;
  const askNext = async (question: Question): Promise<void> => {
    await ask(question);
    count += 1;
  };
  for (let asked = await recorded<Question>(context, next()); asked !== undefined; ) {
    await askNext(asked);
    asked = await recorded<Question>(context, next());
  }
  return async (question) => askNext(await context.once(next(), () => question));
}

/** Limits a user who answers without signing in. */
const MOST_SIGN_INS = 5;

/** Makes sign-ins pending questions of the run. */
export async function signInQuestions(context: ToolContext): Promise<AskForSignIn> {
  let asked = 0;
  const ask = await askInOrder<string>(context, 'sign-in', async (page) => {
    asked += 1;
    const message = `Sign in at this page, and then answer that it is done:\n${page}`;
    if (asked > MOST_SIGN_INS || (await context.ask({ message, schema: AGREED })) !== true)
      throw new Error('The user did not sign in.');
  });
  return (address) => ask(address.href);
}
