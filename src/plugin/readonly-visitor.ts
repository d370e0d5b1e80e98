import { checkGenerateOptions } from '../cli/generate-project.js';
import { isRecord } from '../kernel/is-record.js';
import { generateNow, isWatching, type NestPluginOptions, type NestProgram } from './generate-now.js';

/**
 * For the Nest CLI with the swc builder and `"typeCheck": true`: the same as {@link before}, after the types
 * were checked and before swc starts.
 *
 * @example
 * ```json
 * { "compilerOptions": { "builder": "swc", "typeCheck": true, "plugins": ["toolwright"] } }
 * ```
 */
export class ReadonlyVisitor {
  /** Set by the CLI. */
  key = '';
  /** Nothing of it goes into the CLI’s own metadata. */
  readonly typeImports = {};
  readonly #options: NestPluginOptions;
  #program: NestProgram | undefined;

  constructor(options: NestPluginOptions = {}) {
    const own = withoutAdded(options);
    checkGenerateOptions(own);
    this.#options = own;
  }

  /** Called for each source file. */
  visit(program: NestProgram): void {
    this.#program = program;
  }

  /** Called when all were seen. */
  collect(): object {
    const { complaints, hasFailed } = generateNow(this.#options, this.#program);
    if (complaints !== '') process.stderr.write(`${complaints}\n`);
    // The CLI takes no notice of what is thrown here.
    if (hasFailed && !isWatching()) process.exit(1);
    return {};
  }
}

/** The CLI adds these two to the options of each visitor. */
function withoutAdded(options: NestPluginOptions): NestPluginOptions {
  if (!isRecord(options)) return options;
  const { pathToSource: _1, readonly: _2, ...own } = options;
  return own;
}
