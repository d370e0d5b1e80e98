import type {
  AssistantMessage,
  LLMRequest,
  LLMResponse,
  LLMStreamPart,
  Message,
  MessageToolCall,
  ReplyAttachment,
  ResponseFormat,
  ToolCall,
  ToolChoice,
  ToolMessage,
  ToolSchema,
} from '../../core/contract/llm-provider.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import { isStrictForm } from '../../tools/schema/strict/strict-schema.js';
import { attachedParts, dataUrl, userParts } from '../wire/user-parts.js';
import {
  argumentsOf,
  inputText,
  jsonList,
  jsonRecord,
  jsonText,
  originOf,
  outputLimit,
  parseJsonRecord,
  type WireRecord,
} from '../wire/wire-json.js';
import { citedAttachment, imageAttachment, toUsage } from './usage-and-attachments.js';

/** Includes replies that the server continues in the background, which would never be fetched. */
const UNFINISHED = new Set<unknown>(['failed', 'cancelled', 'queued', 'in_progress']);

/** A call whose start was streamed, and how much of its input. */
interface SentCall {
  readonly callId: string;
  /** The parameter of a tool with text input: the text is streamed inside JSON. */
  readonly parameter?: string;
  streamed: string;
  isEnded: boolean;
}

/** Assembles a reply of the Responses API from the events of a stream or from the whole response. */
export class ResponsesReply {
  readonly #textTools: TextTools;
  /** Our name of the search tool. */
  readonly #search: string;
  readonly #items: WireRecord[] = [];
  /** By the position of the item, because some servers send another id in every event. */
  readonly #streaming = new Map<unknown, SentCall>();
  #response: WireRecord | undefined;
  #text = '';
  #reasoning = '';
  /** The streamed text of the current item. */
  #itemText = '';
  #itemThought = '';
  /** The next reasoning is a separate part. */
  #isApart = false;

  constructor(
    private readonly itemKey: string,
    tools?: LLMRequest['tools'],
  ) {
    this.#textTools = textToolsOf(tools);
    this.#search = tools?.find(({ isSearch }) => isSearch)?.function.name ?? 'tool_search';
  }

  /**
   * Adds an event or a response, and returns its parts.
   *
   * @throws Error if the server reports a failure.
   */
  add(chunk: unknown): readonly LLMStreamPart[] {
    const event = jsonRecord(chunk);
    if (Array.isArray(event.output)) return this.#addWhole(event);
    switch (event.type) {
      case 'response.output_text.delta':
        return this.#addText(jsonText(event.delta));
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        return this.#addThought(jsonText(event.delta));
      case 'response.reasoning_summary_part.added':
        this.#isApart = true;
        return [];
      case 'response.output_item.added':
        return this.#beginItem(event);
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        return this.#addInput(event);
      case 'response.output_item.done':
        return this.#endItem(event);
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
        return this.#addWhole(jsonRecord(event.response));
      case 'error':
        throw failureOf(event);
      default:
        return [];
    }
  }

  /** The parts that are known only at the end: a refusal. */
  end(): readonly LLMStreamPart[] {
    const refusal = this.#text === '' ? textOf(this.#items) : '';
    return refusal === '' ? [] : [{ type: 'text-delta', text: refusal }];
  }

  /** The reply; `undefined` if the server did not mark it as complete. */
  response(): LLMResponse | undefined {
    if (this.#response === undefined) return undefined;
    const { status, incomplete_details, usage, id, model, store } = this.#response;
    const reason = jsonText(jsonRecord(incomplete_details).reason) || jsonText(status);
    const output = this.#items;
    const toolCalls = callItems(output).map((item): ToolCall => {
      const call = { id: jsonText(item.call_id), name: this.#nameOf(item) };
      if (item.type !== 'custom_tool_call')
        return { ...call, arguments: argumentsOf(inputText(item.arguments)) };
      const parameter = this.#parameterOf(item);
      const text = inputText(item.input);
      return {
        ...call,
        arguments: parameter === undefined ? text : { [parameter]: text },
        // For a tool with a schema, also the parameter for the text.
        providerItems: { [this.itemKey]: withoutUndefined({ custom: true, parameter }) },
      };
    });
    // Only a stored reply can be referred to later.
    const items = { ...(store !== false && { id }), output };
    const attachments = output.flatMap(attachmentsOf);
    const whenDone = toolCalls.length > 0 ? 'tool_calls' : 'stop';
    const whenCut = reason === 'content_filter' ? reason : 'length';
    return withoutUndefined<LLMResponse>({
      content: textOf(output),
      toolCalls,
      finishReason: status === 'incomplete' ? whenCut : whenDone,
      rawFinishReason: reason || undefined,
      usage: toUsage(jsonRecord(usage)),
      reasoning: reasoningOf(output) || undefined,
      attachments: attachments.length > 0 ? attachments : undefined,
      providerItems: output.length > 0 ? { [this.itemKey]: items } : undefined,
      origin: originOf(id, model),
    });
  }

  #addText(text: string): readonly LLMStreamPart[] {
    this.#text += text;
    this.#itemText += text;
    return text === '' ? [] : [{ type: 'text-delta', text }];
  }

  #addThought(thought: string): readonly LLMStreamPart[] {
    if (thought === '') return [];
    const text = this.#isApart && this.#reasoning !== '' ? BETWEEN_THOUGHTS + thought : thought;
    this.#isApart = false;
    this.#reasoning += text;
    this.#itemThought += text;
    return [{ type: 'reasoning-delta', text }];
  }

