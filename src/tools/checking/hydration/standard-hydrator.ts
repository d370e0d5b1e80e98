import type { StandardIssue, StandardResult, StandardSchema } from '../../../core/contract/json-schema.js';
import type { ArgumentFault, Hydrate, Hydrated } from '../../../core/contract/tool.js';
import { childPath } from '../../../core/kernel/json.js';

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

function hydrated(result: StandardResult<unknown>): Hydrated {
  return result.issues === undefined
    ? { ok: true, value: result.value }
    : { ok: false, faults: issueFaults(result.issues, '') };
}

/** Converts the issues of a Standard Schema to faults, with paths below `path`. */
export function issueFaults(issues: readonly StandardIssue[], path: string): readonly ArgumentFault[] {
  return issues.map(({ message, path: steps = [] }) => {
    const keys = steps.map((step) => String(typeof step === 'object' ? step.key : step));
    return { path: keys.reduce(childPath, path), message };
  });
}
