import { describe, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { describeFailure } from '../../../src/models/wire/describe-failure.js';

const AT = { baseURL: 'https://models.example/v1/', keyVariable: 'OPENAI_API_KEY' };

/** The error that the client throws if `fetch` fails with this code. */
function connectionError(code: string): unknown {
  const reason = Object.assign(new Error(`${code} somewhere`), { code });
  return new OpenAI.APIConnectionError({ cause: new TypeError('fetch failed', { cause: reason }) });
}

function messageFor(error: unknown): string {
  return (describeFailure(error, AT) as Error).message;
}

describe('failures that a loopback server cannot cause', () => {
  test.each([
    ['ENOTFOUND', 'cannot reach https://models.example/v1: no such host; check the base URL'],
    ['CERT_HAS_EXPIRED', 'cannot reach https://models.example/v1: its TLS certificate has expired'],
    ['EUNHEARDOF', 'cannot reach https://models.example/v1: EUNHEARDOF somewhere'],
  ])('a connection that fails with %s is described', (code, message) => {
    expect(messageFor(connectionError(code))).toBe(message);
  });

  test('a server that never answers is described as a timeout', () => {
    expect(messageFor(new OpenAI.APIConnectionTimeoutError())).toBe(
      'https://models.example/v1 did not answer in time; raise timeoutMs or try again',
    );
  });

  test('an error with circular causes is described', () => {
    const ring = new Error('round');
    ring.cause = new Error('and round', { cause: ring });
    expect(messageFor(ring)).toMatch(/^the request to https:\/\/models\.example\/v1 failed: /);
  });

  test('a thrown value that is not an error is described and becomes the cause', () => {
    const described = describeFailure('out of luck', AT) as Error;
    expect(described.message).toBe('the request to https://models.example/v1 failed: out of luck');
    expect(described.cause).toBe('out of luck');
  });

  test('a long error message from the server is truncated', () => {
    const error = OpenAI.APIError.generate(
      400,
      { error: { message: 'x'.repeat(5_000) } },
      undefined,
      new Headers(),
    );
    expect(messageFor(error).length).toBeLessThan(300);
  });

  test('the error of an abort is returned unchanged', () => {
    const error = new OpenAI.APIUserAbortError();
    expect(describeFailure(error, { ...AT, signal: AbortSignal.abort() })).toBe(error);
  });
});
