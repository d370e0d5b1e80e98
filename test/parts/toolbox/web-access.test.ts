import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createSocketServer } from 'node:net';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { WebAccess, type WebAccessOptions, WebFault } from 'toolwright/toolbox/web';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A server on this machine that records its requests. */
async function serve(answer: RequestListener) {
  const heard: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    heard.push(request);
    answer(request, response);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  closing.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return { port, heard, url: (path: string) => `http://127.0.0.1:${port}${path}` };
}

const local = (options: WebAccessOptions = {}) =>
  new WebAccess({ privateHosts: ['127.0.0.1', 'site.test', '*.site.test'], ...options });

const textOf = ({ body }: { readonly body: Uint8Array }) => new TextDecoder().decode(body);

async function faultOf(web: WebAccess, url: string): Promise<string> {
  try {
    await web.request({ url });
  } catch (error) {
    if (error instanceof WebFault) return error.message;
    throw error;
  }
  throw new Error('it was asked');
}

describe('WebAccess and private networks', () => {
  const PRIVATE = [
    'http://127.0.0.1/',
    'http://localhost/',
    'http://localhost./',
    'http://2130706433/',
    'http://0x7f000001/',
    'http://0177.0.0.1/',
    'http://127.1/',
    'http://0/',
    'http://0.0.0.0/',
    'http://10.0.0.1/',
    'http://172.16.3.4/',
    'http://192.168.1.1/',
    'http://169.254.169.254/latest/meta-data/',
    'http://100.64.0.1/',
    'http://198.18.0.1/',
    'http://192.0.0.192/',
    'http://224.0.0.1/',
    'http://255.255.255.255/',
    'http://[::1]/',
    'http://[::]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:7f00:1]/',
    'http://[0:0:0:0:0:ffff:a9fe:a9fe]/',
    'http://[fe80::1]/',
    'http://[fc00::1]/',
    'http://[fd00:ec2::254]/',
    'http://[64:ff9b::7f00:1]/',
    'http://[64:ff9b::10.0.0.1]/',
    'http://[2002:7f00:1::]/',
    'http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/',
    'http://[2001:0:5db8:d822::1]/',
    'http://[::127.0.0.1]/',
    'http://[::7f00:1]/',
    'http://[::a9fe:a9fe]/',
    'http://[::8.8.8.8]/',
    'http://[::1:0:0]/',
    'http://[::ffff:0:127.0.0.1]/',
    'http://[64:ff9b:1::7f00:1]/',
    'http://[64:ff9b:1:7f00:1:0:808:808]/',
    'http://[100::1]/',
    'http://[4000::1]/',
    'http://[5f00::1]/',
    'http://[fec0::1]/',
    'http://[ff02::1]/',
    'http://①②⑦.0.0.1/',
  ];

  test.each(PRIVATE)('%s is refused', async (url) => {
    expect(await faultOf(new WebAccess(), url)).toMatch(/is in a private network|The host \S+ was not found/);
  });

  test('no name, notation or redirect reaches a server on this machine', async () => {
    let connections = 0;
    const server = createSocketServer((socket) => {
      connections += 1;
      socket.destroy();
    });
    server.listen(0);
    await new Promise((resolve) => server.once('listening', resolve));
    closing.push(() => new Promise((resolve) => server.close(() => resolve())));
    const { port } = server.address() as AddressInfo;
    const hosts = [
      '127.0.0.1',
      'localhost',
      '2130706433',
      '0x7f.1',
      '0177.0.0.1',
      '127.1',
      '0',
      '[::1]',
      '[::]',
    ];
    for (const host of [...hosts, '[::ffff:127.0.0.1]', '[::ffff:7f00:1]']) {
      const url = `http://${host}:${port}/`;
      await faultOf(new WebAccess(), url);
      const site = await serve((_request, response) => response.writeHead(302, { location: url }).end());
      const web = new WebAccess({
        privateHosts: [`site.test:${site.port}`],
        resolve: async () => ['127.0.0.1'],
      });
      const { redirect } = await web.request({ url: `http://site.test:${site.port}/` });
      expect(redirect).toBe(new URL(url).href);
      expect([host, site.heard.length, connections]).toEqual([host, 1, 0]);
    }
  });

  test.each(['::127.0.0.1', '::7f00:1', 'fe80::1%lo', '::1%lo', '::ffff:10.0.0.1', '64:ff9b:1::808:808'])(
    'a name that resolves to %s is refused',
    async (address) => {
      const web = new WebAccess({ resolve: async () => [address] });
      expect(await faultOf(web, 'http://elsewhere.test/')).toContain('is in a private network');
    },
  );

  test('a name with one private address among public ones is refused', async () => {
    const web = new WebAccess({ resolve: async () => ['93.184.216.34', '10.1.2.3'] });
    expect(await faultOf(web, 'http://two-faces.test/')).toContain('is in a private network');
  });

  test('the connection uses the address that was checked, without resolving the name again', async () => {
    const site = await serve((_request, response) => response.end('the one that was looked at'));
    let asked = 0;
    const resolve = async () => {
      asked += 1;
      return ['127.0.0.1'];
    };
    const response = await local({ resolve }).request({ url: `http://site.test:${site.port}/` });
    expect([textOf(response), asked]).toEqual(['the one that was looked at', 1]);
    expect(site.heard[0]?.headers.host).toBe(`site.test:${site.port}`);
  });

  test('the name in a redirect is resolved and checked again', async () => {
    const site = await serve((_request, response) => response.writeHead(302, { location: '/secret' }).end());
    const addresses = ['127.0.0.1'];
    const web = local({ resolve: async () => addresses.splice(0, 1) });
    expect(await faultOf(web, `http://site.test:${site.port}/`)).toBe('site.test has no IP address.');
    expect(site.heard).toHaveLength(1);
  });

  test('random private addresses are refused in any notation', async () => {
    const networks = fc.constantFrom(
      [10, 0, 0, 0, 8],
      [127, 0, 0, 0, 8],
      [169, 254, 0, 0, 16],
      [172, 16, 0, 0, 12],
      [192, 168, 0, 0, 16],
      [100, 64, 0, 0, 10],
    );
    const address = fc.tuple(networks, fc.nat(0xffffffff)).map(([[a, b, c, d, bits], random]) => {
      const base =
        ((a as number) * 2 ** 24 + (b as number) * 2 ** 16 + (c as number) * 2 ** 8 + (d as number)) >>> 0;
      const mask = (2 ** (32 - (bits as number)) - 1) >>> 0;
      return (base | (random & mask)) >>> 0;
    });
    const notation = fc.constantFrom<(ip: number) => string>(
      (ip) => `${ip}`,
      (ip) => `0x${ip.toString(16)}`,
      (ip) => `0${ip.toString(8)}`,
      (ip) => [24, 16, 8, 0].map((by) => (ip >>> by) & 255).join('.'),
      (ip) => [24, 16, 8, 0].map((by) => `0${((ip >>> by) & 255).toString(8)}`).join('.'),
      (ip) => `[::ffff:${((ip >>> 16) & 0xffff).toString(16)}:${(ip & 0xffff).toString(16)}]`,
      (ip) => `[64:ff9b::${((ip >>> 16) & 0xffff).toString(16)}:${(ip & 0xffff).toString(16)}]`,
    );
    await fc.assert(
      fc.asyncProperty(address, notation, async (ip, write) => {
        const url = `http://${write(ip)}/`;
        if (!URL.canParse(url)) return;
        expect(await faultOf(new WebAccess(), url)).toContain('is in a private network');
      }),
    );
  });
});

