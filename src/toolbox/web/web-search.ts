import { checkOptions } from '../../core/errors/author-fault.js';
import { isRecord, parsedJson } from '../../core/kernel/json.js';
import { ADDRESS, HEADERS, MILLISECONDS, optionTable, required } from '../../core/kernel/options.js';
import { WebAccess, WebFault } from '../network/web-access.js';

/** One result of a search. */
export interface WebHit {
  readonly title: string;
  readonly url: string;
  /** A few words of the page. */
  readonly excerpt?: string;
}

/** How the web is searched. */
export interface WebQuery {
  readonly query: string;
  /** Results at most. */
  readonly limit: number;
  readonly signal?: AbortSignal;
}

/** The port to a search engine; also the token under which a container has one. */
export abstract class WebSearch {
  /** Results, the best first. Throws an Error whose message is for the model. */
  abstract search(query: WebQuery): Promise<readonly WebHit[]>;
}

/** Where a SearXNG is. */
export interface SearxngOptions {
  /** Its address: `http://127.0.0.1:8888`. */
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
 * Searches with a SearXNG of your own, over its JSON API; `formats` of its settings must have `json`.
 *
 * @example
 * ```ts
 * const search = new SearxngSearch({ url: 'http://127.0.0.1:8888' });
 * ```
 *
 * @throws InvalidOptionsError (521) for options that are wrong.
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
    // The application has named it: it may be in the application's own network, and nothing else is asked.
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
