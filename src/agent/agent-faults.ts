import {
  type AuthorFault,
  type InvalidOption,
  InvalidOptionsError,
  ToolDeclarationError,
} from '../errors/author-fault.js';
import { errorMessage } from '../kernel/error-message.js';
import { isRecord } from '../kernel/json.js';
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
   * wrong is not made.
   */
  async of<Part>(option: string, make: () => Part | Promise<Part>): Promise<Part | undefined> {
    if (this.has(option)) return undefined;
    try {
      return await make();
    } catch (error) {
      this.#keep(option, error);
      return undefined;
    }
  }

  /** Throws what was found, if anything was. */
  throwAll(): void {
    const options = this.#options.map((fault) => (this.#isOfFile(fault) ? adviseForFile(fault) : fault));
    if (options.length > 0) throw new InvalidOptionsError([...options, ...this.#declarations.map(asOption)]);
    if (this.#declarations.length > 0) throw new ToolDeclarationError(this.#declarations);
  }

  #isOfFile({ where }: InvalidOption): boolean {
    return this.#files.some((path) => where === path || where.startsWith(`${path}, `));
  }

  #keep(option: string, error: unknown): void {
    const where = this.#whereOf(option);
    if (error instanceof InvalidOptionsError) {
      for (const fault of error.faults)
        this.#options.push({
          ...fault,
          where: `${where}, ${option}`,
          option: fault.option === '' ? option : `${option}.${fault.option}`,
        });
      return;
    }
    if (error instanceof ToolDeclarationError)
      for (const fault of error.faults)
        this.#declarations.push({ ...fault, where: `${where}, ${option}, ${fault.where}` });
    else this.#options.push({ where, option, ...describeFailure(option, error) });
  }
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
