import { expect, test } from '@jest/globals';
import {
  type CallHandler,
  type CanActivate,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  SetMetadata,
  UseGuards,
} from '@nestjs/common';
import { APP_GUARD, APP_INTERCEPTOR, Reflector } from '@nestjs/core';
import { map } from 'rxjs';
import {
  type AsyncCallback,
  agentTool,
  asyncResult,
  defineTool,
  discoverTools,
  Integer,
  registerFunction,
  runToolLoop,
  Tool,
  ToolContext,
  ToolRegistry,
  Toolset,
  toolResult,
} from 'toolwright';
import { toolCallOf } from 'toolwright/nestjs';
import { ScriptedProvider } from 'toolwright/testing';
import { boot } from './boot.js';

const Roles = (role: string) => SetMetadata('role', role);

/** Allows only callers with the role of the handler or the tool, by default `user`. */
@Injectable()
class RoleGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const call = toolCallOf(context);
    const role =
      this.reflector.getAllAndOverride<string>('role', [context.getHandler(), context.getClass()]) ?? 'user';
    return call?.context.data.role === role;
  }
}

@Injectable()
class Brackets implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(map((value) => (typeof value === 'string' ? `[${value}]` : value)));
  }
}

@Injectable()
class Declared {
  @Tool('Declared')
  @Roles('admin')
  declared() {
    return 'declared';
  }
}

const bootGuarded = () =>
  boot({
    providers: [
      Declared,
      { provide: APP_GUARD, useClass: RoleGuard },
      { provide: APP_INTERCEPTOR, useClass: Brackets },
    ],
  });

const late = () => defineTool({ name: 'late', description: 'Late', execute: () => 'late' });

test('guards and interceptors run for tools that are registered at run time, whatever their kind', async () => {
  const { tools } = await bootGuarded();
  tools.register(late(), () => defineTool({ name: 'each', description: 'Each', execute: () => 'each' }));
  tools.register(
    agentTool({
      name: 'agent',
      label: 'Agent',
      description: 'Agent',
      parameters: { type: 'object', properties: {} },
      execute: async () => ({ content: [{ type: 'text', content: 'agent' }], details: {} }),
    }),
  );
  registerFunction(tools, 'double', 'Double', [['n', Integer]], (n: number) => `${n * 2}`);
  for (const [name, args, text] of [
    ['late', {}, '[late]'],
    ['each', {}, '[each]'],
    ['agent', {}, 'agent'],
    ['double', { n: 4 }, '[8]'],
  ] as const) {
    expect((await tools.execute(name, args)).error).toMatchObject({ name: 'ToolRefused' });
    const allowed = await tools.executeWithContext(name, args, { data: { role: 'user' } });
    expect(allowed.forLLM).toBe(text);
  }
});

test('a tool that is taken out of the registry still runs its guards', async () => {
  const { tools } = await bootGuarded();
  registerFunction(tools, 'late', 'Late', [], () => 'late');
  const other = new ToolRegistry().register(...tools.tools());
  const merged = new ToolRegistry().merge(tools);
  const view = tools.view({ allow: ['*'] });
  for (const registry of [tools, other, merged, view])
    for (const name of ['late', 'declared']) {
      const refused = await registry.execute(name);
      expect(refused.isError).toBe(true);
      expect(refused.forLLM).toBe(`The tool '${name}' was refused: Forbidden resource`);
      expect(refused.error).toMatchObject({ code: 512 });
      const role = name === 'late' ? 'user' : 'admin';
      expect((await registry.executeWithContext(name, {}, { data: { role } })).forLLM).toBe(`[${name}]`);
    }
  const provider = new ScriptedProvider([
    { content: '', toolCalls: [{ id: 'a', name: 'declared', arguments: {} }] },
    { content: 'done' },
  ]);
  const run = await runToolLoop({ provider, model: 'm', tools: tools.tools() }, []);
  expect(run.toolCalls[0]?.result.forLLM).toBe("The tool 'declared' was refused: Forbidden resource");
});

