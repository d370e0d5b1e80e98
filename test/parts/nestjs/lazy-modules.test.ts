import { expect, test } from '@jest/globals';
import { type CanActivate, Inject, Injectable, Module, Scope, UseGuards } from '@nestjs/common';
import { LazyModuleLoader, REQUEST } from '@nestjs/core';
import { defineTool, Tool, ToolContext, ToolDeclarationError } from 'toolwright';
import { ToolwrightModule, toolCallOf } from 'toolwright/nestjs';
import { boot } from './boot.js';

@Injectable()
class OnlyAdmins implements CanActivate {
  canActivate(context: Parameters<CanActivate['canActivate']>[0]): boolean {
    return toolCallOf(context)?.context.data.role === 'admin';
  }
}

@Injectable()
class Sales {
  total(): number {
    return 3;
  }
}

@Injectable()
class ReportTools {
  constructor(private readonly sales: Sales) {}

  @Tool('Report')
  report() {
    return this.sales.total();
  }

  @Tool('Close the books')
  @UseGuards(OnlyAdmins)
  close() {
    return 'closed';
  }
}

class MadeTools {
  @Tool('Made')
  made() {
    return 'made';
  }
}

const given = defineTool({ name: 'given', description: 'Given', execute: () => 'given' });

@Module({
  imports: [ToolwrightModule.forFeature([given])],
  providers: [Sales, ReportTools, { provide: 'MADE', useFactory: async () => new MadeTools() }],
})
class ReportsModule {}

test('tools of a lazily loaded module can be called after discover, behind their guards', async () => {
  const { module, tools, toolwright } = await boot({});
  const loader = module.get(LazyModuleLoader);
  await loader.load(() => ReportsModule);
  expect(tools.list()).toEqual([]);
  await toolwright.discover();
  expect([...tools.list()].sort()).toEqual(['close', 'given', 'made', 'report']);
  for (const [name, text] of [
    ['report', '3'],
    ['made', 'made'],
    ['given', 'given'],
  ] as const)
    expect((await tools.execute(name)).forLLM).toBe(text);
  expect((await tools.execute('close')).error).toMatchObject({ name: 'ToolRefused' });
  expect((await tools.executeWithContext('close', {}, { data: { role: 'admin' } })).forLLM).toBe('closed');
  await loader.load(() => ReportsModule);
  await toolwright.discover();
  expect(tools.count()).toBe(4);
});

test('a lazily loaded toolset can be request-scoped; its dependencies are injected, but not resolved', async () => {
  @Injectable({ scope: Scope.REQUEST })
  class Mine {
    constructor(
      @Inject(REQUEST) private readonly request: { readonly user: string },
      private readonly sales: Sales,
    ) {}

    @Tool('Mine')
    mine() {
      return `${this.request.user} ${this.sales.total()}`;
    }

    @Tool('Resolved')
    resolved(context: ToolContext) {
      return context.resolve(Sales).total();
    }
  }
  @Module({ providers: [Mine, Sales] })
  class MineModule {}
  @Injectable()
  class Early {
    @Tool('Early')
    early(context: ToolContext) {
      return context.resolve(Early) === this;
    }
  }
  const { module, tools, toolwright } = await boot({ options: { exposeErrors: true }, providers: [Early] });
  expect((await tools.execute('early')).forLLM).toBe('true');
  await module.get(LazyModuleLoader).load(() => MineModule);
  await toolwright.discover();
  const scope = toolwright.scopeOf({ user: 'ada' });
  expect((await tools.executeWithContext('mine', {}, scope)).forLLM).toBe('ada 3');
  expect(await tools.executeWithContext('resolved', {}, scope)).toMatchObject({
    isError: true,
    forLLM: expect.stringContaining('could not find Sales'),
  });
});

test('errors in a lazily loaded module are thrown by discover, and nothing is registered', async () => {
  @Injectable()
  class Again {
    @Tool('Report')
    report() {}

    @Tool('Fine')
    fine() {}
  }
  @Module({ providers: [Again] })
  class AgainModule {}
  const { module, tools, toolwright } = await boot({ providers: [Sales, ReportTools] });
  await module.get(LazyModuleLoader).load(() => AgainModule);
  await expect(toolwright.discover()).rejects.toThrow(ToolDeclarationError);
  expect(tools.list()).toEqual(['report', 'close']);
});

test('a module that is still loading is discovered the next time', async () => {
  const made = Promise.withResolvers<MadeTools>();
  const isAsked = Promise.withResolvers<void>();
  @Module({
    providers: [
      Sales,
      ReportTools,
      {
        provide: 'MADE',
        useFactory: () => {
          isAsked.resolve();
          return made.promise;
        },
      },
    ],
  })
  class SlowModule {}
  const { module, tools, toolwright } = await boot({});
  const loading = module.get(LazyModuleLoader).load(() => SlowModule);
  await isAsked.promise;
  await toolwright.discover();
  expect(tools.list()).not.toContain('made');
  made.resolve(new MadeTools());
  await loading;
  await toolwright.discover();
  expect([...tools.list()].sort()).toEqual(['close', 'made', 'report']);
  expect((await tools.execute('made')).forLLM).toBe('made');
});
