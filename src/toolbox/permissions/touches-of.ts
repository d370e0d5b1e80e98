import type { PolicyRequest } from '../../contract/call.js';
import type { JsonObject } from '../../contract/json-schema.js';
import type { Touch } from '../../contract/touch.js';
import { isRecord } from '../../kernel/json.js';

/** What rules about a call as such are held against. */
export function aboutOf({ tool, arguments: args }: Pick<PolicyRequest, 'tool' | 'arguments'>): {
  readonly tool: string;
  readonly arguments: JsonObject;
} {
  return { tool: tool.name, arguments: args };
}

/** Fails closed: what cannot say what it touches touches what is unknown. */
export async function touchesOf({
  tool,
  arguments: args,
  context,
}: PolicyRequest): Promise<readonly Touch[] | 'as annotated'> {
  if (tool.touches === undefined) return 'as annotated';
  try {
    const touches: unknown = await tool.touches(args, context);
    if (touches === 'as annotated') return touches;
    if (Array.isArray(touches) && touches.every(isTouch)) return touches;
  } catch {
    // It has not said it.
  }
  return [{ action: 'unknown', why: 'the tool could not say what it would touch' }];
}

function isTouch(value: unknown): value is Touch {
  if (!isRecord(value)) return false;
  const { action, path, words, mentions = [], patterns = [], program = '', absolute = '', url, why } = value;
  if (action === 'read' || action === 'write')
    return typeof path === 'string' && typeof absolute === 'string';
  if (action === 'run')
    return (
      areTexts(words, 'or not known') &&
      [mentions, patterns, [program]].every((texts) => areTexts(texts, 'all known'))
    );
  return action === 'open' ? typeof url === 'string' : action === 'unknown' && typeof why === 'string';
}

function areTexts(value: unknown, how: 'all known' | 'or not known'): boolean {
  return (
    Array.isArray(value) &&
    value.every((one) => typeof one === 'string' || (one === undefined && how === 'or not known'))
  );
}
