import { join } from 'node:path';
import ts from 'typescript-6.0';
import { type EntryPoint, entryPoints } from './entry-points.js';
import { ROOT } from './repository.js';

/** Rarely used options, options of contracts, variants of others, and options that a guide lists completely. */
const EXCLUDED = new Set([
  'AgUiResponseOptions',
  'AgentConversationOptions',
  'AnswerOptions',
  'AnswersOptions',
  'CancelJobOptions',
  'ChatRouteOptions',
  'ChatRequestOptions',
  'CompletionOptions',
  'ConfiguredAgentOptions',
  'ConversationDeleteOptions',
  'ConversationIdleOptions',
  'ConversationsCloseOptions',
  'CorsOptions',
  'CurrentTimeOptions',
  'EventsOptions',
  'HttpBackendOptions',
  'IdleOptions',
  'KeepRecentOptions',
  'ListenOptions',
  'LoopChatOptions',
  'LoopGuardOptions',
  'McpRouteOptions',
  'MemoryRunStoreOptions',
  'NestPluginOptions',
  'OfferOptions',
  'PostgresCloseOptions',
  'RecordedFetchOptions',
  'ResumeConfig',
  'RunResponseOptions',
  'SatelliteRunOptions',
  'SatelliteSendOptions',
  'SearxngOptions',
  'TaskQueueOptions',
  'TextToolsOptions',
  'ToolCallParserOptions',
  'ToolHarnessOptions',
  'ToolSurfaceOptions',
  'ToolwrightModuleAsyncOptions',
  'TurnOptions',
  'UIMessageResponseOptions',
  'ViteConfig',
  'WalkOptions',
  'WorkOptions',
]);

/** Types of options whose names do not end in `Options` or `Config`. */
const INCLUDED = new Set([
  'BudgetLimits',
  'CallScope',
  'ChatSettings',
  'ConversationSettings',
  'InspectorSettings',
  'McpApp',
  'McpAuth',
  'McpServerSettings',
  'StoreLimits',
]);

/** Options that more functions take, such as scopes, are described by their docstring instead. */
const MAX_TAKERS = 4;

const INTRODUCTION = `# Options

The options of each entry point, as their types declare them, with defaults in parentheses. This page is generated: \`npm run docs:options\` writes it. [Errors](errors.md#options) shows how wrong options are reported.
`;

interface OptionsType {
  readonly name: string;
  readonly entryPoint: string;
  readonly symbol: ts.Symbol;
  readonly options: readonly ts.Symbol[];
  /** The functions, decorators, classes and methods that take these options. */
  readonly takers: readonly string[];
  readonly heading: string;
}

/** The text of docs/reference/options.md. */
export function optionsPage(): string {
  const program = programOf(entryPoints());
  const checker = program.getTypeChecker();
  const types = optionsTypes(program, entryPoints());
  const described = new Map(types.map((type) => [type.symbol, type]));
  const sections = entryPoints().flatMap(({ name }) => {
    const own = types
      .filter(({ entryPoint }) => entryPoint === name)
      .sort((a, b) => a.heading.localeCompare(b.heading));
    if (own.length === 0) return [];
    return [`## \`${name}\`\n`, ...own.map((type) => describeType(checker, type, described))];
  });
  return [INTRODUCTION, ...sections].join('\n');
}

/** Resolves only files of this package: the page shows just the names of types from other packages. */
function programOf(entries: readonly EntryPoint[]): ts.Program {
  const options: ts.CompilerOptions = {
    lib: ['lib.es5.d.ts'],
    types: [],
    noEmit: true,
    module: ts.ModuleKind.NodeNext,
    experimentalDecorators: true,
  };
  const host = ts.createCompilerHost(options);
  host.resolveModuleNameLiterals = (literals, containingFile) =>
    literals.map(({ text }) => {
      if (!text.startsWith('.')) return { resolvedModule: undefined };
      return ts.resolveModuleName(text, containingFile, options, host);
    });
  return ts.createProgram({ rootNames: entries.map(({ path }) => join(ROOT, path)), options, host });
}

