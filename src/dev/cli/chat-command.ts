import type { Answer, CallScope, PendingCall } from '../../core/contract/call.js';
import type { LLMProvider } from '../../core/contract/llm-provider.js';
import { visibleLine, visibleText } from '../../core/kernel/visible-text.js';
import { notesOf } from '../../run/call/result-text.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import { Conversation } from '../../run/conversation/conversation.js';
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
import { askAll, ChatPrinter, TerminalLines } from './terminal.js';

const CHAT_OPTIONS = {
  model: STRING,
  offline: FLAG,
  data: STRING,
};

type ChatOptions = LineValues<typeof CHAT_OPTIONS>;

/** `toolwright chat <module>`: a conversation with the tools of a module, on the terminal. */
export const chatCommand: Command = async (args, environment) => {
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
    await new TerminalChat({ config, scope, registry, environment }).talk();
    return 0;
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

interface ChatParts {
  readonly config: ConversationConfig;
  readonly scope: CallScope;
  readonly registry: ToolRegistry;
  readonly environment: CommandEnvironment;
}

/** Runs one turn after another for the lines of a terminal. */
class TerminalChat {
  readonly #parts: ChatParts;
  readonly #conversation: Conversation;
  readonly #printer: ChatPrinter;
  readonly #lines: TerminalLines;
  #isInTurn = false;

  constructor(parts: ChatParts) {
    const { config, scope, environment } = parts;
    this.#parts = parts;
    this.#printer = new ChatPrinter(environment);
    this.#conversation = new Conversation({ ...config, scope });
    this.#conversation.subscribe((event) =>
      this.#printer.show(event.type === 'call-end' ? { ...event, status: event.record.status } : event),
    );
    this.#lines = new TerminalLines(environment, this.#printer);
  }

  async talk(): Promise<void> {
    const { registry, environment } = this.#parts;
    const { out, error } = environment;
    const unfollow = this.#lines.onInterrupt(() => this.#interrupt());
    error('toolwright: /tools lists the tools, /exit or end of input ends; Ctrl-C aborts a turn\n');
    try {
      for (;;) {
        const line = await this.#lines.ask('> ');
        if (line === undefined || line.trim() === '/exit') return;
        if (line.trim() === '/tools')
          for (const summary of registry.getSummaries()) out(`${visibleLine(summary)}\n`);
        else if (line.trim() !== '') await this.#turn(line);
      }
    } finally {
      unfollow();
      this.#lines.close();
      await this.#conversation.close();
    }
  }

  /** Aborts the running turn; without a turn, ends the command. */
  #interrupt(): void {
    if (!this.#isInTurn) {
      this.#lines.close();
      return;
    }
    this.#conversation.abort(new Error('aborted at the terminal'));
  }

  async #turn(text: string): Promise<void> {
    this.#isInTurn = true;
    try {
      let result = await this.#conversation.prompt(text);
      while (result.status === 'suspended') {
        const answers = await askAll(this.#conversation.pending, {
          ask: (question) => this.#lines.ask(question, this.#untilTurnEnds()),
          printer: this.#printer,
          environment: this.#parts.environment,
        });
        // There is no user, or the turn was aborted meanwhile.
        if (answers === undefined) {
          this.#conversation.abort(new Error('nobody answers'));
          this.#printer.fault(new Error('aborted: nothing was answered'));
          return;
        }
        try {
          result = await this.#conversation.answer(answers);
        } catch (error) {
          if (this.#conversation.pending.length === 0) throw error;
          // The answers were refused; ask again.
          this.#printer.fault(error);
        }
      }
      this.#printer.end(result);
    } catch (error) {
      this.#printer.fault(error);
    } finally {
      await this.#conversation.idle();
      this.#isInTurn = false;
    }
  }

  /** Resolves when no call is pending. */
  #untilTurnEnds(): Promise<undefined> {
    return new Promise((resolve) => {
      const end = this.#conversation.subscribe(({ type }) => {
        if (type !== 'turn-end') return;
        end();
        resolve(undefined);
      });
    });
  }
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
          ? `${JSON.stringify({ status, ...result.toJSON() })}\n`
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
