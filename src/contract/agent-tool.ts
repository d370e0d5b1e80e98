import type { Content } from './content-part.js';
import type { Message } from './message.js';
import type { ToolContext } from './tool-context.js';

/** What an agent tool answers: `content` goes to the model, `details` to the application only (seed 3.2). */
export interface AgentToolResult<Details = unknown> {
  readonly content: Content;
  readonly details: Details;
}

/** Sends a partial result to whoever listens, any number of times; never to the model (seed 3.4). */
export type AgentToolUpdateCallback<Details = unknown> = (partial: AgentToolResult<Details>) => void;

/** What an agent tool may read of the conversation (seed 3.3), besides all else of the call's context. */
export type ToolExecutionContext = ToolContext & { readonly messages: readonly Message[] };
