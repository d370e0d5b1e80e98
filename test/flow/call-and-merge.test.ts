import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { type Tool, type ToolContext, ToolRegistry } from 'toolwright';

/** Greets by name, from raw JSON text. */
const greet: Tool = {
  name: 'greet',
  description: 'Returns a greeting',
  parameters: { type: 'object', properties: { name: { type: 'string' } } },
  execute: ({ name }: { name: string }) => `Hello, ${name}!`,
};

function tool(name: string, text = name): Tool {
  return { name, description: text, parameters: { type: 'object' }, execute: () => text };
}

describe('toolbox', () => {
  test('a handler takes a context and its input and gives text, or an error', async () => {
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

  test('register takes any number of tools, a same name replaces, get and tools give them back', () => {
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

  test('merge copies the other’s tools in, the other’s win, and the other is unchanged', () => {
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

  test('call never throws, and its answer carries the id of the call', async () => {
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

  test('greet with raw JSON text answers as in the example', async () => {
    const result = await new ToolRegistry()
      .register(greet)
      .call({ id: '1', name: 'greet', arguments: '{"name":"World"}' });
    expect(result).toMatchObject({ content: 'Hello, World!', isError: false });
  });

  test('the arguments are validated, and the raw text is in the context', async () => {
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

  test('a registry is flat: a merge is a copy, and later tools of the other do not appear', () => {
    const [registry, other] = [new ToolRegistry(), new ToolRegistry().register(tool('a'))];
    registry.merge(other);
    other.register(tool('b'));
    expect(registry.list()).toEqual(['a']);
  });

  test('the contract of a tool depends on its own room and the kernel only', () => {
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
