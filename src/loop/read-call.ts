import { type ReadArguments, readArguments } from '../checking/read-arguments.js';
import type { ToolCall } from '../contract/llm-provider.js';

/** A call whose arguments were read: the history needs that, and so does the tool. */
export interface ReadCall extends ToolCall {
  readonly read: ReadArguments;
}

/** Reads the arguments of a call, once. */
export function readCall({ id, name, arguments: args }: ToolCall): ReadCall {
  return { id, name, arguments: args, read: readArguments(args) };
}
