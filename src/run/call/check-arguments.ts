import type { JsonObject } from '../../core/contract/json-schema.js';
import type { ArgumentFault, Hydrated, ToolDefinition } from '../../core/contract/tool.js';
import { copyOfJson, isRecord } from '../../core/kernel/json.js';
import { isWrapped, placeWithin } from '../../tools/checking/checker.js';
import { describeRejection, reviewedFaults } from '../../tools/checking/faults.js';
import {
  KEPT_DIGITS,
  type ReadArguments,
  readArguments,
  readPlainArguments,
} from '../../tools/checking/read-arguments.js';
import { offeredParameters } from '../../tools/schema/write-schema.js';
import type { CallRequest, MaybeLater } from './invocation.js';
import type { CallPlan } from './plan.js';

/** Arguments ready for the tool, or their faults. */
export type ReadyArguments =
  | {
      readonly ok: true;
      /** In JSON form, for the history. */
      readonly value: JsonObject;
      /** The form for `execute`, if it differs. */
      readonly hydrated?: JsonObject;
      /** The repairs; absent if there were none. */
      readonly repairs?: readonly string[];
      readonly removed: readonly string[];
      /** The arguments need no note for the model. */
      readonly isAccepted?: true;
      /** A second copy of the JSON form for arguments that were transformed before their check; it is never changed. */
      readonly transformed?: JsonObject;
    }
  | { readonly ok: false; readonly message: string; readonly faults: readonly ArgumentFault[] };

/** Accepts arguments that are valid as sent, as most are; `undefined` for all others. */
export function acceptedArguments({ accept }: CallPlan, request: CallRequest): JsonObject | undefined {
  const { read } = request;
  if (read !== undefined) return read.ok && read.repairs.length === 0 ? accept(read.value) : undefined;
  const plain = readPlainArguments(request.arguments);
  return plain && accept(plain);
}

/** Reads, checks and hydrates the arguments of a call. Synchronous unless a class has asynchronous rules. */
export function prepareArguments(
  tool: ToolDefinition,
  plan: CallPlan,
  call: CallRequest,
): MaybeLater<ReadyArguments> {
  const read = call.read ?? readRaw(call.arguments);
  if (!read.ok) return rejectArguments({ tool, call, faults: [{ path: '', message: read.message }] });
  if (read.repairs.length > 0 && !plan.takesRepaired)
    return rejectArguments({
      tool,
      call,
      faults: [read.repairs.includes(KEPT_DIGITS) ? MANY_DIGITS : UNREPAIRED],
    });
  const checked = plan.check(read.value);
  if (!checked.ok) return rejectReviewed({ tool, call, ...checked });
  const { coerced, dropped = [] } = checked;
  const repairs =
    coerced.length + dropped.length === 0
      ? read.repairs
      : [
          ...read.repairs,
          ...coerced.map((path) => `coerced ${path}`),
          ...dropped.map((path) => `dropped null ${path}`),
        ];
  const ready = repairs.length === 0 ? checked : { ...checked, repairs };
  if (tool.hydrate === undefined) return ready;
  const withHydrated = (hydrated: Hydrated): ReadyArguments => {
    if (!hydrated.ok) {
      const { wrapper } = plan;
      // Hydration sees the arguments in the tool's form.
      const isWithin = wrapper !== undefined && isWrapped(read.value, wrapper);
      const faults = isWithin ? placeWithin(hydrated.faults, wrapper) : hydrated.faults;
      return rejectArguments({ tool, call, faults });
    }
    const { value, transformed } = hydrated;
    const whole = { ...ready, hydrated: value as JsonObject };
    return transformed === undefined
      ? whole
      : { ...whole, value: copyOfJson(transformed) as JsonObject, transformed, isAccepted: undefined };
  };
  const hydrated = tool.hydrate(ready.value, call.isTransformed);
  return hydrated instanceof Promise ? hydrated.then(withHydrated) : withHydrated(hydrated);
}

/** The author's own rules also check arguments that fail their schema. */
function rejectReviewed({
  tool,
  call,
  faults,
  removed,
  value,
}: Refused & { readonly value?: JsonObject }): MaybeLater<ReadyArguments> {
  const review = tool.hydrate?.review;
  if (review === undefined || value === undefined || faults.length > MOST_REVIEWED)
    return rejectArguments({ tool, call, faults, removed });
  return review(value).then((found) =>
    rejectArguments({ tool, call, faults: reviewedFaults(faults, found), removed }),
  );
}

/** With more faults, the author's messages for some of them do not help. */
const MOST_REVIEWED = 50;

/** An object needs no parsing; providers deliver almost only objects. */
export function readRaw(raw: unknown): ReadArguments {
  return isRecord(raw) ? { ok: true, value: raw, repairs: [] } : readArguments(raw);
}

const UNREPAIRED: ArgumentFault = {
  path: '',
  message: 'the arguments are not a valid JSON object, and this tool accepts no repaired arguments',
};

const MANY_DIGITS: ArgumentFault = {
  path: '',
  message:
    'an integer has more digits than a number can hold; send it as a string if the parameter is a string',
};

interface Refused {
  readonly tool: ToolDefinition;
  readonly call: CallRequest;
  readonly faults: readonly ArgumentFault[];
  readonly removed?: readonly string[];
}

/** The rejection of invalid arguments, with the text for the model. */
export function rejectArguments({ tool, call, faults, removed = [] }: Refused): ReadyArguments {
  const { name, parameters, served } = tool;
  const kind = served?.kind ?? 'tool';
  const { schema } = offeredParameters(parameters);
  const message = describeRejection({ kind, tool: name, faults, schema, removed, sent: call.arguments });
  return { ok: false, message, faults };
}

/**
 * The checked arguments as they were before the body, a policy or an approval function, which may have changed them
 * in place. The call is executed again with the sent arguments. Copying them for each call would cost as much as the
 * call. If the tool received the caller's own object, its current state is returned.
 */
export function argumentsBefore({ request, plan, checked, transformed }: CheckedCall): JsonObject {
  const { journal } = request;
  if (transformed !== undefined) return transformed;
  // Edited arguments are stored as checked, possibly by another version of the tool.
  if (journal?.edited !== undefined) return copyOfJson(journal.arguments) as JsonObject;
  const sent = request.text ?? request.arguments;
  const read = typeof sent === 'string' || isReadApart(request) ? readArguments(sent) : undefined;
  const again = read?.ok ? plan?.check(read.value) : undefined;
  return again?.ok ? again.value : checked;
}

/** The arguments as they were sent, even if the tool changes its object. */
export function copyOfSent(request: CallRequest, { check }: CallPlan, isAccepted: boolean): unknown {
  const { arguments: given } = request;
  if (isReadApart(request) || !isRecord(given)) return given;
  return isAccepted ? check.copy(given) : copyOfJson(given);
}

/** Whether the tool receives its own copy of the sent arguments, made by their reader. */
function isReadApart({ arguments: sent, read }: CallRequest): boolean {
  return read?.ok === true && read.value !== sent;
}

export interface CheckedCall {
  readonly request: CallRequest;
  /** Absent if the tool is missing. */
  readonly plan?: CallPlan | undefined;
  readonly checked: JsonObject;
  readonly transformed?: JsonObject | undefined;
}
