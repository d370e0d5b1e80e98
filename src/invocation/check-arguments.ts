import type { Checker } from '../checking/create-checker.js';
import { describeFaults } from '../checking/describe-faults.js';
import { readArguments } from '../checking/read-arguments.js';
import { sharedChecker } from '../checking/shared-checker.js';
import type { ArgumentFault } from '../contract/argument-fault.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { ToolDefinition } from '../contract/tool-definition.js';

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

const checkers = new WeakMap<ToolDefinition, { readonly parameters: object; readonly check: Checker }>();

/** Reads, checks and hydrates the arguments of a call. Synchronous unless a class has asynchronous rules. */
export function checkArguments(tool: ToolDefinition, raw: unknown): ReadyArguments | Promise<ReadyArguments> {
  const read = readArguments(raw);
  if (!read.ok) return reject(tool, [{ path: '', message: read.message }]);
  if (read.repairs.length > 0 && !takesRepaired(tool)) return reject(tool, [UNREPAIRED]);
  const checked = checkerOf(tool)(read.value);
  if (!checked.ok) return reject(tool, checked.faults);
  const { value, removed } = checked;
  const repairs = [...read.repairs, ...checked.coerced.map((path) => `coerced ${path}`)];
  if (tool.hydrate === undefined) return { ok: true, checked: value, hydrated: value, repairs, removed };
  const finish = (hydrated: Awaited<ReturnType<typeof tool.hydrate>>): ReadyArguments =>
    hydrated.ok
      ? { ok: true, checked: value, hydrated: hydrated.value as JsonObject, repairs, removed }
      : reject(tool, hydrated.faults);
  const hydrated = tool.hydrate(value);
  return hydrated instanceof Promise ? hydrated.then(finish) : finish(hydrated);
}

/** One checker per tool, compiled at its first call; again where a hand-written tool changes its schema. */
function checkerOf(tool: ToolDefinition): Checker {
  const { parameters } = tool;
  const known = checkers.get(tool);
  if (known?.parameters === parameters) return known.check;
  const check = sharedChecker(parameters, { refuseExtra: tool.annotations?.destructive ?? false });
  checkers.set(tool, { parameters, check });
  return check;
}

const UNREPAIRED: ArgumentFault = {
  path: '',
  message: 'the arguments are no valid JSON object, and this tool takes none that had to be repaired',
};

/** What destroys does not run on what somebody may have meant (design §2, `repair`). */
function takesRepaired(tool: ToolDefinition): boolean {
  return tool.repair ?? !tool.annotations?.destructive;
}

function reject(tool: ToolDefinition, faults: readonly ArgumentFault[]): ReadyArguments {
  return { ok: false, message: describeFaults(tool.name, faults), faults };
}
