import type { Telemetry, TraceCarrier, TracedMessage } from '../contract/telemetry.js';

/** Sends or answers a message, which is recorded where somebody records; `work` is given what goes along with it. */
export async function recordMessage<Value>(
  telemetry: Telemetry | undefined,
  message: TracedMessage,
  work: (carrier: TraceCarrier | undefined) => Promise<Value>,
): Promise<Value> {
  if (!telemetry?.isOn) return work(undefined);
  const trace = telemetry.startMessage(message);
  try {
    const value = await trace.within(() => work(trace.carrier));
    trace.end({ isToolError: message.tool !== undefined && isToolError(value) });
    return value;
  } catch (error) {
    trace.end({ error });
    throw error;
  }
}

/** A tool that failed has a result all the same. */
function isToolError(value: unknown): boolean {
  return (value as { readonly isError?: unknown } | undefined)?.isError === true;
}
