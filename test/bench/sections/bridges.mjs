/* The cost of a call in a NestJS application and over MCP. */
import { guardedNestCall, nestCall } from '../peers/mcp-nest.mjs';
import { sdkHttpCall, sdkProtectedCall, sdkServerCall } from '../peers/mcp-sdk.mjs';
import { nestjsCall, nestjsPlainCall, nestjsValidatedCall } from '../peers/nestjs.mjs';
import {
  ownGuardedNestCall,
  ownGuardedServerCall,
  ownHttpCall,
  ownNestCall,
  ownProtectedCall,
  ownServerCall,
} from '../peers/toolwright-bridges.mjs';
import { measureCandidates } from './calls.mjs';

/** µs per call of a method of a Nest application; each table compares the same guards and interceptors. */
export async function measureNest(options) {
  return [
    await measureCandidates(
      { title: 'A call in a NestJS application, µs', candidates: [nestjsPlainCall, ownNestCall] },
      options,
    ),
    await measureCandidates(
      {
        title: 'A NestJS call with guard and interceptor, µs',
        candidates: [nestjsCall, ownGuardedNestCall, nestjsValidatedCall],
      },
      options,
    ),
  ];
}

/** µs per `tools/call`, in memory and over stateless HTTP; the first row of each table is the server of the SDK. */
export async function measureMcp(options) {
  const tables = [
    [
      'MCP `tools/call` in memory, µs',
      [sdkServerCall, ownServerCall, ownGuardedServerCall, nestCall, guardedNestCall],
    ],
    ['MCP `tools/call` over stateless HTTP, µs', [sdkHttpCall, ownHttpCall]],
    ['MCP `tools/call` over stateless HTTP with a token, µs', [sdkProtectedCall, ownProtectedCall]],
  ];
  const measured = [];
  for (const [title, candidates] of tables)
    measured.push(await measureCandidates({ title, candidates }, options));
  return measured;
}