function optionsTypes(program: ts.Program, entries: readonly EntryPoint[]): OptionsType[] {
  const checker = program.getTypeChecker();
  const exported = entries.flatMap(({ name: entryPoint, path }) => {
    const module = checker.getSymbolAtLocation(program.getSourceFile(join(ROOT, path))!)!;
    return checker.getExportsOfModule(module).map((symbol) => ({
      entryPoint,
      name: symbol.name,
      symbol: symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol,
    }));
  });
  const takers = new Map<ts.Symbol, Set<string>>();
  for (const { name, symbol } of exported)
    for (const { taker, type } of parameterTypes(checker, name, symbol))
      takers.set(type, (takers.get(type) ?? new Set()).add(taker));
  const seen = new Set<ts.Symbol>();
  const headings = new Set<string>();
  return exported.flatMap(({ entryPoint, name, symbol }) => {
    if (!isShown(name, symbol) || seen.has(symbol)) return [];
    seen.add(symbol);
    const options = checker
      .getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol))
      // Options inherited from another package are documented there.
      .filter(({ declarations }) => declarations !== undefined);
    const names = [...(takers.get(symbol) ?? [])];
    const [first] = names;
    // The anchors of names with a dot differ between renderers of Markdown.
    const heading = first === undefined || first.includes('.') || headings.has(first) ? name : first;
    headings.add(heading);
    return [{ name, entryPoint, symbol, options, takers: names, heading }];
  });
}

function isShown(name: string, { flags }: ts.Symbol): boolean {
  if ((flags & ts.SymbolFlags.Interface) === 0 || EXCLUDED.has(name) || /Conformance/.test(name))
    return false;
  return /(Options|Config)$/.test(name) || INCLUDED.has(name);
}

/** The types of the parameters of a function, a constructor or the methods of a class. */
function parameterTypes(
  checker: ts.TypeChecker,
  name: string,
  symbol: ts.Symbol,
): { readonly taker: string; readonly type: ts.Symbol }[] {
  return (symbol.declarations ?? []).flatMap((declaration) => {
    const value = ts.isVariableDeclaration(declaration)
      ? (declaration.initializer ?? declaration)
      : declaration;
    const members = ts.isClassDeclaration(value) ? value.members : [value];
    return members.flatMap((member) => {
      if (!ts.isFunctionLike(member) || isHidden(member)) return [];
      const isDecorator = declaration.getSourceFile().fileName.includes('/decorators/');
      const taker = ts.isMethodDeclaration(member)
        ? `${name}.${member.name.getText()}`
        : `${isDecorator ? '@' : ''}${name}`;
      return member.parameters
        .flatMap(({ type }) => (type === undefined ? [] : referencesIn(checker, type)))
        .map((type) => ({ taker, type }));
    });
  });
}

function isHidden(member: ts.SignatureDeclaration): boolean {
  const flags = ts.getCombinedModifierFlags(member);
  return (
    (flags & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) !== 0 ||
    (member.name !== undefined && ts.isPrivateIdentifier(member.name)) ||
    ts.getJSDocTags(member).some(({ tagName }) => tagName.text === 'internal')
  );
}

/** The types that a type refers to, through aliases, except in function signatures. */
function referencesIn(checker: ts.TypeChecker, node: ts.Node): ts.Symbol[] {
  if (ts.isFunctionTypeNode(node) || ts.isIndexedAccessTypeNode(node)) return [];
  const found: ts.Symbol[] = [];
  const name = ts.isTypeReferenceNode(node)
    ? node.typeName
    : ts.isExpressionWithTypeArguments(node)
      ? node.expression
      : undefined;
  if (name !== undefined) {
    const symbol = symbolOf(checker, name);
    const alias = symbol?.declarations?.find(ts.isTypeAliasDeclaration);
    if (alias !== undefined) found.push(...referencesIn(checker, alias.type));
    else if (symbol !== undefined) found.push(symbol);
  }
  ts.forEachChild(node, (child) => {
    found.push(...referencesIn(checker, child));
  });
  return found;
}

