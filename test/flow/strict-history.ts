import type { AssistantMessage, Message } from 'toolwright';

const ROLES = ['system', 'developer', 'user', 'assistant', 'tool'];

/**
 * The faults for which a strict Chat Completions server would refuse a history. Checks only the wire format.
 */
export function historyFaults(messages: readonly Message[]): readonly string[] {
  const faults: string[] = [];
  let open: string[] = [];
  messages.forEach((message, index) => {
    const fault = (what: string): number => faults.push(`#${index} (${message.role}): ${what}`);
    if (!ROLES.includes(message.role)) fault('has an unknown role');
    if (message.role === 'tool') {
      const expected = open.shift();
      if (expected === undefined) fault(`answers ${message.tool_call_id}, and no call is open`);
      else if (expected !== message.tool_call_id)
        fault(`answers ${message.tool_call_id} where ${expected} is next`);
      if (typeof message.content !== 'string') fault('has a content that is not a string');
      return;
    }
    if (open.length > 0) fault(`comes while ${open.join(', ')} are unanswered`);
    open = [];
    if (message.role !== 'assistant') return;
    for (const what of assistantFaults(message)) fault(what);
    open = (message.tool_calls ?? []).map(({ id }) => id);
  });
  if (open.length > 0) faults.push(`the end: ${open.join(', ')} are unanswered`);
  return faults;
}

function assistantFaults({ content, tool_calls: calls }: AssistantMessage): readonly string[] {
  const faults: string[] = [];
  if (content !== null && typeof content !== 'string') faults.push('has a content that is not a string');
  if (calls === undefined) return faults;
  if (calls.length === 0) faults.push('has an empty list of calls');
  const ids = calls.map(({ id }) => id);
  if (new Set(ids).size !== ids.length) faults.push('has two calls of the same id');
  for (const call of calls) {
    if (typeof call.id !== 'string' || call.id === '') faults.push('has a call without an id');
    if (call.type !== 'function') faults.push(`has a call of type ${call.type}`);
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(call.function.name)) faults.push(`calls ${call.function.name}`);
    if (!isObjectText(call.function.arguments)) faults.push('has arguments that are not a JSON object');
  }
  return faults;
}

function isObjectText(text: unknown): boolean {
  if (typeof text !== 'string') return false;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
