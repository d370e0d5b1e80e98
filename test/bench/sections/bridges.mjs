/* (G) What a call costs where users already are: in a NestJS application, and over MCP. */
import { guardedNestCall, nestCall } from '../peers/mcp-nest.mjs';
import { sdkHttpCall, sdkProtectedCall, sdkServerCall } from '../peers/mcp-sdk.mjs';
import { nestjsBareCall, nestjsCall, nestjsValidatedCall } from '../peers/nestjs.mjs';
import {
  ourGuardedNestCall,
  ourGuardedServerCall,
  ourHttpCall,
  ourNestCall,
  ourProtectedCall,
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

/** µs per `tools/call`, in memory and over stateless HTTP; the first row of each table is the SDK's own server. */
export async function measureMcp(options) {
  const tables = [
    [
      'MCP `tools/call` in memory, µs',
      [sdkServerCall, ourServerCall, ourGuardedServerCall, nestCall, guardedNestCall],
    ],
    ['MCP `tools/call` over stateless HTTP, µs', [sdkHttpCall, ourHttpCall]],
    ['MCP `tools/call` over stateless HTTP with a token, µs', [sdkProtectedCall, ourProtectedCall]],
  ];
  const measured = [];
  for (const [title, candidates] of tables)
    measured.push(await measureCandidates({ title, candidates }, options));
  return measured;
}
