import { type DocComment, docKeywords } from '../comments/doc-comment.js';
import type { CompilerView, SyntaxNode, TypeHandle } from '../compiler/compiler-view.js';
import { commentOf, describeSchema, settleSchema } from '../types/finish-schema.js';
import { literalDefault } from '../types/literal-schema.js';
import { isStandard } from '../types/standard-type.js';
import {
  admitsUndefined,
  type DescribedSchema,
  definedParts,
  fault,
  type TypeWalk,
  type Written,
} from '../types/type-walk.js';
import { writeDecorated } from '../types/write-properties.js';
import type { ParameterDraft, ProjectScan } from './class-draft.js';
import {
  allDecorators,
  decorationOf,
  isOwnFile,
  type KnownDecorator,
  knownDecorators,
} from './decorator-roles.js';

/** One parameter as the compiler sees it. */
export interface TypedParameter {
  readonly node: SyntaxNode;
  readonly type: TypeHandle;
  /** What `@param` says of it. */
  readonly comment?: DocComment;
  /** What it says of parts of it. */
  readonly parts: PartComments;
  /** `@Tool({ parameters })` says it all. */
  readonly isExplicit: boolean;
}

/** Describes one parameter. */
export function describeParameter(parameter: TypedParameter, walk: TypeWalk): ParameterDraft {
  const { node, type } = parameter;
  const { view } = walk;
  const name = node.name?.kind === view.syntaxKinds.Identifier ? node.name?.text : undefined;
  const decorators = knownDecorators(node, view);
  const inject = injectionOf(type, decorators, view);
  const rest = node.dotDotDotToken !== undefined;
  if (inject !== undefined) return { name, inject, optional: false, rest };
  const fallback = node.initializer && literalDefault(node.initializer, view);
  const draft = { name, rest, optional: isOptional(parameter, walk) };
  if (parameter.isExplicit || isFilledParameter(node, view)) return draft;
  // A decorator of somebody else may fill the parameter in its own way, so that nothing is wrong with its type.
  const isForeign = allDecorators(node, view).length > decorators.length;
  const decoration = isForeign ? 'typed' : decorationOf(node, view, 'in');
  const typed = writeDecorated({ type, node: node.type, path: name ?? '' }, walk, decoration);
  const written = withComments(typed, parameter, walk);
  const schema = describeParts(settleSchema(written), parameter.parts);
  const complete = fallback === undefined ? schema : { ...schema, default: fallback.value };
  return {
    ...draft,
    optional: draft.optional || 'default' in complete,
    ...(Object.keys(complete).length === 0 && decoration === 'typed' ? {} : { schema: complete }),
  };
}

/** A comment before the parameter itself is nearer than the method's `@param`. */
function withComments(written: Written, { node, comment }: TypedParameter, walk: TypeWalk): Written {
  const own = commentOf(walk.view, node);
  const path = node.name?.text ?? '';
  for (const problem of [...docKeywords(comment).problems, ...docKeywords(own).problems])
    fault(walk, path, { problem });
  return describeSchema(describeSchema(written, comment), own);
}

function isOptional({ node, type }: TypedParameter, walk: TypeWalk): boolean {
  return (
    node.questionToken !== undefined ||
    node.initializer !== undefined ||
    node.dotDotDotToken !== undefined ||
    admitsUndefined(walk, type)
  );
}

/** Injected parameters are no part of the schema. */
function injectionOf(
  type: TypeHandle,
  decorators: readonly KnownDecorator[],
  view: ProjectScan['view'],
): ParameterDraft['inject'] {
  if (decorators.some(({ role }) => role === 'context')) return 'context';
  if (decorators.length > 0) return undefined;
  const [only, second] = definedParts({ view }, type);
  if (only === undefined || second !== undefined) return undefined;
  if (isContext(only, view)) return 'context';
  const symbol = view.symbolOf(only);
  return symbol?.name === 'AbortSignal' && isStandard(symbol, { view }) ? 'signal' : undefined;
}

function isContext(type: TypeHandle, view: ProjectScan['view']): boolean {
  const symbol = view.symbolOf(type);
  if (symbol === undefined || !(symbol.flags & (view.symbolFlags.Class ?? 0))) return false;
  if (symbol.name === 'ToolContext' && view.declaringFiles(symbol).some(isOwnFile)) return true;
  return view.baseTypes(type).some((base) => isContext(base, view));
}

/** Whether a decorator that NestJS's `createParamDecorator` made fills a parameter: then it is no argument. */
function isFilledParameter(node: SyntaxNode, view: CompilerView): boolean {
  return allDecorators(node, view).some(({ expression }) => {
    const callee = expression?.kind === view.syntaxKinds.CallExpression ? expression?.expression : undefined;
    const symbol = callee && view.symbolAt(callee);
    const [declaration] = symbol ? view.declarations(view.unalias(symbol)) : [];
    return declaration?.initializer?.expression?.text === 'createParamDecorator';
  });
}

/** What `@param page.size …` says, by the path within the parameter: `size`. */
type PartComments = ReadonlyMap<string, DocComment>;

/** The comments about parts of one parameter. */
export function partComments(name: string, comment: DocComment | undefined): PartComments {
  const parts = [...(comment?.params ?? [])].filter(([path]) => path.startsWith(`${name}.`));
  return new Map(parts.map(([path, said]) => [path.slice(name.length + 1), said]));
}

/** The schema with its properties described; a path that leads nowhere says nothing. */
function describeParts(schema: DescribedSchema, comments: PartComments): DescribedSchema {
  let described = schema;
  for (const [path, comment] of comments) described = describePart(described, path.split('.'), comment);
  return described;
}

function describePart(
  schema: DescribedSchema,
  [name = '', ...rest]: readonly string[],
  comment: DocComment,
): DescribedSchema {
  const properties = (schema.properties ?? {}) as Readonly<Record<string, DescribedSchema>>;
  const part = Object.hasOwn(properties, name) ? properties[name] : undefined;
  if (part === undefined) return schema;
  const described =
    rest.length > 0 ? describePart(part, rest, comment) : describeSchema({ schema: part }, comment).schema;
  const changed = { ...schema, properties: { ...properties, [name]: described } };
  if (described.default === undefined || !Array.isArray(schema.required)) return changed;
  return { ...changed, required: schema.required.filter((item) => item !== name) };
}
