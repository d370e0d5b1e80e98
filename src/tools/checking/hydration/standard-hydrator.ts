import type { StandardIssue, StandardResult, StandardSchema } from '../../../core/contract/json-schema.js';
import type { ArgumentFault, Hydrate, Hydrated } from '../../../core/contract/tool.js';
import { childPath } from '../../../core/kernel/json.js';
import type { HydrateValue } from './hydrate-class.js';

/** Parses the whole arguments with a Standard Schema, which may be asynchronous. */
export function standardHydrator(standard: StandardSchema): Hydrate {
  const { validate } = standard['~standard'];
  return Object.assign(
    (args: unknown) => {
      const result = validate(args);
      return 'then' in result ? result.then(hydrated) : hydrated(result);
    },
    {
      // If the schema cannot parse the value, no fault is added: the JSON Schema has already reported the faults.
      review: async (args: unknown) => {
        try {
          const { issues = [] } = await validate(args);
          return issueFaults(issues, '').map((fault) => ({ ...fault, isAuthored: false }));
        } catch {
          return [];
        }
      },
    },
  );
}

/** Parses a single value with a Standard Schema; its issues become faults. It may be asynchronous. */
export function hydrateStandard(standard: StandardSchema): HydrateValue {
  return (value, place) => {
    const settle = (result: StandardResult<unknown>): unknown => {
      if (result.issues === undefined) return result.value;
      place.hydration.faults.push(...issueFaults(result.issues, place.path));
      return undefined;
    };
    const result = standard['~standard'].validate(value);
    if (!('then' in result)) return settle(result);
    place.hydration.pending.push(result.then((later) => place.put(settle(later))));
    return undefined;
  };
}

function hydrated(result: StandardResult<unknown>): Hydrated {
  return result.issues === undefined
    ? { ok: true, value: result.value }
    : { ok: false, faults: issueFaults(result.issues, '') };
}

/** Converts the issues of a Standard Schema to faults, with paths below `path`. */
function issueFaults(issues: readonly StandardIssue[], path: string): readonly ArgumentFault[] {
  return issues.map(({ message, path: steps = [] }) => {
    const keys = steps.map((step) => String(typeof step === 'object' ? step.key : step));
    return { path: keys.reduce(childPath, path), message };
  });
}