  #beginItem({ item, output_index }: WireRecord): readonly LLMStreamPart[] {
    const record = jsonRecord(item);
    const callId = jsonText(record.call_id);
    const tool = this.#nameOf(record);
    if (callItems([record]).length === 0 || callId === '' || tool === '') return [];
    const parameter = this.#parameterOf(record);
    this.#streaming.set(output_index, { callId, parameter, streamed: '', isEnded: false });
    const opening = parameter === undefined ? '' : `{${JSON.stringify(parameter)}:"`;
    return [
      { type: 'call-input-start', callId, tool },
      ...inputDelta(callId, opening),
      ...this.#addInput({ output_index, delta: record.arguments ?? record.input }),
    ];
  }

  #addInput({ output_index, delta }: WireRecord): readonly LLMStreamPart[] {
    const call = this.#streaming.get(output_index);
    const text = jsonText(delta);
    if (call === undefined || text === '') return [];
    call.streamed += text;
    return inputDelta(call.callId, call.parameter === undefined ? text : JSON.stringify(text).slice(1, -1));
  }

  #endItem({ item, output_index }: WireRecord): readonly LLMStreamPart[] {
    const record = jsonRecord(item);
    this.#items.push(record);
    const thought = this.#itemThought === '' ? this.#addThought(reasoningOf([record])) : [];
    const text = this.#itemText === '' ? this.#addText(contentOf([record], 'text')) : [];
    this.#itemThought = '';
    this.#itemText = '';
    this.#isApart = true;
    const attached = attachmentsOf(record).map((attachment) => ({ type: 'attachment', attachment }) as const);
    const known = this.#streaming.get(output_index);
    const begun = known === undefined || known.isEnded ? this.#beginItem({ item, output_index }) : [];
    const parts = [...thought, ...text, ...attached, ...begun];
    const call = this.#streaming.get(output_index);
    if (call === undefined || call.isEnded) return parts;
    call.isEnded = true;
    const input = inputText(record.arguments ?? record.input);
    const rest = input.startsWith(call.streamed) ? input.slice(call.streamed.length) : '';
    return [
      ...parts,
      ...this.#addInput({ output_index, delta: rest }),
      ...inputDelta(call.callId, call.parameter === undefined ? '' : '"}'),
      { type: 'call-input-end', callId: call.callId },
    ];
  }

  #parameterOf({ type, name }: WireRecord): string | undefined {
    return type === 'custom_tool_call' ? this.#textTools.get(jsonText(name)) : undefined;
  }

  #nameOf(item: WireRecord): string {
    return isSearchCall(item) ? this.#search : jsonText(item.name);
  }

  /** Adds the whole response, alone or at the end of a stream whose items were already added. */
  #addWhole(response: WireRecord): readonly LLMStreamPart[] {
    if (UNFINISHED.has(response.status)) throw failureOf(response);
    this.#response = response;
    if (this.#items.length > 0) return [];
    return jsonList(response.output).flatMap((item, at) => this.#endItem({ item, output_index: at }));
  }
}

function inputDelta(callId: string, text: string): readonly LLMStreamPart[] {
  return text === '' ? [] : [{ type: 'call-input-delta', callId, text }];
}

/** Converts a server's failure to an error in the form of the client's. */
function failureOf({ error, code, message, status }: WireRecord): Error {
  const said = jsonRecord(error ?? { code, message });
  const text = jsonText(said.message) || `the reply was ${jsonText(status) || 'interrupted'}`;
  const name = jsonText(said.code);
  return Object.assign(new Error(name === '' ? text : `${name}: ${text}`), { error: said, code: name });
}

