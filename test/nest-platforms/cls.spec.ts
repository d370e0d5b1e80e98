import { expect, test } from '@jest/globals';
import { Controller, Get, Inject, Injectable, Sse } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { ClsModule, ClsService } from 'nestjs-cls';
import { filter, from, map } from 'rxjs';
import { Tool } from 'toolwright';
import { ToolwrightService } from 'toolwright/nestjs';
import { listen } from './listen.js';
import { promptFor, provider } from './model.js';

@Injectable()
class ClsTools {
  constructor(@Inject(ClsService) private readonly cls: ClsService) {}

  @Tool('Who calls?')
  async who() {
    await Promise.resolve();
    return this.cls.get<string>('user');
  }

  @Tool('Return the note of the handler')
  note() {
    return this.cls.get<string | undefined>('note') ?? 'no note';
  }
}

@Controller()
class ChatController {
  constructor(
    @Inject(ToolwrightService) private readonly toolwright: ToolwrightService,
    @Inject(ClsService) private readonly cls: ClsService,
  ) {}

  @Get('note')
  async note() {
    this.cls.set('note', 'noted');
    return (await this.toolwright.run(promptFor('note'))).content;
  }

  @Get()
  async run() {
    return (await this.toolwright.run(promptFor('who'))).content;
  }

  @Sse('events')
  events() {
    return from(this.toolwright.stream(promptFor('who'))).pipe(
      filter((event) => event.type === 'call-end'),
      map(({ result }) => ({ data: { text: result.forLLM } })),
    );
  }
}

test.each(['middleware', 'guard', 'interceptor'] as const)(
  'tools and streams see the context that the %s of nestjs-cls opens under Fastify',
  async (enhancer) => {
    const setup = (cls: ClsService, request: FastifyRequest) =>
      cls.set('user', String(request.headers.authorization));
    const { url } = await listen({
      options: { provider, model: 'm' },
      imports: [
        ClsModule.forRoot({
          global: true,
          [enhancer]: {
            mount: true,
            setup: (cls: ClsService, from: { switchToHttp?(): { getRequest(): FastifyRequest } }) =>
              setup(cls, from.switchToHttp?.().getRequest() ?? (from as FastifyRequest)),
          },
        }),
      ],
      controllers: [ChatController],
      providers: [ClsTools],
    });
    const get = async (path: string, authorization: string) =>
      (await fetch(`${url}${path}`, { headers: { authorization } })).text();
    const users = Array.from({ length: 20 }, (_, index) => `user-${index}`);
    expect(await Promise.all(users.map((user) => get('/', user)))).toEqual(users);
    for (const user of users.slice(0, 3)) expect(await get('/events', user)).toContain(`{"text":"${user}"}`);
    expect(await get('/note', 'ada')).toBe(enhancer === 'interceptor' ? 'no note' : 'noted');
  },
);
