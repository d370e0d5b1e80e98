import { describe, expect, test } from '@jest/globals';
import { type Message, runToolLoop, ToolContext, ToolRegistry } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { callWork } from './call-work.js';
import { logbook } from './logbook.js';
import { plainTool } from './plain-tool.js';

async function contextOf(environment: object = {}, args: unknown = {}): Promise<ToolContext> {
  let context: ToolContext | undefined;
  const tool = plainTool((_args, given) => {
    context = given;
  });
  await callWork(tool, args, environment);
  if (context === undefined) throw new Error('the tool was not run');
  return context;
}

describe('the context of a call', () => {
  test('contains the caller, the place and the arguments', async () => {
    const { logger } = logbook();
    const data = { userId: 'u1' };
    const scope = { channel: 'telegram', chatId: '42', conversationId: 'v1', data };
    const context = await contextOf({ scope, logger, attempt: 2 }, '{"a": 1}');
    expect(context).toBeInstanceOf(ToolContext);
    expect(context).toMatchObject({
      callId: 'c1',
      toolName: 'work',
      channel: 'telegram',
      chatId: '42',
      conversationId: 'v1',
      attempt: 2,
      rawArguments: '{"a": 1}',
    });
    expect(context.data).toBe(data);
    expect(context.logger).toBe(logger);
  });

  test('is empty without a scope and still works', async () => {
    const context = await contextOf();
    expect([context.channel, context.chatId, context.attempt]).toEqual([undefined, undefined, 1]);
    expect([context.messages, context.data]).toEqual([[], {}]);
    expect(context.signal.aborted).toBe(false);
    expect(() => context.logger.info('nobody hears this')).not.toThrow();
    expect(() => context.progress('nobody hears this')).not.toThrow();
  });

  test('is read-only, and its history is a frozen copy', async () => {
    const messages: Message[] = [{ role: 'user', content: 'x' }];
    const context = await contextOf({ scope: { messages } });
    expect(() => Object.assign(context, { chatId: 'other' })).toThrow(TypeError);
    expect(context.messages).toEqual(messages);
    expect(Object.isFrozen(context.messages)).toBe(true);
    expect(context.messages).toBe(context.messages);
    messages.push({ role: 'user', content: 'later' });
    expect(context.messages).toHaveLength(1);
  });

  test.each([
    ['passes on', (_args: unknown, context: ToolContext) => context.ask({ message: 'Sure?' })],
    [
      'swallows',
      (_args: unknown, context: ToolContext) => context.ask({ message: 'Sure?' }).catch(() => 'sure'),
    ],
  ])(
    'fails a call with a question if there is nobody to ask, when the method %s the error',
    async (_how, execute) => {
      const tool = plainTool(execute);
      const result = await new ToolRegistry().register(tool).execute('work');
      expect(result).toMatchObject({ isError: true, error: { name: 'NotExecutableHere' } });
    },
  );

  test('rejects every question with the same error if there is nobody to ask', async () => {
    const errors: unknown[] = [];
    const tool = plainTool(async (_args, context) => {
      const ask = () => context.ask({ message: 'Sure?' }).catch((error: unknown) => error);
      errors.push(await ask(), await ask());
    });
    await new ToolRegistry().register(tool).execute('work');
    expect(errors[0]).toMatchObject({ name: 'NotExecutableHere', message: expect.stringMatching(/\w/) });
    expect(errors[1]).toBe(errors[0]);
  });

  test('refuses a question after the call has ended', async () => {
    let context = {} as ToolContext;
    const tool = plainTool((_args, given) => {
      context = given;
      return 'done';
    });
    const tools = new ToolRegistry().register(tool);
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'work', arguments: {} }] },
      { content: 'ok' },
    ]);
    await runToolLoop({ provider, model: 'm', tools }, [{ role: 'user', content: 'Go' }]);
    await expect(context.ask({ message: 'Sure?' })).rejects.toMatchObject({
      code: 511,
      message: expect.stringContaining('after its call has ended'),
    });
  });

  test('once returns the result of the work', async () => {
    const context = await contextOf();
    await expect(context.once('charge', () => 7)).resolves.toBe(7);
  });
});
