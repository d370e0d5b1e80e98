import type {
  MessageToolCall,
  ReplyAttachment,
  ToolMessage,
  ToolSchema,
} from '../../../contract/llm-provider.js';
import {
  citedAttachment,
  imageAttachment,
  jsonList,
  jsonRecord,
  jsonText,
  parseJsonRecord,
  type WireRecord,
} from '../wire-json.js';

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

/** What the model thought, as far as it is told: summaries, or the text of models that give it. */
export function reasoningOf(output: readonly WireRecord[]): string {
  return output
    .filter(({ type }) => type === 'reasoning')
    .map(({ summary, content }) => partsOf(summary) || partsOf(content))
    .filter((text) => text !== '')
    .join(BETWEEN_THOUGHTS);
}

/** The sources that a message names, or the image that was made. */
export function attachmentsOf({ type, content, ...item }: WireRecord): readonly ReplyAttachment[] {
  if (type === 'image_generation_call')
    return imageAttachment(item.result, `image/${jsonText(item.output_format) || 'png'}`);
  if (type !== 'message') return [];
  return jsonList(content).flatMap((part) => jsonList(jsonRecord(part).annotations).flatMap(citedAttachment));
}

function contentOf(output: readonly WireRecord[], type: string, field: 'text' | 'refusal'): string {
  return output
    .filter((item) => item.type === 'message')
    .flatMap(({ content }) => jsonList(content).map(jsonRecord))
    .filter((part) => part.type === type)
    .map((part) => jsonText(part[field]))
    .join('');
}

function partsOf(parts: unknown): string {
  return jsonList(parts)
    .map((part) => jsonText(jsonRecord(part).text))
    .join(BETWEEN_THOUGHTS);
}

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

/** A custom tool has no schema: what that says of the text is said with the rest. */
export function toCustomTool({ function: tool }: ToolSchema, parameter: string): WireRecord {
  const { name, description, parameters } = tool;
  const ofText = jsonText(parameters.properties?.[parameter]?.description);
  const texts = [description, ofText === '' ? '' : `Its input: ${ofText}`];
  return { type: 'custom', name, description: texts.filter((text) => text !== '').join('\n\n') };
}

/** What is kept with a custom call: of a tool with a schema also the parameter that its text is. */
export function customItems(parameter: string | undefined): WireRecord {
  return parameter === undefined ? { custom: true } : { custom: true, parameter };
}

/** The input of a call that goes out as a custom one: the model made it so, or its tool is offered so. */
export function customInput(
  { function: called, providerItems }: MessageToolCall,
  { itemKey, textTools }: { readonly itemKey: string; readonly textTools: TextTools },
): string | undefined {
  const kept = jsonRecord(providerItems?.[itemKey]);
  const parameter = jsonText(kept.parameter) || textTools.get(called.name);
  if (kept.custom !== true && parameter === undefined) return undefined;
  const args = parameter === undefined ? undefined : parseJsonRecord(called.arguments);
  const text = parameter === undefined ? undefined : args?.[parameter];
  return typeof text === 'string' ? text : called.arguments;
}
