import type { ToolSchema } from '../../../contract/llm-provider.js';
import { jsonList, jsonRecord, jsonText, type WireRecord } from '../wire-json.js';

/*
 * What the items of a reply say. Items of other types (web searches, code, MCP, computer use, …) are the server's own
 * work, or its own questions: they are kept and go back, and nobody here looks into them.
 */

const CALLS = new Set<unknown>(['function_call', 'custom_tool_call']);

/** The items that are calls for us, in order. */
export function callItems(output: readonly WireRecord[]): readonly WireRecord[] {
  return output.filter((item) => CALLS.has(item.type) || isSearchCall(item));
}

/** The text of all messages; where there is none, why the model refused to say one. */
export function textOf(output: readonly WireRecord[]): string {
  return saidIn(output) || contentOf(output, 'refusal', 'refusal');
}

/** The text of all messages without refusals. */
export function saidIn(output: readonly WireRecord[]): string {
  return contentOf(output, 'output_text', 'text');
}

/** Each part of a summary has a title of its own. */
export const BETWEEN_THOUGHTS = '\n\n';

function contentOf(output: readonly WireRecord[], type: string, field: 'text' | 'refusal'): string {
  return output
    .filter((item) => item.type === 'message')
    .flatMap(({ content }) => jsonList(content).map(jsonRecord))
    .filter((part) => part.type === type)
    .map((part) => jsonText(part[field]))
    .join('');
}

/** Whether an item is a search that is left to us. */
export function isSearchCall({ type, execution }: WireRecord): boolean {
  return type === 'tool_search_call' && execution === 'client';
}

/** Tools whose input is text, with the parameter that takes it. */
export type TextTools = ReadonlyMap<string, string>;

/** Those of a request that go out as custom tools. */
export function textToolsOf(tools: readonly ToolSchema[] = []): TextTools {
  const found = new Map<string, string>();
  for (const { input, function: tool } of tools) {
    // Its type is that of a text, or in the strict form of none.
    const [parameter, ...others] = input === 'text' ? Object.keys(tool.parameters.properties ?? {}) : [];
    if (parameter !== undefined && others.length === 0) found.set(tool.name, parameter);
  }
  return found;
}
