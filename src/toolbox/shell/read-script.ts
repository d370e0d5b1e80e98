import { forEachChild, type ParsedScript, parse, type SyntaxNode, type Word, type WordPart } from 'unbash';

/** A word of a command: known, or not before the command runs. */
export type CommandWord =
  | { readonly kind: 'known'; readonly text: string }
  /** Names of files that fit, or the text itself where none does. The pattern fits no less than Bash's. */
  | { readonly kind: 'files'; readonly text: string; readonly pattern: string }
  | { readonly kind: 'unknown' };

/** One program that a script runs, with its arguments. */
export interface ScriptCommand {
  readonly words: readonly CommandWord[];
  /** What it does to its shell does not last, or is not sure to be done: in a part of a pipe, in brackets, behind `||`. */
  readonly isAside?: boolean;
}

/** A file that a script opens by itself: `> out`. */
export interface ScriptFile {
  readonly action: 'read' | 'write';
  readonly path: CommandWord;
  /** As that of a command. */
  readonly isAside?: boolean;
}

/** What a script does, as far as its text says. */
interface ScriptContent {
  /** In the order in which they stand. */
  readonly steps: readonly (ScriptCommand | ScriptFile)[];
  /** What in it cannot be understood before it runs, each in a few words. */
  readonly unclear: readonly string[];
}

const MOST_CHARACTERS = 20_000;

/** Everything but text on lines: what a terminal does not show is not shown to who is asked, either. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is looked for
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/u;

/** Variables that change nothing but how programs talk. All others may change what runs. */
const HARMLESS =
  /^(CI|DEBUG|VERBOSE|NODE_ENV|TZ|LANG|LC_[A-Z]+|FORCE_COLOR|NO_COLOR|CLICOLOR|TERM|COLUMNS|LINES|[a-z][a-z0-9_]{0,30})$/;
const HARMFUL_SMALL = /^(npm_config_|.*_proxy$|ld_|git_|path$|ifs$)/;

/** Whether a variable may be set without another program running for it, or otherwise. */
export function isHarmlessVariable(name: string): boolean {
  return HARMLESS.test(name) && !HARMFUL_SMALL.test(name);
}

/** Reads a script for Bash. Nothing is guessed: what is not known to be harmless is told as unclear. */
export function readScript(script: string): ScriptContent {
  const reader = new ScriptReader();
  if (script.length > MOST_CHARACTERS) reader.doubt('it is too long to be looked at');
  else if (UNSEEN.test(script) || !script.isWellFormed())
    reader.doubt('it has characters that cannot be seen');
  else reader.script(parse(script));
  return { steps: reader.steps, unclear: [...reader.unclear] };
}

class ScriptReader {
  readonly steps: (ScriptCommand | ScriptFile)[] = [];
  readonly unclear = new Set<string>();
  #aside = 0;

  doubt(why: string): void {
    this.unclear.add(why);
  }

  script(script: ParsedScript): void {
    if (script.errors !== undefined && script.errors.length > 0)
      this.doubt(`it cannot be read: ${script.errors[0]?.message}`);
    for (const statement of script.commands) this.node(statement);
  }

  node(node: SyntaxNode): void {
    const isAside = ASIDE.has(node.type) || ('background' in node && node.background) || hasOr(node);
    this.#aside += isAside ? 1 : 0;
    this.#read(node);
    this.#aside -= isAside ? 1 : 0;
  }

