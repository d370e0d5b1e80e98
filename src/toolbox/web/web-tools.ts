import { htmlToMarkdown } from '@mdream/js';
import { Param, Tool, ToolContext, Toolset } from '../../../decorators/index.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { ToolResult, toolResult } from '../../core/contract/tool-result.js';
import type { ResourceAccess } from '../../core/contract/touch.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import { isRecord, parsedJson, requiredText } from '../../core/kernel/json.js';
import { ADDRESS, HEADERS, MILLISECONDS, optionTable, required } from '../../core/kernel/options.js';
import { toolsOfInstances } from '../../tools/discovery/discover-tools.js';
import { WebAccess, type WebAccessOptions, WebFault, type WebResponse } from '../network/web-access.js';

/** A search result. */
export interface WebHit {
  readonly title: string;
  readonly url: string;
  /** An excerpt of the page. */
  readonly excerpt?: string;
}

/** A search query. */
export interface WebQuery {
  readonly query: string;
  /** The most results. */
  readonly limit: number;
  readonly signal?: AbortSignal;
}

/** The interface to a search engine, and its injection token. */
export abstract class WebSearch {
  /** Returns results, the best first. Throws an Error whose message is for the model. */
  abstract search(query: WebQuery): Promise<readonly WebHit[]>;
}

/** Options of {@link SearxngSearch}. */
export interface SearxngOptions {
  /** The address of the SearXNG instance: `http://127.0.0.1:8888`. */
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds for one search; default 30,000. */
  readonly timeoutMs?: number;
}

const OPTIONS = optionTable<SearxngOptions>('SearxngSearch', {
  url: required(ADDRESS),
  headers: HEADERS,
  timeoutMs: MILLISECONDS,
});

/**
 * Searches with your own SearXNG instance, over its JSON API. Its setting `formats` must contain `json`.
 *
 * @example
 * ```ts
 * const search = new SearxngSearch({ url: 'http://127.0.0.1:8888' });
 * ```
 *
 * @throws InvalidOptionsError (521) for invalid options.
 */
export class SearxngSearch extends WebSearch {
  readonly #options: SearxngOptions;
  readonly #web: WebAccess;

  constructor(options: SearxngOptions) {
    super();
    checkOptions(options, OPTIONS);
    this.#options = options;
    const { host } = new URL(options.url);
    const { timeoutMs } = options;
    // The application configured this host, so it may be private; no other host is contacted.
    this.#web = new WebAccess({ allow: [host], privateHosts: [host], timeoutMs });
  }

  async search({ query, limit, signal }: WebQuery): Promise<readonly WebHit[]> {
    const { url, headers = {} } = this.#options;
    const address = new URL('search', url.endsWith('/') ? url : `${url}/`);
    address.search = new URLSearchParams({ q: query, format: 'json' }).toString();
    const response = await this.#web.request({
      url: address.href,
      headers: { accept: 'application/json', ...headers },
      signal,
    });
    if (response.status !== 200)
      throw new WebFault(`The search engine responded with status ${response.status}.`);
    const answer = parsedJson(new TextDecoder().decode(response.body));
    if (answer === undefined) throw new WebFault('The search engine did not return JSON.');
    const results: unknown = isRecord(answer) ? answer.results : undefined;
    if (!Array.isArray(results)) throw new WebFault('The search engine did not return a list of results.');
    const hits = results.filter(isRecord).flatMap(({ title, url: page, content }) => {
      if (typeof page !== 'string') return [];
      const excerpt = typeof content === 'string' && content.trim() !== '' ? { excerpt: content.trim() } : {};
      return [{ title: typeof title === 'string' ? title : page, url: page, ...excerpt }];
    });
    return hits.slice(0, limit);
  }
}

const DEFAULT_CHARACTERS = 20_000;
const MOST_IMAGE_BYTES = 5_000_000;
const DEFAULT_HITS = 8;

/**
 * Reads web pages, with the injected {@link WebAccess}; private networks are not reachable. The content is untrusted,
 * which the annotation `openWorld` states.
 *
 * @example
 * ```ts
 * container.register(WebAccess, { useValue: new WebAccess({ allow: ['*.wikipedia.org'] }) });
 * tools.register(...discoverTools({ toolsets: [WebTools] }));
 * ```
 */
@Toolset({ name: 'Web', prefix: 'web' })
export class WebTools {
  constructor(protected readonly web: WebAccess) {}

  @Tool({
    description:
      'Fetch a page or a file from the web. HTML pages are returned as Markdown; JSON, text and images are returned unchanged.',
    annotations: { title: 'Fetch', readOnly: true, openWorld: true },
    touches: 'pageOpened',
  })
  async fetch(
    @Param({ name: 'url', description: 'The URL, e.g. https://example.com/page', required: true })
    url: string,
    @Param({
      name: 'from',
      description: 'First character to return, to continue a long page',
      minimum: 0,
      multipleOf: 1,
    })
    from = 0,
    @Param({
      name: 'most',
      description: 'Maximum number of characters',
      minimum: 1,
      maximum: 100_000,
      multipleOf: 1,
      required: false,
    })
    most?: number,
    context?: ToolContext,
  ): Promise<ToolResult> {
    const response = await this.web.request({ url, signal: context?.signal });
    const head = `${response.url} (${response.status})`;
    if (response.redirect !== undefined)
      return toolResult(
        `${head}\n\nThe page redirects to another origin, which was not opened. To open it, call this tool again with the URL ${response.redirect}`,
      );
    const page = readPage(response);
    if (page.kind === 'bytes') return describeBytes(response, { head, type: page.type });
    const said = `${head}\n\n${part(page.text, { from, most: most ?? DEFAULT_CHARACTERS, isCut: response.isCut })}`;
    // The body of an error response often contains the reason.
    return new ToolResult({ forLLM: said, isError: response.status >= 400 });
  }

