import { parseArgs } from 'node:util';
import type { Answer, PendingCall } from '../../core/contract/call.js';
import type { LLMProvider } from '../../core/contract/llm-provider.js';
import { visibleText } from '../../core/kernel/visible-text.js';
import { Conversation } from '../../run/conversation/conversation.js';
import { ChatPrinter } from './chat-printer.js';
import { type Command, type CommandEnvironment, UserFault } from './command.js';
import { jsonObject, requiredRegistry, scopeOfModule, withModule } from './open-module.js';
import { askAll, TerminalLines } from './terminal-questions.js';

const OPTIONS = { data: { type: 'string' }, json: { type: 'boolean' }, yes: { type: 'boolean' } } as const;

/** `toolwright call <module> <tool> [arguments]`: one call, through the same pipeline as a model's call. */
export const callCommand: Command = {
  async run(args, environment) {
    const { values, positionals } = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
    const [name, tool, written = '{}', fourth] = positionals;
    if (name === undefined || tool === undefined || fourth !== undefined)
      throw new UserFault(
        'call takes a module, a tool and its arguments: toolwright call dist/tools.js find_orders \'{"limit":5}\'',
      );
    const data = values.data === undefined ? undefined : jsonObject('--data', values.data);
    return withModule(name, environment, async (module) => {
      const tools = requiredRegistry(name, module);
      if (tools.get(tool) === undefined)
        throw new UserFault(`there is no tool '${tool}'; there are ${tools.list().join(', ')}`);
      const call = { id: 'call_1', name: tool, arguments: written };
      const replies = [{ content: '', toolCalls: [call], finishReason: 'tool_calls' as const }];
      // Replaces the model of a run: it makes the call and then ends the run.
      const provider: LLMProvider = {
        chat: async () => replies.shift() ?? { content: 'Done.', toolCalls: [], finishReason: 'stop' },
      };
      const scope = await scopeOfModule(module, data);
      const conversation = new Conversation({ provider, model: 'command line', tools, scope });
      try {
        const { result, status } = await makeCall(conversation, {
          approvesAll: values.yes === true,
          environment,
        });
        environment.out(
          values.json
            ? `${JSON.stringify({ status, ...result.toJSON() })}\n`
            : `${visibleText(result.forLLM)}\n`,
        );
        return result.isError ? 1 : 0;
      } finally {
        await conversation.close();
      }
    });
  },
};

interface Calling {
  readonly approvesAll: boolean;
  readonly environment: CommandEnvironment;
}

/** Makes the call; the user answers approvals and questions on the terminal. */
async function makeCall(conversation: Conversation, { approvesAll, environment }: Calling) {
  const printer = new ChatPrinter(environment);
  conversation.subscribe((event) => {
    if (event.type === 'call-progress') printer.show(event);
  });
  let run = await conversation.prompt('Make the call.');
  if (run.status === 'suspended') {
    const lines = new TerminalLines(environment, printer);
    const isApproval = ({ kind }: PendingCall) => approvesAll && kind === 'approval';
    while (run.status === 'suspended') {
      const waiting = conversation.pending;
      const approved: Answer[] = waiting.filter(isApproval).map(({ id }) => ({ id, approved: true }));
      const asked = waiting.filter((pending) => !isApproval(pending));
      const answered = await askAll(asked, { ask: (question) => lines.ask(question), printer, environment });
      if (answered === undefined)
        throw new UserFault('the call waits for an answer, and nothing was answered; --yes approves it', 1);
      run = await conversation.answer([...approved, ...answered]);
    }
    lines.close();
  }
  printer.settle();
  const record = run.toolCalls.at(-1);
  if (record === undefined)
    throw new UserFault(`the call was not made: ${run.error?.message ?? run.status}`, 1);
  return record;
}