  /** Goes through whatever a node has in it; kinds that are not named here are not understood. */
  #read(node: SyntaxNode): void {
    switch (node.type) {
      case 'Command':
        this.#command(node);
        return;
      case 'Word':
        this.#word(node);
        return;
      case 'Redirect':
        this.#redirect(node);
        return;
      case 'Assignment':
        this.#assignment(node);
        return;
      case 'CommandExpansion':
      case 'ProcessSubstitution':
        if (node.script === undefined) this.doubt('a command within it cannot be read');
        else this.script(node.script);
        return;
      case 'ParameterExpansion':
        this.#expansion(node);
        return;
      case 'For':
      case 'Select':
        if (!isHarmlessVariable(node.name.value)) this.doubt(`it sets '${node.name.value}'`);
        this.#children(node);
        return;
      case 'TestCommand':
        // Numbers are calculated, and what is calculated may run something.
        if (testWords(node).some((word) => /^-(eq|ne|lt|le|gt|ge|v|R)$/.test(word)))
          this.doubt('it calculates');
        this.#children(node);
        return;
      default:
        if (UNDERSTOOD.has(node.type)) {
          this.#children(node);
          return;
        }
        this.doubt(DOUBTS[node.type] ?? `it has a part that is not understood (${node.type})`);
        this.#children(node);
        return;
    }
  }

  #children(node: SyntaxNode): void {
    forEachChild(node, (child) => this.node(child));
  }

  #command(node: Extract<SyntaxNode, { type: 'Command' }>): void {
    for (const part of [...node.prefix, ...node.suffix.filter(({ type }) => type !== 'Word')])
      this.node(part);
    if (node.name === undefined) return;
    // `{a['…']}>` sets a variable, too, and what is within the brackets is calculated.
    const names = [node.name, ...node.suffix].filter(
      (part) => part.type === 'Word' && part.text.startsWith('{'),
    );
    if (names.some(({ end }) => node.suffix.some(({ pos }) => pos === end)))
      this.doubt('it sets a variable in passing');
    const words = [node.name, ...node.args].map((arg) =>
      arg.type === 'Word' ? this.#word(arg) : this.#setting(arg),
    );
    this.steps.push({ words, isAside: this.#aside > 0 });
  }

  /** `NAME=value` among the words of a command. */
  #setting(node: Extract<SyntaxNode, { type: 'Assignment' }>): CommandWord {
    const { name, value, append, index } = node;
    if (value.type !== 'Word' || append || index !== undefined) return { kind: 'unknown' };
    const read = this.#word(value, 'again');
    return read.kind === 'known' ? { kind: 'known', text: `${name}=${read.text}` } : { kind: 'unknown' };
  }

  #assignment(node: Extract<SyntaxNode, { type: 'Assignment' }>): void {
    if (!isHarmlessVariable(node.name)) this.doubt(`it sets '${node.name}'`);
    if (node.index !== undefined || node.value.type !== 'Word') this.doubt('it sets a list');
    this.#children(node);
  }

  #expansion(node: Extract<SyntaxNode, { type: 'ParameterExpansion' }>): void {
    const { operation } = node;
    if (operation?.type === 'Transform' || operation?.type === 'Unknown')
      this.doubt('it transforms a variable');
    if (operation?.type === 'Default' && operation.operator.includes('='))
      this.doubt('it sets a variable in passing');
    if (node.index !== undefined || node.prefix === '!' || operation?.type === 'Slice')
      this.doubt('it calculates');
    this.#children(node);
  }

  #redirect(node: Extract<SyntaxNode, { type: 'Redirect' }>): void {
    const { operator, target, descriptor } = node;
    if (descriptor?.type === 'FileDescriptorVariable') this.doubt('it sets a variable in passing');
    if (target === undefined) {
      this.doubt('it opens something that is not named');
      return;
    }
    const path = this.#word(target);
    const isNumber = path.kind === 'known' && /^(\d+|-|\d+-)$/.test(path.text);
    if ((operator === '>&' || operator === '<&') && isNumber) return;
    if (path.kind === 'known' && /^\/dev\/(tcp|udp)\//.test(path.text)) this.doubt('it opens a connection');
    this.steps.push({ action: operator === '<' ? 'read' : 'write', path, isAside: this.#aside > 0 });
  }

  /** What a word is; commands within it are read too, once. */
  #word(word: Word, how: 'first' | 'again' = 'first'): CommandWord {
    const { parts, text, value } = word;
    if (how === 'first') for (const part of parts ?? []) this.node(part);
    // Bash puts folders there.
    if (/(^|[=:])~/.test(text)) return { kind: 'unknown' };
    if (parts === undefined) return { kind: 'known', text: value };
    const texts = parts.map(textOf);
    if (texts.every((one) => typeof one === 'string')) return { kind: 'known', text: texts.join('') };
    if (parts.every((part) => part.type === 'Glob' || textOf(part) !== undefined))
      return filesOf(parts, value);
    return { kind: 'unknown' };
  }
}