test('a tool that passes its context to another tool does not pass the permission of its guards', async () => {
  const { tools } = await bootGuarded();
  const pass = (name: string) => (_args: object, context: ToolContext) =>
    tools.get(name)?.execute({}, context);
  tools.register(
    late(),
    defineTool({ name: 'to_declared', description: 'To declared', execute: pass('declared') }),
    defineTool({ name: 'to_late', description: 'To late', execute: pass('late') }),
  );
  let asked = 0;
  let runs = 0;
  const count: CanActivate = { canActivate: () => ++asked === 1 };
  class Recursive {
    readonly name = 'recursive';
    readonly description = 'Calls itself';
    readonly parameters = { type: 'object', properties: {} };

    @UseGuards(count)
    execute(args: object, context: ToolContext): unknown {
      runs += 1;
      return runs > 1 ? 'ran without being asked again' : tools.get('recursive')?.execute(args, context);
    }
  }
  tools.register(new Recursive());
  const as = (name: string) => tools.executeWithContext(name, {}, { data: { role: 'user' } });
  expect((await as('recursive')).forLLM).toBe("The tool 'recursive' was refused: Forbidden resource");
  expect(asked).toBe(2);
  expect((await as('to_late')).forLLM).toBe('[[late]]');
  expect((await as('to_declared')).forLLM).toBe("The tool 'declared' was refused: Forbidden resource");
});

test('tools of another registry are guarded as soon as they are merged', async () => {
  const { tools } = await bootGuarded();
  tools.merge(new ToolRegistry().register(late()));
  expect((await tools.execute('late')).isError).toBe(true);
});

test('metadata and guards on a hand-written tool apply', async () => {
  class Never implements CanActivate {
    canActivate(): boolean {
      return false;
    }
  }
  class Base {
    readonly description = 'By hand';
    readonly parameters = { type: 'object', properties: {} };
  }
  class RoleTool extends Base {
    readonly name = 'role_tool';

    @Roles('owner')
    execute() {
      return 'role';
    }
  }
  class GuardedTool extends Base {
    readonly name = 'guarded_tool';

    @UseGuards(Never)
    execute() {
      return 'never';
    }
  }
  @UseGuards(Never)
  class GuardedClass extends Base {
    readonly name = 'guarded_class';

    execute() {
      return 'never';
    }
  }
  const { tools } = await bootGuarded();
  tools.register(new RoleTool(), new GuardedTool(), new GuardedClass());
  const as = (name: string, role: string) => tools.executeWithContext(name, {}, { data: { role } });
  expect((await as('role_tool', 'user')).isError).toBe(true);
  expect((await as('role_tool', 'owner')).forLLM).toBe('[role]');
  expect((await as('guarded_tool', 'user')).error).toMatchObject({ name: 'ToolRefused' });
  expect((await as('guarded_class', 'user')).error).toMatchObject({ name: 'ToolRefused' });
});

