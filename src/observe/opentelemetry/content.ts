import type { LLMResponse, Message } from '../../core/contract/llm-provider.js';
import type { TraceRedaction } from '../../core/contract/telemetry.js';
import type { ToolResult } from '../../core/contract/tool-result.js';
import { isRecord, parsedJson } from '../../core/kernel/json.js';

/** Which contents are recorded. */
export interface RecordedContent {
  /** Arguments of tool calls. */
  readonly arguments?: boolean;
  /** Results of tool calls. */
  readonly results?: boolean;
  /** Messages to models, and their replies. */
  readonly messages?: boolean;
}

/** The most characters recorded of a text. */
const MAX_TEXT = 8000;

/** A part of a message, in the form of the JSON schemas of the conventions. */
interface Part {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Writes contents as JSON attributes, without secrets. */
export class ContentWriter {
  constructor(private readonly redaction: TraceRedaction) {}

  /** `gen_ai.input.messages` */
  input(messages: readonly Message[]): string {
    return JSON.stringify(messages.map((message) => this.#message(message)));
  }

  /** `gen_ai.output.messages`: always one choice. */
  output({ content, reasoning, toolCalls }: LLMResponse): string {
    const parts = [
      ...this.#textPart('reasoning', reasoning),
      ...this.#textPart('text', content),
      ...toolCalls.map(({ id, name, arguments: args }) => this.#call(id, name, args)),
    ];
    return JSON.stringify([{ role: 'assistant', parts }]);
  }

  /** As an object, which the conventions require. */
  arguments(args: unknown): string {
    const value = parsed(args);
    return JSON.stringify(this.redaction.copy(isRecord(value) ? value : { value }));
  }

  /** As an object, which the conventions require. */
  result({ forLLM }: ToolResult): string {
    const value = parsed(forLLM);
    if (isRecord(value)) return JSON.stringify(this.redaction.copy(value));
    return JSON.stringify(
      typeof value === 'string' ? { content: this.text(value) } : { value: this.redaction.copy(value) },
    );
  }

  text(text: string): string {
    const masked = this.redaction.mask(text, MAX_TEXT);
    return text.length <= MAX_TEXT
      ? masked
      : `${masked.toWellFormed()}… (${text.length - MAX_TEXT} more characters)`;
  }

  #message(message: Message): { readonly role: string; readonly parts: readonly Part[] } {
    const { role, content } = message;
    if (role === 'tool') {
      const { tool_call_id: id, parts = [] } = message;
      const answer = { type: 'tool_call_response', id, response: this.text(content) };
      // Kind and media type of an attachment, never its bytes.
      const files = parts.flatMap((part): readonly Part[] =>
        part.type === 'text' ? [] : [{ type: part.type, mime_type: part.mimeType }],
      );
      return { role, parts: [answer, ...files] };
    }
    const text = typeof content === 'string' ? this.#textPart('text', content) : [];
    if (role !== 'assistant')
      return { role, parts: Array.isArray(content) ? content.map((part) => this.#anyPart(part)) : text };
    const { reasoning, tool_calls: calls = [] } = message;
    const made = calls.map(({ id, function: { name, arguments: args } }) => this.#call(id, name, args));
    return { role, parts: [...this.#textPart('reasoning', reasoning), ...text, ...made] };
  }

  #textPart(type: 'text' | 'reasoning', text: string | undefined): readonly Part[] {
    return text ? [{ type, content: this.text(text) }] : [];
  }

  #call(id: string, name: string, args: unknown): Part {
    const value = parsed(args);
    const written = typeof value === 'string' ? this.text(value) : this.redaction.copy(value);
    return { type: 'tool_call', id, name, arguments: written };
  }

  /** Parts belong to the provider: of a part that is not text, only the type is recorded. */
  #anyPart(part: unknown): Part {
    if (!isRecord(part)) return { type: 'unknown' };
    const { type, text } = part;
    if (type === 'text' && typeof text === 'string') return { type, content: this.text(text) };
    // For these types, the schemas require fields that would contain the bytes; so rename the type.
    const kind = typeof type === 'string' ? type : 'unknown';
    return { type: KEPT_TYPES.has(kind) ? `${kind}_part` : kind };
  }
}

/** Types whose parts have required fields in the schemas. */
const KEPT_TYPES: ReadonlySet<string> = new Set(['blob', 'file', 'uri', 'text', 'reasoning', 'tool_call']);

function parsed(value: unknown): unknown {
  const json = typeof value === 'string' ? parsedJson(value) : undefined;
  return json === undefined ? value : json;
}