/** Kinds of nodes in which a change of folder does not hold behind them, or may not take place. */
const ASIDE: ReadonlySet<string> = new Set<SyntaxNode['type']>([
  'Subshell',
  'Pipeline',
  'CommandExpansion',
  'ProcessSubstitution',
  'If',
  'While',
  'For',
  'Select',
  'Case',
  'Coproc',
  'Function',
]);

function hasOr(node: SyntaxNode): boolean {
  return node.type === 'AndOr' && node.operators.includes('||');
}

/** What a part of a word is for sure. */
function textOf(part: WordPart): string | undefined {
  switch (part.type) {
    case 'Literal':
    case 'SingleQuoted':
    case 'AnsiCQuoted':
      return part.value;
    case 'DoubleQuoted': {
      const inner = part.parts.map((one) => (one.type === 'Literal' ? one.value : undefined));
      return inner.includes(undefined) ? undefined : inner.join('');
    }
    default:
      return undefined;
  }
}

function filesOf(parts: readonly WordPart[], text: string): CommandWord {
  // A folder within brackets makes them mean themselves.
  if (parts.some((part) => part.type === 'Glob' && part.text.includes('/'))) return { kind: 'unknown' };
  return { kind: 'files', text, pattern: parts.map(patternOf).join('') };
}

/** What is known stands for itself; sets whose members are not plain stand for any character. */
function patternOf(part: WordPart): string {
  const text = textOf(part);
  if (text !== undefined) return text.replace(/[\\*?[\]{}]/g, '\\$&');
  return part.text.startsWith('[') && !/^\[[\w.,]+\]$/.test(part.text) ? '?' : part.text;
}

function testWords(node: SyntaxNode): readonly string[] {
  const words: string[] = [];
  const visit = (child: SyntaxNode): void => {
    if (child.type === 'Word') words.push(child.text);
    if (child.type === 'TestUnary' || child.type === 'TestBinary') words.push(child.operator);
    forEachChild(child, visit);
  };
  forEachChild(node, visit);
  return words;
}

/** Kinds of nodes that do nothing but hold others. */
const UNDERSTOOD: ReadonlySet<string> = new Set<SyntaxNode['type']>([
  'Script',
  'Statement',
  'CompoundList',
  'CaseItem',
  'Elif',
  'Pipeline',
  'Time',
  'Negation',
  'AndOr',
  'If',
  'While',
  'Case',
  'Subshell',
  'BraceGroup',
  'Redirected',
  'HereDoc',
  'HereString',
  'HereDocDelimiter',
  'HereDocBody',
  'FileDescriptor',
  'Literal',
  'SingleQuoted',
  'DoubleQuoted',
  'AnsiCQuoted',
  'SimpleExpansion',
  'Default',
  'Remove',
  'Replace',
  'CaseModification',
  'Glob',
  'BraceExpansion',
  'ExtendedGlob',
  'TestUnary',
  'TestBinary',
  'TestLogical',
  'TestNot',
  'TestGroup',
]);

const DOUBTS: Readonly<Record<string, string>> = {
  Function: 'it defines a function',
  ArithmeticExpansion: 'it calculates',
  ArithmeticCommand: 'it calculates',
  ArithmeticFor: 'it calculates',
  Coproc: 'it runs something beside itself',
  ArrayValue: 'it sets a list',
  LocaleString: 'it has a text that is translated',
  FileDescriptorVariable: 'it sets a variable in passing',
};
