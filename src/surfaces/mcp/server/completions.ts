import type { CompleteRequestParams, CompleteResult } from '@modelcontextprotocol/server';
import type { ServedAs } from '../../../core/contract/declaration.js';
import type { AuthorFault } from '../../../core/errors/author-fault.js';
import type { ToolRegistry } from '../../../run/call/tool-registry.js';
import { returnedValue } from './prompts.js';
import type { McpRequest } from './request.js';
import { servedAs } from './resource-uris.js';
import { serveCall } from './serve-call.js';

/** The most suggestions in a response (MCP, completion). */
const MAX_VALUES = 100;

type ServedCompletion = Extract<ServedAs, { readonly kind: 'completion' }>;

/** Handles `completion/complete`; without a completion method there are no suggestions. */
export async function completeArgument(
  request: McpRequest,
  { ref, argument, context }: CompleteRequestParams,
  signal: AbortSignal,
): Promise<CompleteResult> {
  const of = ref.type === 'ref/prompt' ? ref.name : ref.uri;
  const completions = request.served.registry.part('completion').tools();
  const completion = completions.find(({ served }) => {
    const completes = served as ServedCompletion;
    return completes.of === of && completes.argument === argument.name;
  });
  if (completion === undefined) return { completion: { values: [] } };
  const wanted = {
    method: 'completion/complete',
    name: completion.name,
    arguments: { ...context?.arguments, value: argument.value },
  } as const;
  const served = await serveCall(request, wanted, signal);
  const value = served.type === 'interim' ? [] : returnedValue(served);
  const all = Array.isArray(value) ? value.map(String) : [];
  const values = all.slice(0, MAX_VALUES);
  return { completion: { values, total: all.length, hasMore: all.length > values.length } };
}

/** Completions whose prompt or resource does not exist. */
export function strayCompletions(registry: ToolRegistry): readonly AuthorFault[] {
  const resources = registry.part('resource').tools();
  const known = new Set([...registry.part('prompt').list(), ...resources.map((one) => servedAs(one).uri)]);
  const completions = registry.part('completion').tools();
  return completions.flatMap(({ name, served }) => {
    const { of } = served as ServedCompletion;
    if (known.has(of)) return [];
    return [
      {
        where: `@Completion ${name} of '${of}'`,
        problem: 'there is no prompt of this name, and no resource of this URI template',
        fix: 'the name of the prompt as clients see it, or the URI template of the resource',
      },
    ];
  });
}
