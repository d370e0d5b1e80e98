import { expect, test } from '@jest/globals';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { defineTool, Tool } from 'toolwright';
import { type ToolCallInfo, toolCallOf } from 'toolwright/nestjs';
import { ScriptedProvider } from 'toolwright/testing';
import { boot } from './boot.js';

class Tools {
  @Tool('Add')
  add(one: number, other = 2) {
    return one + other;
  }
}

interface Seen {
  readonly call: ToolCallInfo | undefined;
  readonly handler: unknown;
  readonly request: unknown;
}

async function bootSeeing() {
  const seen: Seen[] = [];
  const guard: CanActivate = {
    canActivate(context: ExecutionContext) {
      const request: unknown = context.switchToHttp().getRequest();
      seen.push({ call: toolCallOf(context), handler: context.getHandler(), request });
      return true;
    },
  };
  const booted = await boot({ providers: [Tools, { provide: APP_GUARD, useValue: guard }] });
  return { ...booted, seen };
}

test('a guard can read the tool, the validated arguments, the context and the request of a call', async () => {
  const { tools, toolwright, seen } = await bootSeeing();
  const request = { user: 'ada' };
  await tools.executeWithContext('add', { one: 1 }, toolwright.scopeOf(request, { data: { role: 'admin' } }));
  expect(seen).toMatchObject([
    {
      call: {
        tool: { name: 'add' },
        arguments: { one: 1, other: 2 },
        context: { toolName: 'add', data: { role: 'admin' } },
      },
      handler: Tools.prototype.add,
    },
  ]);
  expect(seen[0]?.call?.request).toBe(request);
  expect(seen[0]?.request).toBe(request);
});

test('the handler of a tool without a class is its own function', async () => {
  const { tools, seen } = await bootSeeing();
  const given = defineTool({ name: 'given', description: 'Given', execute: () => 'given' });
  tools.register(given);
  await tools.execute('given');
  expect(seen.map(({ handler, request }) => [handler, request])).toEqual([[given.execute, undefined]]);
});

test('a run can use a view of the tools of the application', async () => {
  const { tools, toolwright, seen } = await bootSeeing();
  const provider = new ScriptedProvider([
    { content: '', toolCalls: [{ id: 'a', name: 'add', arguments: { one: 1 } }] },
    { content: 'done' },
  ]);
  const config = { provider, model: 'm', tools: tools.view({ deny: ['add'] }) };
  const run = await toolwright.run([], { config });
  expect(run.toolCalls[0]?.result.forLLM).toContain('tool not found: add');
  expect(seen).toEqual([]);
});
