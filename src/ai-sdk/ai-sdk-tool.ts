import type { JSONValue, LanguageModelV4ToolResultOutput } from '@ai-sdk/provider';
import type { Invocation } from '../call/invocation.js';
import { answerText } from '../call/result-text.js';
import type { CallStatus } from '../contract/call.js';
import type { JsonSchema } from '../contract/json-schema.js';
import type { Content } from '../contract/tool-result.js';
import { isRecord, plainJson } from '../kernel/json.js';
import { toOutput } from './to-prompt.js';

/** What the AI SDK says of a call that it makes. */
export interface AiSdkExecution {
  readonly toolCallId: string;
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  readonly abortSignal?: AbortSignal;
  readonly context?: unknown;
}

/** A call that has its output. */
interface ModelOutputOf {
  readonly toolCallId: string;
  readonly input: unknown;
  readonly output: unknown;
}

/**
 * A tool as `generateText` and `streamText` take it: an entry of their `ToolSet`. Its own type, because the types of
 * the package `ai` need those of a browser.
 */
export interface AiSdkTool {
  readonly description?: string;
  readonly strict?: boolean;
  readonly inputSchema: AiSdkSchema;
  readonly outputSchema?: AiSdkSchema;
  /** Nothing where the client executes it. */
  readonly execute?: (
    input: unknown,
    of: AiSdkExecution,
  ) => AsyncIterable<AiSdkToolOutput> | Promise<AiSdkToolOutput>;
  readonly needsApproval?: (input: unknown, of: AiSdkExecution) => Promise<boolean>;
  readonly toModelOutput: (of: ModelOutputOf) => LanguageModelV4ToolResultOutput;
}

/** JSON Schema that the AI SDK hands on as it is. It checks nothing: the registry does, which knows how to mend. */
export interface AiSdkSchema {
  readonly jsonSchema: JsonSchema;
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => { readonly value: unknown };
  };
}

/** The schema with the mark of what `jsonSchema` of the AI SDK makes; only by that it is left as it is. */
export function inputSchema(jsonSchema: JsonSchema): AiSdkSchema {
  const marked = { [Symbol.for('vercel.ai.schema')]: true, _type: undefined, validate: undefined };
  const validate = (value: unknown) => ({ value });
  return { ...marked, jsonSchema, '~standard': { version: 1, vendor: 'toolwright', validate } };
}

/** A tool of the provider's own, as its package makes it: `anthropic.tools.webSearch_20250305()`. */
export interface AiSdkProviderTool {
  readonly type: 'provider';
  readonly id: `${string}.${string}`;
  readonly args: Record<string, unknown>;
}

/** What a call gives to whoever reads the AI SDK's results and streams; plain JSON. */
export interface AiSdkToolOutput {
  /** How the call ended; `progress` in preliminary results. */
  readonly status: CallStatus | 'progress';
  readonly isError: boolean;
  /** What the model gets. */
  readonly text: string;
  /** Images and files, which the model gets too. */
  readonly attachments?: Content;
  /** Text for the user, where the result has one and is not silent. */
  readonly forUser?: string;
  /** Of a preliminary result: what the tool reported. */
  readonly update?: unknown;
}

/** How a call ended, for the AI SDK. */
export function writeOutput({ status, record, result }: Invocation): AiSdkToolOutput {
  const { content, silent, forUser, isError } = result;
  const attachments = content?.filter(({ type }) => type !== 'text') ?? [];
  return {
    status: status === 'suspended' ? status : record.status,
    isError,
    text: answerText(record),
    ...(attachments.length > 0 && { attachments }),
    ...(forUser && !silent && { forUser }),
  };
}

/** An output as the model gets it; one that a client made of its own call as JSON. */
export function modelOutput(output: unknown): LanguageModelV4ToolResultOutput {
  if (!isRecord(output) || typeof output.text !== 'string' || typeof output.isError !== 'boolean')
    return typeof output === 'string'
      ? { type: 'text', value: output }
      : { type: 'json', value: (plainJson(output) ?? null) as JSONValue };
  const { text, isError, attachments } = output as unknown as AiSdkToolOutput;
  return toOutput(text, { parts: attachments, isError });
}
