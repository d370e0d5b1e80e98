import { OpenAI } from 'openai';
import { checkOptions, InvalidOptionsError } from '../../errors/invalid-options.js';
import { ADDRESS } from '../../kernel/option-rules.js';
import { type OpenAIProviderOptions, PROVIDER_OPTIONS } from './openai-provider-options.js';

/** The client that sends the requests: the given one, or one made from the options and the environment. */
export function createClient(options: OpenAIProviderOptions): OpenAI {
  checkOptions(options, PROVIDER_OPTIONS);
  const { client, headers, timeoutMs, ...others } = options;
  if (client !== undefined) return client;
  const baseURL = options.baseURL ?? addressOf(environment('OPENAI_BASE_URL'));
  return new OpenAI({
    ...others,
    baseURL,
    apiKey: keyFor(options.apiKey || environment('OPENAI_API_KEY'), baseURL),
    defaultHeaders: headers ?? options.defaultHeaders,
    timeout: timeoutMs ?? options.timeout,
    // Every failure is thrown with its text; the client would write it to the console a second time.
    logLevel: options.logLevel ?? (environment('OPENAI_LOG') === undefined ? 'off' : undefined),
  });
}

function keyFor(key: OpenAIProviderOptions['apiKey'], baseURL: string | undefined) {
  if (key) return key;
  if (baseURL === undefined) {
    throw new InvalidOptionsError([
      {
        where: PROVIDER_OPTIONS.of,
        option: 'apiKey',
        problem: 'there is no API key',
        fix: 'set OPENAI_API_KEY, or pass apiKey; or pass baseURL for a server that needs no key',
      },
    ]);
  }
  // The client insists on a key, and local servers do not look at it.
  return 'no-key-needed';
}

function addressOf(address: string | undefined): string | undefined {
  if (address === undefined || ADDRESS.accepts(address)) return address;
  const problem = `OPENAI_BASE_URL is '${address}'`;
  throw new InvalidOptionsError([
    { where: PROVIDER_OPTIONS.of, option: 'OPENAI_BASE_URL', problem, fix: ADDRESS.fix },
  ]);
}

function environment(name: string): string | undefined {
  return process.env[name]?.trim() || undefined;
}
