import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import {
  type AuthorFault,
  type InvalidOption,
  InvalidOptionsError,
  invalidOptions,
  refuseOptions,
  ToolDeclarationError,
  warnAuthor,
} from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { isPlainObject, isRecord, parsedJson } from '../../core/kernel/json.js';
import { RECORD } from '../../core/kernel/options.js';
import { KNOWN_SECRETS } from '../../run/call/redact.js';
import { type BroughtText, isWithin, readBroughtFile } from '../paths/folder-path.js';
import type { PermissionsOptions } from '../permissions/index.js';
import { AGENT_OPTIONS, type AgentOptions, type ConfiguredAgentOptions } from './agent-options.js';

interface ConfigFile {
  /** Absolute. */
  readonly path: string;
  /** Its own folder, where its paths begin. */
  readonly folder: string;
  readonly options: Readonly<Record<string, unknown>>;
  /** What is wrong with it, whatever the options mean. */
  readonly faults: readonly InvalidOption[];
}

/** Advice that JSON cannot follow: it is for code. */
const FOR_CODE =
  /\bnew [A-Z]|\w\(|@\w|=>|\bof your own$|^(another )?Infinity\b|^((.+: )?an? (function|store|AbortSignal|object with)\b)/;
const JSON_BEGINS = /^(['"{[\d…]|(true|false|one|an?|the|any|in|another)\b)/;

/**
 * A fault of an option that stands in a file, with advice for JSON in the place of that for code: names and texts in
 * double quotes, and nothing that only code can say.
 */
export function adviseForFile<Fault extends InvalidOption>(fault: Fault): Fault {
  const [root = ''] = fault.option.split(/[.[]/, 1);
  const name =
    fault.option
      .replace(/(\[\d+\])+$/, '')
      .split('.')
      .at(-1) ?? root;
  // Its fix already names files.
  if (ABOUT_FILES.includes(fault.option)) return fault;
  const isOption = AGENT_OPTIONS.rules.has(root) && !ABOUT_FILES.includes(root);
  if (isOption && !isForFiles(root)) return { ...fault, fix: `no ${root}: ${ONLY_CODE}` };
  const parts = namesForFile(fault.fix).split(/(?<=\S)((?:[,;])? or )/);
  const fix = withoutCode(parts).replace(/ of createAgent\b/, '');
  return { ...fault, fix: fix === '' ? `no ${name}: ${ONLY_CODE}` : asJson(fix, name) };
}

const ONLY_CODE = 'it is for code, and a file cannot say it';

function isForFiles(option: string): boolean {
  const schema = AGENT_OPTIONS.rules.get(option)?.schema;
  // A list in which nothing may be is one of what only code has.
  return !ABOUT_FILES.includes(option) && schema !== undefined && schema.maxItems !== 0;
}

/** Of all options of an agent, those that a file may have. */
function namesForFile(fix: string): string {
  if (!fix.startsWith('one of model,')) return fix;
  return `one of ${fix.slice('one of '.length).split(', ').filter(isForFiles).join(', ')}`;
}

/** Alternatives stand at even places, and between them what joins them. */
function withoutCode(parts: readonly string[]): string {
  let kept = '';
  for (let at = 0; at < parts.length; at += 2) {
    const part = parts[at] ?? '';
    if (!FOR_CODE.test(part)) kept += (kept === '' || kept.endsWith(': ') ? '' : parts[at - 1]) + part;
    // What it is about stays: `root: the absolute path of a folder: process.cwd()`.
    else if (at === 0 && parts.length > 1) kept = /^.*: /.exec(part)?.[0] ?? '';
  }
  return kept.endsWith(': ') ? '' : kept;
}

function asJson(fix: string, name: string): string {
  return fix
    .replace(/(?<=^|[\s([{])'([^'\n]*)'(?=$|[\s)\]},.;:])/g, (_, text: string) => JSON.stringify(text))
    .replace(/,\s*[A-Z]\w*(?=\s*[\],])/g, '')
    .replace(/\[\w+, …\]/g, '[…]')
    .replace(/(?<=[{,]\s*)([A-Za-z_$][\w$]*)(?=:\s)/g, '"$1"')
    .replace(/(?<=^|; or )([\w.[\]]+): (.+)/, (whole, path: string, value: string) => {
      const last = path.split('.').at(-1);
      if (last !== name && !JSON_BEGINS.test(value)) return whole;
      // An entry of a list has no name.
      return path.endsWith(']') ? value : `"${last}": ${value}`;
    });
}

/** What a file says of itself and is no option: the schema that editors go by. */
const NO_OPTION = '$schema';

/** Options that are about files themselves: one file does not lead to another. */
const ABOUT_FILES = ['configFile', 'folderConfigFile'];

/** Texts for models, and patterns of arguments: nothing in them is a secret by its name. */
const NO_SECRETS = ['systemPrompt', 'permissions'];

/**
 * Reads a file. `{ "env": "NAME" }` stands for the text of a variable; secrets stand nowhere else.
 *
 * @throws InvalidOptionsError (521) where it cannot be read or is no JSON object.
 */
export function readConfigFile(name: string): ConfigFile {
  const { path, folder, options } = readJsonFile(name, OF_AGENT);
  const faults: InvalidOption[] = [];
  const values = new FileValues(path, faults);
  const read = Object.entries(options).flatMap(([key, value]) => {
    if (!ABOUT_FILES.includes(key))
      return [[key, values.read(value, key, NO_SECRETS.includes(key) ? 'text' : 'plain')]];
    const problem = `${key} is for code, and not for a file`;
    faults.push({ where: path, option: key, problem, fix: `no ${key}` });
    return [];
  });
  return { path, folder, options: Object.fromEntries(read), faults };
}

interface FileExample {
  readonly option: string;
  readonly content: string;
}

const OF_AGENT = { option: 'configFile', content: '{ "provider": "openai", "model": "gpt-5", … }' };
const OF_FOLDER = { option: 'folderConfigFile', content: '{ "permissions": { "mode": "ask" } }' };

/** Reads a file as it stands: of the environment it is given nothing. */
function readJsonFile(
  name: string,
  example: FileExample,
  read: (path: string) => BroughtText = readTrusted,
): ConfigFile {
  const path = resolve(name);
  const { [NO_OPTION]: _, ...options } = parse(path, example, read);
  return { path, folder: dirname(path), options, faults: [] };
}

/** Also a pipe, which a shell makes for what a program writes. */
function readTrusted(path: string): BroughtText {
  return { ok: true, text: readFileSync(path, 'utf8').replace(/^\uFEFF/, '') };
}

/**
 * The same, `undefined` where there is no such file. A stranger may have made it: it is to be a regular file, without
 * links out of the folder that brings it.
 */
function readUntrustedFileIfThere(name: string, folder: string): ConfigFile | undefined {
  const read = (path: string): BroughtText =>
    readBroughtFile(path, isWithin(path, folder) ? folder : dirname(path));
  try {
    return readJsonFile(name, OF_FOLDER, read);
  } catch (error) {
    if (error instanceof InvalidOptionsError && isMissing(error.cause)) return undefined;
    throw error;
  }
}

function parse(
  path: string,
  { option, content }: FileExample,
  read: (path: string) => BroughtText,
): Readonly<Record<string, unknown>> {
  const refused = (problem: string, fix: string, cause?: unknown) =>
    Object.assign(new InvalidOptionsError([{ where: path, option: '', problem, fix }]), { cause });
  const pathFix = `${option}: the path of a JSON file that this process may read`;
  let file: BroughtText;
  try {
    file = read(path);
  } catch (cause) {
    const problem = isMissing(cause) ? 'there is no such file' : `it cannot be read: ${errorMessage(cause)}`;
    throw refused(problem, pathFix, cause);
  }
  if (!file.ok) throw refused(file.problem, pathFix);
  const { text } = file;
  const value = parsedJson(text);
  if (value === undefined) throw refused(`it is no JSON: line ${lineOfFault(text)} is wrong`, content);
  if (!isRecord(value)) throw refused('it is no JSON object', content);
  return value;
}

/** The line at which it stops to be the beginning of some JSON. The parser’s own message would show what is in it. */
function lineOfFault(text: string): number {
  const lines = text.split('\n');
  const wrong = lines.findIndex((_, index) => !mayGoOn(`${lines.slice(0, index + 1).join('\n')}\n`));
  return wrong === -1 ? lines.length : wrong + 1;
}

function mayGoOn(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    const message = errorMessage(error);
    const [, position] = /at position (\d+)/.exec(message) ?? [];
    return /end of JSON input/.test(message) || Number(position) >= text.trimEnd().length;
  }
}

function isMissing(error: unknown): boolean {
  return isRecord(error) && error.code === 'ENOENT';
}

/** `text`: any; `plain`: none that is a secret; `secret`: none at all. */
type Texts = 'text' | 'plain' | 'secret';

class FileValues {
  readonly #path: string;
  readonly #faults: InvalidOption[];

  constructor(path: string, faults: InvalidOption[]) {
    this.#path = path;
    this.#faults = faults;
  }

  read(value: unknown, at: string, texts: Texts): unknown {
    if (typeof value === 'string') return this.#text(value, at, texts);
    if (Array.isArray(value)) return value.map((one, index) => this.read(one, `${at}[${index}]`, texts));
    if (!isRecord(value)) return value;
    const [key, second] = Object.keys(value);
    if (key === 'env' && second === undefined && typeof value.env === 'string')
      return this.#variable(value.env, at);
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => {
        const within = texts === 'plain' && KNOWN_SECRETS.hides(name) ? 'secret' : texts;
        return [name, this.read(inner, `${at}.${name}`, within)];
      }),
    );
  }

  #text(text: string, at: string, texts: Texts): string {
    const isSecret = texts === 'secret' || (texts === 'plain' && KNOWN_SECRETS.mask(text) !== text);
    if (isSecret && text !== '')
      this.#add(at, `${at} is a secret that stands in the file`, `{ "env": "NAME" }, the name of a variable`);
    return text;
  }

  #variable(name: string, at: string): string | undefined {
    const value = process.env[name];
    if (value !== undefined && value !== '') return value;
    this.#add(at, `${at} is the variable ${name}, which is not set`, `${name}=… in the environment`);
    return 'unset';
  }

  #add(option: string, problem: string, fix: string): void {
    this.#faults.push({ where: this.#path, option, problem, fix });
  }
}

