import { createHmac, generateKeyPairSync } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { exportSPKI, importJWK } from 'jose';
import { jwks, type VerifiedToken } from 'toolwright/mcp';
import { tokenIssuer } from '../parts/mcp/token-issuer.js';
import { serve } from '../setup/loopback.js';
import {
  ask,
  type Bank,
  beginSession,
  callIn,
  callModern,
  LEGACY,
  lastMessage,
  openBank,
  post,
  RESOURCE,
  textOf,
} from './mcp-bank.js';

let bank: Bank;
beforeEach(async () => {
  bank = await openBank();
});
afterEach(() => bank.close());

const PING = { jsonrpc: '2.0', id: 9, method: 'ping' };

describe('session fixation', () => {
  test('a session id chosen by an attacker is never a session, before and after the victim signs in', async () => {
    const session = 'b7f9a1de-0000-4000-8000-000000000000';
    const victim = { url: bank.url, token: await bank.tokenOf('acme') };
    expect(await beginSession({ ...victim, session })).toBeUndefined();
    expect((await post({ ...victim, session }, PING)).status).toBe(404);
    const own = await beginSession(victim);
    expect(own).toBeDefined();
    expect(own).not.toBe(session);
    expect((await post({ ...victim, session }, PING)).status).toBe(404);
    expect(bank.mcp.sessionCount).toBe(1);
  });

  test('callers without a token get no session', async () => {
    expect(await beginSession({ url: bank.url })).toBeUndefined();
    expect(bank.mcp.sessionCount).toBe(0);
  });

  test('a session is closed to other tenants, to other applications of the user, and without a token', async () => {
    const owner = { url: bank.url, token: await bank.tokenOf('acme') };
    const session = await beginSession(owner);
    const strangers = [
      await bank.tokenOf('globex'),
      await bank.tokenOf('acme', { client: 'another-app' }),
      undefined,
    ];
    for (const token of strangers) {
      const stranger = { url: bank.url, token, session };
      const headers = {
        accept: 'text/event-stream',
        'mcp-session-id': session ?? '',
        'mcp-protocol-version': LEGACY,
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      };
      const responses = [
        await post(stranger, PING),
        await callIn(stranger, 'who_am_i'),
        await fetch(bank.url, { headers }),
        await fetch(bank.url, { headers: { ...headers, 'last-event-id': '_GET_stream_0' } }),
        await fetch(bank.url, { method: 'DELETE', headers }),
      ];
      for (const response of responses) {
        expect([401, 404]).toContain(response.status);
        await response.text();
      }
    }
    expect(bank.ran).toEqual([]);
    const own = await lastMessage(await callIn({ ...owner, session }, 'who_am_i'));
    expect(textOf(own)).toContain('acme');
  });

  test('a session id in the URL or in a cookie is ignored', async () => {
    const owner = { url: bank.url, token: await bank.tokenOf('acme') };
    const session = await beginSession(owner);
    const url = new URL(`?mcp-session-id=${session}&sessionId=${session}`, bank.url);
    const headers = { cookie: `mcp-session-id=${session}`, 'mcp-protocol-version': LEGACY };
    const response = await post(
      { ...owner, url },
      { ...PING, method: 'notifications/initialized' },
      { headers },
    );
    expect(response.status).not.toBe(404);
    expect(bank.mcp.sessionCount).toBe(1);
  });

  test('tokens without an account do not share a session, even from the same application', async () => {
    await bank.close();
    const verify = async (token: string): Promise<VerifiedToken> => ({
      token,
      clientId: 'an-app',
      scopes: [],
      expiresAt: Date.now() / 1_000 + 60,
    });
    bank = await openBank({ oauth: { resource: RESOURCE, issuer: 'https://auth.example.org', verify } });
    const owner = { url: bank.url, token: 'token-of-acme' };
    const session = await beginSession(owner);
    expect((await post({ ...owner, session }, PING)).status).toBe(200);
    expect((await post({ url: bank.url, token: 'token-of-globex', session }, PING)).status).toBe(404);
  });
});

const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const claimsOf = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());

