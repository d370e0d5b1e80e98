import { isObject } from '../kernel/json.js';

const BRAND = Symbol.for('toolwright.ToolResult');

/** The five fields of a result that are serialized. */
export interface SerializedToolResult {
  readonly for_llm: string;
  readonly for_user?: string;
  readonly silent: boolean;
  readonly is_error: boolean;
  readonly async: boolean;
}

/** The input of {@link ToolResult}; every absent flag is `false`. */
export interface ToolResultFields {
  readonly forLLM: string;
  readonly forUser?: string;
  readonly silent?: boolean;
  readonly isError?: boolean;
  readonly async?: boolean;
  readonly error?: unknown;
  readonly content?: Content;
  readonly details?: unknown;
}

/**
 * The result of a call: the text for the model, the text for the user, and flags.
 *
 * `JSON.stringify` writes only `for_llm`, `for_user` (omitted if empty), `silent`, `is_error` and `async`: `error` is
 * for logs and `details` for the application.
 */
export class ToolResult {
  /** Text for the model. If it is empty, the model receives the error's message. */
  readonly forLLM: string;
  /** Text for the user; shown unless empty or `silent`. */
  readonly forUser?: string;
  /** Nothing is shown to the user, even if `forUser` is set. */
  readonly silent: boolean;
  /** The call failed. */
  readonly isError: boolean;
  /** The work continues; a completion follows later. */
  readonly async: boolean;
  /** The underlying error, for logs; never serialized. */
  error?: unknown;
  /** Text, image and file parts for the model, if plain text is not enough. */
  readonly content?: Content;
  /** Data for the application only; never sent to a model. */
  readonly details?: unknown;

  constructor(fields: ToolResultFields) {
    if (!isObject(fields)) throw new TypeError("ToolResult takes fields: new ToolResult({ forLLM: '…' })");
    this.forLLM = fields.forLLM;
    // Untyped authors may write `isError: 1`.
    this.silent = Boolean(fields.silent);
    this.isError = Boolean(fields.isError);
    this.async = Boolean(fields.async);
    // Most results are only a text; absent fields save memory.
    if (fields.forUser !== undefined) this.forUser = fields.forUser;
    if (fields.error !== undefined) this.error = fields.error;
    if (fields.content !== undefined) this.content = fields.content;
    if (fields.details !== undefined) this.details = fields.details;
  }

  /** Attaches the underlying error and returns this same result; `isError` does not change. */
  withError(error: unknown): this {
    this.error = error;
    return this;
  }

  toJSON(): SerializedToolResult {
    return {
      for_llm: this.forLLM,
      ...(this.forUser ? { for_user: this.forUser } : {}),
      silent: this.silent,
      is_error: this.isError,
      async: this.async,
    };
  }

  /** Reads the output of `JSON.stringify`. */
  static fromJSON(json: SerializedToolResult): ToolResult {
    if (!isObject(json))
      throw new TypeError('ToolResult.fromJSON takes a result as JSON.stringify writes it');
    return new ToolResult({
      forLLM: json.for_llm,
      forUser: json.for_user,
      silent: json.silent,
      isError: json.is_error,
      async: json.async,
    });
  }

  /** Whether a value is a result, including results of another copy of this package. */
  static is(value: unknown): value is ToolResult {
    return isObject(value) && BRAND in value;
  }
}

// On the prototype, so that an instance costs no extra field and two copies of the package agree.
Object.defineProperty(ToolResult.prototype, BRAND, { value: true });
// Most results do not have these fields; here, they read as `undefined`.
Object.assign(ToolResult.prototype, {
  forUser: undefined,
  error: undefined,
  content: undefined,
  details: undefined,
});

/** A success with only `forLLM`. */
export function toolResult(forLLM: string): ToolResult {
  return new ToolResult({ forLLM });
}

/** A success that shows nothing to the user. */
export function silentResult(forLLM: string): ToolResult {
  return new ToolResult({ forLLM, silent: true });
}

/** An acknowledgement: the work continues and completes through the callback. */
export function asyncResult(forLLM: string): ToolResult {
  return new ToolResult({ forLLM, async: true });
}

/** A failure; the message goes to the model. */
export function errorResult(message: string): ToolResult {
  return new ToolResult({ forLLM: message, isError: true });
}

/** The same text for the model and for the user. */
export function userResult(content: string): ToolResult {
  return new ToolResult({ forLLM: content, forUser: content });
}

/** Text for the model. The key is `content`, not `text`. */
export interface TextPart {
  readonly type: 'text';
  readonly content: string;
}

/** An image, base64 in `data`. */
export interface ImagePart {
  readonly type: 'image';
  readonly data: string;
  readonly mimeType: string;
}

/** A file, base64 in `data`. */
export interface FilePart {
  readonly type: 'file';
  readonly data: string;
  readonly mimeType: string;
  readonly filename: string;
}

/** A content part of a tool result for the model. */
export type ContentPart = TextPart | ImagePart | FilePart;

/** The content parts of a tool result, in order. */
export type Content = readonly ContentPart[];

const RETRY_BRAND = Symbol.for('toolwright.RetryToolCall');

/**
 * Thrown by a tool to request another call with other arguments. The model receives the hint unchanged. Like rejected
 * arguments, it counts against `maxRetries`.
 *
 * @example
 * ```ts
 * const found = ['cus_1', 'cus_2'];
 * if (found.length > 1) throw new RetryToolCall(`${found.length} customers have that name; give the id.`);
 * ```
 */
export class RetryToolCall extends Error {
  override readonly name = 'RetryToolCall';

  /** Whether a thrown value is a `RetryToolCall`, including those of another copy of this package. */
  static is(value: unknown): value is RetryToolCall {
    return isObject(value) && RETRY_BRAND in value;
  }
}

Object.defineProperty(RetryToolCall.prototype, RETRY_BRAND, { value: true });
