import type { ToolMessage, ToolSchema } from '../../../contract/llm-provider.js';
import { jsonRecord, type WireRecord } from '../wire-json.js';

/*
 * Tools that the model finds by a search that the client makes: the search is a call of its own kind, and its answer
 * brings the definitions, so that all that was sent before stays as it was.
 * https://developers.openai.com/api/docs/guides/tools-tool-search
 */

/** The tool that searches, as the API knows it. */
export function toSearchTool({ function: { description, parameters } }: ToolSchema): WireRecord {
  return { type: 'tool_search', execution: 'client', description, parameters };
}

/** Whether an item is a search that is left to us. */
export function isSearchCall({ type, execution }: WireRecord): boolean {
  return type === 'tool_search_call' && execution === 'client';
}

/** The tools of a request that were found, by their names. */
export function foundTools(tools: readonly ToolSchema[]): ReadonlyMap<string, ToolSchema> {
  return new Map(tools.filter(({ defer }) => defer).map((tool) => [tool.function.name, tool]));
}

/** What answers a search: the definitions of what it found, as far as the request offers it still. */
export function toSearchOutput(
  { found = [] }: ToolMessage,
  { callId, known }: { readonly callId: string; readonly known: ReadonlyMap<string, ToolSchema> },
): WireRecord {
  const groups = new Map<string | undefined, WireRecord[]>();
  for (const name of found) {
    const tool = known.get(name);
    if (tool === undefined) continue;
    const group = groups.get(tool.namespace) ?? [];
    group.push(toFound(tool));
    groups.set(tool.namespace, group);
  }
  const tools = [...groups].flatMap(([namespace, members]) =>
    namespace === undefined
      ? members
      : [{ type: 'namespace', name: namespace, description: `Tools for ${namespace}.`, tools: members }],
  );
  return { type: 'tool_search_output', call_id: callId, execution: 'client', status: 'completed', tools };
}

/** Where nothing is said of `strict`, the server would try to make the schema strict, and change it. */
function toFound({ function: { name, description, parameters, ...more } }: ToolSchema): WireRecord {
  const strict = jsonRecord(more).strict === true;
  return { type: 'function', name, description, parameters, strict, defer_loading: true };
}
