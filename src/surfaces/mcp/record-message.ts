import type { StandardSchemaV1 } from '@modelcontextprotocol/server';
import type { Telemetry, TraceCarrier, TracedMessage } from '../../core/contract/telemetry.js';

/** The extension of MCP 2026-07-28 for calls that are answered later (SEP-2663). */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

/** A Standard Schema that accepts everything unchanged. */
export function asSent<Value>(): StandardSchemaV1<unknown, Value> {
  return {
    '~standard': { version: 1, vendor: 'toolwright', validate: (value) => ({ value: value as Value }) },
  };
}

/** Sends or answers a message, and records it if there is telemetry; `work` receives the message's trace headers. */
export async function recordMessage<Value>(
  telemetry: Telemetry | undefined,
  message: TracedMessage,
  work: (carrier: TraceCarrier | undefined) => Promise<Value>,
): Promise<Value> {
  if (!telemetry?.isOn) return work(undefined);
  const trace = telemetry.startMessage(message);
  try {
    const value = await trace.within(() => work(trace.carrier));
    // A failed tool call still has a result.
    const { isError } = Object(value) as { readonly isError?: unknown };
    trace.end({ isToolError: message.tool !== undefined && isError === true });
    return value;
  } catch (error) {
    trace.end({ error });
    throw error;
  }
}
