import type { StandardIssue, StandardResult, StandardSchema } from '../../contract/standard-schema.js';
import { childPath, type Place, type Revive } from './revival.js';

/** The value as a Standard Schema parses it; its issues are faults. It may take its time. */
export function reviveStandard(standard: StandardSchema): Revive {
  return (value, place) => {
    const result = standard['~standard'].validate(value);
    if (!('then' in result)) return settle(result, place);
    place.revival.pending.push(result.then((later) => place.put(settle(later, place))));
    return undefined;
  };
}

function settle(result: StandardResult<unknown>, { revival, path }: Place): unknown {
  if (result.issues === undefined) return result.value;
  revival.faults.push(
    ...result.issues.map((issue) => ({ path: pathOf(issue, path), message: issue.message })),
  );
  return undefined;
}

function pathOf({ path: steps = [] }: StandardIssue, path: string): string {
  const keys = steps.map((step) => (typeof step === 'object' ? step.key : step));
  return keys.reduce<string>((joined, key) => childPath(joined, String(key)), path);
}
