import { on, once } from 'node:events';
import { expect, test } from '@jest/globals';
import { Inject } from '@nestjs/common';
import { WsAdapter } from '@nestjs/platform-ws';
import { ConnectedSocket, MessageBody, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { from, map } from 'rxjs';
import { ToolwrightService } from 'toolwright/nestjs';
import { Caller, CallerTools } from './callers.js';
import { listen } from './listen.js';
import { asks, obedient } from './model.js';

@WebSocketGateway()
class ChatGateway {
  constructor(@Inject(ToolwrightService) private readonly toolwright: ToolwrightService) {}

  @SubscribeMessage('as-user')
  async asUser(@MessageBody() { user, tool }: { readonly user: string; readonly tool: string }) {
    const { content } = await this.toolwright.run(asks(tool), { request: { user } });
    return { event: 'said', data: content };
  }

  @SubscribeMessage('as-client')
  async asClient(@MessageBody() tool: string, @ConnectedSocket() client: object) {
    const { content } = await this.toolwright.run(asks(tool), { request: client });
    return { event: 'said', data: content };
  }

  @SubscribeMessage('as-nobody')
  async asNobody(@MessageBody() tool: string) {
    return { event: 'said', data: (await this.toolwright.run(asks(tool))).content };
  }

  @SubscribeMessage('streamed')
  streamed(@MessageBody() { user, tool }: { readonly user: string; readonly tool: string }) {
    return from(this.toolwright.stream(asks(tool), { request: { user } })).pipe(
      map((event) => ({ event: 'said', data: event.type === 'call-end' ? event.result.forLLM : event.type })),
    );
  }
}

async function connect() {
  const { host } = await listen({
    options: { provider: obedient, model: 'm' },
    providers: [Caller, CallerTools, ChatGateway],
    before: (app) => {
      app.useWebSocketAdapter(new WsAdapter(app));
    },
  });
  const open = async () => {
    const socket = new WebSocket(`ws://${host}`);
    await once(socket, 'open');
    return socket;
  };
  const say = (socket: WebSocket, event: string, data: unknown) => {
    const heard = on(socket, 'message');
    socket.send(JSON.stringify({ event, data }));
    return heard;
  };
  const ask = async (socket: WebSocket, event: string, data: unknown): Promise<string> => {
    for await (const [message] of say(socket, event, data)) return JSON.parse(message.data).data;
    throw new Error('no answer');
  };
  return { open, say, ask };
}

test('a gateway runs the loop for the request that it gives, and for nobody without one', async () => {
  const { open, ask } = await connect();
  const socket = await open();
  expect(await ask(socket, 'as-user', { user: 'ada', tool: 'who' })).toMatch(/^ada \d+$/);
  expect(await ask(socket, 'as-user', { user: 'bob', tool: 'who' })).toMatch(/^bob \d+$/);
  expect(await ask(socket, 'as-nobody', 'who')).toMatch(/^nobody \d+$/);
  socket.close();
});

test('runs of one client as the request share its instances, and those of another do not', async () => {
  const { open, ask } = await connect();
  const [one, other] = await Promise.all([open(), open()]);
  const first = await ask(one, 'as-client', 'who');
  expect(await ask(one, 'as-client', 'who')).toBe(first);
  expect(await ask(other, 'as-client', 'who')).not.toBe(first);
  for (const socket of [one, other]) socket.close();
});

test('a gateway may return a stream as an observable', async () => {
  const { open, say } = await connect();
  const socket = await open();
  const heard: string[] = [];
  for await (const [message] of say(socket, 'streamed', { user: 'ada', tool: 'who' })) {
    heard.push(JSON.parse(message.data).data);
    if (heard.at(-1) === 'run-end') break;
  }
  expect(heard).toContainEqual(expect.stringMatching(/^ada \d+$/));
  socket.close();
});
