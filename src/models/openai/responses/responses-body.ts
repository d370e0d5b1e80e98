import type {
  AssistantMessage,
  FinishReason,
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
} from '../../../core/contract/llm-provider.js';
import type { ContentPart } from '../../../core/contract/tool-result.js';
import { isStrictForm } from '../../../tools/schema/strict/strict-schema.js';
import { dataUrl, userParts } from '../user-parts.js';
import {
  argumentsOf,
  citedAttachment,
  imageAttachment,
  inputText,
  jsonList,
  jsonRecord,
  jsonText,
  originOf,
  outputLimit,
  parseJsonRecord,
  toUsage,
  type WireRecord,
} from '../wire-json.js';

/** Also those that a server works on in the background, which would never be fetched. */
const UNFINISHED = new Set<unknown>(['failed', 'cancelled', 'queued', 'in_progress']);

/** A call whose start was streamed, and how much of its input. */
interface SentCall {
  readonly callId: string;
  /** Of a tool whose input is text: it is streamed as JSON all the same, with the text in it. */
  readonly parameter?: string;
  told: string;
  isEnded: boolean;
}

/** Puts one reply of the Responses API together, from the events of a stream or from the whole response. */
export class ResponsesReply {
  readonly #itemKey: string;
  readonly #textTools: TextTools;
  /** What the tool that searches is called here. */
  readonly #search: string;
  readonly #items: WireRecord[] = [];
  /** By the place of the item: there are servers that give it another id in every event. */
  readonly #told = new Map<unknown, SentCall>();
  #response: WireRecord | undefined;
  #text = '';
  #reasoning = '';
  /** What has been streamed of the current item. */
  #itemText = '';
  #itemThought = '';
  /** What is thought next is another part. */
  #isApart = false;

  constructor(itemKey: string, tools?: LLMRequest['tools']) {
    this.#itemKey = itemKey;
    this.#textTools = textToolsOf(tools);
    this.#search = tools?.find(({ isSearch }) => isSearch)?.function.name ?? 'tool_search';
  }

  /**
   * Adds an event, or a response, and gives what it brought.
   *
   * @throws Error where the server says that it failed.
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

  /** What is known only at the end: a refusal. */
  end(): readonly LLMStreamPart[] {
    const refusal = this.#text === '' ? textOf(this.#items) : '';
    return refusal === '' ? [] : [{ type: 'text-delta', text: refusal }];
  }

