import { type ReadArguments, readArguments } from '../checking/read-arguments.js';
import type { CallRecord } from '../contract/call-record.js';
import type { ToolCall } from '../contract/llm-provider.js';
import type { CallJournal } from '../contract/suspension.js';

/** A call whose arguments were read: the history needs that, and so does the tool. */
export interface ReadCall extends ToolCall {
  readonly read: ReadArguments;
  /** The arguments as text of a JSON object; absent where there is none that JSON could say. */
  readonly text: string | undefined;
  /** Of a call that was suspended: what is known of it. */
  readonly journal?: CallJournal;
  /** Of a call that has its answer from before the run was suspended. */
  readonly record?: CallRecord;
}

/** Reads the arguments of a call, once. */
export function readCall({ id, name, arguments: args }: ToolCall): ReadCall {
  const read = readArguments(args);
  return { id, name, arguments: args, read, text: textOf(args, read) };
}

function textOf(args: ToolCall['arguments'], read: ReadArguments): string | undefined {
  if (!read.ok) return undefined;
  const isAsSent = typeof args === 'string' && read.repairs.length === 0 && args.trimStart().startsWith('{');
  try {
    return isAsSent ? args : JSON.stringify(read.value);
  } catch {
    return undefined;
  }
}
