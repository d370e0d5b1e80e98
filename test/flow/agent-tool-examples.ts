import { Type } from '@sinclair/typebox';
import { agentTool, type Message } from 'toolwright';

const weatherSchema = Type.Object({
  city: Type.String({ description: 'City name' }),
  units: Type.Optional(
    Type.Union([Type.Literal('celsius'), Type.Literal('fahrenheit')], { default: 'celsius' }),
  ),
});

/** A weather tool with two units. */
export const weatherTool = agentTool({
  name: 'get_weather',
  label: 'Weather',
  description: 'Get current weather for a city',
  parameters: weatherSchema,
  execute: async (_toolCallId, params, signal) => {
    const start = performance.now();
    if (signal?.aborted) throw new Error('Operation cancelled');
    const temp = params.units === 'fahrenheit' ? '72°F' : '22°C';
    return {
      content: [{ type: 'text', content: `Weather in ${params.city}: ${temp}, Sunny` }],
      details: { apiCallDuration: performance.now() - start, source: 'weather-api' },
    };
  },
});

/** The delay between two chunks of the download tool. */
export type ChunkClock = () => Promise<void>;

/** A download in ten steps; the caller passes the clock, so that tests need not wait. */
export function downloadTool(nextChunk: ChunkClock) {
  return agentTool({
    name: 'download_file',
    label: 'Download',
    description: 'Download a file with progress updates',
    parameters: Type.Object({ url: Type.String() }),
    execute: async (_toolCallId, _params, signal, onUpdate) => {
      const chunks = 10;
      for (let i = 0; i < chunks; i++) {
        if (signal?.aborted) throw new Error('Download cancelled');
        await nextChunk();
        onUpdate?.({
          content: [{ type: 'text', content: `Downloading: ${(i + 1) * 10}%` }],
          details: { progress: (i + 1) / chunks },
        });
      }
      return {
        content: [{ type: 'text', content: 'Download complete!' }],
        details: { progress: 1, bytesDownloaded: 1024 },
      };
    },
  });
}

/** Counts the messages of the user, and passes the history to `shown`. */
export function countingTool(shown: (messages: readonly Message[]) => void = () => {}) {
  return agentTool({
    name: 'count_messages',
    label: 'Count',
    description: 'Count the messages of the user',
    parameters: Type.Object({}),
    execute: async (_toolCallId, _params, _signal, _onUpdate, context) => {
      const previousMessages = context?.messages || [];
      shown(previousMessages);
      const userMessages = previousMessages.filter((m) => m.role === 'user');
      return {
        content: [{ type: 'text', content: `Found ${userMessages.length} user messages` }],
        details: {},
      };
    },
  });
}

/** The ten updates of a download. */
export const tenUpdates = Array.from({ length: 10 }, (_, i) => ({
  content: [{ type: 'text', content: `Downloading: ${(i + 1) * 10}%` }],
  details: { progress: (i + 1) / 10 },
}));
