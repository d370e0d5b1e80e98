import { describe, expect, test } from '@jest/globals';
import { type RegisteredTool, type ToolDefinition, ToolRegistry } from 'toolwright';

function tool(name: string, more: Partial<ToolDefinition> = {}): ToolDefinition {
  return { name, description: name, parameters: { type: 'object' }, execute: () => name, ...more };
}

describe('registering', () => {
  test('a tool of the same name is replaced in its place', () => {
    const tools = new ToolRegistry().register(tool('a'), tool('b'));
    tools.register(tool('a', { description: 'new' }));
    expect(tools.getSummaries()).toEqual(['- `a` - new', '- `b` - b']);
  });

  test('all faults are thrown at once, and nothing is registered', () => {
    const tools = new ToolRegistry();
    const wrong = [
      tool('fine'),
      tool('1st'),
      { name: 'bare' },
      { parameters: { type: 'object' }, execute: () => 1 },
      null,
      class Shop {
        readonly name = 'shop';
      },
    ] as unknown as RegisteredTool[];
    let message = '';
    try {
      tools.register(...wrong);
    } catch (error) {
      ({ message } = error as Error);
      expect(error).toMatchObject({ name: 'InvalidToolSignature', code: 502 });
      expect((error as { faults: unknown[] }).faults).toHaveLength(6);
    }
    expect(message).toContain('the tool name "1st" is not accepted by every provider');
    expect(message).toContain('it has no parameters');
    expect(message).toContain('it cannot be executed');
    expect(message).toContain('register(a tool without a name): it has no name');
    expect(message).toContain('it is not a tool');
    expect(message).toContain('register(Shop): it is a class, not a tool');
    expect(tools.count()).toBe(0);
  });

  test.each(['a'.repeat(65), '', 'get-', 'a b', 'a.b', '-a', 'ä'])('the name %j is validated', (name) => {
    const register = () => new ToolRegistry().register(tool(name));
    if (name === 'get-') expect(register).not.toThrow();
    else expect(register).toThrow(/not accepted by every provider/);
  });

  test.each(['constructor', 'toString', '__proto__'])('a tool may be called %s', async (name) => {
    const tools = new ToolRegistry().register(tool(name));
    expect([tools.list(), (await tools.execute(name)).forLLM]).toEqual([[name], name]);
  });
});

describe('factories', () => {
  function factory() {
    const made: number[] = [];
    return {
      made,
      make: () => {
        const number = made.length;
        made.push(number);
        return tool('made', { execute: () => `instance ${number}` });
      },
    };
  }

  test('each call has a new instance, made exactly once', async () => {
    const { made, make } = factory();
    const tools = new ToolRegistry().register(make);
    expect(made).toEqual([0]);
    tools.toProviderDefs();
    tools.getSummaries();
    tools.offered('made');
    expect(made).toEqual([0]);
    const results = await Promise.all([tools.execute('made'), tools.execute('made')]);
    expect(results.map(({ forLLM }) => forLLM)).toEqual(['instance 1', 'instance 2']);
    expect(made).toEqual([0, 1, 2]);
  });

  test('a factory that throws later fails that call', async () => {
    let isBroken = false;
    const tools = new ToolRegistry().register(() => {
      if (isBroken) throw new Error('no database');
      return tool('made');
    });
    isBroken = true;
    expect(await tools.execute('made')).toMatchObject({ isError: true });
    isBroken = false;
    expect(await tools.execute('made')).toMatchObject({ isError: false });
  });
});

