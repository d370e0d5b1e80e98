import { describe, expect, test } from '@jest/globals';
import { defineTool, ToolRegistry } from 'toolwright';

const plain = (name: string, description = name) => defineTool({ name, description, execute: () => name });

describe('unregister', () => {
  test('removes tools, and the others keep their order', async () => {
    const registry = new ToolRegistry().register(plain('a'), plain('b'), plain('c'));
    expect(registry.unregister('a', 'nobody')).toBe(registry);
    expect(registry.list()).toEqual(['b', 'c']);
    expect(registry.toProviderDefs().map(({ function: { name } }) => name)).toEqual(['b', 'c']);
    expect((await registry.execute('a')).forLLM).toBe('tool not found: a');
  });

  test('of a registry also affects its views, which cannot unregister tools themselves', () => {
    const registry = new ToolRegistry().register(plain('a'), plain('b'));
    const view = registry.view({});
    registry.unregister('a');
    expect(view.list()).toEqual(['b']);
    expect(() => view.unregister('b')).toThrow('a view cannot be changed');
  });
});

describe('onChange', () => {
  test('calls its listener for every registered, replaced or removed tool until it is ended', () => {
    const registry = new ToolRegistry();
    const seen: string[][] = [];
    const end = registry.onChange(() => seen.push(registry.list()));
    registry.register(plain('a'), plain('b')).register(plain('a', 'another')).unregister('b', 'nobody');
    end();
    registry.register(plain('c'));
    expect(seen).toEqual([['a'], ['a', 'b'], ['a', 'b'], ['a']]);
  });

  test('works through a view and through merge', () => {
    const registry = new ToolRegistry();
    let changes = 0;
    registry.view({ allow: ['a'] }).onChange(() => {
      changes += 1;
    });
    registry.merge(new ToolRegistry().register(plain('a')));
    expect(changes).toBe(1);
  });

  test('a listener that throws does not prevent registration, and can be added twice', () => {
    const registry = new ToolRegistry();
    let calls = 0;
    const listener = () => {
      calls += 1;
      throw new Error('no');
    };
    const end = registry.onChange(listener);
    registry.onChange(listener);
    registry.register(plain('a'), plain('b'));
    expect([registry.list(), calls]).toEqual([['a', 'b'], 4]);
    end();
    registry.register(plain('c'));
    expect(calls).toBe(5);
  });
});
