import { excerptOf } from './describe-failure.js';
import { jsonRecord, jsonText } from './lenient-json.js';

/** Says, as the end of a sentence that begins with the server, why a body of status 200 is no reply. */
export function describeUselessReply(body: unknown): string {
  if (typeof body === 'string' && body.trim() !== '') {
    return `answered with text that is no JSON (${excerptOf(body)}); check the base URL (most end with /v1)`;
  }
  const { error, choices } = jsonRecord(body);
  const said = jsonText(error) || jsonText(jsonRecord(error).message);
  if (said) return `reported an error: ${excerptOf(said)}`;
  if (Array.isArray(choices)) return 'answered without a choice; try again';
  return 'answered with no completion; check that it serves Chat Completions at the base URL';
}
