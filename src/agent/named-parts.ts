import { InvalidOptionsError } from '../errors/author-fault.js';
import { isPlainObject, isRecord } from '../kernel/json.js';
import { nearestNames } from '../kernel/nearest-name.js';

/** A part by its name, with its settings. */
interface NamedPart {
  readonly name: string;
  readonly settings: Readonly<Record<string, unknown>>;
}

/**
 * What a text or an object of one key names; `undefined` for what is a part itself.
 *
 * @throws InvalidOptionsError (521) where nothing has that name.
 */
export function readNamed(
  given: unknown,
  { names, of }: { readonly names: readonly string[]; readonly of: string },
): NamedPart | undefined {
  if (typeof given === 'string') return known({ name: given, settings: {} }, names, of);
  if (!isPlain(given)) return undefined;
  const [entry, second] = Object.entries(given);
  if (entry === undefined || second !== undefined)
    throw wrong(of, {
      problem: `${of} is to be one name with its settings, and has ${entry === undefined ? 'none' : 'several'}`,
      fix: `{ ${names[0]}: { … } }`,
    });
  const [name, settings] = entry;
  if (!isRecord(settings))
    throw wrong(of, { problem: `the settings of '${name}' are no object`, fix: `{ ${name}: { … } }` });
  return known({ name, settings }, names, of);
}

function known(part: NamedPart, names: readonly string[], of: string): NamedPart {
  if (names.includes(part.name)) return part;
  const near = nearestNames(part.name, names).map((name) => `'${name}'`);
  throw wrong(of, {
    problem: `there is no ${of} '${part.name}'${near.length > 0 ? ` (did you mean ${near.join(' or ')}?)` : ''}`,
    fix: `one of ${names.map((name) => `'${name}'`).join(', ')}, or ${of === 'toolbox' ? 'tools' : `a ${of}`} of your own`,
  });
}

function wrong(of: string, fault: { readonly problem: string; readonly fix: string }): InvalidOptionsError {
  return new InvalidOptionsError([{ where: of, option: '', ...fault }]);
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (!isRecord(value) || !isPlainObject(value)) return false;
  // What has methods is a part itself, however it was made.
  return !Object.values(value).some((one) => typeof one === 'function');
}
