import { on, once } from 'node:events';
import { expect, test } from '@jest/globals';
import { Inject } from '@nestjs/common';
import { WsAdapter } from '@nestjs/platform-ws';
import { ConnectedSocket, MessageBody, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { from, map } from 'rxjs';
import { ToolwrightService } from 'toolwright/nestjs';
import { Caller, CallerTools } from './callers.js';
import { listen } from './listen.js';
import { promptFor, provider } from './model.js';

@WebSocketGateway()
class ChatGateway {
  constructor(@Inject(ToolwrightService) private readonly toolwright: ToolwrightService) {}

  @SubscribeMessage('as-user')
  async asUser(@MessageBody() { user, tool }: { readonly user: string; readonly tool: string }) {
    const { content } = await this.toolwright.run(promptFor(tool), { request: { user } });
    return { event: 'result', data: content };
  }

  @SubscribeMessage('as-client')
  async asClient(@MessageBody() tool: string, @ConnectedSocket() client: object) {
    const { content } = await this.toolwright.run(promptFor(tool), { request: client });
    return { event: 'result', data: content };
  }

  @SubscribeMessage('anonymous')
  async anonymous(@MessageBody() tool: string) {
    return { event: 'result', data: (await this.toolwright.run(promptFor(tool))).content };
  }

  @SubscribeMessage('streamed')
  streamed(@MessageBody() { user, tool }: { readonly user: string; readonly tool: string }) {
    return from(this.toolwright.stream(promptFor(tool), { request: { user } })).pipe(
      map((event) => ({
        event: 'result',
        data: event.type === 'call-end' ? event.result.forLLM : event.type,
      })),
    );
  }
}

async function connect() {
  const { host } = await listen({
    options: { provider, model: 'm' },
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
  const emit = (socket: WebSocket, event: string, data: unknown) => {
    const messages = on(socket, 'message');
    socket.send(JSON.stringify({ event, data }));
    return messages;
  };
  const ask = async (socket: WebSocket, event: string, data: unknown): Promise<string> => {
    for await (const [message] of emit(socket, event, data)) return JSON.parse(message.data).data;
    throw new Error('no answer');
  };
  return { open, emit, ask };
}

test('a gateway runs the loop for the request that it passes, and anonymously without a request', async () => {
  const { open, ask } = await connect();
  const socket = await open();
  expect(await ask(socket, 'as-user', { user: 'ada', tool: 'who' })).toMatch(/^ada \d+$/);
  expect(await ask(socket, 'as-user', { user: 'bob', tool: 'who' })).toMatch(/^bob \d+$/);
  expect(await ask(socket, 'anonymous', 'who')).toMatch(/^anonymous \d+$/);
  socket.close();
});

test('runs share request-scoped instances only if they pass the same client as their request', async () => {
  const { open, ask } = await connect();
  const [first, second] = await Promise.all([open(), open()]);
  const caller = await ask(first, 'as-client', 'who');
  expect(await ask(first, 'as-client', 'who')).toBe(caller);
  expect(await ask(second, 'as-client', 'who')).not.toBe(caller);
  for (const socket of [first, second]) socket.close();
});

test('a gateway may return a stream as an observable', async () => {
  const { open, emit } = await connect();
  const socket = await open();
  const received: string[] = [];
  for await (const [message] of emit(socket, 'streamed', { user: 'ada', tool: 'who' })) {
    received.push(JSON.parse(message.data).data);
    if (received.at(-1) === 'run-end') break;
  }
  expect(received).toContainEqual(expect.stringMatching(/^ada \d+$/));
  socket.close();
});
