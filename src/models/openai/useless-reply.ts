import { ProviderError } from '../../core/errors/provider-error.js';
import { excerptOf, isPassing, placeOf } from '../wire/describe-failure.js';
import { jsonRecord, jsonText } from '../wire/wire-json.js';

/** The requested API and its address. */
interface AskedApi {
  readonly api: 'chat' | 'responses';
  readonly baseURL: string;
  /** The server marked the reply as complete. */
  readonly isDone: boolean;
}

/** The error to throw if a body with status 200 is not a reply. */
export function uselessReply(body: unknown, { api, baseURL, isDone }: AskedApi): ProviderError {
  const { error, choices, type } = jsonRecord(body);
  const isCut = !isDone || Array.isArray(choices) || jsonText(type).startsWith('response.');
  const code = Number(jsonRecord(error).code);
  const status = code >= 400 && code < 600 ? code : undefined;
  return new ProviderError(`${placeOf(baseURL)} ${describeUselessReply(body, { api, isDone })}`, {
    // Gateways report the status of the upstream server in the body.
    retryable: status === undefined ? isCut && !error : isPassing(status),
    ...(status === undefined ? {} : { status }),
  });
}

/** Explains why a body with status 200 is not a reply, as the end of a sentence that begins with the server. */
function describeUselessReply(body: unknown, { api, isDone }: Omit<AskedApi, 'baseURL'>): string {
  if (typeof body === 'string' && body.trim() !== '') {
    return `answered with text that is not JSON (${excerptOf(body)}); check the base URL (most end with /v1)`;
  }
  const { error, choices, type } = jsonRecord(body);
  const said = jsonText(error) || jsonText(jsonRecord(error).message);
  if (said) return `reported an error: ${excerptOf(said)}`;
  if (!isDone || jsonText(type).startsWith('response.'))
    return 'ended the stream before the reply was complete; try again';
  if (Array.isArray(choices)) return 'answered without a choice; try again';
  const name = api === 'chat' ? 'Chat Completions' : 'Responses';
  return `answered with no completion; check that it serves ${name} at the base URL`;
}