  /** The access of a call. The tool itself refuses an invalid address. */
  protected pageOpened(args: JsonObject): readonly ResourceAccess[] {
    return [{ action: 'open', url: requiredText(args, 'url') }];
  }
}

/** Describes a response that is not text; images are shown. */
function describeBytes(
  { body, status, isCut }: WebResponse,
  { head, type }: { readonly head: string; readonly type: string },
): ToolResult {
  const text = `${head}: ${type}, ${isCut ? 'more than ' : ''}${body.length} bytes`;
  const isImage = /^image\/(?:png|jpeg|gif|webp)$/.test(type);
  if (status >= 400 || isCut || !isImage || body.length > MOST_IMAGE_BYTES)
    return new ToolResult({ forLLM: text, isError: status >= 400 });
  const data = Buffer.from(body).toString('base64');
  const content = [
    { type: 'text' as const, content: text },
    { type: 'image' as const, data, mimeType: type },
  ];
  return new ToolResult({ forLLM: text, content });
}

interface Excerpt {
  readonly from: number;
  readonly most: number;
  readonly isCut: boolean;
}

/** A part of a text, with the position to continue from; never splits a character. */
function part(text: string, { from, most, isCut }: Excerpt): string {
  const begin = isSecondHalf(text, from) ? from - 1 : from;
  const wanted = begin + most;
  const end = isSecondHalf(text, wanted) ? wanted - 1 : wanted;
  const given = text.slice(begin, end);
  const rest = end < text.length ? `Continue with from: ${end}.` : isCut ? 'The rest was too large.' : '';
  if (from === 0 && rest === '') return given;
  return `${given}\n\n[Characters ${begin} to ${Math.min(end, text.length)} of ${text.length}. ${rest}]`;
}

function isSecondHalf(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return at > 0 && code >= 0xdc00 && code <= 0xdfff;
}

/** Searches the web with the injected {@link WebSearch}. */
@Toolset({ name: 'Web search', prefix: 'web' })
export class WebSearchTools {
  constructor(protected readonly engine: WebSearch) {}

  @Tool({
    description: 'Search the web. Returns titles, URLs and excerpts, the best result first.',
    annotations: { title: 'Search the web', readOnly: true, openWorld: true },
  })
  async search(
    @Param({ name: 'query', description: 'The search query', required: true, minLength: 1 }) query: string,
    @Param({
      name: 'limit',
      description: 'Maximum number of results',
      type: () => Number,
      minimum: 1,
      maximum: 50,
      multipleOf: 1,
    })
    limit = DEFAULT_HITS,
    context?: ToolContext,
  ): Promise<string> {
    const hits = await this.engine.search({ query, limit, signal: context?.signal });
    if (hits.length === 0) return 'Nothing was found.';
    const lines = hits.map(
      ({ title, url, excerpt }) => `- ${title}\n  ${url}${excerpt ? `\n  ${excerpt}` : ''}`,
    );
    return lines.join('\n');
  }
}

/** Options of {@link webTools}. */
export interface WebToolsOptions extends WebAccessOptions {
  /** The search engine; adds `web_search` to the tools. */
  readonly search?: WebSearch;
}

/**
 * Creates the web tools without a container: `web_fetch`, and `web_search` if there is a search engine.
 *
 * @throws InvalidOptionsError (521).
 *
 * @example
 * ```ts
 * tools.register(...webTools({ search: new SearxngSearch({ url: 'http://127.0.0.1:8888' }) }));
 * ```
 */
export function webTools({ search, ...options }: WebToolsOptions = {}): ToolDefinition[] {
  const fetching = new WebTools(new WebAccess(options));
  return toolsOfInstances(fetching, ...(search === undefined ? [] : [new WebSearchTools(search)]));
}

/** The content of a response: text, or bytes of a type that is not text. */
type PageContent =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'bytes'; readonly type: string };

/** The most characters of HTML that are converted; the rest is left out, with a note. */
const MOST_HTML = 1_000_000;

/** The text of a response: HTML as Markdown with absolute URLs; JSON and text unchanged. */
function readPage(response: WebResponse): PageContent {
  const header = response.headers['content-type'] ?? '';
  const type = header.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (type === 'text/html' || type === 'application/xhtml+xml') {
    // HTML may declare its encoding near its start.
    const start = Buffer.from(response.body.subarray(0, 2_048)).toString('latin1');
    const html = decoded(response.body, charsetOf(header) ?? charsetOf(start));
    const text = htmlToMarkdown(html.slice(0, MOST_HTML), { origin: response.url });
    const rest = html.length > MOST_HTML ? '\n\n[The rest of the page was too long to convert.]' : '';
    return { kind: 'text', text: text + rest };
  }
  const isText =
    /^text\/|[/+](?:json|xml|javascript|yaml|x-ndjson)$/.test(type) ||
    (type === '' && !response.body.subarray(0, 1_000).includes(0));
  if (isText) return { kind: 'text', text: decoded(response.body, charsetOf(header)) };
  return { kind: 'bytes', type: type || 'unknown type' };
}

function charsetOf(contentType: string): string | undefined {
  return /charset\s*=\s*"?([\w-]+)/i.exec(contentType)?.[1];
}

/** Unknown encodings are decoded as UTF-8. */
function decoded(body: Uint8Array, charset = 'utf-8'): string {
  try {
    return new TextDecoder(charset).decode(body);
  } catch {
    return new TextDecoder().decode(body);
  }
}
