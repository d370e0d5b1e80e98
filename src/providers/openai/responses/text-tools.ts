import type { MessageToolCall, ToolSchema } from '../../../contract/llm-provider.js';
import { jsonRecord, jsonText, parseJsonRecord, type WireRecord } from '../wire-json.js';

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