/** The symbol of a name, followed through imports. */
function symbolOf(checker: ts.TypeChecker, name: ts.Node): ts.Symbol | undefined {
  const named = checker.getSymbolAtLocation(name);
  return named && named.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(named) : named;
}

function describeType(
  checker: ts.TypeChecker,
  type: OptionsType,
  described: ReadonlyMap<ts.Symbol, OptionsType>,
): string {
  const bases = (type.symbol.declarations ?? [])
    .flatMap((declaration) =>
      ts.isInterfaceDeclaration(declaration) ? (declaration.heritageClauses ?? []) : [],
    )
    .flatMap((clause) => clause.types.flatMap((base) => referencesIn(checker, base)))
    .flatMap((symbol) => described.get(symbol) ?? []);
  const groups = new Map<OptionsType, string[]>();
  const own: ts.Symbol[] = [];
  for (const option of type.options) {
    const from = bases.find(({ options }) => options.some((inherited) => isSame(inherited, option)));
    if (from === undefined) own.push(option);
    else groups.set(from, [...(groups.get(from) ?? []), option.name]);
  }
  const takers = type.takers.filter((name) => name !== type.heading);
  const others = takers.length > MAX_TAKERS ? [] : takers.map((name) => `\`${name}\``);
  const title = type.heading === type.name ? '' : `\`${type.name}\``;
  const about = [title, others.length > 0 ? `for ${others.join(', ')}` : ''].filter((text) => text !== '');
  const purpose =
    about.length > 0
      ? `${about.join(', also ').replace(/^f/, 'F')}.`
      : firstSentence(textOf(checker, type.symbol));
  const inherited = [...groups].map(([from, names]) => inheritedOptions(from, names, type));
  const head = [`### \`${type.heading}\`\n`, `${[purpose, ...inherited].join(' ')}\n`];
  if (own.length === 0) return head.join('\n');
  return [...head, ...listOf(own.map((option) => describeOption(checker, option))), ''].join('\n');
}

interface DescribedOption {
  readonly name: string;
  readonly type: string;
  readonly notes: string;
}

/** One line for each option; options with the same type and no description share a line. */
function listOf(options: readonly DescribedOption[]): string[] {
  const lines = options
    .filter(({ notes }) => notes !== '')
    .map((o) => `- \`${o.name}\`: \`${o.type}\`${o.notes}`);
  const plain = Map.groupBy(
    options.filter(({ notes }) => notes === ''),
    ({ type }) => type,
  );
  return [
    ...lines,
    ...[...plain].map(
      ([type, named]) => `- ${named.map(({ name }) => `\`${name}\``).join(', ')}: \`${type}\``,
    ),
  ];
}

function inheritedOptions(from: OptionsType, names: readonly string[], type: OptionsType): string {
  const here = new Set(type.options.map(({ name }) => name));
  const missing = from.options.map(({ name }) => name).filter((name) => !here.has(name));
  const link = `[\`${from.heading}\`](#${from.heading.toLowerCase().replace('@', '')})`;
  const list = (some: readonly string[]) => some.map((name) => `\`${name}\``).join(', ');
  if (missing.length > names.length) return `With ${list(names)} of ${link}.`;
  return `With all options of ${link}${missing.length > 0 ? ` except ${list(missing)}` : ''}.`;
}

function isSame(a: ts.Symbol, b: ts.Symbol): boolean {
  return a.name === b.name && a.declarations?.[0] === b.declarations?.[0];
}

