// A process with a conversation whose snapshot is in a file. `stored-run-process.ts` builds and starts it.
import { appendFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import {
  Conversation,
  type ConversationSnapshot,
  defineTool,
  type LLMProvider,
  type LLMResponse,
} from 'toolwright';

/** The command that the process receives. */
export type ConversationOrder =
  /** Sends two prompts, and stops during the first turn. */
  | { readonly do: 'talk'; readonly stopIn: 'tool' | 'model' }
  /** Restores the snapshot and runs until idle. */
  | { readonly do: 'restore' };

/** The report of the process about its conversation. */
export interface ConversationTold {
  readonly turnEnds: readonly string[];
  /** Completed tasks: the tool, and the code of its error. */
  readonly taskEnds: readonly (readonly [tool: string, code: number | undefined])[];
}

const [file = '', effects = ''] = process.argv.slice(2);
const never = new Promise<void>(() => {});

function tell(message: object): void {
  process.send?.(message);
}

/** Resolves when the background work has started, so that a kill interrupts it. */
const mailing = Promise.withResolvers<void>();

async function stop(): Promise<void> {
  await mailing.promise;
  tell({ told: 'stopped' });
  await never;
}

function toolsStopping(isStopping: boolean) {
  return [
    defineTool({
      name: 'mail',
      description: 'Mail',
      background: true,
      execute: async () => {
        appendFileSync(effects, 'mailing\n');
        mailing.resolve();
        await never;
      },
    }),
    defineTool({
      name: 'count',
      description: 'Count',
      execute: async () => {
        appendFileSync(effects, 'counted\n');
        if (isStopping) await stop();
        return '3 left';
      },
    }),
  ];
}

/** Calls both tools for the prompt `Go`, and otherwise repeats the last message. */
function modelStopping(isStopping: boolean): LLMProvider {
  return {
    async chat({ messages }): Promise<LLMResponse> {
      const last = messages.at(-1);
      const heard = String(last?.content);
      if (heard === 'Go') {
        const toolCalls = ['mail', 'count'].map((name) => ({ id: `${name}_1`, name, arguments: {} }));
        return { content: '', toolCalls, finishReason: 'tool_calls' };
      }
      if (isStopping && last?.role === 'tool') await stop();
      return { content: `Heard: ${heard}`, toolCalls: [], finishReason: 'stop' };
    },
  };
}

/** Renamed into place, so that a kill during the write leaves the previous snapshot. */
function keep(conversation: Conversation): void {
  writeFileSync(`${file}.new`, JSON.stringify(conversation));
  renameSync(`${file}.new`, file);
}

function talk(stopIn: 'tool' | 'model'): void {
  const conversation = new Conversation({
    provider: modelStopping(stopIn === 'model'),
    model: 'm',
    tools: toolsStopping(stopIn === 'tool'),
  });
  conversation.subscribe(() => keep(conversation));
  void conversation.prompt('Go');
  void conversation.prompt('And then?');
  keep(conversation);
}

async function restore(): Promise<void> {
  const snapshot = JSON.parse(readFileSync(file, 'utf8')) as ConversationSnapshot;
  const config = { provider: modelStopping(false), model: 'm', tools: toolsStopping(false) };
  const conversation = Conversation.restore(config, snapshot);
  const turnEnds: string[] = [];
  const taskEnds: [string, number | undefined][] = [];
  conversation.subscribe((event) => {
    if (event.type === 'turn-end') turnEnds.push(event.result?.content ?? String(event.error));
    if (event.type !== 'task-end') return;
    const { code } = (event.result.error ?? {}) as { readonly code?: number };
    taskEnds.push([event.task.tool, code]);
  });
  await conversation.idle();
  for (const { id } of conversation.tasks) conversation.cancel(id);
  await conversation.idle({ tasks: true });
  tell({ told: 'quiet', messages: conversation.messages, turnEnds, taskEnds });
}

process.on('message', (order: ConversationOrder) => {
  if (order.do === 'talk') talk(order.stopIn);
  else void restore();
});
process.on('disconnect', () => process.removeAllListeners('message'));
tell({ told: 'ready' });