/** The options of an agent, of code and files together. */
export interface ReadOptions {
  readonly options: AgentOptions;
  readonly faults: AgentFaults;
  /** The folder where the paths of an option begin: that of its file, or of the process. */
  baseOf(option: string): string;
  readonly folderPermissions: Pick<PermissionsOptions, 'mode' | 'rules'> | undefined;
}

/**
 * Reads the options of code, and those of the files that they name.
 *
 * @throws InvalidOptionsError (521) where a file cannot be read, or code gives no options.
 */
export function readAgentOptions(given: AgentOptions | ConfiguredAgentOptions): ReadOptions {
  if (!RECORD.accepts(given)) refuseOptions(invalidOptions(given, AGENT_OPTIONS));
  const fileFaults: InvalidOption[] = [];
  const file = readFile(given.configFile, readConfigFile, fileFaults);
  const folder = folderOf(given.folder) ?? folderOf(file?.options.folder, file?.folder) ?? process.cwd();
  const ofFolder = readFile(
    given.folderConfigFile,
    (name) => readUntrustedFileIfThere(name, folder),
    fileFaults,
  );
  const own = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const isOfFile = (option: string): boolean => {
    const [name = ''] = option.split(/[.[]/, 1);
    return file !== undefined && Object.hasOwn(file.options, name) && !Object.hasOwn(own, name);
  };
  const faults = new AgentFaults(
    (option) => {
      if (option.startsWith('folderConfigFile') && ofFolder !== undefined) return ofFolder.path;
      return isOfFile(option) ? (file?.path ?? '') : 'createAgent';
    },
    [file, ofFolder].flatMap((one) => one?.path ?? []),
  );
  for (const fault of [...fileFaults, ...(file?.faults ?? [])]) faults.tell(fault);
  // What is there, but undefined, is the file's to say; where that is silent, a rule may not want it.
  const options = { ...given, ...file?.options, ...own } as unknown as AgentOptions;
  for (const { option, ...fault } of invalidOptions(withoutMissing(options, fileFaults), AGENT_OPTIONS))
    if (!faults.has(option)) faults.add(option, fault);
  return {
    options,
    faults,
    baseOf: (option) => (isOfFile(option) && file !== undefined ? file.folder : process.cwd()),
    folderPermissions: readFolderPermissions(ofFolder, { faults, options }),
  };
}

function folderOf(given: unknown, base = '.'): string | undefined {
  return typeof given === 'string' ? resolve(base, given) : undefined;
}

/** If a file cannot be read, it is not known what else is missing. */
function withoutMissing(options: AgentOptions, fileFaults: readonly InvalidOption[]): AgentOptions {
  if (fileFaults.length === 0) return options;
  return { ...options, provider: options.provider ?? 'offline', model: options.model ?? 'unknown' };
}

function readFile<File>(
  name: unknown,
  read: (name: string) => File,
  faults: InvalidOption[],
): File | undefined {
  if (typeof name !== 'string' || name.trim() === '') return undefined;
  try {
    return read(name);
  } catch (error) {
    if (!(error instanceof InvalidOptionsError)) throw error;
    faults.push(...error.faults);
    return undefined;
  }
}

/** Only what makes things stricter is heard of a file that a stranger may have written. */
function readFolderPermissions(
  file: ConfigFile | undefined,
  { faults, options }: { readonly faults: AgentFaults; readonly options: AgentOptions },
): ReadOptions['folderPermissions'] {
  if (file === undefined) return undefined;
  const { permissions, ...others } = file.options;
  for (const name of Object.keys(others)) {
    const fault = unheard(name, file);
    if (AGENT_OPTIONS.rules.has(name)) warnAuthor(fault, options.logger);
    else
      for (const unknown of invalidOptions({ [name]: 0 }, AGENT_OPTIONS).filter(
        ({ option }) => option === name,
      ))
        faults.tell({ ...unknown, where: file.path });
  }
  if (permissions === undefined) return undefined;
  if (!isRecord(permissions)) {
    const fault = { problem: 'permissions is no object', fix: '{ "rules": […] }' };
    faults.tell({ where: file.path, option: 'permissions', ...fault });
    return undefined;
  }
  const { mode, rules, ...unheardParts } = permissions;
  for (const name of Object.keys(unheardParts))
    warnAuthor(unheard(`permissions.${name}`, file), options.logger);
  const heard = { ...(mode === undefined ? {} : { mode }), ...(rules === undefined ? {} : { rules }) };
  return heard as PermissionsOptions;
}

function unheard(name: string, { path }: ConfigFile): { where: string; problem: string; fix: string } {
  return {
    where: path,
    problem: `'${name}' of a file that the folder brings with it is not heard`,
    fix: 'configFile, for a file that you trust',
  };
}

/** Every fault in the options of an agent, reported all at once. */
export class AgentFaults {
  readonly #options: InvalidOption[] = [];
  readonly #declarations: AuthorFault[] = [];
  readonly #whereOf: (option: string) => string;
  readonly #files: readonly string[];

  /** `whereOf` returns where an option stands: in code, or in one of the files. */
  constructor(whereOf: (option: string) => string, files: readonly string[] = []) {
    this.#whereOf = whereOf;
    this.#files = files;
  }

  get isEmpty(): boolean {
    return this.#options.length + this.#declarations.length === 0;
  }

  add(option: string, { problem, fix }: Pick<InvalidOption, 'problem' | 'fix'>): void {
    this.#options.push({ where: this.#whereOf(option), option, problem, fix });
  }

  tell(fault: InvalidOption): void {
    this.#options.push(fault);
  }

  /** Whether a mistake was reported for an option, or within it. */
  has(option: string): boolean {
    return this.#options.some(
      (fault) =>
        fault.option === option ||
        fault.option.startsWith(`${option}.`) ||
        fault.option.startsWith(`${option}[`),
    );
  }

  declare(faults: readonly AuthorFault[]): void {
    this.#declarations.push(...faults);
  }

  /**
   * Makes a part of the agent; what is wrong with its settings is kept, and told with the rest. What is known to be
   * none is not made. `given` is what the option was given: where that names a part, its settings stand under the name.
   */
  async of<Part>(
    option: string,
    make: () => Part | Promise<Part>,
    given?: unknown,
  ): Promise<Part | undefined> {
    if (this.#options.some((fault) => fault.option === option)) return undefined;
    try {
      return await make();
    } catch (error) {
      this.#keep(option, error, given);
      return undefined;
    }
  }

  get error(): InvalidOptionsError | ToolDeclarationError | undefined {
    const options = this.#options.map((fault) => (this.#isOfFile(fault) ? adviseForFile(fault) : fault));
    if (options.length > 0)
      return new InvalidOptionsError([
        ...options,
        ...this.#declarations.map((fault) => ({ ...fault, option: '' })),
      ]);
    return this.#declarations.length > 0 ? new ToolDeclarationError(this.#declarations) : undefined;
  }

  throwAll(): void {
    const { error } = this;
    if (error !== undefined) throw error;
  }

  #isOfFile({ where }: InvalidOption): boolean {
    return this.#files.some((path) => where === path || where.startsWith(`${path}, `));
  }

  #keep(option: string, error: unknown, given: unknown): void {
    const where = this.#whereOf(option);
    if (error instanceof InvalidOptionsError) {
      const settings = [option, nameIn(given)].filter(Boolean).join('.');
      // What a file has for an option may be known to be no value, whatever else it would be.
      const told = new Set(this.#options.map((fault) => fault.option));
      for (const fault of error.faults) {
        const place = fault.option === '' ? option : [settings, fault.option].filter(Boolean).join('.');
        if (!told.has(place)) this.#options.push({ ...fault, where: `${where}, ${option}`, option: place });
      }
      return;
    }
    if (error instanceof ToolDeclarationError)
      for (const fault of error.faults)
        this.#declarations.push(
          option === '' ? fault : { ...fault, where: `${where}, ${option}, ${fault.where}` },
        );
    // It says in one line what to do, whatever else is wrong.
    else if (option === '' || (error instanceof ToolwrightError && error.name === 'SandboxUnavailable'))
      throw error;
    else this.#options.push({ where, option, ...describeFailure(option, error) });
  }
}