function describeOption(checker: ts.TypeChecker, option: ts.Symbol): DescribedOption {
  const isOptional = (option.flags & ts.SymbolFlags.Optional) !== 0;
  const { meaning, byDefault } = splitDefault(textOf(checker, option));
  const isRequired = isOptional ? '' : ', required';
  const fallback = byDefault === '' ? '' : ` (${byDefault})`;
  const sentence = firstSentence(meaning);
  const notes = `${isRequired}${fallback}${sentence === '' ? '' : `. ${sentence}`}`;
  return { name: option.name, type: typeText(checker, option), notes: notes.replaceAll(/ {2,}/g, ' ') };
}

function textOf(checker: ts.TypeChecker, symbol: ts.Symbol): string {
  const text = ts.displayPartsToString(symbol.getDocumentationComment(checker));
  return text
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\{@link (\w+) ?\}/g, '`$1`')
    .trim();
}

/** The default in a docstring is a separate sentence, the end of a sentence, or in parentheses. */
const DEFAULTS = [
  /(?:^| )Default:? (.+?)\.(?= |$)/,
  /[;,] default:? (.+?)(?=\.(?: |$))/,
  / \(default:? (.+?)\)/,
];

function splitDefault(text: string): { readonly meaning: string; readonly byDefault: string } {
  const [pattern] = DEFAULTS.filter((regex) => regex.test(text));
  if (pattern === undefined) return { meaning: text, byDefault: '' };
  const [, byDefault = ''] = pattern.exec(text) ?? [];
  // The page shows the default without its reason.
  return { meaning: text.replace(pattern, '').trim(), byDefault: byDefault.replace(/, because .*$/, '') };
}

function firstSentence(text: string): string {
  const [sentence = ''] = text.split(/(?<=\.)(?<!e\.g\.) (?=[A-Z`(‘])/);
  return sentence;
}

/** The type as written in the source, or the values of a union; long object types are just `object`. */
function typeText(checker: ts.TypeChecker, option: ts.Symbol): string {
  const [declaration] = option.declarations ?? [];
  if (declaration === undefined) return 'unknown';
  if (ts.isMethodSignature(declaration)) return oneLine(shortText(declaration));
  const type = ts.isPropertySignature(declaration) ? declaration.type : undefined;
  const text = oneLine(type === undefined ? 'unknown' : shortText(valuesOf(checker, type) ?? type));
  return text.length > 100 && text.includes('{') ? 'object' : text;
}

/** The text of a type without `readonly` and without the types of parameters. */
function shortText(node: ts.Node): string {
  if (ts.isFunctionTypeNode(node) || ts.isMethodSignature(node)) {
    const names = node.parameters.map(({ name }) => name.getText()).join(', ');
    return `(${names}) => ${node.type === undefined ? 'void' : shortText(node.type)}`;
  }
  if (ts.isParenthesizedTypeNode(node)) return `(${shortText(node.type)})`;
  if (ts.isUnionTypeNode(node)) return node.types.map(shortText).join(' | ');
  if (ts.isTypeOperatorNode(node) && node.operator === ts.SyntaxKind.ReadonlyKeyword)
    return shortText(node.type);
  if (ts.isTypeReferenceNode(node) && node.typeName.getText() === 'Readonly' && node.typeArguments?.[0])
    return shortText(node.typeArguments[0]);
  if (ts.isTypeReferenceNode(node) && node.typeArguments)
    return `${node.typeName.getText()}<${node.typeArguments.map(shortText).join(', ')}>`;
  return node.getText();
}

/** The union of literals that a type name refers to. */
function valuesOf(checker: ts.TypeChecker, type: ts.TypeNode): ts.TypeNode | undefined {
  if (!ts.isTypeReferenceNode(type)) return undefined;
  const alias = symbolOf(checker, type.typeName)?.declarations?.find(ts.isTypeAliasDeclaration);
  if (alias === undefined || !ts.isUnionTypeNode(alias.type)) return undefined;
  const isPlain = (member: ts.TypeNode) =>
    ts.isLiteralTypeNode(member) || member.kind === ts.SyntaxKind.BooleanKeyword;
  return alias.type.types.every(isPlain) ? alias.type : undefined;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replace(/^\| /, '');
}
