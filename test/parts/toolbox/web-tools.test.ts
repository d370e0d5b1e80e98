import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { discoverTools, ToolRegistry } from 'toolwright';
import { Permissions } from 'toolwright/toolbox/permissions';
import { SearxngSearch, WebAccess, type WebHit, WebSearch, WebTools, webTools } from 'toolwright/toolbox/web';

let answer: RequestListener;
let base: string;
let close: () => Promise<unknown>;

beforeEach(async () => {
  const server = createServer((request, response) => answer(request, response)).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  close = () => new Promise((resolve) => server.close(resolve));
});
afterEach(() => close());

const registry = () => new ToolRegistry().register(...webTools({ privateHosts: ['127.0.0.1'] }));

function says(type: string, body: string | Uint8Array, status = 200): RequestListener {
  return (_request, response) => response.writeHead(status, { 'content-type': type }).end(body);
}

describe('web_fetch', () => {
  test('returns a page as Markdown with absolute links and without scripts', async () => {
    answer = says(
      'text/html',
      '<html><head><title>Shop</title><style>a{}</style></head><body><h1>Lamps</h1>' +
        '<script>steal()</script><p>The <a href="../lamps/1">red</a> one costs <b>49</b> &euro;</p></body></html>',
    );
    const { forLLM, isError } = await registry().execute('web_fetch', { url: `${base}/a/b` });
    expect(isError).toBe(false);
    expect(forLLM).toContain(`${base}/a/b (200)`);
    expect(forLLM).toContain('# Lamps');
    expect(forLLM).toContain(`The [red](${base}/lamps/1) one costs **49** €`);
    expect(forLLM).not.toContain('steal');
  });

  test('decodes the encoding that the page declares', async () => {
    answer = says('text/html', Buffer.from('<meta charset="iso-8859-1"><p>Käse</p>', 'latin1'));
    expect((await registry().execute('web_fetch', { url: base })).forLLM).toContain('Käse');
    answer = says('text/plain; charset=unheard-of', 'Käse');
    expect((await registry().execute('web_fetch', { url: base })).forLLM).toContain('Käse');
  });

  test('returns JSON and text unchanged, images as parts, and only the type of other bytes', async () => {
    answer = says('application/json', '{"a":[1,2]}');
    expect((await registry().execute('web_fetch', { url: base })).forLLM).toMatch(/\n\n\{"a":\[1,2\]\}$/);
    const png = Buffer.from([0x89, 0x50, 0x4e, 0x47]);
    answer = says('image/png', png);
    expect((await registry().execute('web_fetch', { url: base })).content).toEqual([
      { type: 'text', content: `${base}/ (200): image/png, 4 bytes` },
      { type: 'image', data: png.toString('base64'), mimeType: 'image/png' },
    ]);
    answer = says('application/pdf', Buffer.alloc(12));
    expect((await registry().execute('web_fetch', { url: base })).forLLM).toBe(
      `${base}/ (200): application/pdf, 12 bytes`,
    );
  });

  test('returns the status and body of an error response', async () => {
    answer = says('text/plain', 'No such lamp', 404);
    const { forLLM, isError } = await registry().execute('web_fetch', { url: base });
    expect([isError, forLLM]).toEqual([true, `${base}/ (404)\n\nNo such lamp`]);
  });

  test('follows redirects within an origin; permissions decide before another host receives a request', async () => {
    const hosts: (string | undefined)[] = [];
    answer = ({ url, headers }, response) => {
      hosts.push(headers.host);
      const location = new URL(url ?? '', base).searchParams.get('to');
      if (location === null) response.end('the page');
      else response.writeHead(302, { location }).end();
    };
    const { port } = new URL(base);
    const { policy } = new Permissions({
      rules: [
        { decision: 'allow', host: `first.test:${port}` },
        { decision: 'deny', host: 'denied.test' },
      ],
    });
    const web = webTools({
      resolve: async () => ['127.0.0.1'],
      privateHosts: ['first.test', 'denied.test', 'asked.test'],
    });
    const tools = new ToolRegistry({ policy }).register(...web);
    const fetched = async (url: string) => (await tools.execute('web_fetch', { url })).forLLM;
    const first = `http://first.test:${port}`;
    expect(await fetched(`${first}/?to=/there`)).toBe(`${first}/there (200)\n\nthe page`);
    const others = [
      `http://denied.test:${port}/`,
      `http://asked.test:${port}/?stolen`,
      'http://first.test:1/',
      `https://first.test:${port}/`,
      'file:///etc/passwd',
    ];
    for (const other of others) {
      expect(await fetched(`${first}/?to=${other}`)).toBe(
        `${first}/?to=${other} (302)\n\nThe page redirects to another origin, which was not opened. To open it, call this tool again with the URL ${other}`,
      );
    }
    expect(await fetched(`http://denied.test:${port}/`)).toMatch(/was refused/);
    expect(await fetched(`http://asked.test:${port}/?stolen`)).toMatch(/needs an approval/);
    expect(new Set(hosts)).toEqual(new Set([`first.test:${port}`]));
  });

  test('returns a long text in parts without splitting characters', async () => {
    const read = async (url: string, most: number) => {
      let text = '';
      for (let from: number | undefined = 0; from !== undefined; ) {
        const { forLLM } = await registry().execute('web_fetch', { url, from, most });
        const [, said = ''] = /^[^\n]*\n\n([\s\S]*)$/.exec(forLLM) ?? [];
        const [tail = '', next] =
          /\n\n\[Characters \d+ to \d+ of \d+\. (?:Continue with from: (\d+)\.)?\]$/.exec(said) ?? [];
        const given = said.slice(0, said.length - tail.length);
        expect(given.isWellFormed()).toBe(true);
        text += given;
        from = next === undefined ? undefined : Number(next);
      }
      return text;
    };
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: fc.constantFrom('a', 'é', '😀', '字'), minLength: 1, maxLength: 40 }),
        fc.integer({ min: 2, max: 50 }),
        async (text, most) => {
          answer = says('text/plain; charset=utf-8', text);
          expect(await read(base, most)).toBe(text);
        },
      ),
      { numRuns: 30 },
    );
  });

  test('reads a deeply nested page', async () => {
    answer = says('text/html', `${'<div><b>'.repeat(120_000)}deep`);
    expect((await registry().execute('web_fetch', { url: base })).isError).toBe(false);
  });

  test('tells the model why an address is refused', async () => {
    const tools = new ToolRegistry().register(...webTools());
    const { forLLM, isError } = await tools.execute('web_fetch', { url: 'http://169.254.169.254/' });
    expect([isError, forLLM]).toEqual([
      true,
      '169.254.169.254 is in a private network or on this machine: requests to it are not allowed.',
    ]);
  });

  test('can be injected with another WebAccess', async () => {
    answer = says('text/plain', 'injected');
    const web = new WebAccess({ privateHosts: ['127.0.0.1'] });
    const container = { resolve: <Instance>() => new WebTools(web) as Instance };
    const [tool] = discoverTools({ toolsets: [WebTools], container });
    expect([tool?.name, tool?.annotations]).toEqual([
      'web_fetch',
      { title: 'Fetch', readOnly: true, openWorld: true },
    ]);
    const tools = new ToolRegistry().register(...discoverTools({ toolsets: [WebTools], container }));
    expect((await tools.execute('web_fetch', { url: base })).forLLM).toContain('injected');
  });
});

