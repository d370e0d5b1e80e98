import { expect, test } from '@jest/globals';
import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { Args, Context, GqlExecutionContext, GraphQLModule, Query, Resolver } from '@nestjs/graphql';
import { MercuriusDriver, type MercuriusDriverConfig } from '@nestjs/mercurius';
import { Tool, ToolRegistry } from 'toolwright';
import { ToolwrightService, toolCallOf } from 'toolwright/nestjs';
import { Caller, type CallerRequest, CallerTools, OnlyFor } from './callers.js';
import { listen } from './listen.js';
import { promptFor, provider } from './model.js';

interface GraphqlContext {
  readonly req: CallerRequest;
}

/** A guard of an application with GraphQL: it finds the request of resolvers and of tool calls. */
@Injectable()
class HeaderGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const allowedUser: unknown = Reflect.getMetadata('only-for', context.getHandler());
    return allowedUser === undefined || requestOf(context).headers?.authorization === allowedUser;
  }
}

function requestOf(context: ExecutionContext): CallerRequest {
  const call = toolCallOf(context);
  if (call !== undefined) return call.request as CallerRequest;
  return GqlExecutionContext.create(context).getContext<GraphqlContext>().req;
}

@Resolver()
class ChatResolver {
  constructor(@Inject(ToolwrightService) private readonly toolwright: ToolwrightService) {}

  @Query(() => String)
  async asUser(@Args('tool') tool: string, @Context() { req }: GraphqlContext) {
    return (await this.toolwright.run(promptFor(tool), { request: req })).content;
  }

  @Query(() => String)
  async anonymous(@Args('tool') tool: string) {
    return (await this.toolwright.run(promptFor(tool))).content;
  }

  @Query(() => String)
  @OnlyFor('ada')
  guarded() {
    return 'guarded';
  }

  @Query(() => String)
  @Tool('Greet')
  greet(@Args('name') name: string) {
    return `hello ${name}`;
  }
}

/** Created for each request, which for a resolver is the context of GraphQL. */
@Resolver()
class ScopedResolver {
  constructor(
    @Inject(Caller) private readonly caller: Caller,
    @Inject(ToolwrightService) private readonly toolwright: ToolwrightService,
  ) {}

  @Query(() => [String])
  async shared(@Context() context: GraphqlContext) {
    const { content } = await this.toolwright.run(promptFor('who'), { request: context });
    return [String(this.caller.number), content.split(' ')[1]];
  }
}

test('a resolver runs the loop for the request that it passes, and anonymously without a request', async () => {
  const { app, url } = await listen({
    options: { provider, model: 'm' },
    imports: [
      GraphQLModule.forRoot<MercuriusDriverConfig>({ driver: MercuriusDriver, autoSchemaFile: true }),
    ],
    providers: [
      ...[Caller, CallerTools, ChatResolver, ScopedResolver],
      { provide: APP_GUARD, useClass: HeaderGuard },
    ],
  });
  const query = async (text: string, authorization: string) => {
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization },
      body: JSON.stringify({ query: `{ ${text} }` }),
    });
    const { data, errors } = (await response.json()) as {
      readonly data: Readonly<Record<string, string>> | null;
      readonly errors?: readonly { readonly message: string }[];
    };
    return data ?? errors?.[0]?.message;
  };
  expect(await query('asUser(tool: "who")', 'ada')).toEqual({ asUser: expect.stringMatching(/^ada \d+$/) });
  expect(await query('asUser(tool: "secret")', 'ada')).toEqual({ asUser: 'the secret' });
  expect(await query('asUser(tool: "secret")', 'bob')).toEqual({
    asUser: "The tool 'secret' was refused: Forbidden resource",
  });
  expect(await query('guarded', 'bob')).toBe('Forbidden resource');
  expect(await query('anonymous(tool: "who")', 'ada')).toEqual({
    anonymous: expect.stringMatching(/^anonymous \d+$/),
  });
  expect(await query('greet(name: "Ada")', 'ada')).toEqual({ greet: 'hello Ada' });
  expect((await app.get(ToolRegistry).execute('greet', { name: 'Ada' })).forLLM).toBe('hello Ada');
  const { shared } = (await query('shared', 'ada')) as { readonly shared: string };
  expect(new Set(shared).size).toBe(1);
});
