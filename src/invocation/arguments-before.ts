import { readArguments } from '../checking/read-arguments.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { PermittedCall } from './permitted-call.js';

/**
 * The checked arguments as they were before the body, a policy or an approval function had them: those may
 * have changed them in place, and the call is made again with what was sent. Copying them for each call would
 * cost as much as the call; where they came as an object and nobody has their text, they are what they are now.
 */
export function argumentsBefore(
  { call, plan }: Pick<PermittedCall, 'call' | 'plan'>,
  checked: JsonObject,
): JsonObject {
  const text = call.text ?? call.arguments;
  const read = typeof text === 'string' ? readArguments(text) : undefined;
  const again = read?.ok ? plan.check(read.value) : undefined;
  return again?.ok ? again.value : checked;
}