test('hand-written tools keep their own state', async () => {
  class Stateful {
    readonly name = 'stateful';
    readonly description = 'Stateful';
    readonly #text = { type: 'string' };
    #chat = '';
    #callback: AsyncCallback | undefined;

    get parameters() {
      return { type: 'object', properties: { text: this.#text }, required: ['text'] };
    }

    setContext(channel: string, chatId: string): void {
      this.#chat = `${channel}/${chatId}`;
    }

    setCallback(callback: AsyncCallback): void {
      this.#callback = callback;
    }

    async execute({ text }: { readonly text: string }, context: ToolContext) {
      const chat = this.#chat;
      const callback = this.#callback;
      if (callback === undefined) return `${chat} ${text}`;
      setImmediate(() => callback(context, toolResult(`${chat} done`)));
      return asyncResult('started');
    }
  }
  const { tools } = await boot({});
  tools.register(new Stateful());
  const scope = { channel: 'c', chatId: '1' };
  expect((await tools.executeWithContext('stateful', { text: 'hi' }, scope)).forLLM).toBe('c/1 hi');
  const completion = new Promise<string>((resolve) => {
    void tools.executeWithContext('stateful', { text: 'hi' }, scope, (_context, { forLLM }) =>
      resolve(forLLM),
    );
  });
  expect(await completion).toBe('c/1 done');
  expect(await tools.execute('stateful', { text: 1 })).toMatchObject({ isError: true });
});

test('guards run before an approval is requested, and again after it was given', async () => {
  let asked = 0;
  @Injectable()
  class Counting implements CanActivate {
    canActivate(context: ExecutionContext): boolean {
      asked += 1;
      return toolCallOf(context)?.context.data.role === 'admin';
    }
  }
  @Injectable()
  @UseGuards(Counting)
  class Payments {
    @Tool({ description: 'Pay', approval: true })
    async pay(amount: number, context: ToolContext) {
      const account = await context.ask({ message: 'Which account?', schema: { type: 'string' } });
      return `paid ${amount} from ${account}`;
    }
  }
  const script = () =>
    new ScriptedProvider([
      { content: '', toolCalls: [{ id: 'a', name: 'pay', arguments: { amount: 5 } }] },
      { content: 'done' },
    ]);
  const { toolwright } = await boot({ options: { model: 'm' }, providers: [Payments] });
  const refused = await toolwright.run([], { config: { provider: script() } });
  expect(refused.status).toBe('completed');
  expect(refused.toolCalls[0]?.status).toBe('refused');

  const provider = script();
  const options = { config: { provider }, data: { role: 'admin' } };
  const first = await toolwright.run([], options);
  expect(first.pending?.map(({ kind }) => kind)).toEqual(['approval']);
  const yes = (first.pending ?? []).map(({ id }) => ({ id, approved: true }));
  const second = await toolwright.resume(first.state, yes, options);
  expect(second.pending?.map(({ kind }) => kind)).toEqual(['question']);
  const answers = (second.pending ?? []).map(({ id }) => ({ id, value: 'giro' }));
  const demoted = await toolwright.resume(second.state, answers, {
    config: { provider: new ScriptedProvider([{ content: 'done' }]) },
  });
  expect(demoted.toolCalls[0]?.status).toBe('refused');
  const third = await toolwright.resume(second.state, answers, options);
  expect(third.toolCalls[0]?.result.forLLM).toBe('paid 5 from giro');
  expect(asked).toBe(5);
});

test('the policy of the application runs after the guards', async () => {
  const order: string[] = [];
  @Injectable()
  class Tools {
    @Tool('Open')
    @UseGuards({
      canActivate: () => {
        order.push('guard');
        return true;
      },
    })
    open() {
      return 'open';
    }
  }
  const { tools } = await boot({
    options: {
      policy: ({ tool }) => {
        order.push(`policy ${tool.name}`);
        return { allow: false, reason: 'not today' };
      },
    },
    providers: [Tools],
  });
  expect((await tools.execute('open')).forLLM).toBe("The tool 'open' was refused: not today");
  expect(order).toEqual(['guard', 'policy open']);
});

/** Has tools without being a provider of the application. */
@Toolset()
@UseGuards(RoleGuard)
class Outside {
  @Tool('For administrators')
  @Roles('admin')
  administer() {
    return 'administered';
  }

  @Tool('For users')
  use() {
    return 'used';
  }
}

test('guards on a class and its methods apply to tools that `discoverTools` creates from it', async () => {
  const { tools: registry } = await boot({ providers: [RoleGuard] });
  registry.register(...discoverTools({ toolsets: [Outside] }));
  const asUser = { data: { role: 'user' } };
  expect((await registry.executeWithContext('use', {}, asUser)).forLLM).toBe('used');
  expect(await registry.executeWithContext('administer', {}, asUser)).toMatchObject({ isError: true });
  expect((await registry.executeWithContext('administer', {}, { data: { role: 'admin' } })).forLLM).toBe(
    'administered',
  );
});