describe('WebAccess and lists of hosts', () => {
  const outcome = async (options: WebAccessOptions, url: string) => {
    try {
      new WebAccess(options).check(url);
      return 'asked';
    } catch (error) {
      return (error as Error).message;
    }
  };

  test.each([
    [{ allow: ['example.com'] }, 'https://example.com/a', true],
    [{ allow: ['example.com'] }, 'https://EXAMPLE.com./a', true],
    [{ allow: ['example.com'] }, 'https://www.example.com/', false],
    [{ allow: ['example.com'] }, 'https://example.com.evil.test/', false],
    [{ allow: ['*.example.com'] }, 'https://a.b.example.com/', true],
    [{ allow: ['*.example.com'] }, 'https://example.com/', false],
    [{ allow: ['*.example.com'] }, 'https://notexample.com/', false],
    [{ allow: ['example.com:8443'] }, 'https://example.com:8443/', true],
    [{ allow: ['example.com:8443'] }, 'https://example.com/', false],
    [{ deny: ['example.com'] }, 'https://example.com/', false],
    [{ allow: ['*.example.com'], deny: ['bad.example.com'] }, 'https://bad.example.com/', false],
    [{ deny: ['bücher.example'] }, 'https://xn--bcher-kva.example/', false],
  ] as const)('with %j, the address %s is allowed or refused', async (options, url, isAsked) => {
    expect((await outcome(options, url)) === 'asked').toBe(isAsked);
  });

  test.each([
    ['file:///etc/passwd', 'Only http and https'],
    ['ftp://example.com/', 'Only http and https'],
    ['javascript:alert(1)', 'Only http and https'],
    ['example.com', 'The URL is invalid'],
    ['https://user:secret@example.com/', 'with a user name or a password'],
  ])('the address %s is refused', async (url, message) => {
    expect(await outcome({}, url)).toContain(message);
  });

  test('throws for an option that is not a host name', () => {
    expect(() => new WebAccess({ allow: ['https://example.com/'] })).toThrow(/allow/);
    expect(() => new WebAccess({ deny: ['a b'] })).toThrow(/deny/);
    expect(() => new WebAccess({ allow: undefined })).toThrow(/allow/);
  });
});

