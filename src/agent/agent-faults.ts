import {
  type AuthorFault,
  type InvalidOption,
  InvalidOptionsError,
  ToolDeclarationError,
} from '../errors/author-fault.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { errorMessage } from '../kernel/error-message.js';
import { isPlainObject, isRecord } from '../kernel/json.js';
import { adviseForFile } from './config-file.js';

/** Everything that is wrong with what an agent is made from, so that it is told all at once. */
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

  /** An option that is wrong. */
  add(option: string, { problem, fix }: Pick<InvalidOption, 'problem' | 'fix'>): void {
    this.#options.push({ where: this.#whereOf(option), option, problem, fix });
  }

  /** A fault that is known with its place. */
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

  /** Mistakes in declarations of tools. */
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

  /** What was found, if anything was. */
  get error(): InvalidOptionsError | ToolDeclarationError | undefined {
    const options = this.#options.map((fault) => (this.#isOfFile(fault) ? adviseForFile(fault) : fault));
    if (options.length > 0) return new InvalidOptionsError([...options, ...this.#declarations.map(asOption)]);
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
    else if (option === '' || isUnavailable(error)) throw error;
    else this.#options.push({ where, option, ...describeFailure(option, error) });
  }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof ToolwrightError && error.name === 'SandboxUnavailable';
}

/** The name of a part that stands before its settings: `{ sqlite: { … } }`. */
function nameIn(given: unknown): string | undefined {
  if (!isRecord(given) || !isPlainObject(given)) return undefined;
  const [entry, second] = Object.entries(given);
  return entry !== undefined && second === undefined && isRecord(entry[1]) ? entry[0] : undefined;
}

function asOption(fault: AuthorFault): InvalidOption {
  return { ...fault, option: '' };
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
