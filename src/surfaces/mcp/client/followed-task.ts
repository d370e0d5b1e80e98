import { setTimeout as wait } from 'node:timers/promises';
import type { CallToolResult, Client, ElicitResult, JSONRPCMessage } from '@modelcontextprotocol/client';
import { isCallToolResult, ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import type { ToolContext } from '../../../core/contract/tool-context.js';
import { isRecord } from '../../../core/kernel/json.js';
import { asSent } from '../record-message.js';
import { withReadableContent } from './readable-content.js';
import { askInOrder, questionsOf, recorded } from './user-questions.js';

/** Where the id of a task is in a result that the SDK accepts. */
const TASK_ID = 'toolwright/task';

/** A message with a task instead of a result, in a form that the SDK accepts; others, which it may refuse, are unchanged. */
export function readableTask<Message extends JSONRPCMessage>(message: Message): Message {
  if (!('result' in message) || message.result.resultType !== 'task') return message;
  const { taskId } = message.result;
  if (typeof taskId !== 'string' || taskId === '') return message;
  const _meta = { [TASK_ID]: taskId };
  return { ...message, result: { resultType: 'complete', content: [], _meta } };
}

const TASK = 'mcp task';

/** The task that an earlier execution of the call has started: no second one may be started. */
export function recordedTask(context: ToolContext): Promise<string | undefined> {
  return recorded<string>(context, TASK);
}

/** Records the task of a result; `undefined` if the call has ended with it. */
export async function recordTask(
  { _meta }: CallToolResult,
  context: ToolContext,
): Promise<string | undefined> {
  const taskId = _meta?.[TASK_ID];
  return typeof taskId === 'string' ? context.once(TASK, () => taskId) : undefined;
}

/** A task as its server reports it. */
interface ReportedTask {
  readonly status?: unknown;
  readonly statusMessage?: unknown;
  readonly pollIntervalMs?: unknown;
  readonly inputRequests?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code?: unknown; readonly message?: unknown };
}

const AS_SENT = asSent<ReportedTask>();

/** Waits for the end of a task (SEP-2663). What the server asks meanwhile is a question of the call's user. */
export async function followTask(
  client: Client,
  taskId: string,
  context: ToolContext,
): Promise<CallToolResult> {
  const { signal } = context;
  const given = new Map<string, ElicitResult>();
  // The server may have some of the answers already.
  const ask = await askInOrder<AskedByTask>(context, 'mcp task question', async ({ key, request }) => {
    const questions = questionsOf(client);
    if (questions === undefined)
      throw new Error('The task asks its user a question; a client of connectMcp passes questions on.');
    given.set(key, await questions.answer(request, context));
  });
  for (;;) {
    const task = await client.request({ method: 'tasks/get', params: { taskId } }, AS_SENT, { signal });
    if (task.status === 'completed') return readResult(task.result);
    if (task.status === 'failed') throw protocolError(task);
    if (task.status === 'cancelled') throw new Error('The server cancelled the task of the call.');
    if (task.status === 'input_required') {
      const asked = Object.entries(isRecord(task.inputRequests) ? task.inputRequests : {});
      for (const [key, request] of asked) if (!given.has(key)) await ask({ key, request });
      const inputResponses = Object.fromEntries(asked.map(([key]) => [key, given.get(key)]));
      const params = { taskId, inputResponses };
      await client.request({ method: 'tasks/update', params }, AS_SENT, { signal });
    } else if (task.status !== 'working')
      throw new Error(`The server reported a task in an unknown state: ${String(task.status).slice(0, 100)}`);
    await wait(pauseOf(task), undefined, { signal });
  }
}

interface AskedByTask {
  readonly key: string;
  readonly request: unknown;
}

function readResult(sent: unknown): CallToolResult {
  const result = withReadableContent(sent);
  if (isCallToolResult(result)) return result;
  throw new Error('The server reported a task with a result that is not a result of a call.');
}

function protocolError({ error }: ReportedTask): ProtocolError {
  const { code, message } = error ?? {};
  return new ProtocolError(
    typeof code === 'number' ? code : ProtocolErrorCode.InternalError,
    typeof message === 'string' ? message : 'The task failed.',
  );
}

const SHORTEST_PAUSE_MS = 50;
const DEFAULT_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

function pauseOf({ pollIntervalMs }: ReportedTask): number {
  const asked = Number.isFinite(pollIntervalMs) ? Number(pollIntervalMs) : DEFAULT_PAUSE_MS;
  return Math.min(Math.max(asked, SHORTEST_PAUSE_MS), LONGEST_PAUSE_MS);
}