describe('web_search', () => {
  const searching = () =>
    new ToolRegistry().register(...webTools({ search: new SearxngSearch({ url: base }) }));

  test('queries SearXNG and returns titles, addresses and excerpts', async () => {
    const asked: (string | undefined)[] = [];
    answer = (request, response) => {
      asked.push(request.url);
      const results = [
        { title: 'One', url: 'https://one.example/', content: 'first' },
        { title: 'Two', url: 'https://two.example/' },
        { content: 'no address' },
      ];
      response.end(JSON.stringify({ results }));
    };
    const { forLLM } = await searching().execute('web_search', { query: 'red lamps', limit: 2 });
    expect(asked).toEqual(['/search?q=red+lamps&format=json']);
    expect(forLLM).toBe('- One\n  https://one.example/\n  first\n- Two\n  https://two.example/');
  });

  test.each([
    ['{"results": []}', 200, false, 'Nothing was found.'],
    ['<html>', 200, true, 'The search engine did not return JSON.'],
    ['{}', 200, true, 'The search engine did not return a list of results.'],
    ['', 429, true, 'The search engine responded with status 429.'],
  ])('reports the response %s with status %i', async (body, status, isError, text) => {
    answer = says('application/json', body, status);
    const result = await searching().execute('web_search', { query: 'x' });
    expect([result.isError, result.forLLM]).toEqual([isError, text]);
  });

  test('is offered only with a search, which may be any subclass of WebSearch', async () => {
    expect(registry().list()).toEqual(['web_fetch']);
    class Fixed extends WebSearch {
      override async search({ limit }: { readonly limit: number }): Promise<readonly WebHit[]> {
        return [{ title: `at most ${limit}`, url: 'https://x.example/' }];
      }
    }
    const tools = new ToolRegistry().register(...webTools({ search: new Fixed() }));
    expect((await tools.execute('web_search', { query: 'x', limit: 3 })).forLLM).toContain('at most 3');
  });
});
