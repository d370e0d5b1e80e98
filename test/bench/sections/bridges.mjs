/* (G) What a call costs where users already are: in a NestJS application, and over MCP. */
import { guardedNestCall, nestCall } from '../peers/mcp-nest.mjs';
import { sdkServerCall } from '../peers/mcp-sdk.mjs';
import { nestjsBareCall, nestjsCall, nestjsValidatedCall } from '../peers/nestjs.mjs';
import {
  ourGuardedNestCall,
  ourGuardedServerCall,
  ourNestCall,
  ourServerCall,
} from '../peers/toolwright-bridges.mjs';
import { measureCandidates } from './calls.mjs';

/** µs per call of a method of a Nest application: each table compares the same things around the method. */
export async function measureNest(options) {
  return [
    await measureCandidates(
      { title: 'A call in a NestJS application, µs', candidates: [nestjsBareCall, ourNestCall] },
      options,
    ),
    await measureCandidates(
      {
        title: 'The same with a guard and an interceptor, µs',
        candidates: [nestjsCall, ourGuardedNestCall, nestjsValidatedCall],
      },
      options,
    ),
  ];
}

/** µs per `tools/call` in memory; the first row is the SDK's own server. */
export function measureMcp(options) {
  const candidates = [sdkServerCall, ourServerCall, ourGuardedServerCall, nestCall, guardedNestCall];
  return measureCandidates({ title: 'MCP `tools/call` in memory, µs', candidates }, options);
}
