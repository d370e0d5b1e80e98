import type { LLMResponse, Message, ToolSchema } from '../../core/contract/llm-provider.js';
import type { TraceRedaction } from '../../core/contract/telemetry.js';
import type { ContentPart, ToolResult } from '../../core/contract/tool-result.js';
import { isRecord } from '../../core/kernel/json.js';

/** What was said and given, as far as it is recorded. */
export interface RecordedContent {
  /** What tools are given. */
  readonly arguments?: boolean;
  /** What comes of their calls. */
  readonly results?: boolean;
  /** What models are sent and reply. */
  readonly messages?: boolean;
}

/** Characters of one text that are recorded at most. */
const MAX_TEXT = 8000;

/** One part of a message, in the form of the conventions' JSON schemas. */
interface Part {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Writes what was said and given as attributes: as JSON, without secrets. */
export class ContentWriter {
  readonly #redaction: TraceRedaction;

  constructor(redaction: TraceRedaction) {
    this.#redaction = redaction;
  }

  /** `gen_ai.input.messages` */
  input(messages: readonly Message[]): string {
    return JSON.stringify(messages.map((message) => this.#message(message)));
  }

  /** `gen_ai.output.messages`: there is one choice. */
  output({ content, reasoning, toolCalls }: LLMResponse): string {
    const parts = [
      ...(reasoning ? [{ type: 'reasoning', content: this.text(reasoning) }] : []),
      ...(content === '' ? [] : [this.#text(content)]),
      ...toolCalls.map(({ id, name, arguments: args }) => this.#call(id, name, args)),
    ];
    return JSON.stringify([{ role: 'assistant', parts }]);
  }

  /** `gen_ai.tool.definitions`, without what makes them large. */
  definitions(tools: readonly ToolSchema[]): string {
    return JSON.stringify(tools.map(({ function: { name } }) => ({ type: 'function', name })));
  }

  /** An object, as the conventions want it. */
  arguments(args: unknown): string {
    const value = parsed(args);
    return JSON.stringify(this.#redaction.copy(isRecord(value) ? value : { value }));
  }

  /** The same for what came of a call. */
  result({ forLLM }: ToolResult): string {
    const value = parsed(forLLM);
    if (isRecord(value)) return JSON.stringify(this.#redaction.copy(value));
    return JSON.stringify(
      typeof value === 'string' ? { content: this.text(value) } : { value: this.#redaction.copy(value) },
    );
  }

  text(text: string): string {
    const masked = this.#redaction.mask(text, MAX_TEXT);
    return text.length <= MAX_TEXT
      ? masked
      : `${masked.toWellFormed()}… (${text.length - MAX_TEXT} more characters)`;
  }

  #message(message: Message): { readonly role: string; readonly parts: readonly Part[] } {
    const { role, content } = message;
    if (role === 'tool') {
      const { tool_call_id: id, parts = [] } = message;
      const response = this.text(content);
      return {
        role,
        parts: [
          { type: 'tool_call_response', id, response },
          ...parts.flatMap((part) => this.#attached(part)),
        ],
      };
    }
    const said = Array.isArray(content) ? content.map((part) => this.#anyPart(part)) : [];
    const text = typeof content === 'string' && content !== '' ? [this.#text(content)] : [];
    if (role !== 'assistant') return { role, parts: [...text, ...said] };
    const { reasoning, tool_calls: calls = [] } = message;
    return {
      role,
      parts: [
        ...(reasoning ? [{ type: 'reasoning', content: this.text(reasoning) }] : []),
        ...text,
        ...calls.map(({ id, function: { name, arguments: args } }) => this.#call(id, name, args)),
      ],
    };
  }

  #text(content: string): Part {
    return { type: 'text', content: this.text(content) };
  }

  #call(id: string, name: string, args: unknown): Part {
    const value = parsed(args);
    const told = typeof value === 'string' ? this.text(value) : this.#redaction.copy(value);
    return { type: 'tool_call', id, name, arguments: told };
  }

  /** What a result has beside its text; never the bytes of it. */
  #attached(part: ContentPart): readonly Part[] {
    return part.type === 'text' ? [] : [{ type: part.type, mime_type: part.mimeType }];
  }

  /** Parts are the provider's: of what is no text only the kind is told. */
  #anyPart(part: unknown): Part {
    if (!isRecord(part)) return { type: 'unknown' };
    const { type, text } = part;
    if (type === 'text' && typeof text === 'string') return this.#text(text);
    // Of these the schemas want what would be the bytes.
    const kind = typeof type === 'string' ? type : 'unknown';
    return { type: KEPT_TYPES.has(kind) ? `${kind}_part` : kind };
  }
}

/** Types of parts that have fields of their own in the schemas. */
const KEPT_TYPES: ReadonlySet<string> = new Set(['blob', 'file', 'uri', 'text', 'reasoning', 'tool_call']);

function parsed(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
