import { describe, expect, test } from '@jest/globals';
import {
  asyncResult,
  discoverTools,
  type LogFields,
  runToolLoop,
  Tool,
  ToolDeclarationError,
  ToolRegistry,
  toolResult,
  toolToSchema,
} from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { readFile, Sender, toolNamed } from './contract-tools.js';

describe('registry', () => {
  test('is empty on creation, and a later tool with the same name replaces the earlier', () => {
    const registry = new ToolRegistry();
    expect([registry.count(), registry.list(), registry.get('a')]).toEqual([0, [], undefined]);
    const second = toolNamed('a');
    registry.register(toolNamed('a'));
    registry.register(second);
    expect([registry.count(), registry.list(), registry.get('a')]).toEqual([1, ['a'], second]);
  });

  test('refuses two tools with the same name in one call, with all other faults, and registers nothing', async () => {
    const registry = new ToolRegistry().register(toolNamed('a'));
    const first = registry.get('a');
    const [twice, wrong] = [toolNamed('a'), { ...toolNamed('c'), parameters: { type: 'array' } }];
    const register = () => registry.register(twice, toolNamed('b'), () => toolNamed('a'), wrong);
    expect(register).toThrow(ToolDeclarationError);
    expect(register).toThrow(
      /2 mistakes[\s\S]*register\("c"\)[\s\S]*register\("a"\): several tools that are given together have this name/,
    );
    expect([registry.list(), registry.get('a')]).toEqual([['a'], first]);
    expect(registry.register(twice, twice).get('a')).toBe(twice);
    const provider = new ScriptedProvider([{ content: 'Hi' }]);
    const tools = [toolNamed('a'), toolNamed('a')];
    const run = runToolLoop({ provider, model: 'm', tools }, [{ role: 'user', content: 'Go' }]);
    await expect(run).rejects.toMatchObject({ code: 502 });
    expect(provider.requests).toEqual([]);
  });

  test('warns if a tool replaces that of another class, unless one class extends the other', () => {
    class Shop {
      @Tool('Finds an order')
      find() {
        return 'order';
      }
    }
    class Mail {
      @Tool('Finds a mail')
      find() {
        return 'mail';
      }
    }
    class FakeShop extends Shop {}
    const warnings: string[] = [];
    const logger = { debug() {}, info() {}, warn: (text: string) => warnings.push(text), error() {} };
    const register = (...classes: readonly (new () => object)[]) => {
      const registry = new ToolRegistry({ logger });
      for (const toolset of classes) registry.register(...discoverTools({ toolsets: [toolset], logger }));
    };
    register(Shop, FakeShop);
    register(Shop, Shop);
    expect(warnings).toEqual([]);
    expect(() => {
      const both = [Shop, Mail].flatMap((toolset) => discoverTools({ toolsets: [toolset] }));
      new ToolRegistry().register(...both);
    }).toThrow(/several tools that are given together have this name \(Shop\.find, Mail\.find\)/);
    register(Shop, Mail);
    expect(warnings).toEqual([
      'register("find"): Mail.find replaces Shop.find, which has the same name (@Tool({ name }) on one of them, or @Toolset({ prefix }))',
    ]);
  });

  test('execute is executeWithContext without channel, chat id and listener', async () => {
    const [one, other] = [new Sender(), new Sender()];
    const results = [
      await new ToolRegistry().register(one).execute('send', { a: 1 }),
      await new ToolRegistry().register(other).executeWithContext('send', { a: 1 }),
    ];
    expect(results[0]).toEqual(results[1]);
    expect(one.told).toEqual(other.told);
  });

  test('calls setContext, setCallback and execute in this order, and returns the tool’s result', async () => {
    const sender = new Sender();
    const result = await new ToolRegistry()
      .register(sender)
      .executeWithContext('send', {}, { channel: 'telegram', chatId: '42' }, () => {});
    expect(sender.told).toEqual([['setContext', 'telegram', '42'], ['setCallback'], ['execute', {}]]);
    expect(result).toEqual(toolResult('sent'));
  });

  test('an unknown tool gives an error result and does not throw', async () => {
    const result = await new ToolRegistry().execute('missing', {});
    expect(result).toMatchObject({ forLLM: 'tool not found: missing', isError: true });
    expect(result.error).toMatchObject({ name: 'ToolNotFound', code: 500 });
  });

  test('registering and listing tools does not affect running calls', async () => {
    const registry = new ToolRegistry();
    registry.register(toolNamed('base', () => new Promise((resolve) => setImmediate(() => resolve('base')))));
    const calls = Array.from({ length: 100 }, (_, index) => {
      const call = registry.execute('base', {});
      registry.register(toolNamed(`tool_${index}`));
      expect(registry.toProviderDefs()).toHaveLength(registry.count());
      return call;
    });
    expect((await Promise.all(calls)).every(({ forLLM }) => forLLM === 'base')).toBe(true);
    expect(registry.count()).toBe(101);
  });

  test('logs start, arguments, completion, async start, errors and unknown tools, with durations', async () => {
    const lines: [string, string, LogFields | undefined][] = [];
    const at = (level: string) => (message: string, fields?: LogFields) =>
      lines.push([level, message, fields]);
    const logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
    const registry = new ToolRegistry({ logger }).register(
      readFile(),
      toolNamed('later', () => asyncResult('started')),
      toolNamed('broken', () => {
        throw new Error('disk full');
      }),
    );
    await registry.execute('read_file', { path: '/tmp/foo' });
    await registry.execute('later', {});
    await registry.execute('broken', {});
    await registry.execute('missing', {});
    const callId = expect.any(String);
    const durationMs = expect.any(Number);
    expect(lines).toEqual([
      ['info', 'Tool started', { tool: 'read_file', callId }],
      ['debug', 'Tool arguments', { tool: 'read_file', callId, arguments: { path: '/tmp/foo' } }],
      ['info', 'Tool completed', { tool: 'read_file', callId, durationMs, resultLength: 20 }],
      ['info', 'Tool started', { tool: 'later', callId }],
      ['debug', 'Tool arguments', { tool: 'later', callId, arguments: {} }],
      ['info', 'Tool started async work', { tool: 'later', callId, durationMs }],
      ['info', 'Tool started', { tool: 'broken', callId }],
      ['debug', 'Tool arguments', { tool: 'broken', callId, arguments: {} }],
      ['error', 'Tool failed', { tool: 'broken', callId, durationMs, error: expect.any(Error) }],
      ['warn', 'Tool not found', { tool: 'missing', callId }],
    ]);
  });

  test('getDefinitions, toProviderDefs, list, count and getSummaries return the registered tools', () => {
    const registry = new ToolRegistry().register(
      { ...readFile(), description: 'Read file contents' },
      toolNamed('message'),
    );
    const definitions = registry.tools().map((tool) => toolToSchema(tool));
    expect(registry.getDefinitions()).toEqual(definitions);
    expect(registry.toProviderDefs()).toEqual(definitions);
    expect(registry.list()).toEqual(['read_file', 'message']);
    expect(registry.count()).toBe(2);
    expect(registry.getSummaries()).toEqual([
      '- `read_file` - Read file contents',
      '- `message` - Does message',
    ]);
  });
});