describe('views', () => {
  const tools = new ToolRegistry().register(
    tool('orders_find'),
    tool('orders_delete'),
    tool('users_find'),
    tool('ping'),
  );

  test.each([
    [{ allow: ['orders_*'] }, ['orders_find', 'orders_delete']],
    [{ deny: ['*_delete'] }, ['orders_find', 'users_find', 'ping']],
    [{ allow: ['orders_*', 'ping'], deny: ['*_delete'] }, ['orders_find', 'ping']],
    [{ allow: ['*_find'] }, ['orders_find', 'users_find']],
    [{ allow: [] }, []],
    [{ allow: ['orders'] }, []],
    [{ allow: ['.*'] }, []],
    [{ allow: ['*_fin'] }, []],
    [{ allow: ['rders_*'] }, []],
    [{ allow: ['*_delete', '*ers_*'] }, ['orders_find', 'orders_delete', 'users_find']],
    [{ deny: ['*_fin', 'ing'] }, ['orders_find', 'orders_delete', 'users_find', 'ping']],
    [{}, ['orders_find', 'orders_delete', 'users_find', 'ping']],
  ])('%j shows %j', (filter, shown) => {
    const view = tools.view(filter);
    expect(view.list()).toEqual(shown);
    expect(view.count()).toBe(shown.length);
    expect(view.toProviderDefs().map(({ function: { name } }) => name)).toEqual(shown);
  });

  test('a hidden tool cannot be called and is reported as not found', async () => {
    const view = tools.view({ deny: ['*_delete'] });
    expect(view.get('orders_delete')).toBeUndefined();
    expect((await view.execute('orders_delete')).forLLM).toBe('tool not found: orders_delete');
    expect(await view.call({ name: 'orders_delete' })).toMatchObject({ isError: true });
    expect((await view.execute('orders_find')).forLLM).toBe('orders_find');
  });

  test('a view of a view hides what either hides', () => {
    expect(
      tools
        .view({ allow: ['orders_*'] })
        .view({ deny: ['*_delete'] })
        .list(),
    ).toEqual(['orders_find']);
  });

  test('a view shows tools registered later and cannot be modified itself', () => {
    const growing = new ToolRegistry().register(tool('a'));
    const view = growing.view({ deny: ['b'] });
    const before = view.toProviderDefs();
    expect(view.toProviderDefs()).toBe(before);
    growing.register(tool('b'), tool('c'));
    expect(view.list()).toEqual(['a', 'c']);
    expect(view.toProviderDefs()).toHaveLength(2);
    expect(() => view.register(tool('d'))).toThrow(/a view cannot be changed/);
    expect(() => view.merge(tools)).toThrow(/a view cannot be changed/);
  });

  test('merging a view copies only its visible tools', () => {
    expect(new ToolRegistry().merge(tools.view({ allow: ['ping'] })).list()).toEqual(['ping']);
  });
});

describe('running', () => {
  test('calls without an id are numbered', async () => {
    const ids: string[] = [];
    const tools = new ToolRegistry().register(
      tool('who', { execute: (_args, { callId }) => void ids.push(callId) }),
    );
    await tools.execute('who');
    const answer = await tools.call({ name: 'who' });
    await tools.executeWithContext('who', {}, { callId: 'mine' });
    const { toolCallId } = await tools.call({ name: 'who' }, { callId: 'ours' });
    expect(ids).toEqual(['call_1', 'call_2', 'mine', 'ours']);
    expect([answer.toolCallId, toolCallId]).toEqual(['call_2', 'ours']);
  });

  test('a call that would suspend is an error result, and its body does not run', async () => {
    const fail = () => {
      throw new Error('must not run');
    };
    const approval = { ...tool('pay', { execute: fail }), approval: true };
    const client = { ...tool('locate', { execute: fail }), execution: 'client' as const };
    const tools = new ToolRegistry().register(approval, client);
    for (const name of ['pay', 'locate']) {
      expect(await tools.execute(name)).toMatchObject({ isError: true, error: { code: 511 } });
      expect(await tools.call({ name })).toMatchObject({ isError: true });
      expect((await tools.invoke({ id: '1', name, arguments: {} })).status).toBe('suspended');
    }
  });

  test('the timeout and mask of the registry apply to every way of calling', async () => {
    const tools = new ToolRegistry({ toolTimeoutMs: 5, describeError: () => 'out of order' }).register(
      tool('never', { execute: () => new Promise(() => {}) }),
      tool('broken', {
        execute: () => {
          throw new Error('hunter2');
        },
      }),
    );
    expect(await tools.execute('never')).toMatchObject({ error: { name: 'ToolTimedOut' } });
    expect((await tools.call({ name: 'broken' })).content).toBe('out of order');
    expect((await tools.view({ allow: ['*'] }).execute('broken')).forLLM).toBe('out of order');
  });

  test('a tool whose schema is a getter that returns a new object is offered and called', async () => {
    const fresh = {
      ...tool('fresh'),
      get parameters() {
        return { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
      },
    };
    const tools = new ToolRegistry().register(fresh);
    expect((await tools.execute('fresh', { n: 1 })).forLLM).toBe('fresh');
    expect((await tools.execute('fresh', {})).forLLM).toBe(
      "Validation failed for tool 'fresh':\n  - n: is required",
    );
    expect(tools.toProviderDefs()).toBe(tools.toProviderDefs());
  });
});
