import type { JsonObject } from '../contract/json-schema.js';
import type { Logger } from '../contract/ports.js';
import type { Conversations } from '../conversation/conversations.js';
import {
  BOOLEAN,
  COUNT,
  FUNCTION,
  LOGGER,
  MILLISECONDS,
  oneOf,
  optionTable,
  required,
  withMethods,
} from '../kernel/options.js';
import type { ProtocolName } from './protocols.js';

/** What a chat handler is made from. */
export interface ChatHandlerOptions {
  /** Where the chats live: a chat's id is that of its conversation. */
  readonly conversations: Pick<Conversations, 'prompt' | 'answer' | 'abort' | 'events' | 'snapshot'>;
  /**
   * Who asks, as any JSON, such as `{ user: 'u1' }`: the owner of the chats that it begins, and of no others.
   * `undefined`, `null` or an error: nobody, and the request is refused with 401.
   */
  readonly authenticate: (request: Request) => unknown;
  /**
   * `ui-messages`: the AI SDK's UI message stream; `ag-ui`: AG-UI 1.0; `events`: the numbered events as they are.
   * Default `ui-messages`.
   */
  readonly protocol?: ProtocolName;
  /** Whether a reader that leaves ends the turn; default false: it goes on, and readers may come back. */
  readonly abortOnLeave?: boolean;
  /** What the reader is told of a turn that failed, in `ui-messages`; default: nothing but that it failed. */
  readonly describeError?: (error: JsonObject) => string;
  /** Bytes of a request at most; default 4 MiB: the AI SDK sends the whole chat each time. */
  readonly maxRequestBytes?: number;
  /** Milliseconds of silence after which a reader gets a sign of life; default 15,000. */
  readonly heartbeatMs?: number;
  readonly logger?: Logger;
}

export const CHAT_OPTIONS = optionTable<ChatHandlerOptions>('createChatHandler', {
  conversations: required(
    withMethods(['prompt', 'answer', 'abort', 'events', 'snapshot'], 'new Conversations({ store, config })'),
  ),
  authenticate: required(FUNCTION),
  protocol: oneOf('ui-messages', 'ag-ui', 'events'),
  abortOnLeave: BOOLEAN,
  describeError: FUNCTION,
  maxRequestBytes: COUNT,
  heartbeatMs: MILLISECONDS,
  logger: LOGGER,
});
