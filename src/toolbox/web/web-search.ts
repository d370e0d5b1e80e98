import { checkOptions } from '../../core/errors/author-fault.js';
import { isRecord, parsedJson } from '../../core/kernel/json.js';
import { ADDRESS, HEADERS, MILLISECONDS, optionTable, required } from '../../core/kernel/options.js';
import { WebAccess, WebFault } from '../network/web-access.js';

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
    this.#web = new WebAccess({ allow: [host], privateHosts: [host], ...(timeoutMs ? { timeoutMs } : {}) });
  }

  async search({ query, limit, signal }: WebQuery): Promise<readonly WebHit[]> {
    const { url, headers = {} } = this.#options;
    const address = new URL('search', url.endsWith('/') ? url : `${url}/`);
    address.search = new URLSearchParams({ q: query, format: 'json' }).toString();
    const response = await this.#web.request({
      url: address.href,
      headers: { accept: 'application/json', ...headers },
      ...(signal === undefined ? {} : { signal }),
    });
    if (response.status !== 200) throw new WebFault(`The search engine answered with ${response.status}.`);
    return hitsIn(new TextDecoder().decode(response.body)).slice(0, limit);
  }
}

function hitsIn(text: string): readonly WebHit[] {
  const answer = parsedJson(text);
  if (answer === undefined) throw new WebFault('The search engine answered with no JSON.');
  const results: unknown = isRecord(answer) ? answer.results : undefined;
  if (!Array.isArray(results)) throw new WebFault('The search engine answered with no results.');
  return results.filter(isRecord).flatMap(({ title, url, content }) => {
    if (typeof url !== 'string') return [];
    const excerpt = typeof content === 'string' && content.trim() !== '' ? { excerpt: content.trim() } : {};
    return [{ title: typeof title === 'string' ? title : url, url, ...excerpt }];
  });
}
