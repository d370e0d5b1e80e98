import { describe, expect, test } from '@jest/globals';
import {
  defineTool,
  discoverTools,
  Tool,
  ToolContext,
  type Tool as ToolContract,
  ToolRegistry,
  Toolset,
} from 'toolwright';

const MINUTE = 60_000;

@Toolset()
class ChatTools {
  @Tool('Says where it is, after a while')
  async whereAmI(context: ToolContext) {
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    return `${context.channel}/${context.chatId}/${context.callId}/${context.data.user}`;
  }
}

/** Stores the arguments of `setContext` on itself. */
class StoringTool implements ToolContract {
  readonly name = 'storing';
  readonly description = 'Says where it is';
  readonly parameters = { type: 'object' };
  #where = '';

  setContext(channel: string, chatId: string): void {
    this.#where = `${channel}/${chatId}`;
  }

  async execute(_args: unknown, context: ToolContext) {
    await new Promise(setImmediate);
    return `${this.#where}/${context.callId}/${context.data.user}`;
  }
}

describe('data of a call is not stored on a shared instance', () => {
  const defined = defineTool({
    name: 'defined',
    description: 'Says where it is',
    execute: async (_args, context) => {
      await new Promise(setImmediate);
      return `${context.channel}/${context.chatId}/${context.callId}/${context.data.user}`;
    },
  });

  test.each(['where_am_i', 'defined', 'storing'])(
    '1,000 interleaved calls of %s each see their own chat id',
    async (name) => {
      const tools = new ToolRegistry();
      tools.register(...discoverTools({ toolsets: [ChatTools] }), defined, new StoringTool());
      const numbers = Array.from({ length: 1000 }, (_, index) => index);
      const results = await Promise.all(
        numbers.map((number) =>
          tools.executeWithContext(
            name,
            {},
            { channel: 'chat', chatId: `id${number}`, callId: `call${number}`, data: { user: number } },
          ),
        ),
      );
      expect(results.map(({ forLLM }) => forLLM)).toEqual(
        numbers.map((number) => `chat/id${number}/call${number}/${number}`),
      );
    },
    MINUTE,
  );
});