/** The reasoning of the model, if it is sent: summaries, or the text of models that return it. */
function reasoningOf(output: readonly WireRecord[]): string {
  const texts: string[] = [];
  for (const { type, summary, content } of output) {
    const text = type === 'reasoning' ? partsOf(summary) || partsOf(content) : '';
    if (text !== '') texts.push(text);
  }
  return texts.join(BETWEEN_THOUGHTS);
}

/** The sources that a message cites, or a generated image. */
function attachmentsOf({ type, content, ...item }: WireRecord): readonly ReplyAttachment[] {
  if (type === 'image_generation_call')
    return imageAttachment(item.result, `image/${jsonText(item.output_format) || 'png'}`);
  if (type !== 'message') return [];
  return jsonList(content).flatMap((part) => jsonList(jsonRecord(part).annotations).flatMap(citedAttachment));
}

function partsOf(parts: unknown): string {
  return jsonList(parts)
    .map((part) => jsonText(jsonRecord(part).text))
    .join(BETWEEN_THOUGHTS);
}

/** Each part of a summary has its own title. */
const BETWEEN_THOUGHTS = '\n\n';

const ENCRYPTED = 'reasoning.encrypted_content';

/** The target of a request. */
interface ResponsesTarget {
  readonly itemKey: string;
  /** Whether the server stores replies, unless `options.store` overrides it. */
  readonly store: boolean;
  /** False after the server refused to return encrypted reasoning, as for models without reasoning. */
  readonly withEncrypted: boolean;
}

/**
 * The body of a request to the Responses API. Leading system messages become the instructions. By default, the server
 * stores nothing, and the whole history is sent, with reasoning in encrypted form. If the server stores replies,
 * known messages are replaced by `previous_response_id`. `options` are added unchanged and win, except that a token
 * limit above that of the request is lowered; their `tools` (run by the server) come before the others.
 */
export function toResponsesBody(request: LLMRequest, target: ResponsesTarget): WireRecord {
  const {
    model,
    messages,
    tools = [],
    toolChoice,
    parallelToolCalls,
    responseFormat,
    options = {},
  } = request;
  const { stream, ...rest } = options;
  // The server stores its own conversations.
  const isKept = target.store || Boolean(rest.conversation);
  const store = typeof rest.store === 'boolean' ? rest.store : isKept;
  const first = messages.findIndex(({ role }) => role !== 'system' && role !== 'developer');
  const systemCount = first < 0 ? messages.length : first;
  const instructionCount = rest.instructions === undefined ? systemCount : 0;
  const instructions = messages
    .slice(0, instructionCount)
    .map(({ content }) => content)
    .join('\n\n');
  const others = messages.slice(instructionCount);
  // The last reply that the server stores.
  const idOf = (message?: Message) => message && jsonText(itemsOf(message, target.itemKey).id);
  const knownAt = store || rest.conversation ? others.findLastIndex((message) => idOf(message)) : -1;
  const knownId = idOf(others[knownAt]);
  const textTools = textToolsOf(tools);
  const offered = [...jsonList(rest.tools)];
  const found = new Map<string, ToolSchema>();
  for (const tool of tools) {
    if (tool.defer) found.set(tool.function.name, tool);
    else offered.push(toWireTool(tool, textTools));
  }
  const included = [...jsonList(rest.include), ...(store || !target.withEncrypted ? [] : [ENCRYPTED])];
  const inputTarget = { ...target, textTools, store, found, calls: new Map<string, KnownCall>() };
  // Earlier messages are read only for data that answers need.
  const input = others
    .map((message) => toItems(message, inputTarget))
    .slice(knownAt + 1)
    .flat();
  return {
    ...(instructions !== '' && { instructions }),
    ...(offered.length > 0 && {
      tool_choice: toolChoice && toWireChoice(toolChoice, textTools),
      parallel_tool_calls: parallelToolCalls,
    }),
    ...(knownId && !rest.conversation && { previous_response_id: knownId }),
    store,
    ...rest,
    ...outputLimit(request, ['max_output_tokens']),
    ...(responseFormat && { text: { format: toWireFormat(responseFormat), ...jsonRecord(rest.text) } }),
    ...(included.length > 0 && { include: [...new Set(included)] }),
    model,
    input,
    ...(offered.length > 0 && { tools: offered }),
  };
}

function itemsOf(message: Message, itemKey: string): WireRecord {
  return message.role === 'assistant' ? jsonRecord(message.providerItems?.[itemKey]) : {};
}

