import type { Answer, PendingCall } from '../../core/contract/call.js';
import type { LLMProvider } from '../../core/contract/llm-provider.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import { visibleLine, visibleText } from '../../core/kernel/visible-text.js';
import { MemoryRunStore } from '../../durable/stores/index.js';
import { notesOf, storedResult } from '../../run/call/result-text.js';
import { Conversation } from '../../run/conversation/conversation.js';
import { Conversations } from '../../run/conversation/conversations.js';
import type { ConversationConfig } from '../../run/conversation/options.js';
import {
  type Command,
  type CommandEnvironment,
  FLAG,
  type LineValues,
  parseLine,
  readLine,
  STRING,
  UserFault,
} from './command.js';
import {
  jsonObject,
  type OpenModule,
  requiredRegistry,
  scopeOfModule,
  settingsOfModule,
  withModule,
} from './open-module.js';
import { Terminal } from './terminal.js';
import { canAnswer, TerminalTalk } from './terminal-talk.js';

const CHAT_OPTIONS = {
  model: STRING,
  offline: FLAG,
  data: STRING,
  interactive: FLAG,
};

type ChatOptions = LineValues<typeof CHAT_OPTIONS>;

/** `toolwright chat <module>`: a conversation with the tools of a module, on the terminal. */
export const command: Command = async (args, environment) => {
  const { name, values } = readLine(
    args,
    CHAT_OPTIONS,
    'chat takes one module: toolwright chat dist/tools.js',
  );
  const data = values.data === undefined ? undefined : jsonObject('--data', values.data);
  return withModule(name, environment, async (module) => {
    const registry = requiredRegistry(name, module);
    const config = { ...(await modelOf(name, module, values)), tools: registry };
    const scope = await scopeOfModule(module, data);
    const { owner } = scope;
    const owned = withoutUndefined({ owner });
    const conversations = new Conversations({ store: new MemoryRunStore(), config, scope: () => scope });
    try {
      const isCompleted = await new TerminalTalk({
        ...{ id: 'chat', conversations, registry, environment, owned },
        isAnswered: canAnswer(environment, values.interactive),
        greeting: '/tools lists the tools, /exit or end of input ends; Ctrl-C aborts a turn',
        prompt: (text) => conversations.prompt('chat', text, owned),
      }).talk();
      return isCompleted ? 0 : 1;
    } finally {
      await conversations.close();
    }
  });
};

/** The provider and model: the module's own, or the offline provider. */
async function modelOf(
  name: string,
  module: OpenModule,
  { offline, model: named }: ChatOptions,
): Promise<Pick<ConversationConfig, 'provider' | 'model' | 'systemPrompt'>> {
  const { provider, model, systemPrompt } = settingsOfModule(module);
  const asked = named ?? model;
  if (offline) {
    const { OfflineProvider } = await import('../../models/offline/offline-provider.js');
    return { provider: new OfflineProvider(), model: 'offline', systemPrompt };
  }
  if (provider === undefined || asked === undefined)
    throw new UserFault(
      `${name} exports no provider and model: export const config = { provider, model, tools }, or --offline`,
      1,
    );
  return { provider, model: asked, systemPrompt };
}

const CALL_OPTIONS = {
  data: STRING,
  json: FLAG,
  yes: FLAG,
};

/** `toolwright call <module> <tool> [arguments]`: one call, through the same pipeline as a model's call. */
export const callCommand: Command = async (args, environment) => {
  const { values, positionals } = parseLine(args, CALL_OPTIONS);
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
      const record = await makeCall(conversation, { approvesAll: values.yes === true, environment });
      const { result, status } = record;
      for (const note of notesOf(record)) environment.error(`toolwright: ${visibleLine(note)}\n`);
      environment.out(
        values.json
          ? `${JSON.stringify({ status, ...storedResult(result) })}\n`
          : `${visibleText(result.forLLM)}\n`,
      );
      return result.isError ? 1 : 0;
    } finally {
      await conversation.close();
    }
  });
};

interface Calling {
  readonly approvesAll: boolean;
  readonly environment: CommandEnvironment;
}

/** Makes the call; the user answers approvals and questions on the terminal. */
async function makeCall(conversation: Conversation, { approvesAll, environment }: Calling) {
  const terminal = new Terminal(environment);
  conversation.subscribe((event) => {
    if (event.type === 'call-progress') terminal.show(event);
  });
  let run = await conversation.prompt('Make the call.');
  if (run.status === 'suspended') {
    const isApproval = ({ kind }: PendingCall) => approvesAll && kind === 'approval';
    while (run.status === 'suspended') {
      const waiting = conversation.pending;
      const approved: Answer[] = waiting.filter(isApproval).map(({ id }) => ({ id, approved: true }));
      const asked = waiting.filter((pending) => !isApproval(pending));
      const answered = await terminal.askAll(asked);
      if (answered === undefined)
        throw new UserFault('the call waits for an answer, and nothing was answered; --yes approves it', 1);
      run = await conversation.answer([...approved, ...answered]);
    }
    terminal.close();
  }
  terminal.settle();
  const record = run.toolCalls.at(-1);
  if (record === undefined)
    throw new UserFault(`the call was not made: ${run.error?.message ?? run.status}`, 1);
  return record;
}
