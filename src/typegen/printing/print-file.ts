import type { ClassDraft, MethodDraft, ParameterDraft } from '../analysis/class-draft.js';
import { GENERATED_MARK } from '../generated-mark.js';
import { CodeReference, type DescribedSchema } from '../types/described-schema.js';
import type { ImportEnding } from './import-ending.js';
import { ImportList } from './import-list.js';
import { printValue } from './print-value.js';

/** What a file is printed from. */
export interface PrintedFile {
  readonly drafts: readonly ClassDraft[];
  /** Absolute, with `/`; imports are relative to it. */
  readonly outFile: string;
  readonly ending: ImportEnding;
}

/** The generated file: the same drafts give the same bytes. */
export function printFile({ drafts, outFile, ending }: PrintedFile): string {
  const imports = new ImportList(outFile, ending);
  for (const name of ['describeClass', 'toolsets', ...globalNames(drafts)]) imports.reserve(name);
  const nameOf = imports.nameOf.bind(imports);
  const blocks = drafts.map((draft) => {
    const start = `describeClass(${nameOf(draft.reference)}, `;
    return `${start}${printValue(descriptionOf(draft), { indent: '', taken: 1000, nameOf })});\n`;
  });
  const toolsets = drafts.filter(({ tools }) => tools !== undefined).map(({ reference }) => reference);
  const list = printValue(toolsets, { indent: '', taken: 'export const toolsets = ;'.length, nameOf });
  return [
    GENERATED_MARK,
    "import { describeClass } from 'toolwright/decorators';",
    ...imports.print(),
    '',
    ...blocks,
    '/** The toolsets of this project: `discoverTools({ toolsets })`. */',
    `export const toolsets = ${list};`,
    '',
  ].join('\n');
}

/** `Date`, `Map` …: a class of the project that is called so needs another name in the file. */
function globalNames(part: unknown): readonly string[] {
  if (part instanceof CodeReference) return Object.keys(part.origin).length === 0 ? [part.name] : [];
  if (part instanceof Map) return [...part.values()].flatMap(globalNames);
  return typeof part === 'object' && part !== null ? Object.values(part).flatMap(globalNames) : [];
}

function descriptionOf({ reference, dependencies, tools, properties, definitions }: ClassDraft): object {
  return {
    name: properties && (reference.origin.localName ?? reference.name),
    dependencies,
    tools: tools && Object.fromEntries(tools.map((tool) => [tool.name, toolOf(tool)])),
    properties:
      properties &&
      Object.fromEntries(
        properties.map(({ name, optional, schema }) => [name, optional ? { optional, schema } : { schema }]),
      ),
    $defs: definitionsOf(definitions),
  };
}

function toolOf({ description, parameters, output, definitions }: MethodDraft): object {
  return { description, parameters: parameters.map(parameterOf), output, $defs: definitionsOf(definitions) };
}

function parameterOf({ name, inject, optional, rest, schema }: ParameterDraft): object {
  return {
    name,
    inject,
    ...(optional && !rest ? { optional } : {}),
    ...(rest ? { rest } : {}),
    schema,
  };
}

function definitionsOf(definitions: ReadonlyMap<string, DescribedSchema>): object | undefined {
  return definitions.size === 0 ? undefined : Object.fromEntries(definitions);
}
