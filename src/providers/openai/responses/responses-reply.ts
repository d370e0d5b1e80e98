import type {
  FinishReason,
  LLMRequest,
  LLMResponse,
  LLMStreamPart,
  ReplyAttachment,
  ToolCall,
} from '../../../contract/llm-provider.js';
import {
  argumentsOf,
  citedAttachment,
  imageAttachment,
  inputText,
  jsonList,
  jsonRecord,
  jsonText,
  originOf,
  toUsage,
  type WireRecord,
} from '../wire-json.js';
import { callItems, isSearchCall, saidIn, type TextTools, textOf, textToolsOf } from './responses-body.js';

/** Also those that a server works on in the background, which nobody here would fetch later. */
const UNFINISHED = new Set<unknown>(['failed', 'cancelled', 'queued', 'in_progress']);

/** A call whose beginning was told, and how much of its input. */
interface ToldCall {
  readonly callId: string;
  /** Of a tool whose input is text: what is told is JSON all the same, with the text in it. */
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
  readonly #told = new Map<unknown, ToldCall>();
  #response: WireRecord | undefined;
  #text = '';
  #reasoning = '';
  /** What of the current item has been told as it came. */
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

/** What the model thought, as far as it is told: summaries, or the text of models that give it. */
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
