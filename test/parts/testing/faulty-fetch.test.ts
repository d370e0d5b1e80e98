import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { InvalidOptionsError } from 'toolwright';
import { type FaultPlan, type FetchFault, faultyFetch } from 'toolwright/testing';

const URL_ASKED = 'http://127.0.0.1/v1';

/** A server that answers every request with the same text. */
function serving(text: string, type = 'application/json') {
  const asked: string[] = [];
  const fetch = async (input: string | URL | Request) => {
    asked.push(String(input));
    return new Response(text, {
      headers: { 'content-type': type, 'content-length': String(text.length), 'x-kept': 'yes' },
    });
  };
  return { fetch, asked };
}

/** The text of a body, and whether it arrived completely. */
async function arriving(response: Response) {
  const reader = response.body?.getReader();
  let text = '';
  try {
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true };
      if (done || value === undefined) return { text };
      text += new TextDecoder().decode(value);
    }
  } catch (error) {
    return { text, error };
  }
}

describe('faultyFetch', () => {
  test('applies the faults of a plan in order, then none, and reports them', async () => {
    const { fetch, asked } = serving('{}');
    const faulty = faultyFetch(fetch, [
      { kind: 'status', status: 429, retryAfter: 3 },
      { kind: 'reset' },
      { kind: 'none' },
    ]);
    const refused = await faulty(URL_ASKED);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '3']);
    await expect(faulty(URL_ASKED)).rejects.toMatchObject({
      name: 'TypeError',
      cause: { code: 'ECONNRESET' },
    });
    expect((await faulty(URL_ASKED)).status).toBe(200);
    expect((await faulty(URL_ASKED)).status).toBe(200);
    expect(faulty.injected.map(({ kind }) => kind)).toEqual(['status', 'reset', 'none', 'none']);
    expect(asked).toHaveLength(2);
  });

  test('cuts a body off after the planned number of bytes', async () => {
    const text = '{"a":1}';
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: text.length + 2 }), async (afterBytes) => {
        const faulty = faultyFetch(serving(text).fetch, [{ kind: 'cut', afterBytes }]);
        const { text: arrived, error } = await arriving(await faulty(URL_ASKED));
        expect(arrived).toBe(text.slice(0, afterBytes));
        if (afterBytes <= text.length)
          expect(error).toMatchObject({ message: 'terminated', cause: { code: 'UND_ERR_SOCKET' } });
        else expect(error).toBeUndefined();
      }),
    );
  });

  test('breaks the JSON of a body, or of one event of a stream', async () => {
    const whole = await faultyFetch(serving('{"a":{}}').fetch, [{ kind: 'broken-json' }])(URL_ASKED);
    expect(await whole.text()).toBe('{"a":{}');
    const events = 'data: {"a":1}\n\ndata: {"b":1}\n\ndata: [DONE]\n\n';
    const stream = await faultyFetch(serving(events, 'text/event-stream').fetch, [{ kind: 'broken-json' }])(
      URL_ASKED,
    );
    expect(await stream.text()).toBe('data: {"a":1\n\ndata: {"b":1}\n\ndata: [DONE]\n\n');
    expect([stream.headers.get('x-kept'), stream.headers.get('content-length')]).toEqual(['yes', null]);
  });

  test.each([
    [
      { tool_calls: [{ id: 'a' }, { id: 'b' }, { index: 0 }] },
      { tool_calls: [{ id: 'a' }, { id: 'a' }, { index: 0 }] },
    ],
    [
      {
        output: [
          { type: 'function_call', id: 'fc_1', call_id: 'a' },
          { type: 'function_call', id: 'fc_2', call_id: 'b' },
        ],
      },
      {
        output: [
          { type: 'function_call', id: 'fc_1', call_id: 'a' },
          { type: 'function_call', id: 'fc_2', call_id: 'a' },
        ],
      },
    ],
    [
      {
        content: [
          { type: 'tool_use', id: 'a' },
          { type: 'text', id: 'x' },
          { type: 'tool_use', id: 'b' },
        ],
      },
      {
        content: [
          { type: 'tool_use', id: 'a' },
          { type: 'text', id: 'x' },
          { type: 'tool_use', id: 'a' },
        ],
      },
    ],
  ])('gives all calls of a reply the first id: %j', async (said, expected) => {
    const faulty = faultyFetch(serving(JSON.stringify(said)).fetch, [{ kind: 'duplicate-ids' }]);
    expect(await (await faulty(URL_ASKED)).json()).toEqual(expected);
  });

  test('waits before a slow request, and an abort ends the wait', async () => {
    const { fetch, asked } = serving('{}');
    const slow = { kind: 'slow', ms: 1_000_000 } as const;
    const faulty = faultyFetch(fetch, [slow, { kind: 'slow', ms: 1 }]);
    const controller = new AbortController();
    const waiting = faulty(URL_ASKED, { signal: controller.signal });
    controller.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    expect(asked).toEqual([]);
    expect((await faulty(new Request(URL_ASKED))).status).toBe(200);
  });

  test('applies the same faults for the same seed, at about the given rate', async () => {
    const draw = async (seed: number, rate: number) => {
      const faults: FetchFault[] = [{ kind: 'status', status: 500 }, { kind: 'reset' }];
      const faulty = faultyFetch(serving('{}').fetch, { seed, rate, faults });
      for (let request = 0; request < 400; request++) await faulty(URL_ASKED).catch(() => {});
      return faulty.injected.map(({ kind }) => kind);
    };
    expect(await draw(7, 0.5)).toEqual(await draw(7, 0.5));
    expect(await draw(7, 0.5)).not.toEqual(await draw(8, 0.5));
    const counts = Map.groupBy(await draw(7, 0.5), (kind) => kind);
    expect(counts.get('none')?.length).toBeGreaterThan(140);
    expect(counts.get('none')?.length).toBeLessThan(260);
    expect(new Set(await draw(7, 0))).toEqual(new Set(['none']));
    expect(new Set(await draw(7, 1))).toEqual(new Set(['status', 'reset']));
  });

  test.each<[unknown, string]>([
    [[{ kind: 'cut' }], 'plan[0].afterBytes is missing'],
    [[{ kind: 'none' }, { kind: 'resett' }], "plan[1].kind is 'resett'"],
    [[{ kind: 'status', status: 99 }], 'plan[0].status is 99'],
    [[{ kind: 'reset', afterBytes: 1 }], 'plan[0].afterBytes is not an option'],
    [{ seed: 1, rate: 2, faults: [] }, 'rate is 2'],
    [
      { seed: 1, rate: 1, fault: [] },
      'fault is not an option of the plan of faultyFetch (did you mean `faults`?)',
    ],
    ['429', "plan is '429'"],
  ])('refuses the plan %j', (plan, problem) => {
    expect(() => faultyFetch(fetch, plan as FaultPlan)).toThrow(InvalidOptionsError);
    expect(() => faultyFetch(fetch, plan as FaultPlan)).toThrow(problem);
  });
});
