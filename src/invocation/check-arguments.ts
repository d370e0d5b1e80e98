import { describeFaults } from '../checking/describe-faults.js';
import { readArguments } from '../checking/read-arguments.js';
import type { ArgumentFault } from '../contract/argument-fault.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { Hydrated, ToolDefinition } from '../contract/tool-definition.js';
import type { CallPlan } from './call-plan.js';

/** Arguments ready for the tool, or what the model is to be told. */
export type ReadyArguments =
  | {
      readonly ok: true;
      /** In JSON form, for the history. */
      readonly checked: JsonObject;
      /** As `execute` takes them. */
      readonly hydrated: JsonObject;
      readonly repairs: readonly string[];
      readonly removed: readonly string[];
    }
  | { readonly ok: false; readonly message: string; readonly faults: readonly ArgumentFault[] };

/** Reads, checks and hydrates the arguments of a call. Synchronous unless a class has asynchronous rules. */
export function checkArguments(
  tool: ToolDefinition,
  plan: CallPlan,
  raw: unknown,
): ReadyArguments | Promise<ReadyArguments> {
  const read = isPlainArguments(raw) ? { ok: true as const, value: raw, repairs: NONE } : readArguments(raw);
  if (!read.ok) return reject(tool, [{ path: '', message: read.message }]);
  if (read.repairs.length > 0 && !plan.takesRepaired) return reject(tool, [UNREPAIRED]);
  const checked = plan.check(read.value);
  if (!checked.ok) return reject(tool, checked.faults);
  const { value, removed } = checked;
  const repairs =
    checked.coerced.length === 0
      ? read.repairs
      : [...read.repairs, ...checked.coerced.map((path) => `coerced ${path}`)];
  if (tool.hydrate === undefined) return { ok: true, checked: value, hydrated: value, repairs, removed };
  const finish = (hydrated: Hydrated): ReadyArguments =>
    hydrated.ok
      ? { ok: true, checked: value, hydrated: hydrated.value as JsonObject, repairs, removed }
      : reject(tool, hydrated.faults);
  const hydrated = tool.hydrate(value);
  return hydrated instanceof Promise ? hydrated.then(finish) : finish(hydrated);
}

const NONE: readonly string[] = [];

/** Arguments that need no reading: nearly all that a provider delivers. */
function isPlainArguments(raw: unknown): raw is JsonObject {
  return typeof raw === 'object' && raw !== null && !Array.isArray(raw);
}

const UNREPAIRED: ArgumentFault = {
  path: '',
  message: 'the arguments are no valid JSON object, and this tool takes none that had to be repaired',
};

function reject(tool: ToolDefinition, faults: readonly ArgumentFault[]): ReadyArguments {
  return { ok: false, message: describeFaults(tool.name, faults), faults };
}
