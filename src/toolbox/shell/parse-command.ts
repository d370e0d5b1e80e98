import { forEachChild, parse, type SyntaxNode, type Word, type WordPart } from 'unbash';

/** A word of a command; without a text where it is not known before the command runs. */
interface ParsedWord {
  readonly text?: string;
  /** Where it begins and ends in the whole text. */
  readonly pos: number;
  readonly end: number;
}

/** One program with its arguments, wherever in the text it stands. */
export interface ParsedCommand {
  readonly words: readonly ParsedWord[];
  /** Files that the shell opens for it: `> out`. */
  readonly files: readonly ParsedWord[];
}

/** What a text for Bash runs, as far as the text says it. */
interface ParsedText {
  readonly commands: readonly ParsedCommand[];
  /** Why it is no list or pipeline of simple commands with literal words. */
  readonly unclear: string | undefined;
}

const MOST_CHARACTERS = 20_000;

/** Everything but text on lines: what a terminal does not show is not shown to who is asked, either. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is looked for
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/u;

/** Parses a text for Bash, in time in proportion to its length. */
export function parseCommand(command: string): ParsedText {
  if (command.length > MOST_CHARACTERS) return { commands: [], unclear: 'it is too long to be looked at' };
  if (UNSEEN.test(command) || !command.isWellFormed())
    return { commands: [], unclear: 'it has characters that cannot be seen' };
  const reader = new CommandReader();
  try {
    const script = parse(command);
    const [error] = script.errors ?? [];
    if (error !== undefined) reader.doubt(`it cannot be read: ${error.message}`);
    reader.visit(script);
  } catch {
    // The parser and the walk end at the depth that the stack allows.
    reader.doubt('it is nested too deeply');
  }
  return reader;
}

class CommandReader {
  readonly commands: ParsedCommand[] = [];
  unclear: string | undefined;

  doubt(why: string): void {
    this.unclear ??= why;
  }

  visit(node: SyntaxNode): void {
    if (!SIMPLE.has(node.type)) this.doubt(DOUBTS[node.type] ?? `it has a ${node.type}`);
    if (node.type === 'Statement' && node.background) this.doubt('a part of it runs in the background');
    if (node.type === 'Redirect' && !isHarmless(node))
      this.doubt(`it redirects to or from '${node.target?.text ?? 'a file'}'`);
    if (node.type === 'Command') this.#command(node);
    forEachChild(node, (child) => this.visit(child));
  }

  #command({ name, args, redirects }: Extract<SyntaxNode, { type: 'Command' }>): void {
    if (name === undefined) return;
    const words = [name, ...args].map((word): ParsedWord => {
      const parsed = word.type === 'Word' ? wordOf(word) : { pos: word.pos, end: word.end };
      if (parsed.text === undefined) this.doubt('some of its words are not known before it runs');
      return parsed;
    });
    const [program] = words;
    if (CHANGES_SHELL.has(program?.text ?? '')) this.doubt(`'${program?.text}' changes the shell itself`);
    if (startsOthers(words)) this.doubt(`'${program?.text}' starts other programs`);
    const files = redirects.flatMap((one) => (one.type === 'Redirect' ? (one.target ?? []) : [])).map(wordOf);
    this.commands.push({ words, files });
  }
}

/** What a list or a pipeline of simple commands is made of. */
const SIMPLE: ReadonlySet<string> = new Set(
  'Script Statement AndOr Pipeline Negation Command Word Redirect FileDescriptor Literal SingleQuoted DoubleQuoted AnsiCQuoted'.split(
    ' ',
  ),
);

const DOUBTS: Readonly<Record<string, string>> = {
  Assignment: 'it sets a variable',
  CommandExpansion: 'it puts the output of a command in',
  SimpleExpansion: 'it puts a variable in',
  ParameterExpansion: 'it puts a variable in',
  Glob: 'it puts names of files in',
  BraceExpansion: 'it puts words in',
  Subshell: 'it has a subshell',
};

/** Built-in commands of Bash by which the text behind them means something else, or is no text. */
const CHANGES_SHELL: ReadonlySet<string> = new Set(
  '. alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown enable eval exec exit export fc fg getopts hash history jobs let local logout mapfile popd printf pushd read readarray readonly return set shift shopt source suspend test times trap type typeset ulimit umask unalias unset wait ['.split(
    ' ',
  ),
);

function startsOthers([program, ...args]: readonly ParsedWord[]): boolean {
  const name = program?.text?.split('/').at(-1) ?? '';
  if (name === 'find')
    return args.some(({ text }) => text === undefined || /^-(exec|ok|f|delete)/.test(text));
  return name === 'env' || name === 'xargs';
}

function isHarmless({ descriptor, target, operator }: Extract<SyntaxNode, { type: 'Redirect' }>): boolean {
  const text = target && textOf(target);
  if (text === undefined || descriptor?.type === 'FileDescriptorVariable') return false;
  return text === '/dev/null' || (/^[<>]&$/.test(operator) && /^\d+$/.test(text));
}

function wordOf(word: Word): ParsedWord {
  const text = textOf(word);
  return { pos: word.pos, end: word.end, ...(text === undefined ? {} : { text }) };
}

/** Bash puts folders in for `~`. */
function textOf({ text, value, parts }: Word): string | undefined {
  if (/(^|[=:])~/.test(text)) return undefined;
  return parts === undefined || parts.every(isLiteral) ? value : undefined;
}

function isLiteral(part: WordPart): boolean {
  if (part.type === 'DoubleQuoted') return part.parts.every(({ type }) => type === 'Literal');
  return part.type === 'Literal' || part.type === 'SingleQuoted' || part.type === 'AnsiCQuoted';
}
