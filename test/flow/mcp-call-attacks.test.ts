import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  ask,
  type Bank,
  beginSession,
  callIn,
  callModern,
  LEGACY,
  lastMessage,
  messagesOf,
  nextOf,
  openBank,
  post,
  type Sender,
  textOf,
  type WireMessage,
} from './mcp-bank.js';

let bank: Bank;
let acme: Sender;
let globex: Sender;
beforeEach(async () => {
  bank = await openBank();
  acme = { url: bank.url, token: await bank.tokenOf('acme') };
  globex = { url: bank.url, token: await bank.tokenOf('globex') };
});
afterEach(() => bank.close());

const ACCEPT = { action: 'accept', content: {} };

/** The state of a suspended call, and the key of its answer. */
async function suspend(sender: Sender, name = 'pay', args: object = { amount: 5 }) {
  const { result } = await callModern(sender, { name, arguments: args });
  const [key = ''] = Object.keys(result?.inputRequests ?? {});
  return { key, requestState: result?.requestState ?? '', call: { name, arguments: args } };
}

describe('the state of a suspended call', () => {
  test('is rejected for another tenant, user or application, and without a token', async () => {
    const { key, requestState, call } = await suspend(acme);
    const answered = { ...call, requestState, inputResponses: { [key]: ACCEPT } };
    const others = [
      globex,
      { url: bank.url, token: await bank.tokenOf('acme', { sub: 'another user' }) },
      { url: bank.url, token: await bank.tokenOf('acme', { client: 'another-app' }) },
      // The same account in another tenant.
      { url: bank.url, token: await bank.tokenOf('acme', { others: { tenant: 'globex' } }) },
      { url: bank.url },
    ];
    for (const other of others) {
      const { result, error } = await callModern(other, answered);
      expect(error ?? result?.isError).toBeTruthy();
    }
    expect(bank.paid).toEqual([]);
    expect(textOf(await callModern(acme, answered))).toBe('paid 5');
  });

  test('approves no call in a session', async () => {
    const { key, requestState, call } = await suspend(acme);
    const session = await beginSession(acme);
    const params = { ...call, requestState, inputResponses: { [key]: ACCEPT } };
    const stream = await post({ ...acme, session }, { jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    const messages = messagesOf(stream);
    // The session may ignore or reject the state; the user must be asked before the call runs.
    const { value } = await messages.next();
    expect(bank.paid).toEqual([]);
    expect(value?.method === 'elicitation/create' || value?.error !== undefined).toBe(true);
    await messages.return(undefined);
  });

  test('is rejected for another tool, and for other arguments', async () => {
    const { key, requestState } = await suspend(acme);
    const others = [
      { name: 'pay', arguments: { amount: 6 } },
      { name: 'pay', arguments: { amount: 5, to: 'mallory' } },
      { name: 'pay', arguments: { amount: '5' } },
      { name: 'pay', arguments: {} },
      { name: 'greet', arguments: { amount: 5 } },
      { name: 'who_am_i', arguments: {} },
    ];
    for (const other of others) {
      const { error } = await callModern(acme, { ...other, requestState, inputResponses: { [key]: ACCEPT } });
      expect(error?.code).toBe(-32_602);
    }
    expect([bank.paid, bank.ran]).toEqual([[], []]);
  });

  test('is rejected if it was changed or forged', async () => {
    const { key, requestState, call } = await suspend(acme);
    const other = await suspend(globex);
    const half = Math.floor(requestState.length / 2);
    const flipped = (at: number) =>
      requestState.slice(0, at) + (requestState[at] === 'A' ? 'B' : 'A') + requestState.slice(at + 1);
    const states: readonly unknown[] = [
      ...[0, 20, half, requestState.length - 2].map(flipped),
      requestState.slice(0, half) + other.requestState.slice(half),
      requestState.slice(0, -1),
      `${requestState}A`,
      `${requestState}=`,
      '',
      Buffer.from(JSON.stringify({ waits: [], journal: { approved: true } })).toString('base64url'),
      JSON.stringify({ waits: [], journal: { approved: true } }),
    ];
    for (const state of states) {
      const { error } = await callModern(acme, {
        ...call,
        requestState: state,
        inputResponses: { [key]: ACCEPT },
      });
      expect(error?.code).toBe(-32_602);
    }
    for (const state of [1, null, {}, [requestState], { waits: [], journal: { approved: true } }]) {
      const message = await callModern(acme, {
        ...call,
        requestState: state,
        inputResponses: { [key]: ACCEPT },
      });
      expect(message.error ?? message.result?.inputRequests).toBeDefined();
    }
    expect(bank.paid).toEqual([]);
  });

  test('is required: an answer without it approves no call', async () => {
    const { key, call } = await suspend(acme);
    const { result } = await callModern(acme, { ...call, inputResponses: { [key]: ACCEPT } });
    expect(result?.inputRequests).toBeDefined();
    expect(bank.paid).toEqual([]);
  });
});

describe('invalid answers', () => {
  const SAMPLING = { role: 'assistant', content: { type: 'text', text: 'yes' }, model: 'm' };
  const ROOTS = { roots: [{ uri: 'file:///' }] };

  test.each<[string, unknown]>([
    ['with the reply of a model', SAMPLING],
    ['with a list of roots', ROOTS],
    ['with another action', { action: 'approve', content: {} }],
    ['with `approved`', { approved: true }],
    ['with a list as content and no action', { content: [] }],
    ['that is a list', [ACCEPT]],
    ['that is true', true],
    ['that is empty', {}],
  ])('an answer %s approves no call', async (_, answer) => {
    const { key, requestState, call } = await suspend(acme);
    const message = await callModern(acme, { ...call, requestState, inputResponses: { [key]: answer } });
    expect(message.error ?? message.result?.inputRequests).toBeDefined();
    expect(bank.paid).toEqual([]);
  });

  test('answers under other keys approve no call', async () => {
    const { key, requestState, call } = await suspend(acme);
    const keys = ['__proto__', 'constructor', 'toString', `${key} `, key.toUpperCase(), 'input_2'];
    const inputResponses = JSON.parse(
      `{${keys.map((name) => `${JSON.stringify(name)}:{"action":"accept"}`)}}`,
    );
    const message = await callModern(acme, { ...call, requestState, inputResponses });
    expect(message.error ?? message.result?.inputRequests).toBeDefined();
    expect(bank.paid).toEqual([]);
  });

  test.each<[string, unknown]>([
    ['a number', { action: 'accept', content: { answer: 7 } }],
    ['an object', { action: 'accept', content: { answer: { text: 'Ada' } } }],
    ['a list', { action: 'accept', content: { answer: ['Ada'] } }],
    ['null', { action: 'accept', content: { answer: null } }],
    ['empty content', { action: 'accept', content: {} }],
    ['no content', { action: 'accept' }],
    ['the reply of a model', SAMPLING],
    ['a list of roots', ROOTS],
  ])('a question for text does not accept %s', async (_, answer) => {
    const { key, requestState, call } = await suspend(acme, 'greet', {});
    const again = await callModern(acme, { ...call, requestState, inputResponses: { [key]: answer } });
    expect(again.result?.inputRequests).toBeDefined();
    const text = { action: 'accept', content: { answer: 'Ada', extra: { __proto__: 1 } } };
    const state = again.result?.requestState;
    const message = await callModern(acme, { ...call, requestState: state, inputResponses: { [key]: text } });
    expect(textOf(message)).toBe('string "Ada"');
  });
});

/** Starts a session, calls a tool that asks, and waits for its question. */
async function askedIn(sender: Sender, name = 'pay', args: object = { amount: 5 }) {
  const session = await beginSession(sender);
  const messages = messagesOf(await callIn({ ...sender, session }, name, args));
  const question = await nextOf(messages, 'elicitation/create');
  return { session, messages, question };
}

async function end(messages: AsyncGenerator<WireMessage>): Promise<WireMessage> {
  let last: WireMessage = {};
  for await (const message of messages) last = message;
  return last;
}

describe('elicitation in a session', () => {
  test('cannot be answered by another tenant, even with the right id', async () => {
    const { session, messages, question } = await askedIn(acme);
    const own = await beginSession(globex);
    const answer = (id: unknown) => ({ jsonrpc: '2.0', id, result: ACCEPT });
    const guesses = [question.id, String(question.id), ...Array.from({ length: 20 }, (_, id) => id)];
    for (const id of guesses)
      for (const sender of [
        { ...globex, session: own },
        { ...globex, session },
        { url: bank.url, session },
        { url: bank.url },
        globex,
      ])
        await (await post(sender, answer(id))).text();
    expect(bank.paid).toEqual([]);
    const declined = { jsonrpc: '2.0', id: question.id, result: { action: 'decline' } };
    await (await post({ ...acme, session }, declined)).text();
    expect((await end(messages)).result?.isError).toBe(true);
    expect(bank.paid).toEqual([]);
  });

  test('runs the call once, however often it is answered', async () => {
    const { session, messages, question } = await askedIn(acme);
    const answer = { jsonrpc: '2.0', id: question.id, result: ACCEPT };
    const responses = await Promise.all(Array.from({ length: 5 }, () => post({ ...acme, session }, answer)));
    for (const response of responses) await response.text();
    expect(textOf(await end(messages))).toBe('paid 5');
    await (await post({ ...acme, session }, answer)).text();
    expect(bank.paid).toEqual([{ tenant: 'acme', amount: 5 }]);
  });

  test('a refusal is final, even if an approval follows', async () => {
    const { session, messages, question } = await askedIn(acme);
    for (const result of [{ action: 'decline' }, ACCEPT])
      await (await post({ ...acme, session }, { jsonrpc: '2.0', id: question.id, result })).text();
    expect((await end(messages)).result?.isError).toBe(true);
    expect(bank.paid).toEqual([]);
  });

  test.each<[string, object]>([
    ['an error', { error: { code: -1, message: 'approved: true' } }],
    ['another action', { result: { action: 'approve', content: {} } }],
    [
      'the reply of a model',
      { result: { role: 'assistant', content: { type: 'text', text: 'yes' }, model: 'm' } },
    ],
    ['true', { result: { approved: true } }],
    ['an error together with a result', { result: { action: 'decline' }, error: { code: 1, message: 'm' } }],
  ])('%s approves no call', async (_, answer) => {
    const { session, messages, question } = await askedIn(acme);
    const response = await post({ ...acme, session }, { jsonrpc: '2.0', id: question.id, ...answer });
    await response.text();
    await (
      await post({ ...acme, session }, { jsonrpc: '2.0', id: question.id, result: { action: 'decline' } })
    ).text();
    const last = await end(messages);
    expect(last.result?.isError === true || last.error !== undefined).toBe(true);
    expect(bank.paid).toEqual([]);
  });

  test('a number is not an answer to a question for text', async () => {
    const { session, messages, question } = await askedIn(acme, 'greet', {});
    const answer = (id: unknown, content: object) =>
      post({ ...acme, session }, { jsonrpc: '2.0', id, result: { action: 'accept', content } });
    await (await answer(question.id, { answer: 7 })).text();
    for await (const message of messages) {
      if (message.method !== undefined) await (await answer(message.id, { answer: 'Ada' })).text();
      else expect(textOf(message)).not.toContain('number');
    }
  });
});

describe('streams', () => {
  const streamOf = ({ url, token, session }: Sender, headers: Record<string, string> = {}) =>
    fetch(url, {
      headers: {
        accept: 'text/event-stream',
        'mcp-session-id': session ?? '',
        'mcp-protocol-version': LEGACY,
        authorization: `Bearer ${token}`,
        ...headers,
      },
    });

  test('events of a session are not replayed to the session of another tenant', async () => {
    const session = await beginSession(acme);
    const response = await callIn({ ...acme, session }, 'who_am_i');
    const raw = await response.text();
    expect(raw).toContain('acme');
    const ids = Array.from(raw.matchAll(/^id: (.+)$/gm), ([, id = '']) => id);
    expect(ids.length).toBeGreaterThan(0);
    const own = await beginSession(globex);
    await (await callIn({ ...globex, session: own }, 'who_am_i')).text();
    for (const id of ids)
      for (const last of [id, id.replace(/\d+$/, '0'), id.replace(/_\d+$/, '_-1')]) {
        const replayed = await streamOf({ ...globex, session: own }, { 'last-event-id': last });
        const text = replayed.ok ? await firstText(replayed) : await replayed.text();
        expect(text).not.toContain('acme');
        expect((await streamOf({ ...globex, session }, { 'last-event-id': last })).status).toBe(404);
      }
  });

  test.each(['both revisions', '2026-07-28'])(
    'equal request ids and progress tokens do not mix up the calls of two tenants (%s)',
    async (revisions) => {
      const _meta = { progressToken: 'same' };
      const inSession = async (sender: Sender) =>
        callIn({ ...sender, session: await beginSession(sender) }, 'wait', {}, { _meta });
      const alone = (sender: Sender) => ask(sender, 'tools/call', { name: 'wait', arguments: {}, _meta });
      const calls = await Promise.all([
        revisions === '2026-07-28' ? alone(acme) : inSession(acme),
        alone(globex),
      ]);
      const all = calls.map((response) => response.text());
      while (bank.waiting.size < 2) await wait(5);
      for (const finish of bank.waiting.values()) finish();
      const [ofAcme = '', ofGlobex = ''] = await Promise.all(all);
      expect(ofAcme).toContain('result of acme');
      expect(ofGlobex).toContain('progress of globex');
      expect(ofAcme).not.toContain('globex');
      expect(ofGlobex).not.toContain('acme');
    },
  );

  test('a tenant cannot cancel the call of another tenant, even with its id', async () => {
    const session = await beginSession(acme);
    const answers = [
      callIn({ ...acme, session }, 'wait', {}, { id: 7 }).then(lastMessage),
      ask(globex, 'tools/call', { name: 'wait', arguments: {} }, { id: 7 }).then(lastMessage),
    ];
    while (bank.waiting.size < 2) await wait(5);
    const initech = { url: bank.url, token: await bank.tokenOf('initech') };
    const own = await beginSession(initech);
    const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } };
    for (const sender of [
      { ...initech, session: own },
      { ...initech, session },
      { url: bank.url, session },
    ])
      await (await post(sender, cancel)).text();
    await (await ask(initech, 'notifications/cancelled', { requestId: 7 })).text();
    for (const finish of bank.waiting.values()) finish();
    const texts = (await Promise.all(answers)).map(textOf);
    expect(texts).toEqual(['result of acme', 'result of globex']);
  });

  test('a session has only one stream, which other tenants cannot read', async () => {
    const session = await beginSession(acme);
    const stream = await streamOf({ ...acme, session });
    expect(stream.status).toBe(200);
    expect((await streamOf({ ...globex, session })).status).toBe(404);
    expect((await streamOf({ ...acme, session })).status).toBe(409);
    await stream.body?.cancel();
  });
});

/** The text that a stream has sent so far. */
async function firstText(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  const read = await Promise.race([reader?.read(), wait(50)]);
  await reader?.cancel();
  return read?.value ? new TextDecoder().decode(read.value) : '';
}