function toWireTool(tool: ToolSchema, textTools: TextTools): WireRecord {
  const { name, description, parameters } = tool.function;
  if (tool.isSearch) return { type: 'tool_search', execution: 'client', description, parameters };
  const parameter = textTools.get(name);
  if (parameter === undefined) return toFunction(tool);
  // A custom tool has no schema; the description of the text goes into the tool's description.
  const ofText = jsonText(parameters.properties?.[parameter]?.description);
  const texts = [description, ofText === '' ? '' : `Its input: ${ofText}`];
  return { type: 'custom', name, description: texts.filter((text) => text !== '').join('\n\n') };
}

/** Without `strict`, the server would try to make the schema strict and change it. */
function toFunction({ function: { name, description, parameters, strict = false } }: ToolSchema): WireRecord {
  return { type: 'function', name, description, parameters, strict };
}

function toWireChoice(choice: ToolChoice, textTools: TextTools): unknown {
  const named = (name: string) => ({ type: textTools.has(name) ? 'custom' : 'function', name });
  if (typeof choice === 'string') return choice;
  if ('tool' in choice) return named(choice.tool);
  const { tools, mode = 'auto' } = choice;
  return { type: 'allowed_tools', mode, tools: tools.map(named) };
}

function toWireFormat(format: ResponseFormat): WireRecord {
  if (format.type === 'text') return { type: 'text' };
  if (format.schema === undefined) return { type: 'json_object' };
  const { name = 'reply', schema } = format;
  return { type: 'json_schema', name, schema, strict: isStrictForm(schema) };
}

/** The original form of a call, which its answer must match. */
interface KnownCall {
  readonly callId: string;
  readonly custom: boolean;
  readonly isSearch?: boolean;
  /** Set for calls that a program of the model made; the answer goes to the same caller. */
  readonly caller?: unknown;
}

interface InputTarget {
  readonly itemKey: string;
  readonly textTools: TextTools;
  readonly found: ReadonlyMap<string, ToolSchema>;
  readonly store: boolean;
  /** The calls of earlier messages. Later messages may reuse their ids; the last one counts. */
  readonly calls: Map<string, KnownCall>;
}

function toItems(message: Message, target: InputTarget): readonly unknown[] {
  switch (message.role) {
    case 'assistant':
      return toAssistantItems(message, target);
    case 'tool':
      return [toOutput(message, target)];
    case 'user':
      return [{ type: 'message', role: 'user', content: userParts(message.content, toInputPart) }];
    default:
      return [{ type: 'message', role: message.role, content: message.content }];
  }
}

/** The original items if they still match the message; otherwise items made from the message. */
function toAssistantItems(message: AssistantMessage, target: InputTarget): readonly unknown[] {
  const { itemKey, store, calls } = target;
  const output = jsonList(itemsOf(message, itemKey).output).map(jsonRecord);
  const made = callItems(output);
  const { content, tool_calls: given = [] } = message;
  const isSame =
    made.length === given.length &&
    textOf(output) === (content ?? '') &&
    given.every(({ function: { name } }, at) => {
      const item = made[at] ?? {};
      return isSearchCall(item) || item.name === name;
    });
  if (output.length > 0 && (store || output.every(isWhole)) && isSame) {
    // By position, because a loop may have assigned its own id to a call.
    for (const [at, { id }] of given.entries()) {
      const { call_id, type, caller } = made[at] ?? {};
      const isSearch = type === 'tool_search_call';
      calls.set(id, { callId: jsonText(call_id), custom: type === 'custom_tool_call', isSearch, caller });
    }
    return output;
  }
  const items: unknown[] = content ? [{ type: 'message', role: 'assistant', content }] : [];
  for (const call of given) {
    const { name, arguments: args } = call.function;
    const input = customInput(call, target);
    calls.set(call.id, { callId: call.id, custom: input !== undefined });
    if (input !== undefined) items.push({ type: 'custom_tool_call', call_id: call.id, name, input });
    else items.push({ type: 'function_call', call_id: call.id, name, arguments: args });
  }
  return items;
}

/** Reasoning cannot be sent back if the server has neither stored it nor returned it in encrypted form. */
function isWhole({ type, encrypted_content, content }: WireRecord): boolean {
  return type !== 'reasoning' || Boolean(encrypted_content) || jsonList(content).length > 0;
}

