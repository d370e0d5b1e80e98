import type { Content } from './content-part.js';
import type { Message } from './message.js';
import type { ToolContext } from './tool-context.js';

/** What an agent tool answers: `content` goes to the model, `details` to the application only. */
export interface AgentToolResult<Details = unknown> {
  readonly content: Content;
  readonly details: Details;
}

/** Sends a partial result to whoever listens, any number of times; never to the model. */
export type AgentToolUpdateCallback<Details = unknown> = (partial: AgentToolResult<Details>) => void;

/** What an agent tool may read of the conversation, besides all else of the call's context. */
export type ToolExecutionContext = ToolContext & { readonly messages: readonly Message[] };
