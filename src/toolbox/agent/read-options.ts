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
import { isPlainObject, isRecord, parsedJson, withoutUndefined } from '../../core/kernel/json.js';
import { missingPackage } from '../../core/kernel/missing-package.js';
import { RECORD } from '../../core/kernel/options.js';
import { KNOWN_SECRETS } from '../../run/call/redact.js';
import { type BroughtText, isWithin, readBroughtFile } from '../paths/folder-path.js';
import type { PermissionsOptions } from '../permissions/index.js';
import { AGENT_OPTIONS, type AgentOptions, type ConfiguredAgentOptions } from './agent-options.js';

interface ConfigFile {
  /** Absolute. */
  readonly path: string;
  /** The file's absolute folder, at which its paths start. */
  readonly folder: string;
  readonly options: Readonly<Record<string, unknown>>;
  /** Faults of the file itself, whatever its options mean. */
  readonly faults: readonly InvalidOption[];
}

/** Fixes that are for code and impossible in JSON. */
const FOR_CODE =
  /\bnew [A-Z]|\w\(|@\w|=>|\bof your own$|^(another )?Infinity\b|^((.+: )?an? (function|store|AbortSignal|object with)\b)/;
const JSON_BEGINS = /^(['"{[\d…]|(true|false|one|an?|the|any|in|another)\b)/;

/**
 * A fault of an option in a file, with its fix rewritten for JSON: names and strings in double quotes, and without what
 * only code can contain.
 */
export function adviseForFile<Fault extends InvalidOption>(fault: Fault): Fault {
  const [root = ''] = fault.option.split(/[.[]/, 1);
  const name =
    fault.option
      .replace(/(\[\d+\])+$/, '')
      .split('.')
      .at(-1) ?? root;
  // Its fix is about files already.
  if (ABOUT_FILES.includes(fault.option)) return fault;
  const isOption = AGENT_OPTIONS.rules.has(root) && !ABOUT_FILES.includes(root);
  if (isOption && !isForFiles(root)) return { ...fault, fix: `no ${root}: ${ONLY_CODE}` };
  const parts = namesForFile(fault.fix).split(/(?<=\S)((?:[,;])? or )/);
  const fix = withoutCode(parts).replace(/ of createAgent\b/, '');
  return { ...fault, fix: fix === '' ? `no ${name}: ${ONLY_CODE}` : asJson(fix, name) };
}

const ONLY_CODE = 'it can be set only in code';

function isForFiles(option: string): boolean {
  const schema = AGENT_OPTIONS.rules.get(option)?.schema;
  // A schema that allows no entries belongs to a list that only code can fill.
  return !ABOUT_FILES.includes(option) && schema !== undefined && schema.maxItems !== 0;
}

/** Removes the options that files cannot have from a list of all options. */
function namesForFile(fix: string): string {
  if (!fix.startsWith('one of model,')) return fix;
  return `one of ${fix.slice('one of '.length).split(', ').filter(isForFiles).join(', ')}`;
}

/** Alternatives are at even indexes; the odd ones contain the separators. */
function withoutCode(parts: readonly string[]): string {
  let kept = '';
  for (let at = 0; at < parts.length; at += 2) {
    const part = parts[at] ?? '';
    if (!FOR_CODE.test(part)) kept += (kept === '' || kept.endsWith(': ') ? '' : parts[at - 1]) + part;
    // Keeps the prefix, as in `root: the absolute path of a folder: process.cwd()`.
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
      // List entries have no name.
      return path.endsWith(']') ? value : `"${last}": ${value}`;
    });
}

/** Options that name files: one file cannot name another. */
const ABOUT_FILES = ['configFile', 'folderConfigFile'];

/** Texts for models and patterns of arguments are not secrets, whatever their names are. */
const NO_SECRETS = ['systemPrompt', 'permissions'];

/**
 * Reads a configuration file. `{ "env": "NAME" }` is replaced with an environment variable; secrets must be given so.
 *
 * @throws InvalidOptionsError (521) if it cannot be read or is not a JSON object.
 */
export function readConfigFile(name: string): ConfigFile {
  const { path, folder, options } = readJsonFile(name, OF_AGENT);
  const faults: InvalidOption[] = [];
  const values = new FileValues(path, faults);
  const read = Object.entries(options).flatMap(([key, value]) => {
    if (!ABOUT_FILES.includes(key))
      return [[key, values.read(value, key, NO_SECRETS.includes(key) ? 'text' : 'plain')]];
    const problem = `${key} can be set only in code`;
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

/** Reads a file without replacing environment variables. `$schema` is for editors. */
function readJsonFile(
  name: string,
  example: FileExample,
  read: (path: string) => BroughtText = readTrusted,
): ConfigFile {
  const path = resolve(name);
  const { $schema: _, ...options } = parse(path, example, read);
  return { path, folder: dirname(path), options, faults: [] };
}

/** Accepts pipes, too, such as those of process substitution in a shell. */
function readTrusted(path: string): BroughtText {
  return { ok: true, text: readFileSync(path, 'utf8').replace(/^\uFEFF/, '') };
}

/**
 * Reads an untrusted file; `undefined` if it does not exist. It must be a regular file, without links out of its
 * folder.
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
  if (value === undefined) {
    // Where the text stops being valid JSON. The parser's own message would show the file's content.
    const lines = text.split('\n');
    const wrong = lines.findIndex((_, index) => !mayGoOn(`${lines.slice(0, index + 1).join('\n')}\n`));
    const line = wrong === -1 ? lines.length : wrong + 1;
    throw refused(`it is not valid JSON (line ${line})`, content);
  }
  if (!isRecord(value)) throw refused('it is not a JSON object', content);
  return value;
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

/** `text`: any string; `plain`: no secrets; `secret`: no strings at all. */
type Texts = 'text' | 'plain' | 'secret';

class FileValues {
  constructor(
    private readonly path: string,
    private readonly faults: InvalidOption[],
  ) {}

  read(value: unknown, at: string, texts: Texts): unknown {
    if (typeof value === 'string') {
      const isSecret = texts === 'secret' || (texts === 'plain' && KNOWN_SECRETS.mask(value) !== value);
      const fix = '{ "env": "NAME" }, with the name of an environment variable';
      if (isSecret && value !== '') this.#add(at, `${at} contains a secret as plain text`, fix);
      return value;
    }
    if (Array.isArray(value)) return value.map((one, index) => this.read(one, `${at}[${index}]`, texts));
    if (!isRecord(value)) return value;
    const [key, second] = Object.keys(value);
    if (key === 'env' && second === undefined && typeof value.env === 'string') {
      const { env } = value;
      const found = process.env[env];
      if (found !== undefined && found !== '') return found;
      this.#add(
        at,
        `${at} refers to the environment variable ${env}, which is not set`,
        `${env}=… in the environment`,
      );
      return 'unset';
    }
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => {
        const within = texts === 'plain' && KNOWN_SECRETS.hides(name) ? 'secret' : texts;
        return [name, this.read(inner, `${at}.${name}`, within)];
      }),
    );
  }

  #add(option: string, problem: string, fix: string): void {
    this.faults.push({ where: this.path, option, problem, fix });
  }
}

/** The options of an agent, merged from code and files. */
export interface ReadOptions {
  readonly options: AgentOptions;
  readonly faults: AgentFaults;
  /** The value of an option; `undefined` if it has a fault. */
  valid<Name extends keyof AgentOptions>(option: Name): AgentOptions[Name] | undefined;
  /** The folder at which paths of an option start: that of its file, or the working directory. */
  baseOf(option: string): string;
  readonly folderPermissions: Pick<PermissionsOptions, 'mode' | 'rules'> | undefined;
}

/**
 * Reads the options from code and from the files that they name.
 *
 * @throws InvalidOptionsError (521) if a file cannot be read, or code passes no options.
 */
export function readAgentOptions(given: AgentOptions | ConfiguredAgentOptions): ReadOptions {
  if (!RECORD.accepts(given)) refuseOptions(invalidOptions(given, AGENT_OPTIONS));
  const fileFaults: InvalidOption[] = [];
  const file = readFile(given.configFile, readConfigFile, fileFaults);
  const folder = folderOf(given.folder) ?? folderOf(file?.options.folder, file?.folder) ?? process.cwd();
  const readOfFolder = (name: string) => readUntrustedFileIfThere(name, folder);
  const ofFolder = readFile(given.folderConfigFile, readOfFolder, fileFaults);
  const own = withoutUndefined(given);
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
  for (const fault of [...fileFaults, ...(file?.faults ?? [])]) faults.report(fault);
  // An option that is undefined in code is taken from the file; if the file lacks it, undefined may break its rule.
  const options = { ...given, ...file?.options, ...own } as unknown as AgentOptions;
  // If a file cannot be read, nothing else is reported as missing.
  const isWhole = fileFaults.length === 0;
  const placeholders = {
    provider: options.provider ?? 'offline',
    model: options.model ?? 'unknown',
  } as const;
  const checked = isWhole ? options : { ...options, ...placeholders };
  for (const { option, ...fault } of invalidOptions(checked, AGENT_OPTIONS))
    if (!faults.has(option)) faults.add(option, fault);
  return {
    options,
    faults,
    valid: (option) => (faults.has(option) ? undefined : options[option]),
    baseOf: (option) => (isOfFile(option) && file !== undefined ? file.folder : process.cwd()),
    folderPermissions: readFolderPermissions(ofFolder, faults, options),
  };
}

function folderOf(given: unknown, base = '.'): string | undefined {
  return typeof given === 'string' ? resolve(base, given) : undefined;
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

/** Takes only restrictions from a file that is not trusted. */
function readFolderPermissions(
  file: ConfigFile | undefined,
  faults: AgentFaults,
  options: AgentOptions,
): ReadOptions['folderPermissions'] {
  if (file === undefined) return undefined;
  const { permissions, ...others } = file.options;
  for (const name of Object.keys(others)) {
    const fault = ignoredPart(name, file);
    if (AGENT_OPTIONS.rules.has(name)) warnAuthor(fault, options.logger);
    else
      for (const unknown of invalidOptions({ [name]: 0 }, AGENT_OPTIONS))
        if (unknown.option === name) faults.report({ ...unknown, where: file.path });
  }
  if (permissions === undefined) return undefined;
  if (!isRecord(permissions)) {
    const fault = { problem: 'permissions is not an object', fix: '{ "rules": […] }' };
    faults.report({ where: file.path, option: 'permissions', ...fault });
    return undefined;
  }
  const { mode, rules, ...ignored } = permissions;
  for (const name of Object.keys(ignored))
    warnAuthor(ignoredPart(`permissions.${name}`, file), options.logger);
  return withoutUndefined({ mode, rules }) as PermissionsOptions;
}

function ignoredPart(name: string, { path }: ConfigFile): AuthorFault {
  return {
    where: path,
    problem: `'${name}' is ignored in a file that comes with the folder`,
    fix: 'configFile, for a file that you trust',
  };
}

/** Collects all faults in the options of an agent, to report them together. */
export class AgentFaults {
  readonly #options: InvalidOption[] = [];
  readonly #declarations: AuthorFault[] = [];

  constructor(
    /** The place of an option: code, or one of the files. */
    private readonly whereOf: (option: string) => string,
    private readonly files: readonly string[] = [],
  ) {}

  get isEmpty(): boolean {
    return this.#options.length + this.#declarations.length === 0;
  }

  add(option: string, { problem, fix }: Pick<InvalidOption, 'problem' | 'fix'>): void {
    this.#options.push({ where: this.whereOf(option), option, problem, fix });
  }

  report(fault: InvalidOption): void {
    this.#options.push(fault);
  }

  /** Whether a fault was reported for an option, or within it. */
  has(option: string): boolean {
    return this.#options.some(
      (fault) =>
        fault.option === option ||
        fault.option.startsWith(`${option}.`) ||
        fault.option.startsWith(`${option}[`),
    );
  }

  /**
   * Creates a part of the agent and collects its faults. Skipped if the option already has a fault. `given` is the
   * value of the option: if it names a part, faults of its settings get that name as a prefix.
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
      const where = this.whereOf(option);
      if (error instanceof InvalidOptionsError) {
        const settings = [option, nameIn(given)].filter(Boolean).join('.');
        // Report one fault per option: a value from a file may have one already.
        const reported = new Set(this.#options.map((fault) => fault.option));
        for (const fault of error.faults) {
          const place = fault.option === '' ? option : [settings, fault.option].filter(Boolean).join('.');
          if (!reported.has(place))
            this.#options.push({ ...fault, where: `${where}, ${option}`, option: place });
        }
        return undefined;
      }
      const within = option === '' ? '' : `${where}, ${option}, `;
      if (error instanceof ToolDeclarationError)
        for (const fault of error.faults) this.#declarations.push({ ...fault, where: within + fault.where });
      // Not collected: this error explains in one line what to do.
      else if (option === '' || (error instanceof ToolwrightError && error.name === 'SandboxUnavailable'))
        throw error;
      else this.#options.push({ where, option, ...describeFailure(option, error) });
      return undefined;
    }
  }

  get error(): InvalidOptionsError | ToolDeclarationError | undefined {
    const options = this.#options.map((fault) => {
      const { where } = fault;
      const isOfFile = this.files.some((path) => where === path || where.startsWith(`${path}, `));
      return isOfFile ? adviseForFile(fault) : fault;
    });
    const declarations = this.#declarations.map((fault) => ({ ...fault, option: '' }));
    if (options.length > 0) return new InvalidOptionsError([...options, ...declarations]);
    return declarations.length > 0 ? new ToolDeclarationError(this.#declarations) : undefined;
  }

  throwAll(): void {
    const { error } = this;
    if (error !== undefined) throw error;
  }
}

/** The name of a part that comes before its settings: `{ sqlite: { … } }`. */
function nameIn(given: unknown): string | undefined {
  if (!isRecord(given) || !isPlainObject(given)) return undefined;
  const [entry, second] = Object.entries(given);
  return entry !== undefined && second === undefined && isRecord(entry[1]) ? entry[0] : undefined;
}

/** A system error, or a missing package. */
function describeFailure(option: string, error: unknown): Pick<InvalidOption, 'problem' | 'fix'> {
  const message = errorMessage(error);
  const missing = missingPackage(error);
  if (missing !== undefined)
    return { problem: `${option} needs the package ${missing}`, fix: `npm install ${missing}` };
  const { path, fix: ofError } = isRecord(error) ? error : {};
  if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '') && typeof path === 'string')
    return { problem: `${option} refers to ${path}, which does not exist`, fix: 'an existing path' };
  let fix = `another ${option}`;
  if (option === 'store') fix = 'store: another store that this process can open, in an existing folder';
  if (option.startsWith('mcp.')) fix = `${option}: a command that starts, or a URL that responds`;
  if (typeof ofError === 'string') fix = `${option}: ${ofError}`;
  return { problem: `${option} could not be set up: ${message.replace(/\.$/, '')}`, fix };
}

/** The system's error code: `ENOENT`. */
export function codeOf(error: unknown): string | undefined {
  return isRecord(error) && typeof error.code === 'string' ? error.code : undefined;
}