function toOutput(message: ToolMessage, { calls, found }: Pick<InputTarget, 'calls' | 'found'>): WireRecord {
  const { tool_call_id, content, parts } = message;
  const call: KnownCall = calls.get(tool_call_id) ?? { callId: tool_call_id, custom: false };
  const { callId, custom, caller } = call;
  if (call.isSearch) {
    // The definitions of the found tools that the request still offers, so that everything sent earlier stays
    // unchanged. https://developers.openai.com/api/docs/guides/tools-tool-search
    const offered = (message.found ?? []).flatMap((name) => found.get(name) ?? []);
    const groups = Map.groupBy(offered, ({ namespace }) => namespace);
    const tools = [...groups].flatMap(([namespace, group]): readonly WireRecord[] => {
      const members = group.map((tool) => ({ ...toFunction(tool), defer_loading: true }));
      if (namespace === undefined) return members;
      return [{ type: 'namespace', name: namespace, description: `Tools for ${namespace}.`, tools: members }];
    });
    return { type: 'tool_search_output', call_id: callId, execution: 'client', status: 'completed', tools };
  }
  const attached = attachedParts(parts, toInputPart);
  const text = content === '' ? [] : [{ type: 'input_text', text: content }];
  return {
    type: custom ? 'custom_tool_call_output' : 'function_call_output',
    call_id: callId,
    output: attached.length > 0 ? [...text, ...attached] : content,
    ...(caller ? { caller } : {}),
  };
}

/**
 * Converts our part or a part of Chat Completions to a part of Responses; `undefined` if the API does not support it.
 */
function toInputPart(part: WireRecord): WireRecord | undefined {
  const url = dataUrl(part);
  if (url !== undefined && part.type === 'image')
    return { type: 'input_image', image_url: url, detail: 'auto' };
  if (url !== undefined) return { type: 'input_file', filename: part.filename, file_data: url };
  const { type, image_url, file, ...rest } = part;
  if (type === 'text') return { ...rest, type: 'input_text' };
  if (type === 'image_url') {
    const { url, detail = 'auto' } =
      typeof image_url === 'string' ? { url: image_url } : jsonRecord(image_url);
    return { ...rest, type: 'input_image', image_url: url, detail };
  }
  if (type === 'file' && file !== undefined) return { ...rest, type: 'input_file', ...jsonRecord(file) };
  return /^input_(?:text|image|file|audio|video)$/.test(jsonText(type)) ? part : undefined;
}

/** The input of a call that is sent as a custom call, because the model made it so or its tool is offered so. */
function customInput(
  { function: called, providerItems }: MessageToolCall,
  { itemKey, textTools }: { readonly itemKey: string; readonly textTools: TextTools },
): string | undefined {
  const kept = jsonRecord(providerItems?.[itemKey]);
  const parameter = jsonText(kept.parameter) || textTools.get(called.name);
  if (parameter === undefined) return kept.custom === true ? called.arguments : undefined;
  const text = parseJsonRecord(called.arguments)?.[parameter];
  return typeof text === 'string' ? text : called.arguments;
}

/*
 * Reads the items of a reply. Items of other types (web searches, code, MCP, computer use, …) are the server's own
 * work or questions: they are stored and sent back unread.
 */

/** The items that are calls of our tools, in order. */
function callItems(output: readonly WireRecord[]): readonly WireRecord[] {
  return output.filter((item) => {
    // xAI reports calls that it ran itself, such as `x_keyword_search`, as custom calls, with ids like `xs_call_1`.
    if (item.type === 'custom_tool_call') return !/^[a-z]{1,4}_call[_-]/.test(jsonText(item.call_id));
    return item.type === 'function_call' || isSearchCall(item);
  });
}

/** The text of all messages; without text, the model's refusal. */
function textOf(output: readonly WireRecord[]): string {
  return contentOf(output, 'text') || contentOf(output, 'refusal');
}

function contentOf(output: readonly WireRecord[], field: 'text' | 'refusal'): string {
  const type = field === 'text' ? 'output_text' : field;
  let text = '';
  for (const item of output) {
    if (item.type !== 'message') continue;
    for (const part of jsonList(item.content).map(jsonRecord))
      if (part.type === type) text += jsonText(part[field]);
  }
  return text;
}

/** Whether an item is a search for the client. */
function isSearchCall({ type, execution }: WireRecord): boolean {
  return type === 'tool_search_call' && execution === 'client';
}

/** Tools with text input, and the parameter that receives the text. */
type TextTools = ReadonlyMap<string, string>;

/** The tools of a request that are sent as custom tools. */
function textToolsOf(tools: readonly ToolSchema[] = []): TextTools {
  const found = new Map<string, string>();
  for (const { input, function: tool } of tools) {
    // Its type is `string`, or no type in the strict form.
    const [parameter, ...others] = input === 'text' ? Object.keys(tool.parameters.properties ?? {}) : [];
    if (parameter !== undefined && others.length === 0) found.set(tool.name, parameter);
  }
  return found;
}
