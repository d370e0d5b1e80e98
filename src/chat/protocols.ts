import { agUiFrames, agUiHistory, runRefused, runStarted } from './ag-ui-frames.js';
import { decideAgUi, messagesIn, outputsIn, readAgUiInput } from './ag-ui-request.js';
import type { ChatProtocol, WriteFrames } from './chat-request.js';
import { eventFrames, uiMessageFrames } from './frames.js';
import type { HttpFault } from './http-fault.js';
import type { DescribeError } from './shown-calls.js';
import { uiMessageHistory } from './ui-message-history.js';
import { readUiMessageRequest } from './ui-message-request.js';

export const DEFAULT_HEARTBEAT_MS = 15_000;

/** What went wrong in a turn is the server's to know. */
export const ANY_ERROR = (): string => 'An error occurred.';

/** The name of a protocol that front-ends speak. */
export type ProtocolName = 'ui-messages' | 'ag-ui' | 'events';

/** No proxy is to collect the stream before it hands it on. */
export const SSE_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
};

export const UI_HEADERS = { ...SSE_HEADERS, 'x-vercel-ai-ui-message-stream': 'v1' };

/** A protocol by its name. */
export function protocolOf(name: ProtocolName, describeError: DescribeError): ChatProtocol {
  switch (name) {
    case 'ui-messages':
      return uiMessages(UI_HEADERS, (events, { goesOn }) =>
        uiMessageFrames(events, { describeError, greets: goesOn }),
      );
    case 'events':
      return uiMessages(SSE_HEADERS, (events) => eventFrames(events));
    case 'ag-ui':
      return agUi(describeError);
  }
}

function uiMessages(headers: ChatProtocol['headers'], frames: WriteFrames): ChatProtocol {
  const refuse = (fault: HttpFault): Response => fault.response;
  return {
    headers,
    readPost: (body) => ({ ...readUiMessageRequest(body), frames, refuse }),
    reconnect: () => ({ frames, isWhole: false }),
    history: uiMessageHistory,
  };
}

function agUi(describeError: DescribeError): ChatProtocol {
  return {
    headers: SSE_HEADERS,
    readPost: (body) => {
      const input = readAgUiInput(body);
      const { threadId, runId, state } = input;
      const run = {
        threadId,
        runId,
        state,
        describeError,
        messages: messagesIn(input),
        given: outputsIn(input),
      };
      return {
        chatId: threadId,
        decide: (asked) => decideAgUi(input, asked),
        frames: (events) => agUiFrames(events, run),
        refuse: ({ message }) =>
          new Response(runStarted(run) + runRefused(message), { headers: SSE_HEADERS }),
      };
    },
    reconnect: ({ chatId, query }) => ({
      isWhole: true,
      frames: async function* (events, { asked }): AsyncGenerator<string, undefined> {
        const runId = query.get('runId') ?? `reconnect-${crypto.randomUUID()}`;
        const messages = await agUiHistory(asked);
        yield* agUiFrames(events, { threadId: chatId, runId, describeError, messages, isWhole: true });
      },
    }),
    history: agUiHistory,
  };
}
