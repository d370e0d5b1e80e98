import type {
  CreateMessageRequest,
  CreateMessageResult,
  CreateMessageResultWithTools,
  Root,
} from '@modelcontextprotocol/server';
import type { JsonSchema } from '../../../core/contract/json-schema.js';
import type { ToolContext } from '../../../core/contract/tool-context.js';
import { checkArguments } from '../../../core/errors/author-fault.js';
import { RECORD, withMethods } from '../../../core/kernel/options.js';

/** Input from a client itself, not from its user. */
type ClientInput =
  | { readonly method: 'sampling/createMessage'; readonly params: CreateMessageRequest['params'] }
  | { readonly method: 'roots/list' };

const CONTEXT = withMethods(['ask'], 'the ToolContext of the call');
const PARAMS = { ...RECORD, fix: '{ messages: […], maxTokens: 200 }' };

/** Marks questions for the client; outside MCP they are normal questions. */
const MARK = 'x-mcp-input';

/**
 * Asks the model of the MCP client that made the call. Like `context.ask`, it suspends the call, and the method runs
 * again with the answer. Outside MCP, the person who answers the run's questions provides the message.
 *
 * @deprecated MCP 2026-07-28 deprecates sampling: ask a provider of your own. It works until MCP removes it.
 *
 * @example
 * ```ts
 * @Tool('Sum up a text')
 * async sumUp(text: string, context: ToolContext) {
 *   const message = { role: 'user' as const, content: { type: 'text' as const, text: `Sum up: ${text}` } };
 *   const { content } = await sampleMessage(context, { messages: [message], maxTokens: 200 });
 *   return JSON.stringify(content);
 * }
 * ```
 */
export async function sampleMessage(
  context: ToolContext,
  params: CreateMessageRequest['params'],
): Promise<CreateMessageResult | CreateMessageResultWithTools> {
  checkArguments({
    of: 'sampleMessage',
    given: { context, params },
    rules: { context: CONTEXT, params: PARAMS },
  });
  const answer = await context.ask({
    message: 'What does the client’s model answer?',
    schema: {
      type: 'object',
      required: ['role', 'content'],
      [MARK]: { method: 'sampling/createMessage', params },
    },
  });
  return answer as CreateMessageResult;
}

/**
 * Asks the MCP client that made the call for its working folders, in the same way as {@link sampleMessage}.
 *
 * @deprecated MCP 2026-07-28 deprecates roots: take folders as arguments or settings. It works until MCP removes it.
 *
 * @example
 * ```ts
 * @Tool('Count the folders')
 * async countFolders(context: ToolContext) {
 *   return (await listRoots(context)).length;
 * }
 * ```
 */
export async function listRoots(context: ToolContext): Promise<readonly Root[]> {
  checkArguments({ of: 'listRoots', given: { context }, rules: { context: CONTEXT } });
  const answer = await context.ask({
    message: 'Which folders are open?',
    schema: { type: 'object', required: ['roots'], [MARK]: { method: 'roots/list' } },
  });
  return (answer as { readonly roots: readonly Root[] }).roots;
}

/** The request to the client in a question's schema; `undefined` if the question is for the user. */
export function clientInputOf(schema: JsonSchema | undefined): ClientInput | undefined {
  return schema?.[MARK] as ClientInput | undefined;
}
