import {
  type CallScope,
  type LLMProvider,
  type LLMResponse,
  type LLMStreamPart,
  type LoopEvent,
  streamToolLoop,
  type ToolLoopConfig,
  type ToolLoopStream,
} from 'toolwright';
import { ScriptedProvider, type ScriptedStep } from 'toolwright/testing';
import { hello } from './run-script.js';

/** A run that has not been read yet. */
export function streamScript(
  steps: readonly ScriptedStep[],
  config: Omit<ToolLoopConfig, 'provider' | 'model'> = {},
  scope: CallScope = {},
): ToolLoopStream {
  return streamToolLoop({ provider: new ScriptedProvider(steps), model: 'm', ...config }, hello, scope);
}

/** All events of a run. */
export async function eventsOf(run: AsyncIterable<LoopEvent>): Promise<LoopEvent[]> {
  const events: LoopEvent[] = [];
  for await (const event of run) events.push(event);
  return events;
}

/** Describes events for expectations: the type and what distinguishes the event. */
export function told(events: readonly LoopEvent[]): readonly string[] {
  return events.map((event) => {
    switch (event.type) {
      case 'step-start':
      case 'reply-end':
      case 'step-end':
        return `${event.type} ${event.iteration}`;
      case 'text-delta':
        return `text ${event.text}`;
      case 'call-start':
        return `start ${event.callId}`;
      case 'call-progress':
        return `progress ${event.callId} ${event.update}`;
      case 'call-end':
        return `end ${event.callId} ${event.result.forLLM}`;
      default:
        return event.type;
    }
  });
}

/** A provider that streams what a function yields; its `chat` returns nothing. */
export function streaming(stream: () => AsyncGenerator<LLMStreamPart, void, undefined>): LLMProvider {
  return {
    chat: async () => {
      throw new Error('chat was asked although the provider streams');
    },
    stream,
  };
}

/** A complete reply as the last part of a stream. */
export function wholeReply(response: Partial<LLMResponse>): LLMStreamPart {
  return {
    type: 'response',
    response: { content: '', toolCalls: [], finishReason: 'stop', ...response },
  };
}
