import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { type Tool, type ToolContext, ToolRegistry } from 'toolwright';

const greet: Tool = {
  name: 'greet',
  description: 'Returns a greeting',
  parameters: { type: 'object', properties: { name: { type: 'string' } } },
  execute: ({ name }: { name: string }) => `Hello, ${name}!`,
};

function tool(name: string, text = name): Tool {
  return { name, description: text, parameters: { type: 'object' }, execute: () => text };
}

describe('ToolRegistry', () => {
  test('a handler receives its input and a context, and returns text or an error', async () => {
    const registry = new ToolRegistry().register(greet, {
      ...tool('fail'),
      execute: (_args: unknown, context: ToolContext) => new Error(`no such thing in ${context.toolName}`),
    });
    expect((await registry.execute('greet', { name: 'World' })).forLLM).toBe('Hello, World!');
    expect(await registry.execute('fail', {})).toMatchObject({
      forLLM: 'no such thing in fail',
      isError: true,
    });
  });

  test('register takes any number of tools and replaces same names; get and tools return them', () => {
    const registry = new ToolRegistry();
    expect(registry.tools()).toEqual([]);
    const [a, b, newA] = [tool('a'), tool('b'), tool('a', 'new')];
    registry.register(a, b);
    expect(registry.tools()).toEqual([a, b]);
    registry.register(newA);
    expect(registry.tools()).toEqual([newA, b]);
    expect(registry.get('b')).toBe(b);
    expect(registry.get('c')).toBeUndefined();
  });

  test('merge copies the tools of the other registry, replaces same names, and leaves the other unchanged', () => {
    const [mine, theirs] = [tool('a', 'mine'), tool('a', 'theirs')];
    const registry = new ToolRegistry().register(mine, tool('b'));
    const other = new ToolRegistry().register(theirs, tool('c'));
    registry.merge(other);
    expect(registry.get('a')).toBe(theirs);
    expect(registry.list()).toEqual(['a', 'b', 'c']);
    expect(other.list()).toEqual(['a', 'c']);
    registry.register(tool('d'));
    expect(other.count()).toBe(2);
  });

  test('call never throws, and its answer has the id of the call', async () => {
    const registry = new ToolRegistry().register(greet, {
      ...tool('fail'),
      execute: () => {
        throw new Error('disk full');
      },
    });
    expect(await registry.call({ id: '1', name: 'greet', arguments: { name: 'World' } })).toEqual({
      toolCallId: '1',
      name: 'greet',
      content: 'Hello, World!',
      isError: false,
    });
    expect(await registry.call({ id: '2', name: 'missing', arguments: {} })).toEqual({
      toolCallId: '2',
      name: 'missing',
      content: 'tool not found: missing',
      isError: true,
    });
    expect(await registry.call({ id: '3', name: 'fail', arguments: {} })).toEqual({
      toolCallId: '3',
      name: 'fail',
      content: 'disk full',
      isError: true,
    });
  });

  test('call accepts raw JSON text as arguments', async () => {
    const result = await new ToolRegistry()
      .register(greet)
      .call({ id: '1', name: 'greet', arguments: '{"name":"World"}' });
    expect(result).toMatchObject({ content: 'Hello, World!', isError: false });
  });

  test('call validates the arguments, and the context has the raw text', async () => {
    let raw: unknown;
    const registry = new ToolRegistry().register({
      ...greet,
      execute: ({ name }: { name: string }, context: ToolContext) => {
        raw = context.rawArguments;
        return name;
      },
    });
    const text = '{ "name":  "World" }';
    await registry.call({ id: '1', name: 'greet', arguments: text });
    expect(raw).toBe(text);
    expect(await registry.call({ id: '2', name: 'greet', arguments: '{"name":' })).toMatchObject({
      isError: true,
      content: expect.stringMatching(/^Validation failed for tool 'greet':\n {2}- /),
    });
  });

  test('tools registered in the other registry after a merge do not appear', () => {
    const [registry, other] = [new ToolRegistry(), new ToolRegistry().register(tool('a'))];
    registry.merge(other);
    other.register(tool('b'));
    expect(registry.list()).toEqual(['a']);
  });

  test('the tool contract imports only from its own folder and the kernel', () => {
    const room = new URL('../../src/core/contract/', import.meta.url);
    const imports = readdirSync(room).flatMap((file) =>
      [...readFileSync(new URL(file, room), 'utf8').matchAll(/ from '([^']+)';$/gm)].map(([, from]) => from),
    );
    expect(imports.filter((from) => !/^\.\/|^\.\.\/kernel\//.test(from ?? ''))).toEqual([]);
  });

  test('merging {a, b} with {c} gives {a, b, c}', () => {
    const registry = new ToolRegistry().register(tool('a'), tool('b'));
    registry.merge(new ToolRegistry().register(tool('c')));
    expect(registry.list()).toEqual(['a', 'b', 'c']);
  });
});