describe('WebAccess', () => {
  test('follows redirects within an origin like browsers, and returns others', async () => {
    const other = await serve((_request, response) => response.end());
    const site = await serve((request, response) => {
      if (request.url === '/see-other') response.writeHead(303, { location: '/there' }).end();
      else if (request.url === '/away')
        response.writeHead(307, { location: `http://site.test:${other.port}/` }).end();
      else response.end(`${request.method} ${request.headers.authorization}`);
    });
    const web = local({ resolve: async () => ['127.0.0.1'] });
    const headers = { authorization: 'Bearer secret', 'content-type': 'text/plain', accept: 'text/*' };
    const seen = await web.request({ url: site.url('/see-other'), method: 'POST', body: 'hello', headers });
    expect([textOf(seen), seen.url]).toEqual(['GET Bearer secret', site.url('/there')]);
    const away = await web.request({ url: site.url('/away'), headers });
    expect([away.status, away.redirect]).toEqual([307, `http://site.test:${other.port}/`]);
    expect(other.heard).toEqual([]);
  });

  test('stops after maxRedirects', async () => {
    const site = await serve((_request, response) => response.writeHead(302, { location: '/' }).end());
    expect(await faultOf(local({ maxRedirects: 3 }), site.url('/'))).toBe(
      'The request was redirected more than 3 times.',
    );
    expect(site.heard).toHaveLength(4);
  });

  test('decompresses bodies up to its limit', async () => {
    const text = 'page '.repeat(100);
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    const site = await serve((request, response) => {
      if (request.url === '/gzip') response.setHeader('content-encoding', 'gzip').end(gzipSync(text));
      else if (request.url === '/br')
        response.setHeader('content-encoding', 'br').end(brotliCompressSync(text));
      else if (request.url === '/odd') response.setHeader('content-encoding', 'odd').end(text);
      else response.setHeader('content-encoding', 'gzip').end(bomb);
    });
    const web = local({ maxBytes: 10_000 });
    expect(textOf(await web.request({ url: site.url('/gzip') }))).toBe(text);
    expect(textOf(await web.request({ url: site.url('/br') }))).toBe(text);
    expect(await faultOf(web, site.url('/odd'))).toBe(
      'The response is compressed with odd, which is not supported.',
    );
    const cut = await web.request({ url: site.url('/bomb') });
    expect([cut.body.length, cut.isCut]).toEqual([10_000, true]);
  });

  test('rejects on an abort and after a timeout', async () => {
    const site = await serve((request) => {
      if (request.url === '/abort') stopped.abort(new Error('enough'));
    });
    const stopped = new AbortController();
    const aborted = local().request({ url: site.url('/abort'), signal: stopped.signal });
    await expect(aborted).rejects.toThrow('enough');
    expect(await faultOf(local({ timeoutMs: 50 }), site.url('/slow'))).toBe(
      'The request timed out after 50 ms.',
    );
  });

  test('reports an unknown host and a refused connection', async () => {
    const site = await serve(() => {});
    for (const close of closing.splice(0)) await close();
    expect(await faultOf(local(), site.url('/'))).toMatch(/^The request failed: .*ECONNREFUSED/);
    expect(await faultOf(new WebAccess(), 'http://nowhere.invalid/')).toBe(
      'The host nowhere.invalid was not found.',
    );
  });
});