/** The name of a part that stands before its settings: `{ sqlite: { … } }`. */
function nameIn(given: unknown): string | undefined {
  if (!isRecord(given) || !isPlainObject(given)) return undefined;
  const [entry, second] = Object.entries(given);
  return entry !== undefined && second === undefined && isRecord(entry[1]) ? entry[0] : undefined;
}

/** What the system said, or a package that is not there. */
function describeFailure(option: string, error: unknown): Pick<InvalidOption, 'problem' | 'fix'> {
  const message = errorMessage(error);
  const [, missing] = /Cannot find package '((?:@[^/']+\/)?[^/']+)/.exec(message) ?? [];
  if (missing !== undefined)
    return { problem: `${option} needs the package ${missing}`, fix: `npm install ${missing}` };
  if (
    ['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '') &&
    isRecord(error) &&
    typeof error.path === 'string'
  )
    return { problem: `${option} names ${error.path}, which is not there`, fix: 'a path that is there' };
  return { problem: `${option} could not be made: ${message.replace(/\.$/, '')}`, fix: fixOf(option) };
}

/** What to do about a part that its settings alone do not explain. */
function fixOf(option: string): string {
  if (option === 'store') return 'store: one that this process can open, in a folder that is there';
  if (option.startsWith('mcp.')) return `${option}: a program that starts, or an address that answers`;
  return `another ${option}`;
}

/** What the system calls a failure: `ENOENT`. */
export function codeOf(error: unknown): string | undefined {
  return isRecord(error) && typeof error.code === 'string' ? error.code : undefined;
}