/** A token with real claims, and an HMAC whose key is public. */
function hmacToken(token: string, key: string, header: object): string {
  const signed = `${encoded({ alg: 'HS256', ...header })}.${token.split('.')[1]}`;
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`;
}

describe('token substitution', () => {
  const forged: Readonly<Record<string, (real: string) => Promise<string> | string>> = {
    'that has expired': () => bank.tokenOf('acme', { expiresIn: -60 }),
    'without an expiry': () => bank.tokenOf('acme', { others: { exp: undefined } }),
    'that is not valid yet': () =>
      bank.tokenOf('acme', { others: { nbf: Math.floor(Date.now() / 1_000) + 600 } }),
    'for another audience': () => bank.tokenOf('acme', { aud: 'https://other.example.org/mcp' }),
    'for an audience with the same prefix': () => bank.tokenOf('acme', { aud: `${RESOURCE}/admin` }),
    'for the host of this audience': () => bank.tokenOf('acme', { aud: new URL(RESOURCE).origin }),
    'without an audience': () => bank.tokenOf('acme', { others: { aud: undefined } }),
    'of another issuer': () => bank.tokenOf('acme', { iss: 'https://evil.example' }),
    'of an issuer with an additional slash': () => bank.tokenOf('acme', { iss: `${bank.issuer.issuer}/` }),
    'signed with another key under the same key id': async () => {
      const [own] = bank.issuer.keys.keys;
      const stranger = await tokenIssuer(RESOURCE);
      return stranger.issue({ header: { kid: own?.kid ?? '' } });
    },
    'with an unknown key id': () => bank.tokenOf('acme', { header: { kid: 'unknown' } }),
    'with a path as key id': () => bank.tokenOf('acme', { header: { kid: '../../../../dev/null' } }),
    'with an extension that must be understood': () =>
      bank.tokenOf('acme', { header: { crit: ['tenant'], tenant: 'globex' } }).catch(() => 'a.b.c'),
    'without a signature': (real) => `${encoded({ alg: 'none' })}.${real.split('.')[1]}.`,
    'whose algorithm is none in another case': (real) => `${encoded({ alg: 'NoNe' })}.${real.split('.')[1]}.`,
    'whose signature is cut off': (real) => real.slice(0, real.lastIndexOf('.') + 1),
    'whose claims were changed': (real) => {
      const [header, , signature] = real.split('.');
      return [header, encoded({ ...claimsOf(real), tenant: 'globex' }), signature].join('.');
    },
    'with an HMAC whose secret is the public key as PEM': async (real) => {
      const [jwk = {}] = bank.issuer.keys.keys;
      const key = (await importJWK(jwk, 'ES256', { extractable: true })) as Parameters<typeof exportSPKI>[0];
      return hmacToken(real, await exportSPKI(key), { kid: jwk.kid });
    },
    'with an HMAC whose secret is the public key as JSON': (real) => {
      const [jwk = {}] = bank.issuer.keys.keys;
      return hmacToken(real, JSON.stringify(jwk), { kid: jwk.kid });
    },
    'with an HMAC and an empty secret': (real) => hmacToken(real, '', {}),
    'that is encrypted instead of signed': () => `${encoded({ alg: 'dir', enc: 'A256GCM' })}..AAAA.AAAA.AAAA`,
    'that is not a token': () => 'null',
  };

  test.each(Object.entries(forged))(
    'a token %s is refused with 401 in both revisions, and nothing runs',
    async (_, forge) => {
      const token = await forge(await bank.tokenOf('acme'));
      const modern = await ask({ url: bank.url, token }, 'tools/call', { name: 'who_am_i', arguments: {} });
      expect(modern.status).toBe(401);
      expect(modern.headers.get('www-authenticate')).toContain('error="invalid_token"');
      expect(await beginSession({ url: bank.url, token })).toBeUndefined();
      // An invalid token differs from no token: public tools do not run, either.
      expect(
        (await ask({ url: bank.url, token }, 'tools/call', { name: 'hours', arguments: {} })).status,
      ).toBe(401);
      expect(bank.ran).toEqual([]);
    },
  );

  test.each(['jku', 'x5u'])(
    'no key is read from the URL in `%s` of a token, or from the token itself',
    async (field) => {
      const stranger = await tokenIssuer(RESOURCE);
      let reads = 0;
      await using server = await serve((_request, response) => {
        reads += 1;
        response.setHeader('content-type', 'application/json').end(JSON.stringify(stranger.keys));
      });
      const [jwk] = stranger.keys.keys;
      const token = await stranger.issue({ header: { [field]: `${server.url}/keys`, jwk: jwk as never } });
      const response = await ask({ url: bank.url, token }, 'tools/call', { name: 'who_am_i', arguments: {} });
      expect(response.status).toBe(401);
      expect([reads, bank.ran]).toEqual([0, []]);
    },
  );

  test('a flood of tokens with unknown key ids does not cause repeated reads of the keys', async () => {
    await bank.close();
    const stranger = await tokenIssuer(RESOURCE);
    let reads = 0;
    await using server = await serve((_request, response) => {
      reads += 1;
      response.setHeader('content-type', 'application/json').end(JSON.stringify(stranger.keys));
    });
    const verify = jwks(`${server.url}/keys`);
    bank = await openBank({ oauth: { resource: RESOURCE, issuer: stranger.issuer, verify } });
    const flood = Array.from({ length: 100 }, async (_, index) => {
      const token = await stranger.issue({ header: { kid: `unknown-${index}` } });
      const response = await ask({ url: bank.url, token }, 'tools/list');
      await response.text();
      return response.status;
    });
    expect(new Set(await Promise.all(flood))).toEqual(new Set([401]));
    expect(reads).toBeLessThan(5);
  });

  test.each<[string, (token: string) => Record<string, string>]>([
    ['with another scheme', (token) => ({ authorization: `Basic ${token}` })],
    ['together with another token', (token) => ({ authorization: `Bearer ${token}, Bearer ${token}` })],
    ['in a cookie', (token) => ({ cookie: `access_token=${token}` })],
    ['in a proxy header', (token) => ({ 'x-forwarded-authorization': `Bearer ${token}` })],
  ])('a token %s is not accepted', async (_, headersOf) => {
    const headers = headersOf(await bank.tokenOf('acme'));
    const response = await ask(
      { url: bank.url },
      'tools/call',
      { name: 'who_am_i', arguments: {} },
      { headers },
    );
    expect(response.status).toBe(401);
    expect(bank.ran).toEqual([]);
  });

  test('a key that is not in the set is not accepted, whatever its type', async () => {
    const { privateKey } = generateKeyPairSync('ed25519');
    const { SignJWT } = await import('jose');
    const claims = claimsOf(await bank.tokenOf('acme'));
    for (const kid of [bank.issuer.keys.keys[0]?.kid, undefined]) {
      const token = await new SignJWT(claims)
        .setProtectedHeader({ alg: 'EdDSA', ...(kid !== undefined && { kid }) })
        .sign(privateKey);
      expect((await ask({ url: bank.url, token }, 'tools/list')).status).toBe(401);
    }
  });
});

describe('confused deputy', () => {
  test('the caller is taken from the token only, whatever else the request contains', async () => {
    const sender = { url: bank.url, token: await bank.tokenOf('acme') };
    const claim = {
      tenant: 'globex',
      owner: { tenant: 'globex' },
      authInfo: { extra: { tenant: 'globex' } },
    };
    const headers = { 'x-tenant': 'globex', 'x-forwarded-user': 'globex', 'x-user': 'globex' };
    const forged = { _meta: { ...claim, scopes: ['admin'] }, ...claim, scopes: ['admin'] };
    const modern = await callModern(sender, { name: 'who_am_i', arguments: claim, ...forged }, { headers });
    const session = await beginSession(sender);
    const params = { name: 'who_am_i', arguments: claim, ...forged };
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
    const legacy = await lastMessage(await post({ ...sender, session }, body, { headers }));
    for (const message of [modern, legacy])
      expect(JSON.parse(textOf(message))).toEqual({ owner: { tenant: 'acme' }, scopes: [], tenant: 'acme' });
  });

  test('each request of a session has the scopes of its own token', async () => {
    const user = { url: bank.url, token: await bank.tokenOf('acme', { scope: 'admin' }) };
    const session = await beginSession(user);
    const pay = (token: string) => callIn({ url: bank.url, token, session }, 'pay_quietly', { amount: 1 });
    expect(textOf(await lastMessage(await pay(user.token)))).toBe('paid 1');
    const fewer = await pay(await bank.tokenOf('acme'));
    expect(fewer.status).toBe(403);
    await fewer.text();
    expect(bank.paid).toHaveLength(1);
  });

  test('the token of a caller is in no response and in no log line', async () => {
    const token = await bank.tokenOf('acme');
    const sender = { url: bank.url, token };
    const session = await beginSession(sender);
    const responses = [
      await ask(sender, 'tools/list'),
      await ask(sender, 'tools/call', { name: 'who_am_i', arguments: {} }),
      await ask(sender, 'tools/call', { name: 'pay_quietly', arguments: { amount: 1 } }),
      await ask(sender, 'tools/call', { name: 'unknown', arguments: {} }),
      await ask({ url: bank.url, token: `${token}x` }, 'tools/list'),
      await callIn({ ...sender, session }, 'pay', { amount: 'much' }),
      await post({ ...sender, session }, '{'),
    ];
    const [, , signature = ''] = token.split('.');
    for (const response of responses) {
      const all = JSON.stringify([...response.headers]) + (await response.text());
      expect(all).not.toContain(signature);
    }
    expect(bank.log.join('\n')).not.toContain(signature);
  });
});

describe('contradicting headers and bodies', () => {
  const REFUSED = [400, 401, 403, 404];

  test('the required scopes depend on the body, not on Mcp-Method and Mcp-Name', async () => {
    const token = await bank.tokenOf('acme');
    const claims: readonly Record<string, string>[] = [
      { 'mcp-name': 'hours' },
      { 'mcp-method': 'tools/list' },
      { 'mcp-method': 'ping', 'mcp-name': '' },
      { 'mcp-method': 'server/discover' },
      { 'mcp-protocol-version': LEGACY },
    ];
    for (const headers of claims)
      for (const sender of [{ url: bank.url }, { url: bank.url, token }]) {
        const params = { name: 'pay_quietly', arguments: { amount: 1 } };
        const response = await ask(sender, 'tools/call', params, { headers });
        expect(REFUSED).toContain(response.status);
        await response.text();
      }
    expect(bank.paid).toEqual([]);
  });

  test('a call whose headers name another tool or method does not run', async () => {
    const sender = { url: bank.url, token: await bank.tokenOf('acme') };
    const claims: readonly Record<string, string>[] = [
      { 'mcp-name': 'who_am_i' },
      { 'mcp-method': 'tools/list' },
    ];
    for (const headers of claims) {
      const response = await ask(sender, 'tools/call', { name: 'hours', arguments: {} }, { headers });
      expect(response.status).toBe(400);
      expect((await lastMessage(response)).error?.code).toBe(-32_020);
    }
    expect(bank.ran).toEqual([]);
  });

  test.each<[string, string]>([
    ['a batch', '[HOURS,PAY]'],
    ['a batch in a batch', '[[PAY]]'],
    ['a batch that ends publicly', '[PAY,HOURS]'],
    [
      'a duplicate key',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hours","name":"pay_quietly","arguments":{"amount":1}}}',
    ],
    [
      'a duplicate method',
      '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"pay_quietly","arguments":{"amount":1}}}',
    ],
    [
      'a name in an array',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["pay_quietly"],"arguments":{"amount":1}}}',
    ],
    [
      'a method in an array',
      '{"jsonrpc":"2.0","id":1,"method":["tools/call"],"params":{"name":"pay_quietly","arguments":{"amount":1}}}',
    ],
    [
      'a method in another case',
      '{"jsonrpc":"2.0","id":1,"method":"Tools/Call","params":{"name":"pay_quietly","arguments":{"amount":1}}}',
    ],
    [
      'a name through the prototype',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"__proto__":{"name":"pay_quietly"},"arguments":{"amount":1}}}',
    ],
    [
      'params through the prototype',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","__proto__":{"params":{"name":"pay_quietly"}}}',
    ],
    ['a message as a text', '"{\\"method\\":\\"tools/call\\"}"'],
    ['null', 'null'],
  ])('%s calls no tool that the caller may not call', async (_, template) => {
    const call = (name: string) =>
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":{"amount":1}}}`;
    const body = template.replace('HOURS', call('hours')).replace('PAY', call('pay_quietly'));
    const token = await bank.tokenOf('acme');
    const session = await beginSession({ url: bank.url, token });
    for (const sender of [{ url: bank.url }, { url: bank.url, token }, { url: bank.url, token, session }]) {
      const response = await post(sender, body);
      expect(response.status).toBeLessThan(500);
      await response.text();
    }
    expect(bank.paid).toEqual([]);
    expect(Object.getPrototypeOf({})).toBe(Object.prototype);
    expect(({} as { params?: unknown }).params).toBeUndefined();
  });
});
