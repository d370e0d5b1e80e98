import type { Suspension, Wait } from '../contract/suspension.js';
import { argumentsBefore } from './arguments-before.js';
import { failedResult } from './failed-result.js';
import { refusalOf } from './gate-of.js';
import type { PerformedCall } from './performed-call.js';
import type { PermittedCall } from './permitted-call.js';

/** A call that waits before its body has run: suspended, or refused where nobody can be asked. */
export function suspendAt(wait: Wait, permitted: PermittedCall): PerformedCall {
  const { call, tool, checked, environment } = permitted;
  if (!environment.canSuspend)
    return { status: 'refused', result: failedResult('NotExecutableHere', refusalOf(tool.name, wait)) };
  const { answers = [], once = [], ...known } = call.journal ?? {};
  return suspended(tool.name, {
    waits: [wait],
    journal: { ...known, arguments: argumentsBefore(permitted, checked), answers, once },
  });
}

/** A suspended call, with the error that stands for it where nobody can be asked. */
export function suspended(tool: string, suspension: Suspension): PerformedCall {
  const message = `The call of '${tool}' waits for an answer, and nobody can give it here.`;
  return { status: 'suspended', result: failedResult('NotExecutableHere', message), suspension };
}