  /** The reply, or `undefined` where the server did not say that it is complete. */
  response(): LLMResponse | undefined {
    if (this.#response === undefined) return undefined;
    const { status, incomplete_details, usage: told, id, model, store } = this.#response;
    const reason = jsonText(jsonRecord(incomplete_details).reason) || jsonText(status);
    const toolCalls = callItems(this.#items).map((item) => this.#toToolCall(item));
    const usage = toUsage(jsonRecord(told));
    const reasoning = reasoningOf(this.#items);
    // Only what the server keeps can be named later.
    const origin = originOf(id, model);
    const items = { ...(store === false ? {} : { id }), output: this.#items };
    const attachments = this.#items.flatMap(attachmentsOf);
    return {
      content: textOf(this.#items),
      toolCalls,
      finishReason: toFinishReason({ status, reason, hasCalls: toolCalls.length > 0 }),
      ...(reason === '' ? {} : { rawFinishReason: reason }),
      ...(usage ? { usage } : {}),
      ...(reasoning === '' ? {} : { reasoning }),
      ...(attachments.length > 0 ? { attachments } : {}),
      ...(this.#items.length > 0 ? { providerItems: { [this.#itemKey]: items } } : {}),
      ...(origin ? { origin } : {}),
    };
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
    this.#told.set(output_index, { callId, parameter, told: '', isEnded: false });
    const opening = parameter === undefined ? '' : `{${JSON.stringify(parameter)}:"`;
    return [
      { type: 'call-input-start', callId, tool },
      ...inputDelta(callId, opening),
      ...this.#addInput({ output_index, delta: record.arguments ?? record.input }),
    ];
  }

  #addInput({ output_index, delta }: WireRecord): readonly LLMStreamPart[] {
    const call = this.#told.get(output_index);
    const text = jsonText(delta);
    if (call === undefined || text === '') return [];
    call.told += text;
    return inputDelta(call.callId, call.parameter === undefined ? text : JSON.stringify(text).slice(1, -1));
  }

  #endItem({ item, output_index }: WireRecord): readonly LLMStreamPart[] {
    const record = jsonRecord(item);
    this.#items.push(record);
    const thought = this.#itemThought === '' ? this.#addThought(reasoningOf([record])) : [];
    const text = this.#itemText === '' ? this.#addText(saidIn([record])) : [];
    this.#itemThought = '';
    this.#itemText = '';
    this.#isApart = true;
    const attached = attachmentsOf(record).map((attachment) => ({ type: 'attachment', attachment }) as const);
    return [...thought, ...text, ...attached, ...this.#endCall(record, output_index)];
  }

  #endCall(item: WireRecord, output_index: unknown): readonly LLMStreamPart[] {
    const known = this.#told.get(output_index);
    const begun = known === undefined || known.isEnded ? this.#beginItem({ item, output_index }) : [];
    const call = this.#told.get(output_index);
    if (call === undefined || call.isEnded) return begun;
    call.isEnded = true;
    const input = inputText(item.arguments ?? item.input);
    const rest = input.startsWith(call.told) ? input.slice(call.told.length) : '';
    return [
      ...begun,
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

  #toToolCall(item: WireRecord): ToolCall {
    const { type, call_id, arguments: args, input } = item;
    const call = { id: jsonText(call_id), name: this.#nameOf(item) };
    if (type !== 'custom_tool_call') return { ...call, arguments: argumentsOf(inputText(args)) };
    const parameter = this.#parameterOf(item);
    const text = inputText(input);
    return {
      ...call,
      arguments: parameter === undefined ? text : { [parameter]: text },
      providerItems: { [this.#itemKey]: customItems(parameter) },
    };
  }

  /** The whole response, alone or at the end of a stream, whose items are known already. */
  #addWhole(response: WireRecord): readonly LLMStreamPart[] {
    if (UNFINISHED.has(response.status)) throw failureOf(response);
    this.#response = response;
    if (this.#items.length > 0) return [];
    return jsonList(response.output).flatMap((item, at) => this.#endItem({ item, output_index: at }));
  }
}

interface Ending {
  readonly status: unknown;
  readonly reason: string;
  readonly hasCalls: boolean;
}

function toFinishReason({ status, reason, hasCalls }: Ending): FinishReason {
  if (status === 'incomplete') return reason === 'content_filter' ? 'content_filter' : 'length';
  return hasCalls ? 'tool_calls' : 'stop';
}

function inputDelta(callId: string, text: string): readonly LLMStreamPart[] {
  return text === '' ? [] : [{ type: 'call-input-delta', callId, text }];
}

/** What a server says of its own failure, in the form in which the client throws it. */
function failureOf({ error, code, message, status }: WireRecord): Error {
  const said = jsonRecord(error ?? { code, message });
  const text = jsonText(said.message) || `the reply was ${jsonText(status) || 'broken off'}`;
  const name = jsonText(said.code);
  return Object.assign(new Error(name === '' ? text : `${name}: ${text}`), { error: said, code: name });
}

/** The reasoning of the model, as far as it is sent: summaries, or the text of models that return it. */
function reasoningOf(output: readonly WireRecord[]): string {
  return output
    .filter(({ type }) => type === 'reasoning')
    .map(({ summary, content }) => partsOf(summary) || partsOf(content))
    .filter((text) => text !== '')
    .join(BETWEEN_THOUGHTS);
}

/** The sources that a message names, or the image that was made. */
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

/** What is kept with a custom call: of a tool with a schema also the parameter that its text is. */
function customItems(parameter: string | undefined): WireRecord {
  return parameter === undefined ? { custom: true } : { custom: true, parameter };
}

/** Each part of a summary has a title of its own. */
const BETWEEN_THOUGHTS = '\n\n';

const ENCRYPTED = 'reasoning.encrypted_content';

/** What a request is written for. */
interface ResponsesTarget {
  readonly itemKey: string;
  /** Whether the server keeps replies, unless `options.store` says otherwise. */
  readonly store: boolean;
  /** False once the server refused to give reasoning in encrypted form, which models that do not reason have none of. */
  readonly withEncrypted: boolean;
}

/**
 * The body of a request to the Responses API. Instructions are the system messages that stand first. By default the
 * server keeps nothing and the whole history goes out, reasoning in encrypted form with it; where the server keeps
 * replies, what it knows already is left out and named by `previous_response_id`. `options` go in as they are and win,
 * but for a limit of the reply's tokens that is above that of the request; their `tools` (those that the server runs itself) stand before the others.
 */
export function toResponsesBody(request: LLMRequest, target: ResponsesTarget): WireRecord {
  const { model, messages, tools = [], options = {} } = request;
  const { stream, ...rest } = options;
  // A conversation of the server is kept by it.
  const isKept = target.store || Boolean(rest.conversation);
  const store = typeof rest.store === 'boolean' ? rest.store : isKept;
  const { instructions, others } = splitInstructions(messages, rest.instructions === undefined);
  const known = store || rest.conversation ? lastKnown(others, target.itemKey) : undefined;
  const textTools = textToolsOf(tools);
  const told = tools.filter(({ defer }) => !defer);
  const offered = [...jsonList(rest.tools), ...told.map((tool) => toWireTool(tool, textTools))];
  const included = [...jsonList(rest.include), ...(store || !target.withEncrypted ? [] : [ENCRYPTED])];
  return {
    ...(instructions === '' ? {} : { instructions }),
    ...(offered.length > 0 ? toolRules(request, textTools) : {}),
    ...(known && !rest.conversation ? { previous_response_id: known.id } : {}),
    store,
    ...rest,
    ...outputLimit(request, ['max_output_tokens']),
    ...textRules(request.responseFormat, rest.text),
    ...(included.length > 0 ? { include: [...new Set(included)] } : {}),
    model,
    input: toInput(others, {
      ...{ itemKey: target.itemKey, textTools, store },
      found: foundTools(tools),
      from: known ? known.at + 1 : 0,
    }),
    ...(offered.length > 0 ? { tools: offered } : {}),
  };
}

function splitInstructions(messages: readonly Message[], areFree: boolean) {
  const first = messages.findIndex(({ role }) => role !== 'system' && role !== 'developer');
  const count = first < 0 ? messages.length : first;
  if (!areFree || count === 0) return { instructions: '', others: messages };
  const texts = messages.slice(0, count).map(({ content }) => content);
  return { instructions: texts.join('\n\n'), others: messages.slice(count) };
}

/** The last reply that the server keeps: where it stands, and its id. */
function lastKnown(messages: readonly Message[], itemKey: string) {
  const at = messages.findLastIndex((message) => jsonText(itemsOf(message, itemKey).id) !== '');
  const message = messages[at];
  return message === undefined ? undefined : { at, id: jsonText(itemsOf(message, itemKey).id) };
}

function itemsOf(message: Message, itemKey: string): WireRecord {
  return message.role === 'assistant' ? jsonRecord(message.providerItems?.[itemKey]) : {};
}

function toWireTool(tool: ToolSchema, textTools: TextTools): WireRecord {
  const { name, description, parameters, ...more } = tool.function;
  if (tool.isSearch) return toSearchTool(tool);
  const text = textTools.get(name);
  if (text !== undefined) return toCustomTool(tool, text);
  // Where nothing is said, the server would try to make the schema strict, and change it.
  return { type: 'function', name, description, parameters, strict: jsonRecord(more).strict === true };
}

function toolRules({ toolChoice, parallelToolCalls }: LLMRequest, textTools: TextTools): WireRecord {
  return {
    ...(toolChoice === undefined ? {} : { tool_choice: toWireChoice(toolChoice, textTools) }),
    ...(parallelToolCalls === undefined ? {} : { parallel_tool_calls: parallelToolCalls }),
  };
}

function toWireChoice(choice: ToolChoice, textTools: TextTools): unknown {
  const named = (name: string) => ({ type: textTools.has(name) ? 'custom' : 'function', name });
  if (typeof choice === 'string') return choice;
  if ('tool' in choice) return named(choice.tool);
  const { tools, mode = 'auto' } = choice;
  return { type: 'allowed_tools', mode, tools: tools.map(named) };
}

function textRules(format: ResponseFormat | undefined, given: unknown): WireRecord {
  if (format === undefined) return {};
  return { text: { format: toWireFormat(format), ...jsonRecord(given) } };
}

function toWireFormat(format: ResponseFormat): WireRecord {
  if (format.type === 'text') return { type: 'text' };
  if (format.schema === undefined) return { type: 'json_object' };
  const { name = 'reply', schema } = format;
  return { type: 'json_schema', name, schema, strict: isStrictForm(schema) };
}

/** What a call was on the wire, which its answer has to fit. */
interface KnownCall {
  readonly callId: string;
  readonly custom: boolean;
  readonly isSearch?: boolean;
  /** Of calls that a program of the model made; its answer goes to the same caller. */
  readonly caller?: unknown;
}

interface InputTarget {
  readonly itemKey: string;
  readonly textTools: TextTools;
  readonly found: ReadonlyMap<string, ToolSchema>;
  readonly store: boolean;
  /** The first message that goes out; those before it are looked into for what answers need. */
  readonly from: number;
}

function toInput(messages: readonly Message[], { from, ...target }: InputTarget): readonly unknown[] {
  // Ids of calls may come again in later messages; the last one counts.
  const calls = new Map<string, KnownCall>();
  return messages.flatMap((message, at) => {
    const items = toItems(message, { ...target, calls });
    return at < from ? [] : items;
  });
}

interface ItemTarget extends Omit<InputTarget, 'from'> {
  readonly calls: Map<string, KnownCall>;
}

function toItems(message: Message, target: ItemTarget): readonly unknown[] {
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

/** The items as they came, where they still say what the message says; else what can be made of that. */
function toAssistantItems(message: AssistantMessage, target: ItemTarget): readonly unknown[] {
  const { itemKey, store, calls } = target;
  const output = jsonList(itemsOf(message, itemKey).output).map(jsonRecord);
  const made = callItems(output);
  const given = message.tool_calls ?? [];
  if (output.length > 0 && (store || output.every(isWhole)) && isSame(message, output)) {
    // By place: a loop may have given a call an id of its own.
    given.forEach(({ id }, at) => {
      const { call_id, type, caller } = made[at] ?? {};
      const isSearch = type === 'tool_search_call';
      calls.set(id, { callId: jsonText(call_id), custom: type === 'custom_tool_call', isSearch, caller });
    });
    return output;
  }
  for (const call of given)
    calls.set(call.id, { callId: call.id, custom: customInput(call, target) !== undefined });
  return [
    ...(message.content ? [{ type: 'message', role: 'assistant', content: message.content }] : []),
    ...given.map((call) => toCallItem(call, target)),
  ];
}

/** Reasoning that a server has not kept and not given in encrypted form cannot be said again. */
function isWhole({ type, encrypted_content, content }: WireRecord): boolean {
  return type !== 'reasoning' || Boolean(encrypted_content) || jsonList(content).length > 0;
}

function isSame({ content, tool_calls = [] }: AssistantMessage, output: readonly WireRecord[]): boolean {
  const made = callItems(output);
  if (made.length !== tool_calls.length || textOf(output) !== (content ?? '')) return false;
  return tool_calls.every(({ function: { name } }, at) => {
    const item = made[at] ?? {};
    return isSearchCall(item) || item.name === name;
  });
}

function toCallItem(call: MessageToolCall, target: ItemTarget): WireRecord {
  const { name, arguments: args } = call.function;
  const input = customInput(call, target);
  if (input !== undefined) return { type: 'custom_tool_call', call_id: call.id, name, input };
  return { type: 'function_call', call_id: call.id, name, arguments: args };
}

function toOutput(message: ToolMessage, { calls, found }: Pick<ItemTarget, 'calls' | 'found'>): WireRecord {
  const { tool_call_id, content, parts = [] } = message;
  const call: KnownCall = calls.get(tool_call_id) ?? { callId: tool_call_id, custom: false };
  const { callId, custom, caller } = call;
  if (call.isSearch) return toSearchOutput(message, { callId, known: found });
  const attached = parts.flatMap(toOutputPart);
  const text = content === '' ? [] : [{ type: 'input_text', text: content }];
  return {
    type: custom ? 'custom_tool_call_output' : 'function_call_output',
    call_id: callId,
    output: attached.length > 0 ? [...text, ...attached] : content,
    ...(caller ? { caller } : {}),
  };
}

/** Text is in the answer already. */
function toOutputPart(part: ContentPart): readonly WireRecord[] {
  if (part.type === 'text') return [];
  const url = `data:${part.mimeType};base64,${part.data}`;
  if (part.type === 'image') return [{ type: 'input_image', image_url: url, detail: 'auto' }];
  return [{ type: 'input_file', filename: part.filename, file_data: url }];
}

/** A part of ours or of Chat Completions as one of Responses; nothing for parts that it does not take. */
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

/*
 * Tools that the model finds by a search that the client makes: the search is a call of its own kind, and its answer
 * brings the definitions, so that all that was sent before stays as it was.
 * https://developers.openai.com/api/docs/guides/tools-tool-search
 */

/** The tool that searches, as the API knows it. */
function toSearchTool({ function: { description, parameters } }: ToolSchema): WireRecord {
  return { type: 'tool_search', execution: 'client', description, parameters };
}

/** The tools of a request that were found, by their names. */
function foundTools(tools: readonly ToolSchema[]): ReadonlyMap<string, ToolSchema> {
  return new Map(tools.filter(({ defer }) => defer).map((tool) => [tool.function.name, tool]));
}

/** What answers a search: the definitions of what it found, as far as the request offers it still. */
function toSearchOutput(
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

/** A custom tool has no schema: what that says of the text is said with the rest. */
function toCustomTool({ function: tool }: ToolSchema, parameter: string): WireRecord {
  const { name, description, parameters } = tool;
  const ofText = jsonText(parameters.properties?.[parameter]?.description);
  const texts = [description, ofText === '' ? '' : `Its input: ${ofText}`];
  return { type: 'custom', name, description: texts.filter((text) => text !== '').join('\n\n') };
}

/** The input of a call that goes out as a custom one: the model made it so, or its tool is offered so. */
function customInput(
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

/*
 * What the items of a reply say. Items of other types (web searches, code, MCP, computer use, …) are the server's own
 * work, or its own questions: they are stored and sent back unread.
 */

const CALLS = new Set<unknown>(['function_call', 'custom_tool_call']);

/** The items that are calls for us, in order. */
function callItems(output: readonly WireRecord[]): readonly WireRecord[] {
  return output.filter((item) => (CALLS.has(item.type) && !isServerCall(item)) || isSearchCall(item));
}

/** xAI reports some calls that it ran itself, such as `x_keyword_search`, as custom ones, with ids like `xs_call_1`. */
function isServerCall({ type, call_id }: WireRecord): boolean {
  return type === 'custom_tool_call' && /^[a-z]{1,4}_call[_-]/.test(jsonText(call_id));
}

/** The text of all messages; where there is none, why the model refused to say one. */
function textOf(output: readonly WireRecord[]): string {
  return saidIn(output) || contentOf(output, 'refusal', 'refusal');
}

/** The text of all messages without refusals. */
function saidIn(output: readonly WireRecord[]): string {
  return contentOf(output, 'output_text', 'text');
}

function contentOf(output: readonly WireRecord[], type: string, field: 'text' | 'refusal'): string {
  return output
    .filter((item) => item.type === 'message')
    .flatMap(({ content }) => jsonList(content).map(jsonRecord))
    .filter((part) => part.type === type)
    .map((part) => jsonText(part[field]))
    .join('');
}

/** Whether an item is a search that is left to us. */
function isSearchCall({ type, execution }: WireRecord): boolean {
  return type === 'tool_search_call' && execution === 'client';
}

/** Tools whose input is text, with the parameter that takes it. */
type TextTools = ReadonlyMap<string, string>;

/** Those of a request that go out as custom tools. */
function textToolsOf(tools: readonly ToolSchema[] = []): TextTools {
  const found = new Map<string, string>();
  for (const { input, function: tool } of tools) {
    // Its type is that of a text, or in the strict form of none.
    const [parameter, ...others] = input === 'text' ? Object.keys(tool.parameters.properties ?? {}) : [];
    if (parameter !== undefined && others.length === 0) found.set(tool.name, parameter);
  }
  return found;
}
