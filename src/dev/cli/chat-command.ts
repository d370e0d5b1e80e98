import type { CallRecord, PendingCall } from '../../core/contract/call.js';
import type { LLMProvider } from '../../core/contract/llm-provider.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import { visibleText } from '../../core/kernel/visible-text.js';
import { MemoryRunStore } from '../../durable/stores/index.js';
import { notesOf, storedResult } from '../../run/call/result-text.js';
import { Conversations } from '../../run/conversation/conversations.js';
import type { ToolLoopStream } from '../../run/loop/events.js';
import { streamResumedToolLoop, streamToolLoop } from '../../run/loop/run.js';
import {
  type Command,
  type CommandEnvironment,
  FLAG,
  parseLine,
  readLine,
  report,
  STRING,
  UserFault,
} from './command.js';
import { jsonObject, requiredRegistry, scopeOfModule, settingsOfModule, withModule } from './open-module.js';
import { canAnswer, Terminal, TerminalTalk } from './terminal.js';

/** `toolwright chat <module>`: a conversation with the tools of a module, on the terminal. */
export const command: Command = async (args, environment) => {
  const { name, values } = readLine(
    args,
    { model: STRING, offline: FLAG, data: STRING, interactive: FLAG },
    'chat takes one module: toolwright chat dist/tools.js',
  );
  const data = values.data === undefined ? undefined : jsonObject('--data', values.data);
  return withModule(name, environment, async (module) => {
    const registry = requiredRegistry(name, module);
    const settings = settingsOfModule(module);
    let { provider, model } = { ...settings, model: values.model ?? settings.model };
    if (values.offline) {
      const { OfflineProvider } = await import('../../models/offline/offline-provider.js');
      provider = new OfflineProvider();
      model = 'offline';
    }
    if (provider === undefined || model === undefined)
      throw new UserFault(
        `${name} exports no provider and model: export const config = { provider, model, tools }, or use --offline`,
        1,
      );
    const config = { provider, model, systemPrompt: settings.systemPrompt, tools: registry };
    const scope = await scopeOfModule(module, data);
    const { owner } = scope;
    const owned = withoutUndefined({ owner });
    const conversations = new Conversations({ store: new MemoryRunStore(), config, scope: () => scope });
    try {
      return await new TerminalTalk({
        ...{ id: 'chat', conversations, registry, environment, owned },
        isAnswered: canAnswer(environment, values.interactive),
        greeting: '/tools lists the tools, /exit or the end of the input ends the chat, Ctrl-C aborts a turn',
        prompt: (text) => conversations.prompt('chat', text, owned),
      }).talk();
    } finally {
      await conversations.close();
    }
  });
};

/** `toolwright call <module> <tool> [arguments]`: one call, through the same pipeline as a model's call. */
export const callCommand: Command = async (args, environment) => {
  const { values, positionals } = parseLine(args, { data: STRING, json: FLAG, yes: FLAG });
  const [name, tool, written = '{}', fourth] = positionals;
  if (name === undefined || tool === undefined || fourth !== undefined)
    throw new UserFault(
      'call takes a module, a tool and its arguments: toolwright call dist/tools.js find_orders \'{"limit":5}\'',
    );
  const data = values.data === undefined ? undefined : jsonObject('--data', values.data);
  return withModule(name, environment, async (module) => {
    const tools = requiredRegistry(name, module);
    if (tools.get(tool) === undefined)
      throw new UserFault(`there is no tool '${tool}'; the tools are ${tools.list().join(', ')}`);
    const call = { id: 'call_1', name: tool, arguments: written };
    const replies = [{ content: '', toolCalls: [call], finishReason: 'tool_calls' as const }];
    // Replaces the model of a run: it makes the call and then ends the run.
    const provider: LLMProvider = {
      chat: async () => replies.shift() ?? { content: 'Done.', toolCalls: [], finishReason: 'stop' },
    };
    const scope = await scopeOfModule(module, data);
    const stop = new AbortController();
    const config = { provider, model: 'command line', tools, signal: stop.signal };
    const terminal = new Terminal(environment);
    let endedBy: number | undefined;
    const unfollow = terminal.onSignal((_signal, exitCode) => {
      endedBy ??= exitCode;
      stop.abort();
      terminal.close();
    });
    const ended = async (stream: ToolLoopStream) => {
      for await (const event of stream) if (event.type === 'call-progress') terminal.show(event);
      return stream.result;
    };
    try {
      let run = await ended(streamToolLoop(config, [{ role: 'user', content: 'Make the call.' }], scope));
      while (run.status === 'suspended') {
        const { approved = [], asked = [] } = Object.groupBy(run.pending ?? [], ({ kind }) =>
          values.yes && kind === 'approval' ? 'approved' : 'asked',
        );
        const answered = await terminal.askAll(asked);
        if (endedBy !== undefined) break;
        if (answered === undefined) throw new UserFault(unanswered(asked), 1);
        const answers = [...approved.map(({ id }) => ({ id, approved: true })), ...answered];
        run = await ended(streamResumedToolLoop(config, run.state, answers, scope));
      }
      terminal.settle();
      if (endedBy !== undefined) return endedBy;
      const record = run.toolCalls.at(-1);
      if (record === undefined)
        throw new UserFault(`the call was not made: ${run.error?.message ?? run.status}`, 1);
      return printResult(record, environment, values.json);
    } finally {
      unfollow();
      terminal.close();
    }
  });
};

function printResult(record: CallRecord, environment: CommandEnvironment, isJson = false): number {
  const { result, status } = record;
  for (const note of notesOf(record)) report(environment, note);
  const text = isJson ? JSON.stringify({ status, ...storedResult(result) }) : visibleText(result.forLLM);
  environment.out(`${text}\n`);
  return result.isError ? 1 : 0;
}

function unanswered(asked: readonly PendingCall[]): string {
  const isApproval = asked.every(({ kind }) => kind === 'approval');
  const fix = isApproval
    ? '--yes approves it'
    : 'write the answer on the terminal, or as a line of the input';
  return `the call waits for an answer, but the input has ended; ${fix}`;
}
