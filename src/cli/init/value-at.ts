import { type JSONPath, parse } from 'jsonc-parser';

/** JSON as editors take it: comments and commas at the ends are no mistakes. */
export function readJson(text: string): unknown {
  return parse(text, [], { allowTrailingComma: true });
}

/** What stands at a path; nothing where the way ends before. */
export function valueAt(value: unknown, path: JSONPath): unknown {
  return path.reduce<unknown>((at, key) => {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined;
    return (at as Readonly<Record<string | number, unknown>>)[key];
  }, value);
}
