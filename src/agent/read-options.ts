import { resolve } from 'node:path';
import {
  type AuthorFault,
  type InvalidOption,
  InvalidOptionsError,
  invalidOptions,
  refuseOptions,
  ToolDeclarationError,
  warnAuthor,
} from '../errors/author-fault.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { errorMessage } from '../kernel/error-message.js';
import { isPlainObject, isRecord } from '../kernel/json.js';
import { RECORD } from '../kernel/options.js';
import type { PermissionsOptions } from '../toolbox/permissions/index.js';
import { AGENT_OPTIONS, type AgentOptions, type ConfiguredAgentOptions } from './agent-options.js';
import { adviseForFile, type ConfigFile, readConfigFile, readUntrustedFileIfThere } from './config-file.js';

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

/** Of a file that cannot be read, nobody knows what else is missing. */
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

  /** `whereOf` tells where an option stands: in code, or in one of the files. */
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

  /** Whether something was told of an option, or within it. */
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
